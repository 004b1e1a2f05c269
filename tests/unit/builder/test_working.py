"""Slow work: so much of it for each caller, until a deadline, and only while somebody waits."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
from starlette.requests import ClientDisconnect

from tabulary.builder.problems import HTTPProblem
from tabulary.builder.working import Pool
from tabulary.core.interruption import checkpoint
from tests.askers import NamedCaller
from tests.waiting import wait_until


@contextmanager
def pool(*, threads=2, each=3, most=5, seconds=300.0, **given):
    held = Pool("tests", threads=threads, each=each, most=most, seconds=seconds, **given)
    try:
        yield held
    finally:
        held.close()


class Endless:
    """Work that has no end, but asks between two steps whether it should stop."""

    def __init__(self):
        self.begun, self.stopped = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        try:
            while True:
                checkpoint()
                self.stopped.wait(0.001)
        finally:
            self.stopped.set()


async def _begun(work):
    await asyncio.to_thread(wait_until, work.begun.is_set, "work that begins")


async def _free(held):
    await asyncio.to_thread(wait_until, lambda: not held.places, "places that are free")


def _start(held, key, work, asker):
    return asyncio.create_task(held.done(key, work, asker))


def test_what_several_ask_for_is_done_once_and_an_error_reaches_all_of_them():
    counted, both = [], threading.Event()

    def fail():
        counted.append(1)
        both.wait(60)
        raise ValueError("not today")

    async def ask(held):
        asked = [_start(held, "key", fail, NamedCaller(name)) for name in "ab"]
        await asyncio.sleep(0)
        both.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    with pool() as held:
        assert [str(error) for error in asyncio.run(ask(held))] == ["not today", "not today"]
        assert counted == [1]
        assert held.places == {}


def test_a_caller_with_too_much_under_way_is_refused_and_others_are_not():
    async def ask(held):
        works = [Endless() for _ in range(3)]
        asker = NamedCaller("eager")
        tasks = [_start(held, i, work, asker) for i, work in enumerate(works)]
        await _begun(works[0])
        with pytest.raises(HTTPProblem, match="3 tests of yours are under way") as refused:
            await held.done("more", Endless(), NamedCaller("eager"))
        # Not even what is under way already is waited for: a place is a place.
        with pytest.raises(HTTPProblem, match="3 tests of yours"):
            await held.done(0, Endless(), NamedCaller("eager"))
        asker.leave()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _free(held)
        return refused.value, await held.done("other", lambda: "done", NamedCaller("quiet"))

    with pool() as held:
        refused, answer = asyncio.run(ask(held))
    assert (refused.status_code, refused.name) == (429, "too-much-at-once")
    assert int(refused.headers["Retry-After"]) > 0
    assert answer == "done"


def test_more_than_the_threads_can_do_in_time_is_refused_whoever_asks():
    async def ask(held):
        asker = NamedCaller("a")
        tasks = [_start(held, i, Endless(), asker) for i in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(HTTPProblem, match="Too many tests are under way") as refused:
            await held.done("more", Endless(), NamedCaller("b"))
        asker.leave()
        await asyncio.gather(*tasks, return_exceptions=True)
        return refused.value

    with pool(most=2) as held:
        assert asyncio.run(ask(held)).status_code == 503


def test_work_stops_when_the_last_who_waited_for_it_has_gone_and_not_before():
    work = Endless()

    async def ask(held):
        first, second = NamedCaller("a"), NamedCaller("b")
        tasks = [_start(held, "key", work, asker) for asker in (first, second)]
        await _begun(work)
        first.leave()
        with pytest.raises(ClientDisconnect):
            await tasks[0]
        assert not work.stopped.is_set()
        assert held.places == {"b": 1}
        second.leave()
        with pytest.raises(ClientDisconnect):
            await tasks[1]
        await _free(held)

    with pool() as held:
        asyncio.run(ask(held))
    assert work.stopped.is_set()


def test_work_that_was_not_begun_when_its_asker_went_is_never_begun():
    blocking, waiting = Endless(), Endless()

    async def ask(held):
        first, second = NamedCaller("a"), NamedCaller("b")
        tasks = [_start(held, "first", blocking, first)]
        await _begun(blocking)
        tasks.append(_start(held, "second", waiting, second))
        await asyncio.sleep(0)
        second.leave()
        with pytest.raises(ClientDisconnect):
            await tasks[1]
        assert held.places == {"a": 1}
        first.leave()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _free(held)

    with pool(threads=1) as held:
        asyncio.run(ask(held))
    assert not waiting.begun.is_set()


def test_work_that_cannot_be_stopped_counts_as_its_askers_until_it_has_ended():
    begun, release = threading.Event(), threading.Event()

    def stubborn():
        begun.set()
        release.wait(60)

    async def ask(held):
        asker = NamedCaller("a")
        task = _start(held, "key", stubborn, asker)
        await asyncio.to_thread(begun.wait)
        asker.leave()
        with pytest.raises(ClientDisconnect):
            await task
        assert held.places == {"a": 1}
        with pytest.raises(HTTPProblem, match="1 tests of yours"):
            await held.done("more", stubborn, NamedCaller("a"))
        release.set()
        await _free(held)

    with pool(each=1) as held:
        asyncio.run(ask(held))


def test_work_that_is_not_done_in_time_is_given_up_and_stopped():
    work = Endless()

    async def ask(held):
        with pytest.raises(HTTPProblem, match=r"not done within 0\.05 seconds") as refused:
            await held.done("key", work, NamedCaller("a"))
        await _free(held)
        return refused.value

    with pool(seconds=0.05) as held:
        refused = asyncio.run(ask(held))
    assert (refused.status_code, refused.name) == (503, "took-too-long")
    assert int(refused.headers["Retry-After"]) > 0
    assert not work.begun.is_set() or work.stopped.is_set()


def test_a_caller_who_is_cancelled_frees_the_place_too():
    work = Endless()

    async def ask(held):
        task = _start(held, "key", work, NamedCaller("a"))
        await _begun(work)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _free(held)

    with pool() as held:
        asyncio.run(ask(held))


def test_closing_stops_what_is_under_way_and_takes_no_more():
    work = Endless()

    async def ask(held):
        task = _start(held, "key", work, NamedCaller("a"))
        await _begun(work)
        held.close()
        with pytest.raises(HTTPProblem, match="not done"):
            await task
        with pytest.raises(HTTPProblem, match="Too many tests"):
            await held.done("more", work, NamedCaller("a"))

    with pool() as held:
        asyncio.run(ask(held))
    assert work.stopped.is_set()
