"""Bodies: made once, kept within a bound."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.api.caching import Bodies, Body
from tabulary.builder.working import Pool
from tests.askers import NamedAsker


@pytest.fixture(scope="module")
def pool():
    threads = Pool("answers", threads=4, each=100, most=100, seconds=300)
    yield threads
    threads.close()


class PooledBodies(Bodies):
    """Bodies that one caller asks for, made in one pool."""

    def __init__(self, most_bytes, pool):
        super().__init__(most_bytes)
        self._pool = pool

    def made(self, key, make, *, by=None):
        return super().made(key, make, self._pool, NamedAsker("anyone"), by=by)


@pytest.fixture
def bodies(pool):
    return PooledBodies(1 << 20, pool)


def _body(text: str) -> Body:
    return Body.of(text.encode(), "text/plain")


def test_a_body_is_made_once_however_many_ask_at_a_time(bodies):
    made, release = [], threading.Event()

    def make() -> Body:
        release.wait(10)
        made.append(1)
        return _body("once")

    async def ask_together():
        asked = [asyncio.create_task(bodies.made("key", make)) for _ in range(20)]
        await asyncio.sleep(0)
        release.set()
        return await asyncio.gather(*asked)

    answers = asyncio.run(ask_together())
    assert made == [1]
    assert {answer.content for answer in answers} == {b"once"}
    assert bodies.find("key") is answers[0]


def test_one_askers_refusal_is_not_anothers(bodies):
    def refuse() -> Body:
        raise ValueError("poor")

    async def ask_together():
        return await asyncio.gather(
            bodies.made("key", refuse, by="poor"),
            bodies.made("key", lambda: _body("rich"), by="rich"),
            return_exceptions=True,
        )

    refused, answered = asyncio.run(ask_together())
    assert isinstance(refused, ValueError)
    assert answered.content == b"rich"


def test_a_failure_is_not_kept(bodies):
    def fail() -> Body:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        asyncio.run(bodies.made("key", fail))
    assert asyncio.run(bodies.made("key", lambda: _body("now"))).content == b"now"


def test_whoever_goes_away_does_not_take_the_answer_from_the_others(bodies):
    release = threading.Event()

    def make() -> Body:
        release.wait(10)
        return _body("still there")

    async def one_leaves():
        leaving = asyncio.create_task(bodies.made("key", make))
        staying = asyncio.create_task(bodies.made("key", make))
        await asyncio.sleep(0)
        leaving.cancel()
        release.set()
        return await staying

    assert asyncio.run(one_leaves()).content == b"still there"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3_000)), max_size=40))
def test_the_bound_holds_after_every_request_and_the_last_body_that_fits_is_kept(pool, requests):
    bodies = PooledBodies(10_000, pool)
    for key, size in requests:
        made = asyncio.run(bodies.made((key, size), lambda size=size: _body("x" * size)))
        assert len(made.content) == size
        assert bodies.held_bytes <= 10_000
        assert bodies.find((key, size)) is not None


def test_a_body_larger_than_the_bound_is_given_and_not_kept(pool):
    bodies = PooledBodies(100, pool)
    assert len(asyncio.run(bodies.made("key", lambda: _body("x" * 200))).content) == 200
    assert bodies.find("key") is None


def test_the_least_recently_asked_for_is_forgotten_first(pool):
    bodies = PooledBodies(3 * 1_124 + 100, pool)
    for key in "abc":
        asyncio.run(bodies.made(key, lambda: _body("x" * 100)))
    assert bodies.find("a") is not None
    asyncio.run(bodies.made("d", lambda: _body("x" * 100)))
    assert [key for key in "abcd" if bodies.find(key)] == ["a", "c", "d"]
