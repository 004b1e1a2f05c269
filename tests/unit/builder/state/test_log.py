"""The log: who did what, appended and never changed, on each database."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import text

from tabulary.builder.state import Action, Actor, State
from tabulary.builder.state.log import COMMAND_LINE, SERVICE
from tabulary.errors import ServiceError
from tabulary.ledger.chain import link

GRACE = Actor("Grace", "5f3a09c1d27e", "192.0.2.7")


def _acts(state):
    return [(entry.actor, entry.action, entry.object) for entry in state.log.entries()]


def _by_hand(state, statement):
    """Run a statement as somebody with the rights of an administrator, the triggers taken away first."""
    with state.database.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("ALTER TABLE log DISABLE TRIGGER ALL"))
            connection.execute(text("ALTER TABLE log_head DISABLE TRIGGER ALL"))
        else:
            for name in ("insert", "update", "delete"):
                connection.execute(text(f"DROP TRIGGER IF EXISTS log_{name}"))
                connection.execute(text(f"DROP TRIGGER IF EXISTS log_head_{name}"))
        connection.execute(text(statement))


def _filled(state, entries=4):
    for number in range(entries):
        state.log.add(GRACE, Action.version_opened, f"census {number}")
    return state


def test_an_entry_says_who_did_what_to_what_when_and_from_where(state):
    state.log.add(GRACE, Action.account_opened, "ada")
    (entry,) = state.log.newest()
    assert (entry.number, entry.at) == (1, "2026-05-04T12:00:00+00:00")
    assert (entry.actor, entry.token, entry.address) == ("Grace", "5f3a09c1d27e", "192.0.2.7")
    assert (entry.action, entry.object) == ("account opened", "ada")


def test_entries_are_read_in_order_or_the_last_first_page_by_page(state):
    _filled(state, 5)
    assert [entry.number for entry in state.log.list(after=2, size=2)] == [3, 4]
    assert [entry.number for entry in state.log.newest(size=2)] == [5, 4]
    assert [entry.number for entry in state.log.newest(before=4, size=2)] == [3, 2]
    assert [entry.number for entry in state.log.entries(after=3)] == [4, 5]


def test_each_entry_is_tied_to_the_one_before(state):
    first, second = _filled(state, 2).log.list()
    assert (first.previous, second.previous) == ("", first.digest)
    content = {name: value for name, value in vars(second).items() if name not in ("previous", "digest")}
    assert link(first.digest, content) == second.digest
    state.log.check()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET actor = 'nobody' WHERE number = 2",
        "DELETE FROM log WHERE number = 4",
        "DELETE FROM log",
        "INSERT INTO log SELECT 9, at, actor, token, action, object, address, previous, digest FROM log LIMIT 1",
        "INSERT INTO log SELECT * FROM log WHERE number = 1",
        "UPDATE log_head SET entries = 3",
        "DELETE FROM log_head",
        "INSERT INTO log_head (id, entries, digest) VALUES (1, 0, '')",
    ],
)
def test_the_database_refuses_to_change_or_remove_an_entry(state, statement):
    before = [*_filled(state).log.entries()]
    with pytest.raises(ServiceError, match="could not be used"), state.database.writing() as connection:
        connection.execute(text(statement))
    assert [*state.log.entries()] == before
    state.log.check()


def test_sqlite_refuses_to_replace_an_entry(tmp_path):
    with State.create(tmp_path / "state.sqlite") as state:
        _filled(state)
        again = "INSERT OR REPLACE INTO log SELECT * FROM log WHERE number = 2"
        with pytest.raises(ServiceError, match="could not be used"), state.database.writing() as connection:
            connection.execute(text(again))


def test_postgresql_refuses_to_empty_the_log(postgres_database):
    with State.create(postgres_database) as state:
        _filled(state)
        with pytest.raises(ServiceError, match="23000"), state.database.writing() as connection:
            connection.execute(text("TRUNCATE log"))


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE log SET actor = 'nobody' WHERE number = 2", "changed entry 2"),
        ("UPDATE log SET at = 'x' WHERE number = 4", "changed entry 4"),
        ("UPDATE log SET address = NULL WHERE number = 1", "changed entry 1"),
        ("DELETE FROM log WHERE number = 3", "changed entry 3, or has lost it"),
        ("DELETE FROM log WHERE number = 1", "changed entry 1, or has lost it"),
        ("DELETE FROM log WHERE number = 4", "lost its entries after number 3"),
        ("DELETE FROM log", "lost its entries after number 0"),
        ("DELETE FROM log_head", "lost its end"),
        ("UPDATE log_head SET digest = 'x'", "changed entry 4"),
    ],
)
def test_whoever_takes_the_triggers_away_first_is_found_by_the_chain(state, statement, words):
    _by_hand(_filled(state), statement)
    with pytest.raises(ServiceError, match=f"{words}.*Restore the state from a copy"):
        state.log.check()


def test_what_is_taken_back_is_not_logged_and_what_cannot_be_logged_is_not_done(state):
    class Trouble(Exception):
        pass

    with suppress(Trouble), state.log.writing() as act:
        act.note(GRACE, Action.account_opened, "ada")
        raise Trouble
    assert _acts(state) == []
    _by_hand(state, "DELETE FROM log_head")
    with pytest.raises(ServiceError, match="lost its end"):
        state.tokens.add("Ada", "custodian")
    assert state.tokens.list() == ()


def test_many_who_write_at_once_make_one_chain(database):
    states = [State.create(database) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: _filled(each, 10), states))
        list(pool.map(lambda each: each.log.add_once(SERVICE, Action.account_found, ["ada", "bob"]), states))
    states[0].log.check()
    acts = _acts(states[0])
    assert len(acts) == 42
    assert acts[40:] == [("service", "account found", "ada"), ("service", "account found", "bob")]
    for each in states:
        each.close()


def test_what_was_said_is_not_said_again_where_once_is_enough(state):
    state.log.add(COMMAND_LINE, Action.account_opened, "ada")
    for _ in range(2):
        state.log.add_once(SERVICE, Action.account_found, ["ada", "bob"], Action.account_opened)
        state.log.add_unless_last(SERVICE, Action.start_refused, "another key " * 100)
    assert [action for _, action, _ in _acts(state)] == ["account opened", "account found", "start refused"]
    state.log.add(SERVICE, Action.service_started)
    state.log.add_unless_last(SERVICE, Action.start_refused, "another key " * 100)
    assert len(_acts(state)) == 5


def test_tokens_and_the_custodians_sessions_are_logged_and_no_secret_of_them_is(state):
    carl, carls = state.tokens.add("Carl", "custodian", by=GRACE)
    ada, adas = state.tokens.add("Ada", "analyst", account="ada")
    session = state.sessions.begin(carl, "192.0.2.9")
    quiet = state.sessions.begin(ada, "192.0.2.10")
    for name in (session, session, quiet):
        state.sessions.end(name, "192.0.2.9")
    for _ in range(2):
        state.tokens.revoke(ada.id, by=GRACE)
    assert not state.tokens.revoke("0" * 12, by=GRACE)
    assert _acts(state) == [
        ("Grace", "token made", f"{carl.id}, Carl, custodian"),
        ("command line", "token made", f"{ada.id}, Ada, analyst"),
        ("Carl", "signed in", ""),
        ("Carl", "signed out", ""),
        ("Grace", "token revoked", f"{ada.id}, Ada, analyst"),
    ]
    assert [entry.address for entry in state.log.list(after=2, size=2)] == ["192.0.2.9"] * 2
    written = "".join(entry.line for entry in state.log.entries())
    assert not any(secret in written for secret in (carls, adas, session, quiet, "192.0.2.10"))
