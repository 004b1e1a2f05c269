from fractions import Fraction

import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.errors import InvalidPrivacy, LedgerError, LedgerMissing
from tabulary.ledger import Head, Ledger
from tests.ledgers import pay

UNSPENT = "Nothing was measured, nothing was spent."


def test_a_created_ledger_is_there_for_the_next_process_to_open(database):
    with Ledger.create(database) as created:
        created.create_account("census", ApproxDP(1, "1e-9"), Neighbours("replace", 3))
    with Ledger.open(database) as opened:
        account = opened.account("census")
        assert (account.budget, account.neighbours) == (ApproxDP(1, "1e-9"), Neighbours("replace", 3))


def test_a_closed_ledger_is_one_file_that_can_be_copied(full_path):
    assert [each.name for each in full_path.parent.iterdir()] == [full_path.name]


def test_creating_over_anything_is_refused_and_leaves_it_alone(tmp_path):
    taken = tmp_path / "notes.txt"
    taken.write_text("keep me")
    with pytest.raises(LedgerError, match="never overwritten"):
        Ledger.create(taken)
    assert taken.read_text() == "keep me"


def test_creating_beside_the_journal_of_a_lost_ledger_is_refused(path):
    path.with_name(path.name + "-wal").write_bytes(b"entries of the lost ledger")
    with pytest.raises(LedgerError, match="its file is missing"):
        Ledger.create(path)
    assert not path.exists()


def test_creating_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="No such file or directory"):
        Ledger.create(tmp_path / "nowhere" / "ledger.sqlite")


def test_a_ledger_that_cannot_be_founded_leaves_nothing_behind(database, tmp_path, monkeypatch):
    def fail(connection):
        raise LedgerError("the disk failed")

    with monkeypatch.context() as patched:
        patched.setattr("tabulary.ledger.ledger.found_ledger", fail)
        with pytest.raises(LedgerError, match="the disk failed"):
            Ledger.create(database)
    assert list(tmp_path.iterdir()) == []
    Ledger.create(database).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_missing_ledger_is_refused_and_not_created(database, tmp_path, read_only):
    for _ in range(2):
        with pytest.raises(LedgerMissing, match=UNSPENT):
            Ledger.open(database, read_only=read_only)
    assert list(tmp_path.iterdir()) == []


def test_a_path_with_signs_that_mean_something_in_an_address_is_just_a_path(tmp_path):
    path = tmp_path / "what? 100% #1 é.sqlite"
    Ledger.create(path).close()
    Ledger.open(str(path)).close()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_an_unknown_account_is_missing_and_the_known_ones_are_named(ledger):
    with pytest.raises(LedgerMissing, match="It has none yet"):
        ledger.account("census")
    ledger.create_account("survey", PureDP(1), Neighbours())
    ledger.create_account("visits", ZCDP(1), Neighbours())
    with pytest.raises(LedgerMissing, match=r"no account 'census' .* It has \['survey', 'visits'\]"):
        ledger.account("census")
    assert [account.name for account in ledger.accounts()] == ["survey", "visits"]


def test_the_budget_of_an_account_cannot_be_raised_by_opening_it_again(ledger, census):
    with pytest.raises(LedgerError, match="its budget never changes"):
        ledger.create_account("census", PureDP(100), Neighbours())
    assert ledger.account("census") == census


@pytest.mark.parametrize("name", ["", "  ", "census ", "two\nlines", "bell\a", "x" * 201, "\ud800", 7])
def test_an_account_needs_a_printable_name_of_reasonable_length(ledger, name):
    with pytest.raises(LedgerError, match="the name of an account must"):
        ledger.create_account(name, PureDP(1), Neighbours())
    with pytest.raises(LedgerError, match="the name of an account must"):
        ledger.account(name)
    assert ledger.accounts() == []


def test_an_account_needs_a_budget_and_neighbours_of_the_right_type(ledger):
    with pytest.raises(LedgerError, match="the budget of an account must be"):
        ledger.create_account("census", 1, Neighbours())
    with pytest.raises(LedgerError, match="the neighbours of an account must be"):
        ledger.create_account("census", PureDP(1), "replace")
    with pytest.raises(InvalidPrivacy, match="at most 100 digits"):
        ledger.create_account("census", PureDP(Fraction(10**100)), Neighbours())


def test_names_are_data_and_not_statements(ledger):
    name = "census'; DROP TABLE entries; --"
    ledger.create_account(name, PureDP(1), Neighbours())
    assert ledger.account(name).name == name
    ledger.check()


def test_a_ledger_opened_read_only_shows_everything_and_takes_no_debit(full):
    with Ledger.open(full, read_only=True) as ledger:
        before = ledger.head()
        account = ledger.account("census")
        assert account.spent() == PureDP("1/2")
        assert len(account.entries()) == 4
        ledger.check()
        with pytest.raises(LedgerError, match=f"opened read-only. Open it for writing. {UNSPENT}"):
            pay(account)
        with pytest.raises(LedgerError, match="opened read-only"):
            ledger.create_account("visits", PureDP(1), Neighbours())
        assert ledger.head() == before


def test_a_file_opened_read_only_keeps_every_byte(full_path):
    content = full_path.read_bytes()
    with Ledger.open(full_path, read_only=True) as ledger:
        ledger.check()
    assert full_path.read_bytes() == content


def test_a_reader_sees_debits_that_another_connection_makes_meanwhile(database, census):
    with Ledger.open(database, read_only=True) as reader:
        pay(census)
        assert reader.account("census").spent() == PureDP("1/8")


def test_every_account_and_every_debit_changes_the_head(ledger):
    seen = {ledger.head()}
    for name in ("census", "survey"):
        account = ledger.create_account(name, PureDP(1), Neighbours())
        seen.add(ledger.head())
        for _ in range(3):
            pay(account)
            seen.add(ledger.head())
    assert len(seen) == 9
    assert ledger.head() in seen


def test_two_ledgers_with_the_same_history_have_different_heads(tmp_path):
    with Ledger.create(tmp_path / "one") as one, Ledger.create(tmp_path / "two") as two:
        assert one.head() != two.head()


def test_the_identity_of_a_ledger_stays_and_is_no_other_ledgers(database, tmp_path):
    with Ledger.create(database) as ledger, Ledger.create(tmp_path / "another") as another:
        identity = ledger.identity
        assert identity != another.identity
        ledger.create_account("census", PureDP(1), Neighbours())
        assert ledger.identity == identity
    with Ledger.open(database, read_only=True) as ledger:
        assert ledger.identity == identity


def test_creating_over_a_ledger_is_refused_and_leaves_it_alone(full):
    with pytest.raises(LedgerError, match="never overwritten"):
        Ledger.create(full)
    with Ledger.open(full) as ledger:
        assert ledger.account("census").spent() == PureDP("1/2")


def test_a_head_comes_back_from_its_text():
    head = Head("census of 2021", 12, "0f" * 32)
    assert Head.parse(f"{head}\n") == head


@pytest.mark.parametrize("text", ["", "census", f"x {'ab' * 32} census", "1 ab census", f"1 {'ab' * 32}"])
def test_text_that_is_no_head_is_refused(text):
    with pytest.raises(LedgerError, match="is not a ledger head"):
        Head.parse(text)
