"""Bodies: kept in the cache of the worker, and each payer's refusal for that payer alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.api.bodies import Bodies, Body
from tabulary.core.cache import Cache


@dataclass
class Told:
    """A question with this key whose answer is this text; an exception is raised."""

    key: object
    text: str | Exception
    payer: str | None = None
    is_test: bool = False
    made: int = 0

    def body(self):
        self.made += 1
        if isinstance(self.text, Exception):
            raise self.text
        return Body.of(self.text.encode(), "text/plain")


@pytest.fixture
def bodies():
    return Bodies(Cache(1 << 20))


def test_a_body_that_is_kept_is_not_made_again(bodies):
    question = Told("key", "once")
    first = bodies.made(question)
    assert bodies.made(question) is bodies.find("key") is first
    assert question.made == 1


def test_one_payers_refusal_is_not_anothers_even_while_both_ask(bodies):
    both = threading.Barrier(2)

    @dataclass
    class Together(Told):
        def body(self):
            both.wait(10)
            return super().body()

    with ThreadPoolExecutor(2) as threads:
        refused = threads.submit(bodies.made, Together("key", ValueError("poor"), "poor"))
        answered = threads.submit(bodies.made, Together("key", "rich", "rich"))
    with pytest.raises(ValueError, match="poor"):
        refused.result()
    assert answered.result().content == b"rich"


def test_a_failure_is_not_kept(bodies):
    with pytest.raises(ValueError, match="not now"):
        bodies.made(Told("key", ValueError("not now")))
    assert bodies.made(Told("key", "now")).content == b"now"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3_000)), max_size=40))
def test_the_limit_holds_after_every_question_and_the_last_body_that_fits_is_kept(asked):
    cache = Cache(10_000)
    bodies = Bodies(cache)
    for key, size in asked:
        assert len(bodies.made(Told((key, size), "x" * size)).content) == size
        assert cache.held_bytes <= 10_000
        assert bodies.find((key, size)) is not None


def test_a_body_larger_than_the_limit_is_given_and_not_kept():
    bodies = Bodies(Cache(1_100))
    assert len(bodies.made(Told("key", "x" * 200)).content) == 200
    assert bodies.find("key") is None


def test_the_least_recently_asked_for_is_forgotten_first():
    bodies = Bodies(Cache(3 * 1_124 + 100))
    for key in "abc":
        bodies.made(Told(key, "x" * 100))
    assert bodies.find("a") is not None
    bodies.made(Told("d", "x" * 100))
    assert [key for key in "abcd" if bodies.find(key)] == ["a", "c", "d"]
