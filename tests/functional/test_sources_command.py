"""Plan files whose records are in a database or counted by another engine, as a custodian uses them."""

import json
import sqlite3
from contextlib import closing

import psycopg
import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.ledger import Ledger
from tests.databases import PASSWORD

PLAN = """
[data]
source = "{source}"
{more}
[domain.sex]
levels = ["F", "M"]
[domain.age]
from = "age_in_years"
bins = [0, 15, 65]
[privacy]
epsilon = 1
[tables]
margins = "[sex age]"
[ledger]
file = "ledger.sqlite"
account = "people"
"""
PEOPLE = [("F", 3), ("M", 40), ("F", 70), ("M", 20), ("F", 64)]


@pytest.fixture
def write(tmp_path):
    """Write a plan file, and a ledger that can pay for it once."""
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_account("people", tb.PureDP(1), tb.Neighbours())

    def written(source, more=""):
        path = tmp_path / "plan.toml"
        path.write_text(PLAN.format(source=source, more=more))
        return str(path)

    return written


@pytest.fixture
def spent(tmp_path):
    def entries():
        with Ledger.open(tmp_path / "ledger.sqlite", read_only=True) as ledger:
            return len(ledger.account("people").entries())

    return entries


@pytest.fixture
def csv(tmp_path):
    rows = "".join(f"{sex},{age}\n" for sex, age in PEOPLE)
    (tmp_path / "people.csv").write_text(f"sex,age_in_years\n{rows}")
    return "people.csv"


@pytest.fixture
def in_postgresql(postgres_database):
    with closing(psycopg.connect(postgres_database, autocommit=True)) as connection:
        connection.execute("CREATE TABLE people (sex text, age_in_years int)")
        connection.cursor().executemany("INSERT INTO people VALUES (%s, %s)", PEOPLE)
    return postgres_database


def engine_of(folder):
    assert len(tb.Release.load(folder)) == 1
    return json.loads((folder / "manifest.json").read_bytes())["software"]["engine"]


@pytest.mark.parametrize("engine", ["compiled", "duckdb"])
def test_the_engine_for_files_is_named_in_the_plan_file_or_on_the_command_line(
    write, csv, tmp_path, engine, capsys
):
    assert run(["release", write(csv), "-o", str(tmp_path / "out"), "--engine", engine]) == 0
    assert engine_of(tmp_path / "out") == engine


def test_the_command_line_overrides_the_engine_of_the_plan_file(write, csv, tmp_path, capsys):
    path = write(csv, 'engine = "duckdb"')
    assert run(["release", path, "-o", str(tmp_path / "out"), "--engine", "compiled"]) == 0
    assert engine_of(tmp_path / "out") == "compiled"


def test_an_engine_that_counts_no_files_is_refused_and_costs_nothing(write, csv, tmp_path, spent, capsys):
    assert run(["release", write(csv), "-o", str(tmp_path / "out"), "--engine", "spark"]) == 2
    assert "'compiled', 'duckdb'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert spent() == 0


def test_a_release_of_a_table_in_postgresql_takes_the_password_from_the_environment(
    write, in_postgresql, tmp_path, monkeypatch, spent, capsys
):
    assert PASSWORD in in_postgresql
    monkeypatch.setenv("CENSUS_PASSWORD", PASSWORD)
    path = write(in_postgresql.replace(PASSWORD, "${CENSUS_PASSWORD}"), 'table = "people"')
    assert run(["release", path, "-o", str(tmp_path / "out")]) == 0
    assert engine_of(tmp_path / "out") == "postgresql"
    assert spent() == 1
    said = capsys.readouterr()
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    for text in (said.out, said.err, *(file.read_bytes().decode(errors="ignore") for file in files)):
        assert PASSWORD not in text


@pytest.mark.parametrize("command", ["release", "synth", "perturb"])
def test_a_database_that_cannot_be_read_costs_nothing_and_its_secrets_are_not_told(
    write, in_postgresql, tmp_path, spent, capsys, command
):
    path = write(in_postgresql.replace(PASSWORD, "wrong-4712"), 'table = "people"')
    arguments = {
        "release": ["release", path, "-o", str(tmp_path / "out")],
        "synth": ["synth", path, "-o", str(tmp_path / "out.csv"), "--method", "mwem"],
        "perturb": ["perturb", path, "-o", str(tmp_path / "out")],
    }[command]
    assert run(arguments) != 0
    said = "".join(capsys.readouterr())
    assert "Nothing was counted" in said
    assert "wrong-4712" not in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()
    assert spent() == 0


def test_a_missing_variable_is_named_before_anything_is_asked(
    write, in_postgresql, tmp_path, monkeypatch, spent, capsys
):
    monkeypatch.delenv("CENSUS_PASSWORD", raising=False)
    path = write(in_postgresql.replace(PASSWORD, "${CENSUS_PASSWORD}"), 'table = "people"')
    assert run(["plan", path]) == 0
    assert run(["release", path, "-o", str(tmp_path / "out")]) == 2
    assert "'CENSUS_PASSWORD', but the environment has no such variable" in " ".join(
        capsys.readouterr().err.split()
    )
    assert spent() == 0


def test_a_database_in_a_file_is_found_beside_the_plan_file(write, tmp_path, monkeypatch, capsys):
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection:
        connection.execute("CREATE TABLE people (sex text, age_in_years int)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", PEOPLE)
        connection.commit()
    path = write("sqlite:///people.db", 'table = "people"')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(["release", path, "-o", str(tmp_path / "out")]) == 0
    assert engine_of(tmp_path / "out") == "sqlite"
