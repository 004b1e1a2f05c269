"""`tabulary study sparse-tables --quick`: the numbers, figures and page that it leaves, and going on with it."""

import csv
import json
import math
import re
import shutil
from collections import defaultdict

import numpy as np
import pytest

from tabulary import datasets
from tabulary.cli.app import run
from tabulary_papers.sparse_tables import SparseTables

pytestmark = pytest.mark.slow

COMMAND = ["study", "sparse-tables", "--quick"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    # In processes of their own, each with one thread: threads of one process would wait for each other.
    path = tmp_path_factory.mktemp("study") / "out"
    assert run([*COMMAND, "-o", str(path)]) == 0
    return path


def rows(folder, name):
    with (folder / "numbers" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def grouped(found, *keys):
    groups = defaultdict(list)
    for row in found:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def test_every_repetition_of_the_quick_grid_is_a_row(folder):
    study = SparseTables.quick()
    groups = grouped(rows(folder, "trials"), "table", "method", "epsilon")
    assert len(groups) == len(study.tables) * len(study.methods) * len(study.epsilons)
    assert {len(own) for own in groups.values()} == {study.repetitions}
    for row in rows(folder, "trials"):
        assert float(row["max_l1"]) >= 0
        if row["unfitted"] == "0":
            assert 0 <= float(row["mle_l1"]) <= 2
            assert float(row["g2_change"]) >= 0


def test_the_label_as_published_is_told_from_what_is_promised(folder):
    for row in rows(folder, "trials"):
        factor = float(row["true_epsilon"]) / float(row["epsilon"])
        expected = {"fungus": 2 / 3, "journey-to-work": 2.625 / 1.3203125}[row["table"]]
        assert factor == pytest.approx(expected if row["method"] == "as published" else 1)


def test_the_redundant_program_of_the_journey_to_work_is_infeasible_in_every_repetition(folder):
    own = grouped(rows(folder, "trials"), "table", "method")
    for method in ("as published", "exact calibration"):
        assert all(row["infeasible"] == "1" for row in own["journey-to-work", method])
        assert all(float(row["b"]) > 0 for row in own["journey-to-work", method])


def test_the_number_of_people_is_kept_by_plans_and_not_as_published(folder):
    for (table, epsilon), own in grouped(rows(folder, "trials"), "table", "epsilon").items():
        truth = datasets.load(table).total
        spread = {
            method: math.sqrt(np.mean([(float(row["sample_size"]) - truth) ** 2 for row in each]))
            for (method,), each in grouped(own, "method").items()
        }
        for method in ("least squares", "shrinkage"):
            assert spread[method] < spread["as published"], (table, epsilon)
        if table == "fungus":
            assert spread["least squares"] == spread["shrinkage"] == 0


def test_the_page_has_the_verdict_both_tables_and_six_figures(folder):
    page = (folder / "index.html").read_text()
    assert "The verdict" in page
    assert "Table 7 of the paper" in page
    assert "Table 8 of the paper" in page
    always = re.search(r"Infeasible in every repetition at every ε: ([^<]*)", page)
    assert "journey-to-work (as published, exact calibration" in always[1]
    figures = sorted(path.name for path in (folder / "figures").glob("*.svg"))
    assert [name[:8] for name in figures] == [f"figure-{number}" for number in range(1, 7)]
    for path in (folder / "figures").glob("*.svg"):
        drawing = path.read_text()
        for word in ("fungus", "journey-to-work", "as published", "least squares"):
            assert word in drawing
    assert "n = 2,291" in (folder / "figures" / "figure-1-sample-size.svg").read_text()
    assert "fungus 1.34, journey-to-work 1.38." in (folder / "figures" / "figure-4-estimates.svg").read_text()


def test_an_interrupted_grid_goes_on_with_the_same_numbers(folder, tmp_path, monkeypatch, capsys):
    # Figures take longer than what is left to do.
    monkeypatch.setattr(SparseTables, "report", lambda study, sheets: [])
    again = tmp_path / "out"
    shutil.copytree(folder, again)
    journal = again / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-2]))
    assert run([*COMMAND, "--processes", "1", "-o", str(again)]) == 0
    assert str(again / "index.html") in capsys.readouterr().out.replace("\n", "")
    assert sorted(journal.read_text().splitlines(keepends=True)) == sorted(lines)
    assert rows(again, "trials") == rows(folder, "trials")


def test_other_settings_do_not_go_on_with_it(folder, capsys):
    settings = json.loads((folder / "study.json").read_text())["settings"]
    assert (settings["repetitions"], len(settings["epsilons"])) == (3, 3)
    assert run([*COMMAND, "--repetitions", "2", "-o", str(folder)]) == 2
    assert "differs in its settings" in " ".join(capsys.readouterr().err.split())
    assert run([*COMMAND, "--paper-grid", "-o", str(folder)]) == 2


def test_the_help_has_an_example(capsys):
    assert run(["study", "sparse-tables", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Example: tabulary study sparse-tables --quick" in said
    assert "--paper-grid" in said
