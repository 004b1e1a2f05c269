"""Bad input at the surface: a clear error with code 2, nothing released, nothing spent, nothing betrayed."""

import os
import subprocess
import sys

import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.ledger import Ledger

SECRET = "quarantined-7431"

PLAN = """
[data]
source = "people.csv"

[domain.sex]
levels = ["F", "M"]

[domain.age]
from = "years"
bins = [0, 15, 65]

[domain.job]
levels = ["none", "paid"]

[privacy]
epsilon = 1

[tables]
margins = "[sex age][age job]"
"""

PEOPLE = "sex,years,job\nF,3,none\nM,40,paid\nF,70,none\nM,20,none\n"


@pytest.fixture
def custody(tmp_path, monkeypatch):
    """A folder with a plan, records and a ledger of ε = 3, and a way to try a release of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "people.csv").write_text(PEOPLE)
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_account("people", tb.PureDP(3), tb.Neighbours())
    return tmp_path


def _spent(folder):
    with Ledger.open(folder / "ledger.sqlite", read_only=True) as ledger:
        return ledger.account("people").spent()


def _try(capsys, *extra):
    code = run(
        ["release", "plan.toml", "-o", "out", "--ledger", "ledger.sqlite", "--account", "people", *extra]
    )
    return code, " ".join(capsys.readouterr().err.split())


def _assert_refused(folder, capsys, *words, spent=None):
    code, said = _try(capsys)
    assert code == 2
    assert said.startswith("Error: ")
    for word in words:
        assert word in said
    assert "Traceback" not in said
    assert SECRET not in said
    assert not (folder / "out").exists()
    assert not list(folder.glob(".tabulary-staging-*"))
    assert _spent(folder) == spent


def test_good_input_is_released_and_paid_for(custody, capsys):
    assert _try(capsys)[0] == 0
    assert _spent(custody) == tb.PureDP(1)
    assert len(tb.Release.load(custody / "out")) == 2


def test_an_unknown_level(custody, capsys):
    (custody / "people.csv").write_text(PEOPLE + f"{SECRET},12,none\n")
    _assert_refused(custody, capsys, "'sex'", "outside its domain", "unknown")


@pytest.mark.parametrize("missing", ["", "NaN", "nan"])
def test_a_missing_value(custody, capsys, missing):
    (custody / "people.csv").write_text(PEOPLE + f"F,{missing},none\n")
    _assert_refused(custody, capsys, "'years'", "unknown")


def test_a_value_below_the_first_bin(custody, capsys):
    (custody / "people.csv").write_text(PEOPLE + "F,-7431,none\n")
    _assert_refused(custody, capsys, "'years'")


def test_an_empty_file(custody, capsys):
    (custody / "people.csv").write_text("")
    _assert_refused(custody, capsys, "people.csv", "empty")


def test_an_absent_file(custody, capsys):
    (custody / "people.csv").unlink()
    _assert_refused(custody, capsys, "people.csv")


def test_a_missing_column(custody, capsys):
    (custody / "people.csv").write_text("sex,job\nF,none\n")
    _assert_refused(custody, capsys, "'years'")


def test_a_duplicate_column(custody, capsys):
    (custody / "people.csv").write_text(f"sex,years,job,sex\nF,3,none,{SECRET}\n")
    _assert_refused(custody, capsys, "more than one column 'sex'")


def test_a_ragged_row(custody, capsys):
    (custody / "people.csv").write_text(PEOPLE + f"F,3,none,{SECRET},{SECRET}\n")
    _assert_refused(custody, capsys, "people.csv")


def test_a_table_above_the_cap(custody, capsys):
    levels = ", ".join(f'"p{i}"' for i in range(10_000))
    numbers = ", ".join(map(str, range(50)))
    text = PLAN.replace("[sex age][age job]", "[post sex grade]").replace(
        "[privacy]",
        f"[domain.post]\nlevels = [{levels}]\n[domain.grade]\nlevels = [{numbers}]\n[privacy]",
    )
    (custody / "plan.toml").write_text(text.replace("[tables]", "[tables]\nmax_cells = 500000"))
    _assert_refused(custody, capsys, "1,000,000 cells", "500,000")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", '"one"', "true", "[1]"])
def test_an_epsilon_that_cannot_be(custody, capsys, epsilon):
    (custody / "plan.toml").write_text(PLAN.replace("epsilon = 1", f"epsilon = {epsilon}"))
    _assert_refused(custody, capsys, "[privacy]", "epsilon")


def test_a_margin_with_an_unknown_attribute(custody, capsys):
    (custody / "plan.toml").write_text(PLAN.replace("[age job]", "[age planet]"))
    _assert_refused(custody, capsys, "[tables]", "'planet'")


def test_a_margin_that_names_an_attribute_twice(custody, capsys):
    (custody / "plan.toml").write_text(PLAN.replace("[age job]", "[age age]"))
    _assert_refused(custody, capsys, "[tables]", "'age' twice")


def test_a_structural_zero_that_the_records_contradict(custody, capsys):
    (custody / "plan.toml").write_text(PLAN + '\n[[structural_zeros]]\nage = "15-64"\njob = "paid"\n')
    _assert_refused(custody, capsys, "impossible")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 1", "epsilon = 1\nepsilom = 2"),
        ("[tables]", "[tables]\ncolour = 3"),
        ("[privacy]", "[priwacy]\nx = 1\n[privacy]"),
        ('from = "years"', 'from = "years"\nlevles = ["a"]'),
    ],
)
def test_a_plan_file_with_an_unknown_key(custody, capsys, old, new):
    (custody / "plan.toml").write_text(PLAN.replace(old, new))
    _assert_refused(custody, capsys, "unknown key")


def test_a_plan_file_that_is_not_toml(custody, capsys):
    (custody / "plan.toml").write_text("[data\n")
    _assert_refused(custody, capsys, "not valid TOML")


def test_an_output_folder_that_exists(custody, capsys):
    (custody / "out").mkdir()
    (custody / "out" / "mine.txt").write_text("keep")
    code, said = _try(capsys)
    assert code == 2
    assert "already exists" in said
    assert (custody / "out" / "mine.txt").read_text() == "keep"
    assert _spent(custody) is None


def test_a_disk_that_is_read_only(custody, capsys, monkeypatch):
    # Root may write anywhere, so the disk's refusal is played by the call that would meet it.
    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    code, said = _try(capsys)
    monkeypatch.undo()
    assert code == 2
    assert "not writable" in said
    assert _spent(custody) is None


def test_a_disk_that_fills_up_while_writing(custody, capsys, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.modules["tabulary.release.folder"], "write_bytes", refuse)
    _assert_refused(custody, capsys, "no room", spent=tb.PureDP(1))


def test_a_ledger_with_too_little_budget(custody, capsys):
    (custody / "plan.toml").write_text(PLAN.replace("epsilon = 1", "epsilon = 3.5"))
    _assert_refused(custody, capsys, "costs ε = 3.5", "ε = 3 left", "Nothing was measured")


def test_a_ledger_that_is_truncated(custody, capsys):
    file = custody / "ledger.sqlite"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    code, said = _try(capsys)
    assert code == 2
    assert "Traceback" not in said
    assert not (custody / "out").exists()


def test_a_ledger_that_is_missing(custody, capsys):
    (custody / "ledger.sqlite").unlink()
    code, _ = _try(capsys)
    assert code == 2
    assert not (custody / "out").exists()
    assert not (custody / "ledger.sqlite").exists()


def test_an_account_that_promises_more_than_the_plan(custody, capsys):
    (custody / "plan.toml").write_text(PLAN.replace("epsilon = 1", 'epsilon = 1\nneighbours = "replace"'))
    _assert_refused(custody, capsys, "neighbours")


@pytest.mark.parametrize(
    "arguments", [["release"], ["plan"], ["show"], ["fly"], ["plan", "--no-such-option"]]
)
def test_a_wrong_command_line_is_an_error_of_the_user(arguments, capsys):
    assert run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_defect_names_a_report_id_and_nothing_of_the_data(custody, capsys, monkeypatch):
    def break_down(*_):
        raise ValueError(f"the record of {SECRET} has 3 children")

    monkeypatch.setattr("tabulary.workflows.releasing.measure", break_down)
    code, said = _try(capsys)
    assert code == 1
    assert "Internal error" in said
    assert "ValueError" in said
    assert SECRET not in said
    assert not (custody / "out").exists()


def test_the_installed_command_exits_with_code_two_and_one_paragraph(custody):
    (custody / "plan.toml").write_text(PLAN.replace("epsilon = 1", "epsilon = -1"))
    done = subprocess.run(
        [sys.executable, "-m", "tabulary", "release", "plan.toml", "-o", "out"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: [privacy]: epsilon must be positive")
    assert len(done.stderr.strip().split("\n\n")) == 1
