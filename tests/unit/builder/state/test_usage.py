"""Usage: counted in memory, written in batches, added up whoever writes it."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tabulary.builder.state import Requests, State
from tabulary.builder.state.counter import RequestCounter
from tabulary.builder.state.usage import DayOfUse
from tabulary.errors import ServiceError

TABLE = Requests("2026-05-04", "census", "tables", 2, "public", 3)


def _plain(rows):
    return [(row.day, row.dataset, row.kind, row.status, row.caller, row.requests) for row in rows]


def test_requests_of_one_kind_add_up_and_others_stay_apart(state):
    refused = Requests("2026-05-04", "census", "tables", 4, "public", 1)
    state.usage.add([TABLE, refused])
    state.usage.add([TABLE])
    assert sorted(row[3:] for row in _plain(state.usage.read())) == [(2, "public", 6), (4, "public", 1)]


def test_no_requests_are_no_rows(state):
    state.usage.add([])
    assert state.usage.read() == ()


def test_workers_that_add_at_the_same_time_lose_nothing(state, database):
    rows = [Requests("2026-05-04", "census", kind, 2, "public", 1) for kind in "abcdefgh"]
    with State.open(database) as other, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: (state, other)[i % 2].usage.add(rows[:: (1, -1)[i % 3 == 0]]), range(40)))
    assert {row.requests for row in state.usage.read()} == {40}


def test_usage_is_read_by_dataset_a_page_at_a_time(state):
    days = [f"2026-05-{day:02}" for day in range(1, 8)]
    for day in days:
        state.usage.add([Requests(day, name, "tables", 2, "public", 1) for name in ("census", "survey")])
    read, after = [], None
    while page := state.usage.read("census", after=after, size=3):
        read += page
        after = page[-1].number
    assert [(row.day, row.dataset) for row in read] == [(day, "census") for day in days]
    assert len(state.usage.read()) == 14


def test_usage_is_summed_by_day_and_dataset_the_last_day_first(state):
    for day in ("2026-05-03", "2026-05-04", "2026-05-05"):
        for status, number in ((2, 2**40), (3, 1), (4, 20), (5, 3)):
            for kind in ("tables", "tests"):
                state.usage.add([Requests(day, "survey", kind, status, "public", number)])
    state.usage.add([TABLE])
    both = (2 * (2**40 + 24), 40, 6)
    assert state.usage.by_day("2026-05-04") == (
        DayOfUse("2026-05-05", "survey", *both),
        DayOfUse("2026-05-04", "census", 3, 0, 0),
        DayOfUse("2026-05-04", "survey", *both),
    )


def test_counting_writes_nothing_until_it_is_flushed(state):
    for status in (200, 204, 404):
        state.counter.count("census", "tables", status, "public")
    assert state.usage.read() == ()
    assert state.counter.flush()
    assert sorted(row[1:] for row in _plain(state.usage.read())) == [
        ("census", "tables", 2, "public", 2),
        ("census", "tables", 4, "public", 1),
    ]


def test_what_was_counted_is_written_when_the_state_is_closed(database):
    with State.create(database) as state:
        state.counter.count("census", "tables", 200, "public")
    with State.open(database) as state:
        assert [row.requests for row in state.usage.read()] == [1]


def test_a_thread_of_its_own_writes_what_was_counted():
    written = threading.Event()
    rows = []
    counter = RequestCounter(lambda batch: (rows.extend(batch), written.set()), every=0.001)
    counter.count("census", "tables", 200, "public")
    assert written.wait(10)
    counter.close()
    assert [row.requests for row in rows] == [1]


class Failing:
    """A database that is down until it is told otherwise."""

    def __init__(self):
        self.down, self.written = True, []

    def __call__(self, rows):
        if self.down:
            raise ServiceError("the state cannot be reached.")
        self.written.extend(rows)


def test_what_cannot_be_written_waits_in_memory_and_is_not_counted_twice(caplog):
    database = Failing()
    counter = RequestCounter(database, every=1000)
    for _ in range(3):
        counter.count("census", "tables", 200, "public")
        assert not counter.flush()
    assert len(caplog.records) == 1
    database.down = False
    assert counter.flush()
    counter.close()
    assert [row.requests for row in database.written] == [3]


def test_a_hanging_database_keeps_no_request_waiting():
    entered, leave = threading.Event(), threading.Event()

    def hang(rows):
        entered.set()
        assert leave.wait(10)

    counter = RequestCounter(hang, every=0.001)
    counter.count("census", "tables", 200, "public")
    assert entered.wait(10)
    # If counting waited for the database, this would not come back before it is let go.
    counter.count("census", "tables", 200, "public")
    leave.set()
    counter.close()


def test_a_state_that_cannot_be_written_can_still_be_closed(tmp_path, caplog):
    state = State.create(tmp_path / "state.sqlite")
    state.database.close()
    (tmp_path / "state.sqlite").unlink()
    state.counter.count("census", "tables", 200, "public")
    state.close()
    assert "kept in memory" in caplog.text


def test_counting_from_many_threads_loses_nothing():
    database = Failing()
    database.down = False
    counter = RequestCounter(database, every=0.001)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: counter.count("census", "tables", 200, "public"), range(2000)))
    counter.close()
    assert sum(row.requests for row in database.written) == 2000
