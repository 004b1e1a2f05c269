"""A state on each database, and a clock that stands still."""

from datetime import UTC, datetime, timedelta

import pytest

from tabulary.builder.state import State


class Clock:
    """A clock that a test turns."""

    def __init__(self):
        self.now = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

    def __call__(self):
        return self.now

    def turn(self, **by):
        self.now += timedelta(**by)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def state(database, clock):
    with State.create(database, clock=clock) as opened:
        yield opened
