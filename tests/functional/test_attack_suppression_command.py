"""`tabulary attack suppression`: a verdict on published tables, a page with each interval, and what it refuses."""

import numpy as np
import pytest
import typer

import tabulary as tb
from docs import build
from tabulary.cli.app import command_line, run
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.suppress.pages.files import json_bytes, read_table
from tests.functional.test_examples_in_the_docs import blocks, run_commands

HOW_TO = "docs/how-to/attack-suppressed-tables.md"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with the files of the how-to page."""
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("genes.csv", "district.csv", "adults.csv"), blocks(HOW_TO, "csv"), strict=True):
        (tmp_path / name).write_text(text)
    (tmp_path / "ages.toml").write_text(blocks(HOW_TO, "toml")[0])
    return tmp_path


@pytest.fixture
def said(capsys):
    """What a command line says, as one line; it must have this code."""

    def ask(*arguments, code=0):
        assert run(list(arguments)) == code, capsys.readouterr().err
        found = capsys.readouterr()
        return " ".join((found.out if code == 0 else found.err).split())

    return ask


def test_intervals_of_every_suppressed_cell_are_printed_with_a_verdict(said):
    words = said("attack", "suppression", "genes.csv")
    assert "│ blue │ 0 to 55 │ 5 to 105 │ 0 to 55 │ 110 │" in words
    assert "No suppressed number follows exactly from this table. That is no proof of privacy." in words


def test_the_rule_leaves_two_sets_and_a_breach(said):
    words = said("attack", "suppression", "genes.csv", "--threshold", "5")
    assert "2 possible sets of sensitive cells: {1, 3, 5} or {2, 4, 6}" in words
    assert (
        "Cells 2, 4 and 6. Values then: 1: 50 to 55, 2: 5, 3: 50 to 55, 4: 0 to 5, 5: 100, 6: 0 to 5."
        in words
    )
    assert "Cell 5: all 100 have it." in words


def test_without_the_least_number_of_cells_more_sets_are_left(said):
    words = said("attack", "suppression", "genes.csv", "--threshold", "5", "--any-number")
    assert "as few cells" not in words
    assert "12 possible sets" in words
    assert "No cell. Values then:" in words
    assert "And 2 more." in words


def test_the_prior_tells_which_set_it_was_and_what_that_makes_of_a_person(said):
    words = said("attack", "suppression", "genes.csv", "--threshold", "5", "--probability", "0.4")
    assert "Cells 1, 3 and 5, probability above 99.9 %" in words
    assert "0.40 → 0.77" in words
    assert "The largest change is 92% of the prior." in words


def test_the_prior_may_stand_in_the_file(said, here):
    lines = (here / "genes.csv").read_text().splitlines()
    lines = [lines[0] + ",probability", *(f"{line},{'' if 'total' in line else 0.4}" for line in lines[1:])]
    (here / "genes.csv").write_text("\n".join(lines))
    assert "0.40 → 0.77" in said("attack", "suppression", "genes.csv", "--threshold", "5")


def test_two_tables_give_away_what_neither_does_alone(said):
    assert "No suppressed number follows exactly" in said("attack", "suppression", "district.csv")
    assert "No suppressed number follows exactly" in said("attack", "suppression", "adults.csv")
    words = said("attack", "suppression", "district.csv", "adults.csv", "--parts", "ages.toml")
    assert "6 of 6 suppressed numbers follow exactly" in words
    assert "6 of them follow from several tables together" in words
    assert "│ 65+ │ = 8 │ = 17 │ 25 │" in words


def test_people_whose_value_is_certain_are_named_by_their_cell(said, here):
    (here / "few.csv").write_text("eye,count,people\nblue,[c],7\nbrown,[c],9\ntotal,16,\n")
    words = said("attack", "suppression", "few.csv")
    assert "blue: all 7 have it, which follows." in words


def test_the_page_is_written_once_and_never_over_another(said, here):
    assert said("attack", "suppression", "genes.csv", "--threshold", "5", "-o", "page.html").endswith(
        "Wrote page.html"
    )
    page = (here / "page.html").read_text()
    assert "If cells 2, 4 and 6 were sensitive" in page
    assert "already exists" in said("attack", "suppression", "genes.csv", "-o", "page.html", code=2)
    assert (here / "page.html").read_text() == page
    assert "its folder does not exist" in said(
        "attack", "suppression", "genes.csv", "-o", "no/page.html", code=2
    )


def test_what_tabulary_suppress_wrote_can_be_attacked(said, here):
    (here / "cells.csv").write_text("eye,hair,people,count\na,x,60,25\na,y,50,20\nb,x,70,31\nb,y,80,40\n")
    said(
        "suppress",
        "simulatable",
        "cells.csv",
        "--by",
        "eye",
        "--by",
        "hair",
        "--probability",
        "0.45",
        "-o",
        "out",
    )
    for place in ("out", "out/table.json", "out/table.csv"):
        assert "Nothing is suppressed." in said("attack", "suppression", place)


def test_a_folder_and_a_file_are_attacked_together(said, here):
    (here / "old").mkdir()
    table = SuppressedTable(
        tb.Domain({"age": ["0-17", "18+"]}), np.array([np.nan, np.nan]), {(): np.array(80)}
    )
    (here / "old" / "table.json").write_bytes(json_bytes(table))
    (here / "new.csv").write_text("age,count\n0-17,30\n18+,[c]\n")
    words = said("attack", "suppression", "old", "new.csv")
    assert "Table 1, old" in words
    assert "Table 2, new" in words
    assert "│ 18+ │ = 50 │" in words
    assert "from several tables together" in words


def test_amounts_and_another_word_for_total_are_read_if_that_is_said(said, here):
    (here / "sales.csv").write_text("branch,count\nmining,2.5\ntrade,[c]\nAll,10\n")
    words = said("attack", "suppression", "sales.csv", "--amounts", "--total-label", "All")
    assert "= 7.5" in words


def test_options_may_come_before_the_files(said):
    first = said("attack", "suppression", "--threshold", "5", "genes.csv")
    assert first == said("attack", "suppression", "genes.csv", "--threshold", "5")


def test_the_attack_must_be_named(said):
    assert "No such command 'genes.csv'" in said("attack", "genes.csv", code=2)
    assert "suppression" in said("attack", code=2)


def test_help_and_reference_list_every_attack():
    commands = typer.main.get_command(command_line()).commands["attack"].commands
    assert set(commands) == {"suppression", "differencing", "averaging"}
    pages = build.generated_pages()
    assert "## `tabulary attack suppression`" in pages["commands/attack.md"]
    assert "## `tabulary suppress simulatable`" in pages["commands/suppress.md"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("eye,hair,count\na,x,9\na,y,[c]\na,total,5\nb,x,[c]\nb,y,3\n", "contradict"),
        ("eye,count,people\nblue,9,5\nbrown,[c],3\n", "above the number of people"),
        ("eye,count,people\nblue,[c],5\nbrown,[c],3\ntotal,10,\n", "contradict"),
        ("eye,hair,count\na,x,9\nb,y,[c]\n", "not every combination"),
        ("eye,count\nblue,3\nblue,4\n", "has two rows"),
        ("eye,count\nblue,nan\n", "no number"),
        ("eye,number\nblue,3\n", "no column 'count'"),
        ("", "no rows"),
        ("eye,count,people,probability\na,[c],40,1.5\nb,[c],40,0.3\ntotal,20,,\n", "between 0 and 1"),
    ],
)
def test_what_is_no_table_or_cannot_be_is_refused(said, here, text, words):
    (here / "bad.csv").write_text(text)
    before = sorted(path.name for path in here.iterdir())
    assert words in said("attack", "suppression", "bad.csv", "-o", "page.html", code=2)
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.csv"], "there is no table 'absent.csv'"),
        (["genes.csv", "--threshold", "-1"], "threshold"),
        (["genes.csv", "--probability", "1.5"], "between 0 and 1"),
        (["district.csv", "--probability", "0.5"], "how many people"),
        (["district.csv", "adults.csv"], "parts"),
        (["genes.csv", "--parts", "absent.toml"], "absent.toml"),
        (["genes.csv", "--parts", "wrong.toml"], "is not of the form"),
        (["genes.csv", "--parts", "nose.toml"], "'nose'"),
        (["genes.csv", "--unknown"], "No such option"),
    ],
)
def test_an_attack_that_cannot_be_is_refused(said, here, arguments, words):
    (here / "wrong.toml").write_text('eye = "blue"\n')
    (here / "nose.toml").write_text('[nose]\nlong = ["very long"]\n')
    assert words in said("attack", "suppression", *arguments, code=2)


def test_the_commands_of_the_how_to_page_work_with_its_files(here, capsys):
    for block in blocks(HOW_TO, ""):
        run_commands(block)
    said = " ".join(capsys.readouterr().out.split())
    assert "{1, 3, 5} or {2, 4, 6}" in said
    assert "6 of 6 suppressed numbers follow exactly" in said
    assert read_table(here / "genes.csv").table.suppressed.all()
    assert (here / "attack.html").exists()
    assert (here / "together.html").exists()
