"""An older copy of the ledger, put back under a table builder."""

import pytest

import tabulary as tb
from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise, open_service
from tabulary.builder.state import State
from tabulary.errors import InvalidSettings, LedgerBehind, LedgerError, ServiceError
from tabulary.ledger.account import Account
from tests.ledgers import restored
from tests.service_files import dataset, places

DATASETS = dataset(
    "census", {"sex": ["F", "M"]}, privacy='rho = "1/8"', budget="rho = 1", version="2026", order=1
) + dataset(
    "panel",
    {"sex": ["F", "M"], "age": [0, 1]},
    privacy='epsilon = "1/10"',
    budget="epsilon = 1",
    method="interactive",
)


@pytest.fixture
def write(tmp_path, database):
    """A function that writes a service file, with state and ledger on each database, and reads it."""
    (tmp_path / "people.csv").write_text("sex,age\n" + "F,0\nM,1\nM,0\n" * 5)
    place = database if "://" in database else None

    def write_text(witness=""):
        text = places(place or "state.sqlite", place or "ledger.sqlite", witness=witness) + DATASETS
        (tmp_path / "service.toml").write_text(text)
        return read_service_file(tmp_path / "service.toml")

    return write_text


@pytest.fixture
def file(write):
    """A service that has been opened once, with an account for an analyst."""
    made = write()
    initialise(made)
    with tb.Ledger.open(made.ledger.where()) as ledger:
        ledger.create_account("ada", tb.PureDP(1), tb.Neighbours())
    return made


def ask(service, *margin):
    return service.datasets["panel"].answers.answer(margin, asker="ada").table.counts.tolist()


def spent(file):
    with tb.Ledger.open(file.ledger.where(), read_only=True) as ledger:
        return {each.account: each.entries for each in ledger.heads()}


def known(file):
    with State.open(file.state.where()) as state:
        return {each.account: each.entries for each in state.heads.heads()}


def test_the_state_knows_the_head_of_every_debit_that_the_service_makes(file):
    service = open_service(file)
    assert known(file) == {"census": 1, "panel": 0, "ada": 0}
    ask(service, "sex")
    ask(service, "sex")
    assert known(file) == {"census": 1, "panel": 1, "ada": 1} == spent(file)
    service.close()


def test_a_service_does_not_start_with_an_older_copy_of_its_ledger(file):
    with restored(file.ledger.where()):
        open_service(file).close()
    for attempt in (open_service, initialise):
        with pytest.raises(LedgerBehind, match="account 'census' at 1 entries"):
            attempt(file)
    assert spent(file) == {"census": 0, "panel": 0, "ada": 0}


def test_a_question_is_not_paid_for_from_an_older_copy_put_back_under_the_open_service(file):
    service = open_service(file)
    with restored(file.ledger.where()):
        first = ask(service, "sex")
    before = spent(file)
    with pytest.raises(LedgerBehind, match="Nothing was measured, nothing was spent"):
        ask(service, "age")
    assert spent(file) == before
    assert ask(service, "sex") == first
    service.close()


def test_the_newest_copy_put_back_is_served_again(file):
    service = open_service(file)
    first = ask(service, "sex")
    service.close()
    with restored(file.ledger.where()):
        pass
    service = open_service(file)
    assert ask(service, "sex") == first
    service.close()


def test_a_crash_between_the_debit_and_the_state_does_not_stop_the_next_start(file, monkeypatch):
    service = open_service(file)
    with monkeypatch.context() as crash:

        def die(self, heads):
            raise KeyboardInterrupt

        crash.setattr(type(service.state.heads), "note", die)
        with pytest.raises(KeyboardInterrupt):
            ask(service, "sex")
    service.close()
    assert spent(file)["ada"] == 1
    assert known(file)["ada"] == 0
    service = open_service(file)
    assert known(file) == spent(file)
    ask(service, "sex")
    assert spent(file)["ada"] == 1
    service.close()


def test_a_state_that_cannot_be_advanced_gives_no_answer_until_it_can(file, monkeypatch):
    service = open_service(file)
    with monkeypatch.context() as broken:

        def refuse(self, heads):
            raise ServiceError("the disk of the state is full.")

        broken.setattr(type(service.state.heads), "note", refuse)
        with pytest.raises(LedgerError, match="entry 1 of account 'panel'"):
            ask(service, "sex")
        # Asked again, the entry is there and the state still does not know it.
        with pytest.raises(ServiceError, match="full"):
            ask(service, "sex")
    ask(service, "sex")
    assert known(file)["panel"] == spent(file)["panel"] == 1
    service.close()


def test_two_workers_advance_one_state_and_refuse_nothing(file):
    first, second = open_service(file), open_service(file)
    ask(first, "sex")
    ask(second, "age")
    ask(first, "sex", "age")
    assert known(file) == spent(file) == {"census": 1, "panel": 3, "ada": 3}
    first.close()
    second.close()


def test_a_late_worker_never_takes_the_state_back(file):
    with State.open(file.state.where()) as state:
        heads = [tb.ledger.Head("panel", entries, f"{entries}" * 64) for entries in (1, 3, 2)]
        for head in heads:
            state.heads.note([head])
        assert heads[1] in state.heads.heads()
        assert heads[2] not in state.heads.heads()


def test_a_question_looks_at_one_entry_and_walks_no_account(file, monkeypatch):
    service = open_service(file)
    monkeypatch.setattr(Account, "entries", lambda self: pytest.fail("walked the account"))
    ask(service, "sex")
    service.close()


def test_when_the_state_is_put_back_too_only_the_witness_finds_it(write, tmp_path):
    file = write('witness = "heads.txt"')
    initialise(file)
    with restored(file.ledger.where()):
        open_service(file).close()
        # A new state knows nothing.
        with State.open(file.state.where()) as state, state.database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM heads")
    for attempt in (open_service, initialise):
        with pytest.raises(LedgerBehind, match="older copy"):
            attempt(file)
    assert spent(file)["census"] == 0
    open_service(write()).close()
    assert spent(file)["census"] == 1


def test_the_witness_of_a_service_holds_each_debit(write, tmp_path):
    file = write('witness = "heads.txt"')
    initialise(file)
    open_service(file).close()
    with tb.Ledger.open(file.ledger.where()) as ledger:
        assert str(ledger.account("census").head()) in (tmp_path / "heads.txt").read_text().splitlines()


def test_a_witness_goes_with_a_ledger(tmp_path, write):
    text = places(ledger="x", witness='witness = "heads.txt"') + DATASETS
    (tmp_path / "service.toml").write_text(text.replace('database = "x"\n', ""))
    with pytest.raises(InvalidSettings, match=r"\[ledger\] lacks the key 'database'"):
        read_service_file(tmp_path / "service.toml")
