"""The generated reference is what the code says today."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs import build

REMEDY = "run `make docs` and commit what it writes"


@pytest.mark.parametrize(
    ("page", "written"),
    [("commands.md", build.command_reference), ("python.md", build.python_reference)],
)
def test_a_generated_page_is_up_to_date(page, written):
    assert (build.DOCS / "reference" / page).read_text(encoding="utf-8") == written(), REMEDY


def test_the_picture_of_the_readme_can_be_drawn():
    assert ElementTree.fromstring(build.picture()).tag.endswith("svg")


def test_every_relative_link_of_the_documentation_leads_somewhere():
    import re

    root = Path(build.DOCS).parent
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    broken = [
        f"{page.relative_to(root)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken
