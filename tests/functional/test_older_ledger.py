"""An older copy of a ledger is put back, and the commands are used as before."""

import shutil

import pytest

import tabulary as tb
from tabulary.cli.app import run
from tests.ledgers import fill, pay, restored

pytestmark = pytest.mark.slow

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
levels = [0, 1, 2]
[privacy]
epsilon = "1/4"
[tables]
margins = "[sex age]"
[mechanism]
reconstruct = "least-squares"
"""
PAID = ["--ledger", "ledger.sqlite", "--account", "people"]
WITNESSED = [*PAID, "--witness", "heads.txt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A plan file, people and an account, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex,age\n" + "".join(f"{'FM'[i % 2]},{i % 3}\n" for i in range(60)))
    (tmp_path / "plan.toml").write_text(PLAN)
    assert run(["ledger", "create", "ledger.sqlite", "--account", "people", "--epsilon", "2"]) == 0
    return tmp_path


def release(name, *options):
    return run(["release", "plan.toml", "-o", name, *options])


def put_back(folder):
    shutil.copy(folder / "copy.sqlite", folder / "ledger.sqlite")


def entries(folder):
    with tb.Ledger.open(folder / "ledger.sqlite", read_only=True) as ledger:
        return ledger.account("people").entries()


@pytest.fixture
def older(folder, capsys):
    """The ledger as it was after one of two witnessed releases."""
    assert release("first", *WITNESSED) == 0
    shutil.copy(folder / "ledger.sqlite", folder / "copy.sqlite")
    assert release("second", *WITNESSED) == 0
    put_back(folder)
    capsys.readouterr()
    return folder


def said(capsys):
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def test_a_release_names_the_entry_that_paid_for_it(folder):
    assert release("first", *PAID) == 0
    assert release("second", *PAID) == 0
    paid = entries(folder)
    for entry, name in zip(paid, ("first", "second"), strict=True):
        made = tb.Release.load(name)
        assert made.receipt.head == entry.head
        made.verify()
        assert entry.digest in (folder / name / "report.html").read_text()
    with tb.Ledger.open("ledger.sqlite", read_only=True) as ledger:
        assert tb.Release.load("second").receipt.ledger == ledger.identity


def test_the_books_are_checked_against_releases_and_witnesses(folder, capsys):
    assert release("first", *WITNESSED) == 0
    assert release("second", *WITNESSED) == 0
    capsys.readouterr()
    command = ["ledger", "check", "ledger.sqlite", "--against", "first", "second", "heads.txt"]
    assert run(command) == 0
    found = said(capsys)
    assert "1 accounts, 2 entries; every page, chain and sum is correct" in found
    for words in (
        "first: the ledger contains account 'people' with 1",
        "second: the ledger",
        "heads.txt: the ledger",
    ):
        assert words in found
    assert f"Head: {entries(folder)[-1].head}" in found
    assert run(["ledger", "check", "ledger.sqlite"]) == 0


@pytest.mark.parametrize("known", ["second", "heads.txt"])
def test_a_check_refuses_an_older_copy_and_names_who_knows_better(older, capsys, known):
    assert run(["ledger", "check", "ledger.sqlite", "--against", "first"]) == 0
    assert run(["ledger", "check", "ledger.sqlite", "--against", "first", "--against", known]) == 2
    assert (
        f"does not contain entry 2 of account 'people', which {known} records. This ledger is an older copy"
        in said(capsys)
    )


def test_a_ledger_in_postgresql_is_checked_in_the_same_way(database, tmp_path, capsys):
    fill(database)
    with restored(database), tb.Ledger.open(database, witness=tmp_path / "heads.txt") as ledger:
        domain = tb.Domain({"sex": ["F", "M"]})
        plan = tb.plan(domain, "[sex]", privacy=tb.PureDP("1/8"))
        made = tb.release(tb.Table(domain, [3, 4]), plan, ledger.account("census"))
        made.save(tmp_path / "out")
        pay(ledger.account("survey"))
        assert run(["ledger", "check", database, "--against", str(tmp_path / "out")]) == 0
    for known in ("out", "heads.txt"):
        assert run(["ledger", "check", database, "--against", str(tmp_path / known)]) == 2
        assert "is an older copy" in said(capsys)


def test_a_release_from_an_older_copy_is_refused_before_anything_is_measured_or_spent(older, capsys):
    assert release("third", *WITNESSED) == 2
    assert "Nothing was measured, nothing was spent" in said(capsys)
    assert not (older / "third").exists()
    assert len(entries(older)) == 1
    # Without the witness nothing tells.
    assert release("third", *PAID) == 0


@pytest.mark.parametrize(
    "command",
    [
        ["synth", "plan.toml", "-o", "rows.csv", "--method", "mwem"],
        ["perturb", "plan.toml", "-o", "perturbed"],
    ],
)
def test_every_command_that_pays_writes_to_the_witness_and_heeds_it(older, capsys, command):
    assert run([*command, *WITNESSED]) == 2
    assert "is an older copy" in said(capsys)
    assert len(entries(older)) == 1
    assert run([*command, *PAID, "--witness", "another.txt"]) == 0
    assert (older / "another.txt").read_text().splitlines()[-1] == str(entries(older)[-1].head)


def test_a_plan_file_names_the_witness(folder, capsys):
    (folder / "plan.toml").write_text(
        PLAN + '[ledger]\nfile = "ledger.sqlite"\naccount = "people"\nwitness = "heads.txt"\n'
    )
    shutil.copy(folder / "ledger.sqlite", folder / "copy.sqlite")
    assert release("first") == 0
    assert "There was no witness" in said(capsys)
    assert (folder / "heads.txt").read_text().splitlines()[-1] == str(entries(folder)[-1].head)
    put_back(folder)
    assert release("second") == 2
    assert "is an older copy" in said(capsys)


def test_a_witness_without_a_ledger_is_refused(folder, capsys):
    assert release("first", "--witness", "heads.txt") == 2
    assert "--witness needs a ledger" in said(capsys)
    (folder / "plan.toml").write_text(PLAN + '[ledger]\nwitness = "heads.txt"\n')
    assert run(["plan", "plan.toml"]) == 2
    assert not (folder / "heads.txt").exists()


def test_a_ledger_and_its_witness_are_begun_together(folder, capsys):
    command = [
        "ledger",
        "create",
        "new.sqlite",
        "--account",
        "people",
        "--epsilon",
        "1",
        "--witness",
        "new.txt",
    ]
    assert run(command) == 0
    assert release("first", "--ledger", "new.sqlite", "--account", "people", "--witness", "new.txt") == 0
    assert "There was no witness" not in said(capsys)
    # The ledger is lost: an empty one in its place would be a second budget.
    (folder / "new.sqlite").unlink()
    assert run(command) == 2
    assert "belongs to another ledger" in said(capsys)
    assert not (folder / "new.sqlite").exists()


def test_what_cannot_be_compared_is_an_error_and_not_a_pass(folder, capsys):
    assert release("unpaid") == 0
    assert run(["ledger", "check", "ledger.sqlite", "--against", "unpaid"]) == 2
    assert "unpaid: no ledger paid for this release" in said(capsys)
    assert run(["ledger", "create", "other.sqlite", "--account", "people", "--epsilon", "1"]) == 0
    assert (
        release("elsewhere", "--ledger", "other.sqlite", "--account", "people", "--witness", "other.txt") == 0
    )
    for name, words in (
        ("elsewhere", "another ledger"),
        ("other.txt", "belongs to another ledger"),
        ("nowhere", "cannot be read"),
    ):
        capsys.readouterr()
        assert run(["ledger", "check", "ledger.sqlite", "--against", name]) == 2
        assert words in said(capsys)
    report = folder / "elsewhere" / "report.html"
    report.write_text(report.read_text() + " ")
    assert run(["ledger", "check", "other.sqlite", "--against", "elsewhere"]) == 2
    assert "is not as it was published" in said(capsys)
