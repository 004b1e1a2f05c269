"""Reconstructed tables by the commands, from a plan file and a small file of records."""

import csv
import io
from itertools import product

import numpy as np
import pytest

import tabulary as tb
from tabulary.cli.app import run

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.job]
levels = ["none", "paid"]
{age}
[privacy]
epsilon = 2
[tables]
margins = "{margins}"
[mechanism]
{mechanism}
"""
AGE = """
[domain.age]
levels = ["0-14", "15-64", "65+"]
"""
LP = 'name = "fourier"\nreconstruct = "lp"\nrounding = "controlled"'


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(3)
    rows = [
        cell
        for cell in product("FM", ["none", "paid"], ["0-14", "15-64", "65+"])
        for _ in range(generator.integers(5, 60))
    ]
    with (tmp_path / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("sex", "job", "age"), *rows])
    return tmp_path


def write_plan(folder, mechanism, *, margins="[sex][sex job]", age=""):
    path = folder / "plan.toml"
    path.write_text(PLAN.format(mechanism=mechanism, margins=margins, age=age))
    return str(path)


@pytest.mark.parametrize(
    ("age", "margins"),
    [("", "[sex][sex job]"), (AGE, "[sex age][age job]")],
    ids=["binary", "padded to bits"],
)
def test_a_reconstructed_release_is_made_shown_and_verified(folder, capsys, age, margins):
    out = folder / "out"
    assert run(["release", write_plan(folder, LP, margins=margins, age=age), "-o", str(out)]) == 0
    release = tb.Release.load(out)
    assert release.plan.mechanism == "fourier"
    assert release.plan.reconstruct == "lp"
    assert release.plan.rounding == "controlled"
    for table in release:
        assert table.counts.dtype == np.int64
        assert (table.counts >= 0).all()
    assert len({int(table.total) for table in release}) == 1
    capsys.readouterr()
    margin = release.margins[-1]
    assert run(["show", str(out), *margin]) == 0
    assert "±" in capsys.readouterr().out
    assert run(["verify", str(out)]) == 0
    assert "every file and every claim is correct" in capsys.readouterr().out


def test_a_program_reads_whole_numbers_and_the_simulated_interval(folder, capsys):
    out = folder / "out"
    assert run(["release", write_plan(folder, LP), "-o", str(out)]) == 0
    capsys.readouterr()
    assert run(["show", str(out), "sex", "job", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    table = tb.Release.load(out)["sex", "job"]
    assert [int(row["count"]) for row in rows] == table.counts.reshape(-1).tolist()
    lower, upper = table.interval()
    assert [float(row["lower_95"]) for row in rows] == pytest.approx(lower.reshape(-1), abs=1e-6)
    assert [float(row["upper_95"]) for row in rows] == pytest.approx(upper.reshape(-1), abs=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        'name = "efron-stein"',
        'name = "efron-stein"\nreconstruct = "shift"',
        'name = "margins"\nreconstruct = "least-squares"\nrounding = "nearest"',
        'reconstruct = "least-squares"',
    ],
)
def test_other_reconstructions_can_be_asked_for(folder, mechanism, capsys):
    out = folder / "out"
    assert run(["release", write_plan(folder, mechanism), "-o", str(out)]) == 0
    assert run(["verify", str(out)]) == 0


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        ('name = "furier"', "furier"),
        ('name = "fourier"\nreconstruct = "magic"', "magic"),
        ('name = "fourier"\nreconstruct = "lp"\nrounding = "upwards"', "upwards"),
        ('name = "fourier"\nrounding = "nearest"', "controlled"),
        ('name = "cells"\nreconstruct = "shift"', "efron-stein"),
        ('name = "fourier"\nrecontruct = "lp"', "recontruct"),
        ('name = "fourier"\nreconstruct = 7', "reconstruct"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "release"])
def test_what_cannot_be_is_refused_and_nothing_is_written(folder, capsys, command, mechanism, said):
    out = folder / "out"
    plan = write_plan(folder, mechanism)
    assert run(["plan", plan] if command == "plan" else ["release", plan, "-o", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_a_full_table_that_does_not_fit_is_refused_with_the_way_out(folder, capsys):
    path = folder / "wide.toml"
    attributes = "\n".join(f'[domain.x{i}]\nlevels = ["0", "1"]' for i in range(30))
    path.write_text(
        f'[data]\nsource = "people.csv"\n{attributes}\n[privacy]\nepsilon = 1\n[tables]\nk_way = 1\n'
        f'[mechanism]\nname = "fourier"\nreconstruct = "lp"\n'
    )
    assert run(["plan", str(path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "1,073,741,824 cells" in said
    assert "reconstruct = 'shrink'" in said


def test_another_face_needs_no_record_plan_file_or_ledger_and_spends_nothing(folder, capsys):
    plan = write_plan(folder, 'name = "margins"')
    with (folder / "plan.toml").open("a") as file:
        file.write('\n[ledger]\nfile = "book.ledger"\naccount = "people"\n')
    book = str(folder / "book.ledger")
    assert run(["ledger", "create", book, "--account", "people", "--epsilon", "2"]) == 0
    assert run(["release", plan, "-o", str(folder / "out")]) == 0
    first = tb.Release.load(folder / "out")
    for name in ("people.csv", "plan.toml", "book.ledger"):
        (folder / name).rename(folder / f"gone-{name}")
    before = (folder / "gone-book.ledger").read_bytes()
    none, back = str(folder / "none"), str(folder / "back")
    assert run(["rebuild", str(folder / "out"), "-o", none, "--reconstruct", "none"]) == 0
    assert run(["rebuild", none, "-o", back]) == 0
    assert "Nothing was spent." in capsys.readouterr().out
    assert (folder / "gone-book.ledger").read_bytes() == before
    for margin in first.margins:
        assert (tb.Release.load(none)[margin].counts == first[margin].estimate).all()
        assert (tb.Release.load(back)[margin].counts == first[margin].counts).all()


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        ("empty", [], "the folder has no manifest.json. Give a folder that `tabulary release` wrote."),
        ("nowhere", [], "that is not a folder"),
        ("damaged", [], "measurements.parquet is not a plain file of the stated"),
        ("out", ["--reconstruct", "magic"], "reconstruct must be one of"),
        ("out", ["--rounding", "magic"], "rounding must be one of"),
        ("out", ["--format", "pdf"], "there is no format 'pdf'"),
        ("out", ["--sign", "no.pem"], "no.pem"),
    ],
)
def test_a_face_that_cannot_be_made_is_refused_and_nothing_is_written(
    folder, capsys, source, options, reason
):
    plan = write_plan(folder, 'name = "margins"')
    for name in ("out", "damaged"):
        assert run(["release", plan, "-o", str(folder / name)]) == 0
    (folder / "empty").mkdir()
    measured = folder / "damaged" / "measurements.parquet"
    measured.write_bytes(measured.read_bytes()[:100])
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert run(["rebuild", str(folder / source), "-o", str(folder / "new"), *options]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("place", "reason"), [("out", "already exists"), ("out/tables/new", "is inside the release")]
)
def test_a_place_for_another_face_is_refused_before_any_table_is_made(
    folder, capsys, monkeypatch, place, reason
):
    assert run(["release", write_plan(folder, 'name = "margins"'), "-o", str(folder / "out")]) == 0
    monkeypatch.setattr(tb.Release, "rebuild", lambda *_, **__: pytest.fail("tables were made"))
    assert run(["rebuild", str(folder / "out"), "-o", str(folder / place)]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())
    assert run(["verify", str(folder / "out")]) == 0


@pytest.mark.parametrize("command", [["show"], ["show", "sex"], ["test", "sex"], ["verify"]])
def test_a_folder_that_is_no_release_is_not_called_a_damaged_one(folder, capsys, command):
    (folder / "empty").mkdir()
    name, *margin = command
    assert run([name, str(folder / "empty"), *margin]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no release at" in said
    assert "Give a folder that `tabulary release` wrote." in said
    assert "is not as it was published" not in said
