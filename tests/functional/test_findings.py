"""The page on what the studies say is filled from their folders, and holds nothing else in its tables."""

import json
import re
from pathlib import Path

import pytest

from docs.findings import PAGE, WANTED, filled

ROOT = Path(__file__).parents[2]
PAPERS = {"sparse-tables", "three-approaches", "perturbation", "noise-aware-tests", "suppression", "rap"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "01-all.csv").write_text("table,n,b\nfungus,70,1 | 2\n")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "figure-1.svg").write_text("<svg/>")
    (tmp_path / "study.json").write_text(json.dumps({"study": "small"}))
    return tmp_path


def test_tables_and_figures_take_the_place_of_what_stood_there(folder):
    text = (
        "a\n<!-- study small: tables/01-all.csv [table, b] -->\nold\n<!-- end -->\nb\n"
        '<!-- study small: figures/figure-1.svg "A line that falls." -->\n<!-- end -->\n'
        "<!-- study other: tables/01-all.csv -->\nkept\n<!-- end -->\n"
    )
    found = filled(text, {"small": folder}, lambda name, file: f"../images/{name}.svg")
    assert "old" not in found
    assert "| table | b |\n| --- | ---: |\n| fungus | 1 \\| 2 |\n<!-- end -->" in found
    assert "![A line that falls.](../images/small-figure-1.svg)" in found
    assert "kept" in found
    assert filled(found, {"small": folder}, lambda name, file: f"../images/{name}.svg") == found


def test_every_table_and_figure_of_the_page_is_filled_from_a_study_that_there_is():
    text = PAGE.read_text(encoding="utf-8")
    wanted = list(WANTED.finditer(text))
    assert len(wanted) >= 6
    reference = "\n".join(p.read_text("utf-8") for p in (ROOT / "docs" / "reference").rglob("*.md"))
    for found in wanted:
        study, name, _, words = found.groups()
        assert f"tabulary study {study}" in reference
        if name.endswith(".csv"):
            assert re.search(r"^\| --- \|", found[0], re.MULTILINE), name
        else:
            assert words, f"{name} is not told in words"
            (picture,) = re.findall(r"\]\(\.\./images/(.+?)\)", found[0])
            assert "<svg" in (ROOT / "docs" / "images" / picture).read_text("utf-8")
    # Every study of a paper has its say.
    assert {found[1] for found in wanted} == PAPERS
    # A table that no study filled would be typed by hand.
    outside = WANTED.sub("", text)
    assert not re.search(r"^\| --- \|", outside, re.MULTILINE)
