"""`tabulary audit`, as a data-protection officer uses it."""

import json

import pytest

from tabulary.cli import audit as command
from tabulary.cli.app import run
from tabulary.noise import ExactSampler
from tabulary.workflows.auditing import audit
from tabulary.workflows.auditing.evidence import NarrowedSampler
from tests.entropy import SeededEntropy

pytestmark = pytest.mark.slow

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
from = "years"
bins = [0, 15, 65]
[privacy]
epsilon = 1
[tables]
margins = "[sex age]"
"""
PEOPLE = "sex,years\nF,3\nM,40\nF,70\nM,20\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "census.toml").write_text(PLAN)
    return tmp_path


def said(capsys):
    captured = capsys.readouterr()
    # A sentence may be folded within a cell of the grid.
    return " ".join(captured.out.replace("│", " ").split()), " ".join(captured.err.split())


def test_a_sound_plan_holds_and_no_records_are_needed(here, capsys):
    assert run(["audit", "census.toml", "--seed", "one"]) == 0
    out, _ = said(capsys)
    assert "ε = 1 (add-remove)" in out
    assert "all 6 records" in out
    assert "confidence 0.999999" in out
    assert "caught" in out
    assert "The promise holds." in out
    assert not (here / "people.csv").exists()


def test_the_report_as_json_is_the_same_again_with_the_same_seed(here, capsys):
    reports = []
    for _ in range(2):
        assert run(["audit", "census.toml", "--seed", "one", "--json", "--draws", "2500"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    first, again = reports
    assert first == again
    assert first["verdict"] == "holds"
    assert first["promise"] == {"kind": "pure-dp", "epsilon": "1"}
    assert first["cost"]["method"] == "every pair"
    assert first["cost"]["largest_found"] == "1"
    assert first["draws"]["draws_of_each_input"] == 2500
    assert 0 < first["draws"]["epsilon_at_least"] <= 1 < first["twin"]["epsilon_at_least"]
    assert first["twin"]["caught"] is True
    assert first["release_digest"] is None


def test_noise_that_is_too_small_breaks_the_promise_with_exit_code_1(here, capsys, monkeypatch):
    sampler = NarrowedSampler(ExactSampler(SeededEntropy(1)))
    monkeypatch.setattr(command, "audit", lambda plan, **options: audit(plan, sampler=sampler))
    assert run(["audit", "census.toml"]) == 1
    out, _ = said(capsys)
    assert "THE PROMISE IS BROKEN." in out
    assert "The draws tell neighbouring inputs apart better than the noise of the plan allows." in out
    assert run(["audit", "census.toml", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "broken"


def test_an_audit_that_misses_the_twin_says_so_with_exit_code_3(here, capsys):
    (here / "census.toml").write_text(PLAN.replace("epsilon = 1", "epsilon = 12"))
    assert run(["audit", "census.toml", "--draws", "1000", "--seed", "one"]) == 3
    out, _ = said(capsys)
    assert "INCONCLUSIVE" in out
    assert "--draws 4000" in out


def test_a_release_folder_is_verified_and_its_plan_is_audited(here, capsys):
    (here / "people.csv").write_text(PEOPLE)
    assert run(["release", "census.toml", "-o", "out"]) == 0
    capsys.readouterr()
    assert run(["audit", "out", "--seed", "one"]) == 0
    out, _ = said(capsys)
    assert "the folder was verified" in out
    assert "The noise that was drawn for the release is secret; no audit can check it." in out
    table = next((here / "out" / "tables").glob("*.csv"))
    table.write_text(table.read_text() + "F,0-14,1\n")
    assert run(["audit", "out"]) == 2
    assert "is not as it was published" in said(capsys)[1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere.toml"], "there is no plan file and no release folder at nowhere.toml"),
        (["people.csv"], "people.csv"),
        (["folder"], "there is no release at"),
        (["census.toml", "--draws", "10"], "an audit needs at least 1,000 draws, not 10"),
        (["census.toml", "--confidence", "1"], "the confidence of an audit must lie between"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_exit_code_2(here, capsys, arguments, expected):
    (here / "people.csv").write_text(PEOPLE)
    (here / "folder").mkdir()
    assert run(["audit", *arguments]) == 2
    assert expected in said(capsys)[1]


def test_a_plan_over_more_records_than_can_be_tried_is_audited_by_its_proof(here, capsys):
    levels = "".join(f'[domain.x{i}]\nlevels = ["y", "n"]\n' for i in range(40))
    margins = "".join(f"[x{i} x{i + 1}]" for i in range(2))
    plan = f'[data]\nsource = "people.csv"\n{levels}[privacy]\nrho = 0.125\n[tables]\nmargins = "{margins}"\n'
    (here / "wide.toml").write_text(plan)
    assert run(["audit", "wide.toml", "--seed", "one", "--draws", "1000", "--confidence", "0.99"]) == 0
    out, _ = said(capsys)
    assert "by the plan's own proof" in out
    assert "The promise holds." in out
