"""`tabulary study risk-utility` as a custodian runs it."""

import shlex
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabulary.cli.app import run
from tests.pages import blocks, lines_of

pytestmark = pytest.mark.slow

HOW_TO = "docs/how-to/weigh-risk-and-utility.md"
CELLS = [
    (sex, age, job)
    for sex in ("F", "M")
    for age in ("0-14", "15-64", "65+")
    for job in ("none", "paid")
    if not (age == "0-14" and job == "paid")
]
PEOPLE = (1913, 2017, 5231, 1009, 211, 2011, 1213, 6359, 907, 419)


def command(line):
    return shlex.split(line)[1:]


@pytest.fixture
def census(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Pictures take longer than everything else; the unit tests look at them.
    monkeypatch.setattr(import_module("tabulary.release.drawing"), "png", lambda chart: b"")
    monkeypatch.setattr(import_module("tabulary.release.drawing"), "svg", lambda chart: "")
    (tmp_path / "census.toml").write_text(blocks(HOW_TO, "toml")[0], encoding="utf-8")
    frame = pd.DataFrame(CELLS, columns=["sex", "age", "job"]).iloc[np.repeat(np.arange(len(CELLS)), PEOPLE)]
    frame.to_parquet(tmp_path / "people.parquet", index=False)
    return tmp_path


def test_the_commands_of_the_how_to_page_leave_confidential_pages(census, capsys):
    quick, thorough, *_ = lines_of(HOW_TO, "tabulary")
    # In a process of their own, as by default, and in this one.
    assert run(command(quick)) == 0
    assert run([*command(thorough), "--processes", "1", "--repetitions", "2"]) == 0
    said = capsys.readouterr()
    assert "CONFIDENTIAL: the page is computed from exact counts" in said.err
    assert "Page: first-look/index.html" in said.out
    for number in map(str, (*PEOPLE, sum(PEOPLE))):
        assert number not in said.out + said.err
    for folder in ("first-look", "confidential"):
        assert (census / folder).stat().st_mode & 0o077 == 0
        assert "<strong>CONFIDENTIAL</strong>" in (census / folder / "index.html").read_text()
        assert (census / folder / "CONFIDENTIAL.txt").exists()
    assert not list(census.glob("*.sqlite"))


def test_the_public_page_opens_no_record(census, capsys):
    *_, publish, study = map(command, lines_of(HOW_TO, "tabulary"))
    assert run(publish) == 0
    (census / "people.parquet").unlink()
    capsys.readouterr()
    assert run([*study, "--processes", "1", "--mechanism", "margins"]) == 0
    said = capsys.readouterr()
    assert "CONFIDENTIAL" not in said.out + said.err
    page = (census / "may-be-shown" / "index.html").read_text()
    assert "CONFIDENTIAL" not in page
    assert "No record was opened for this page" in page


def test_what_is_kept_of_an_interrupted_study_is_called_confidential_where_it_is(census, capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    *_, publish, public = map(command, lines_of(HOW_TO, "tabulary"))
    assert run(publish) == 0
    monkeypatch.setattr("tabulary.cli.study.run", interrupted)
    for options, confidential in (["study", "risk-utility", "census.toml", "--quick"], True), (public, False):
        capsys.readouterr()
        assert run(options) != 0
        said = " ".join(capsys.readouterr().err.split())
        assert "give the same command again to go on" in said
        assert ("What was done is kept, CONFIDENTIAL as it is" in said) == confidential


def test_the_python_of_the_how_to_page_runs(census):
    names = {}
    exec(compile(blocks(HOW_TO, "python")[0], HOW_TO, "exec"), names)
    assert names["page"] == Path("confidential-too/index.html")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--margin", "[sex age job]"], "no table of the plan holds [sex age job]"),
        (["--mechanism", "magic"], "'magic' is not known"),
        (["--epsilon", "none"], "epsilon"),
        (["--rho", "1"], "amounts of ρ are given, but the plan promises"),
        (["--public", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_done(options, said, census, capsys):
    assert run(["study", "risk-utility", "census.toml", *options, "-o", "out"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (census / "out").exists()


def test_a_record_outside_the_domain_is_told_of_without_its_value(census, capsys):
    pd.DataFrame([("X-secret", "65+", "none")], columns=["sex", "age", "job"]).to_parquet("people.parquet")
    assert run(["study", "risk-utility", "census.toml", "--quick", "--processes", "1"]) == 2
    said = capsys.readouterr()
    assert "column 'sex' holds a value outside its domain" in " ".join(said.err.split())
    assert "secret" not in said.out + said.err
