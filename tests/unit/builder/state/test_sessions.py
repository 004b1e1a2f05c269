"""Sessions: begun with a token, found for as long as they are used, ended for good."""

import pytest
from sqlalchemy import select

from tabulary.builder.state import State, schema
from tabulary.builder.state.sessions import IDLE, LONGEST


@pytest.fixture
def file_state(tmp_path, clock):
    with State.create(tmp_path / "state.sqlite", clock=clock) as opened:
        yield opened


@pytest.fixture
def token(file_state):
    return file_state.tokens.add("Carl", "custodian")[0]


def _held(state):
    with state.database.reading() as connection:
        return [dict(row) for row in connection.execute(select(schema.sessions)).mappings()]


def test_a_session_leads_to_its_token_until_it_is_ended(state, clock):
    ada, _ = state.tokens.add("Ada", "analyst", account="ada")
    carl, _ = state.tokens.add("Carl", "custodian")
    first, second = state.sessions.begin(ada), state.sessions.begin(carl)
    assert (state.sessions.find(first), state.sessions.find(second)) == (ada, carl)
    # Long enough for its use to be noted.
    clock.turn(minutes=2)
    assert state.sessions.find(first) == ada
    state.sessions.end(first)
    state.sessions.end(first)
    assert (state.sessions.find(first), state.sessions.find(second)) == (None, carl)


def test_the_name_has_256_bits_and_is_kept_nowhere(file_state, token, tmp_path):
    names = {file_state.sessions.begin(token) for _ in range(8)}
    assert {len(bytes.fromhex(name)) for name in names} == {32}
    assert len(names) == 8
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(name.encode() in kept for name in names)
    # What is kept opens nothing.
    assert all(file_state.sessions.find(row["digest"]) is None for row in _held(file_state))


@pytest.mark.parametrize("name", ["", "0" * 64, "\x00", "\ud800", "é" * 1000])
def test_a_guess_finds_nothing(state, name):
    token, _ = state.tokens.add("Carl", "custodian")
    state.sessions.begin(token)
    assert state.sessions.find(name) is None
    state.sessions.end(name)


def test_a_session_that_is_used_lasts_and_one_that_is_not_ends(file_state, clock, token):
    used, left = file_state.sessions.begin(token), file_state.sessions.begin(token)
    for _ in range(3):
        clock.now += IDLE * 0.9
        assert file_state.sessions.find(used) == token
    assert file_state.sessions.find(left) is None


def test_a_session_ends_after_the_longest_time_however_much_it_is_used(file_state, clock, token):
    session = file_state.sessions.begin(token)
    began = clock.now
    while clock.now + IDLE / 2 < began + LONGEST:
        clock.now += IDLE / 2
        assert file_state.sessions.find(session) == token
    clock.now = began + LONGEST
    assert file_state.sessions.find(session) is None


def test_a_session_ends_with_its_token(file_state, clock):
    revoked, _ = file_state.tokens.add("Carl", "custodian")
    expired, _ = file_state.tokens.add("Ada", "analyst", account="ada", days=1)
    clock.turn(hours=23, minutes=55)
    sessions = [file_state.sessions.begin(revoked), file_state.sessions.begin(expired)]
    assert all(file_state.sessions.find(session) for session in sessions)
    file_state.tokens.revoke(revoked.id)
    clock.turn(minutes=6)
    assert [file_state.sessions.find(session) for session in sessions] == [None, None]


def test_a_page_that_is_read_at_once_after_another_writes_nothing(file_state, clock, token):
    session = file_state.sessions.begin(token)
    before = _held(file_state)
    clock.turn(seconds=50)
    file_state.sessions.find(session)
    assert _held(file_state) == before
    clock.turn(seconds=20)
    file_state.sessions.find(session)
    assert _held(file_state) != before


def test_sessions_that_have_ended_are_forgotten_when_another_begins(file_state, clock, token):
    for _ in range(5):
        file_state.sessions.begin(token)
    clock.now += IDLE
    file_state.sessions.begin(token)
    assert len(_held(file_state)) == 1


def test_every_worker_knows_the_session(database):
    with State.create(database) as one, State.open(database) as other:
        token, _ = one.tokens.add("Carl", "custodian")
        session = one.sessions.begin(token)
        assert other.sessions.find(session) == token
        other.sessions.end(session)
        assert one.sessions.find(session) is None
