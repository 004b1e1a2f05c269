import os
import stat
import subprocess
import sys
import threading

import pytest

from tabulary.core.head import Head
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.errors import LedgerBehind, LedgerError
from tabulary.ledger import Ledger
from tabulary.ledger.witness import WitnessFile
from tests.ledgers import pay, restored

IDENTITY = "ab" * 16
HEADER = f"tabulary-witness/1 {IDENTITY}\n"


def head(entries, account="census"):
    return Head(account, entries, f"{entries % 16:x}" * 64)


def lines(path):
    return path.read_text().splitlines()


@pytest.fixture
def witness(tmp_path):
    return tmp_path / "heads.txt"


def test_a_witness_names_its_ledger_and_holds_one_line_for_each_debit(database, witness):
    with Ledger.create(database, witness=witness) as ledger:
        census = ledger.create_account("census", PureDP(1), Neighbours())
        paid = [pay(census).head for _ in range(3)]
        assert lines(witness) == [f"tabulary-witness/1 {ledger.identity}", *map(str, paid)]


def test_a_witness_that_joins_late_is_told_what_the_ledger_holds(full, witness):
    with Ledger.open(full, witness=witness) as ledger:
        assert lines(witness)[1:] == [str(each) for each in ledger.heads()]
        last = pay(ledger.account("survey")).head
    assert lines(witness)[-1] == str(last)


def test_a_debit_of_several_accounts_is_witnessed_for_all_of_them(full, witness):
    with Ledger.open(full, witness=witness) as ledger:
        made = ledger.debit_together(
            ledger.accounts(), PureDP("1/8"), Neighbours(), purpose="both", plan_digest="ab"
        )
    assert lines(witness)[-2:] == [str(entry.head) for entry in made]


def test_an_older_copy_is_refused_when_it_is_opened_with_its_witness(full, witness):
    with restored(full), Ledger.open(full, witness=witness) as ledger:
        pay(ledger.account("census"))
    Ledger.open(full).close()
    for read_only in (False, True):
        with pytest.raises(LedgerBehind, match="account 'census' at 5 entries"):
            Ledger.open(full, witness=witness, read_only=read_only)


def test_an_older_copy_put_back_under_an_open_ledger_takes_no_debit(full, witness):
    with Ledger.open(full, witness=witness) as ledger:
        census, survey = ledger.account("census"), ledger.account("survey")
        with restored(full):
            pay(census)
        before = lines(witness)
        for account in (census, survey):
            with pytest.raises(LedgerBehind, match="Nothing was measured, nothing was spent"):
                account.check(PureDP("1/8"), Neighbours())
            with pytest.raises(LedgerBehind, match="older copy"):
                pay(account)
        with pytest.raises(LedgerBehind, match="older copy"):
            ledger.check()
        assert [each.entries for each in ledger.heads()] == [4, 4]
        assert lines(witness) == before


def test_an_account_that_was_opened_anew_is_not_the_one_that_the_witness_knows(tmp_path, database, witness):
    with Ledger.create(database, witness=witness) as ledger:
        ledger.create_account("census", PureDP(1), Neighbours())
        with restored(database):
            ledger.create_account("survey", PureDP(1), Neighbours())
            pay(ledger.account("survey"))
        ledger.create_account("survey", PureDP(1), Neighbours())
        with pytest.raises(LedgerBehind, match="survey"):
            pay(ledger.account("survey"))


def test_without_a_witness_an_older_copy_is_not_found(full):
    with Ledger.open(full) as ledger:
        with restored(full):
            pay(ledger.account("census"))
        assert pay(ledger.account("census")).number == 5


def test_a_crash_between_debit_and_witness_does_no_harm(full, witness):
    Ledger.open(full, witness=witness).close()
    with Ledger.open(full) as ledger:
        crashed = pay(ledger.account("census")).head
    assert str(crashed) not in lines(witness)
    with Ledger.open(full, witness=witness) as ledger:
        assert lines(witness)[-1] == str(crashed)
        pay(ledger.account("census"))


def test_a_witness_that_is_gone_refuses_the_debit_before_it_is_made(full, witness):
    with Ledger.open(full, witness=witness) as ledger:
        census = ledger.account("census")
        witness.unlink()
        with pytest.raises(LedgerError, match=r"the witness .* cannot be read"):
            pay(census)
        assert census.head().entries == 4
    assert not witness.exists()


def test_a_witness_that_cannot_be_written_stops_the_measurement_and_says_that_the_entry_stands(
    full, witness, monkeypatch
):
    def refuse(self, heads):
        raise LedgerError("the disk is full.")

    with Ledger.open(full, witness=witness) as ledger:
        census = ledger.account("census")
        with monkeypatch.context() as broken:
            broken.setattr(WitnessFile, "note", refuse)
            with pytest.raises(
                LedgerError, match="Nothing was measured, but entry 5 of account 'census' is in the ledger"
            ):
                census.debit(PureDP("1/8"), Neighbours(), purpose="sex", plan_digest="5f", once=True)
            assert census.head().entries == 5
            # Paid for, but not witnessed: it is not handed out either.
            with pytest.raises(LedgerError, match="the disk is full"):
                census.paid("sex", "5f")
        assert census.paid("sex", "5f").number == 5
        assert lines(witness)[-1] == str(census.head())


def test_a_witness_of_another_ledger_is_refused_and_left_alone(full, witness, tmp_path):
    Ledger.create(tmp_path / "other.sqlite", witness=witness).close()
    before = witness.read_bytes()
    with pytest.raises(LedgerError, match="belongs to another ledger"):
        Ledger.open(full, witness=witness)
    with pytest.raises(LedgerError, match="belongs to another ledger"):
        Ledger.create(tmp_path / "third.sqlite", witness=witness)
    assert not (tmp_path / "third.sqlite").exists()
    assert witness.read_bytes() == before


@pytest.mark.parametrize("content", [b"notes of the meeting\n", b"x", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_witness_is_refused_and_left_alone(full, witness, content):
    witness.write_bytes(content)
    with pytest.raises(LedgerError, match="is not a witness"):
        Ledger.open(full, witness=witness)
    assert witness.read_bytes() == content


def test_a_witness_is_a_plain_file(full, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place, words in ((tmp_path, "directory"), (tmp_path / "pipe", "not a plain file")):
        with pytest.raises(LedgerError, match=words):
            Ledger.open(full, witness=place)
    with pytest.raises(LedgerError, match="No such file"):
        Ledger.open(full, witness=tmp_path / "nowhere" / "heads.txt")


def test_a_reader_begins_no_witness(full, witness):
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger.open(full, witness=witness, read_only=True)
    assert not witness.exists()


def test_the_newest_head_of_each_account_counts_whatever_the_order_of_the_lines(witness):
    made = WitnessFile.begun(witness, IDENTITY)
    made.note([head(1), head(3)])
    made.note([head(2), head(1, "survey")])
    for each in (made, WitnessFile(witness, IDENTITY)):
        assert set(each.heads()) == {head(3), head(1, "survey")}


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 40, 66, 67, 68, 70, 73, 74])
def test_a_line_that_a_crash_has_cut_short_counts_for_nothing(witness, kept):
    torn = str(head(12)).encode()[:kept]
    witness.write_bytes(HEADER.encode() + f"{head(1)}\n".encode() + torn)
    made = WitnessFile.begun(witness, IDENTITY)
    assert made.heads() == (head(1),)
    made.note([head(2)])
    for each in (made, WitnessFile(witness, IDENTITY)):
        assert each.heads() == (head(2),)


def test_a_name_cut_in_the_middle_of_a_letter_counts_for_nothing(witness):
    witness.write_bytes(HEADER.encode() + f"{head(1)}\n".encode() + str(head(2, "Käse")).encode()[:-3])
    made = WitnessFile.begun(witness, IDENTITY)
    made.note([head(3)])
    assert WitnessFile(witness, IDENTITY).heads() == (head(3),)


@pytest.mark.parametrize("kept", [0, 1, 20, len(HEADER) - 1])
def test_a_beginning_that_a_crash_has_cut_short_is_finished(witness, kept):
    witness.write_text(HEADER[:kept])
    WitnessFile.begun(witness, IDENTITY).note([head(1)])
    assert witness.read_text() == f"{HEADER}{head(1)}\n"


@pytest.mark.parametrize("line", ["5 short census", "", f"5 {'ab' * 32} ", f"-1 {'ab' * 32} census"])
def test_an_edited_line_is_named(witness, line):
    witness.write_text(f"{HEADER}{head(1)}\n{line}\n{head(2)}\n")
    with pytest.raises(LedgerError, match="no head in line 3"):
        WitnessFile(witness, IDENTITY).heads()


def test_what_a_witness_once_knew_in_this_process_is_not_forgotten_when_the_file_is_cut(witness):
    made = WitnessFile.begun(witness, IDENTITY)
    made.note([head(5)])
    assert made.heads() == (head(5),)
    witness.write_text(f"{HEADER}{head(2)}\n")
    assert made.heads() == (head(5),)


def test_only_what_was_added_is_read_again(witness, monkeypatch):
    made = WitnessFile.begun(witness, IDENTITY)
    made.note([head(entries) for entries in range(1, 9)])
    made.heads()
    parsed, parse = [], Head.parse
    monkeypatch.setattr(Head, "parse", lambda text: parsed.append(text) or parse(text))
    made.note([head(9)])
    assert made.heads() == (head(9),)
    assert len(parsed) == 1


def test_threads_share_a_witness(full, witness):
    with Ledger.open(full, witness=witness) as ledger:
        census = ledger.account("census")
        paid = []
        threads = [threading.Thread(target=lambda: paid.append(pay(census, "1/100"))) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(paid) == 8
    assert {str(entry.head) for entry in paid} <= set(lines(witness))


PAYER = """
import sys
from tabulary.core.privacy import PureDP
from tabulary.ledger import Ledger
with Ledger.open(sys.argv[1], witness=sys.argv[2], timeout=120) as ledger:
    census = ledger.account("census")
    for _ in range(int(sys.argv[3])):
        print(census.debit(PureDP("1/1000"), census.neighbours, purpose="sex", plan_digest="ab").head, flush=True)
"""


def payer(full, witness, times):
    command = [sys.executable, "-c", PAYER, str(full), str(witness), str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_pay_at_the_same_time_share_a_witness(full, witness):
    running = [payer(full, witness, 10) for _ in range(2)]
    paid = [line for each in running for line in each.communicate()[0].splitlines()]
    assert [each.returncode for each in running] == [0, 0]
    assert len(set(paid)) == 20
    assert set(paid) <= set(lines(witness))
    with Ledger.open(full, witness=witness) as ledger:
        assert ledger.account("census").head().entries == 24


def test_a_process_that_is_killed_leaves_a_witness_that_knows_all_that_was_measured(full, witness):
    running = payer(full, witness, 400)
    paid = [running.stdout.readline() for _ in range(4)]
    running.kill()
    paid += running.communicate()[0].splitlines(keepends=True)
    whole = [line for line in paid if line.endswith("\n")]
    assert set(whole) <= set(witness.read_text().splitlines(keepends=True))
    with Ledger.open(full, witness=witness) as ledger:
        pay(ledger.account("census"))


def test_a_witness_holds_nothing_but_public_words_and_may_be_read(full, witness):
    Ledger.open(full, witness=witness).close()
    assert stat.S_IMODE(witness.stat().st_mode) & stat.S_IRUSR
    assert "1/8" not in witness.read_text()
