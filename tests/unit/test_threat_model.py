"""The page of threats names assets, measures and tests that there are."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
CITED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def _tables(heading):
    """The rows of every table with this heading, by the title of their section."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("|")]
        if lines and lines[0] == heading:
            found[title] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


ASSETS = [row[0] for (rows,) in [_tables("| asset | why |").values()] for row in rows]
MEASURES = _tables("| asset | measure | held by |")


@cache
def _tests_of(file):
    """The names of the tests in a file, read and not run."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_the_page_names_exists():
    cited = CITED.findall(PAGE)
    assert len(cited) > 80
    missing = [
        f"{file}::{name}"
        for file, name in cited
        if not (ROOT / file).is_file() or name not in _tests_of(file)
    ]
    assert not missing


def test_every_measure_names_the_test_that_holds_it():
    assert len(MEASURES) == 9
    unheld = [(who, row[1]) for who, rows in MEASURES.items() for row in rows if not CITED.search(row[2])]
    assert not unheld


def test_every_asset_is_protected_by_something_and_nothing_else_is_called_one():
    assert {row[0] for rows in MEASURES.values() for row in rows} == set(ASSETS)


def test_the_page_says_what_is_not_defended():
    _, _, undefended = PAGE.partition("\n## What is not defended\n")
    assert len(re.findall(r"^- \*\*", undefended, re.MULTILINE)) >= 10
