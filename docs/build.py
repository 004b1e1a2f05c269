"""Writes the generated pages of the documentation: part of `make docs`. With `--pictures`, the pictures too.

`tests/functional/test_reference.py` fails when a page is not what this would write.
"""

import sys
from pathlib import Path

import tabulary as tb
from docs.command_pages import command_pages
from docs.python_pages import python_pages
from tabulary.release.figure import whisker_svg

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
# Folders in which every page is generated: a page that nothing writes any more is removed.
GENERATED_FOLDERS = ("commands", "python")


def generated_pages() -> dict[str, str]:
    """Return every generated page, by its path below `docs/reference`."""
    return {**command_pages(), **python_pages()}


def picture() -> str:
    """Return a released table with its error bars, as the README shows it."""
    records = tb.Records.from_arrow(tb.datasets.people(20_000, seed=7), tb.datasets.people_domain())
    work = tb.Workload.k_way(records.domain, 1).weighted({})
    with records:
        plan = tb.plan(records.domain, work, privacy=tb.PureDP("1/10"))
        return whisker_svg(tb.release(records, plan)["employment",])


def write_pages() -> None:
    """Write every generated page, and remove those that are no longer generated."""
    pages = generated_pages()
    for folder in GENERATED_FOLDERS:
        (REFERENCE / folder).mkdir(exist_ok=True)
        for page in (REFERENCE / folder).glob("*.md"):
            if f"{folder}/{page.name}" not in pages:
                page.unlink()
    for name, text in pages.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    print(f"Wrote {len(pages)} pages of the reference below {REFERENCE}")


def draw_pictures() -> None:
    """Draw every picture of the pages again. Takes minutes."""
    # Drawing charts needs Altair; the pages and their tests do not.
    from docs import pictures

    (DOCS / "images" / "released-table.svg").write_text(picture(), encoding="utf-8")
    pictures.draw()
    print(f"Drew the pictures below {DOCS / 'images'}")


if __name__ == "__main__":
    if "--pictures" in sys.argv[1:]:
        draw_pictures()
    else:
        write_pages()
