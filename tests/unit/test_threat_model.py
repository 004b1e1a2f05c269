"""The page of threats names assets, measures and tests that there are."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
SECTIONS = dict(section.split("\n", 1) for section in PAGE.split("\n## ")[1:])
CITED = re.compile(r"^    - `(tests/[\w/]+\.py)::(test_\w+)`$", re.MULTILINE)
# Sections that are about no adversary.
OTHERS = ("What is worth protecting", "Where trust ends", "What is not defended")


def _measures():
    """Every measure as the adversary, the asset, and the lines down to the next measure."""
    for adversary in SECTIONS.keys() - set(OTHERS):
        for measure in re.split(r"^- ", SECTIONS[adversary], flags=re.MULTILINE)[1:]:
            asset, _, text = measure.removeprefix("**").partition("**: ")
            yield adversary, asset, text


@cache
def _tests_of(file):
    """The names of the tests in a file, read and not run."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_the_page_names_exists():
    cited = CITED.findall(PAGE)
    assert len(cited) == PAGE.count("::") > 80
    missing = [
        f"{file}::{name}"
        for file, name in cited
        if not (ROOT / file).is_file() or name not in _tests_of(file)
    ]
    assert not missing


def test_every_measure_names_the_test_that_holds_it():
    measures = list(_measures())
    assert len({adversary for adversary, _, _ in measures}) == len(SECTIONS) - len(OTHERS)
    assert not [(adversary, text) for adversary, _, text in measures if not CITED.search(text)]


def test_every_asset_is_protected_by_something_and_nothing_else_is_called_one():
    assets = re.findall(r"^\| (.+?) \|", SECTIONS["What is worth protecting"], re.MULTILINE)[2:]
    assert {asset for _, asset, _ in _measures()} == set(assets)


def test_the_page_says_what_is_not_defended():
    assert len(re.findall(r"^- \*\*", SECTIONS["What is not defended"], re.MULTILINE)) >= 10


def test_the_page_on_security_draws_the_same_boundaries_and_leads_here():
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(r"^```text\n.*?^```$", SECTIONS["Where trust ends"], re.MULTILINE | re.DOTALL)
    assert drawn in security
    assert "docs/explanation/threat-model.md#what-is-not-defended" in security
