"""Tokens that are not good, in the log: who tries is seen, and nobody fills the disk with it."""

import pytest

from tabulary.builder.failures import WINDOW, Failures
from tabulary.builder.state import State


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def state(tmp_path):
    with State.create(tmp_path / "state.sqlite") as opened:
        yield opened


@pytest.fixture
def failures(state, clock):
    return Failures(state.log, clock=clock)


def _failed(state):
    return [entry for entry in state.log.entries() if entry.action == "sign-in failed"]


def test_the_first_failure_of_an_address_is_logged_and_then_each_doubling_of_their_number(state, failures):
    for _ in range(100):
        failures.note(None, "192.0.2.1")
    found = _failed(state)
    assert [entry.object for entry in found[:3]] == [
        "a token that is not known",
        "a token that is not known, 2 times within 60 minutes",
        "a token that is not known, 4 times within 60 minutes",
    ]
    assert len(found) == 7
    assert {(entry.actor, entry.token, entry.address) for entry in found} == {("unknown", None, "192.0.2.1")}
    failures.note(None, "192.0.2.2")
    assert _failed(state)[-1].object == "a token that is not known"


def test_after_an_hour_it_begins_anew(state, failures, clock):
    for _ in range(3):
        failures.note(None, "192.0.2.1")
    clock.now = WINDOW
    failures.note(None, "192.0.2.1")
    assert [entry.object for entry in _failed(state)][2:] == ["a token that is not known"]


def test_a_token_that_has_ended_is_named_from_wherever_it_is_shown(state, failures):
    token, secret = state.tokens.add("Ada", "custodian")
    for number in range(4):
        failures.note(token, f"192.0.2.{number}")
    found = _failed(state)
    assert [(entry.actor, entry.token, entry.address) for entry in found] == [
        ("Ada", token.id, f"192.0.2.{number}") for number in (0, 1, 3)
    ]
    assert "which has ended, 4 times" in found[-1].object
    assert secret not in "".join(entry.line for entry in found)


def test_however_many_addresses_there_are_the_log_grows_by_a_line_a_minute(state, failures, clock):
    for number in range(200):
        failures.note(None, f"10.0.{number // 250}.{number % 250}")
    assert len(_failed(state)) == 60
    clock.now += 60
    for number in range(100):
        failures.note(None, f"10.1.0.{number}")
    found = _failed(state)
    assert len(found) == 61
    assert found[-1].object.endswith("; 140 such entries before were left out")


def test_no_more_addresses_are_remembered_than_there_is_room_for(state, clock):
    failures = Failures(state.log, most=2, clock=clock)
    for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1"):
        failures.note(None, address)
    assert [entry.object for entry in _failed(state)] == ["a token that is not known"] * 4
