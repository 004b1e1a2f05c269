"""`tabulary synth` as a person runs it."""

import pandas as pd
import pytest

import tabulary as tb
from tabulary.cli.app import run

PLAN = """
[data]
source = "people.csv"

[domain.sex]
levels = ["F", "M"]

[domain.age]
levels = ["young", "old"]

[domain.job]
levels = ["none", "paid", "own"]

[privacy]
{privacy}

[tables]
k_way = 2

[mechanism]
name = "{mechanism}"
reconstruct = "{reconstruct}"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [("F", "young", "paid")] * 300 + [("M", "old", "none")] * 200 + [("F", "old", "own")] * 100
    pd.DataFrame(rows, columns=["sex", "age", "job"]).to_csv("people.csv", index=False)
    return tmp_path


def plan_file(privacy="rho = 1", mechanism="residual", reconstruct="shrink"):
    from pathlib import Path

    Path("plan.toml").write_text(
        PLAN.format(privacy=privacy, mechanism=mechanism, reconstruct=reconstruct), encoding="utf-8"
    )


def test_rows_of_a_release_folder_spend_nothing_and_are_told_about(folder, capsys):
    plan_file()
    assert run(["release", "plan.toml", "-o", "out"]) == 0
    assert run(["synth", "out", "-o", "rows.csv", "--rows", "250", "--picture", "fit"]) == 0
    said = capsys.readouterr().out
    assert "250 rows of 3 attributes" in said
    assert "2-way" in said
    read = pd.read_csv("rows.csv")
    assert list(read) == ["sex", "age", "job"]
    assert len(read) == 250
    assert set(read["job"]) <= {"none", "paid", "own"}
    assert (folder / "fit.png").exists()


def test_rows_of_records_are_paid_for_once(folder, capsys):
    plan_file()
    with tb.Ledger.create(folder / "ledger.sqlite") as book:
        book.create_account("census", tb.ZCDP("3/2"), tb.Neighbours("add-remove"))
    paid = ["--ledger", "ledger.sqlite", "--account", "census"]
    assert run(["synth", "plan.toml", "-o", "rows.parquet", *paid]) == 0
    assert run(["synth", "plan.toml", "-o", "more.parquet", *paid]) == 2
    assert "Error" in capsys.readouterr().err
    assert not (folder / "more.parquet").exists()
    assert abs(len(pd.read_parquet("rows.parquet")) - 600) < 30


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mwem", "rap", "graphical"])
def test_other_methods_make_rows_too(folder, method):
    plan_file()
    assert run(["synth", "plan.toml", "-o", "rows.csv", "--method", method, "--rows", "50"]) == 0
    assert len(pd.read_csv("rows.csv")) == 50


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["out", "-o", "rows.csv", "--method", "mwem"], "plan file"),
        (["out", "-o", "rows.csv", "--rounds", "3"], "plan file"),
        (["plan.toml", "-o", "rows.txt"], ".csv or .parquet"),
        (["plan.toml", "-o", "people.csv"], "already exists"),
        (["plan.toml", "-o", "rows.csv", "--ledger", "ledger.sqlite"], "need each other"),
        (["plan.toml", "-o", "rows.csv", "--rounds", "3"], "have rounds"),
        (["plan.toml", "-o", "rows.csv", "--checkpoint", "c"], "rap"),
        (["plan.toml", "-o", "nowhere/rows.csv"], "its folder does not exist"),
        (["plan.toml", "-o", "out/rows.csv"], "is inside the release"),
        (["nothing.toml", "-o", "rows.csv"], "there is no release folder and no plan file 'nothing.toml'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_is_refused_and_nothing_is_written(folder, capsys, arguments, words):
    plan_file()
    assert run(["release", "plan.toml", "-o", "out"]) == 0
    capsys.readouterr()
    before = {path.name for path in folder.iterdir()}
    assert run(["synth", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert {path.name for path in folder.iterdir()} == before


def test_rows_follow_from_a_plan_whose_published_tables_may_be_negative(folder):
    plan_file(mechanism="margins", reconstruct="none")
    assert run(["synth", "plan.toml", "-o", "rows.csv"]) == 0
    assert len((folder / "rows.csv").read_text().splitlines()) > 1


def test_a_pure_promise_is_refused_with_the_remedy_where_a_method_needs_another(folder, capsys):
    plan_file(privacy="epsilon = 1", mechanism="margins", reconstruct="none")
    assert run(["synth", "plan.toml", "-o", "rows.csv", "--method", "rap"]) == 2
    assert "mwem" in " ".join(capsys.readouterr().err.split())
