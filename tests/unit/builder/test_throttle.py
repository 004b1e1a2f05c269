"""How often one client may ask, and how long one that guesses has to wait."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.throttle import RateLimit, Throttle, Waits, address_of, retry_after


class Clock:
    """Seconds that a test counts."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_burst_passes_and_the_next_waits_for_its_turn(clock):
    throttle = Throttle(60, burst=3, clock=clock)
    assert [throttle.take("a") for _ in range(4)] == [0, 0, 0, 1]
    clock.now += 1
    assert throttle.take("a") == 0
    assert throttle.take("a") == 1


def test_whoever_is_refused_waits_no_longer_for_having_asked(clock):
    throttle = Throttle(60, burst=1, clock=clock)
    throttle.take("a")
    for _ in range(100):
        assert throttle.take("a") == 1
    clock.now += 1
    assert throttle.take("a") == 0


def test_clients_do_not_wait_for_each_other(clock):
    throttle = Throttle(60, burst=1, clock=clock)
    throttle.take("a")
    assert throttle.take("a") > 0
    assert throttle.take("b") == 0


def test_a_bucket_fills_up_and_no_further(clock):
    throttle = Throttle(60, burst=3, clock=clock)
    for _ in range(3):
        throttle.take("a")
    clock.now += 10_000
    assert [throttle.take("a") > 0 for _ in range(4)] == [False, False, False, True]


@given(
    st.integers(1, 5000),
    st.integers(1, 50),
    st.lists(st.floats(0, 120, allow_nan=False), min_size=1, max_size=80),
)
def test_never_more_than_the_burst_and_what_was_earned_since(requests_a_minute, burst, pauses):
    clock = Clock()
    start, passed = clock.now, 0
    throttle = Throttle(requests_a_minute, burst=burst, clock=clock)
    for pause in pauses:
        clock.now += pause
        passed += not throttle.take("a")
        assert passed <= burst + (clock.now - start) * requests_a_minute / 60 + 0.01 * len(pauses)


@given(st.integers(1, 5000), st.integers(1, 50), st.integers(1, 60))
def test_whoever_waits_as_long_as_told_is_served(requests_a_minute, burst, requests):
    clock = Clock()
    throttle = Throttle(requests_a_minute, burst=burst, clock=clock)
    for _ in range(requests):
        if wait := throttle.take("a"):
            clock.now += wait
            assert throttle.take("a") == 0


def test_no_more_clients_are_remembered_than_stated(clock):
    throttle = Throttle(60, burst=1, most=10, clock=clock)
    for client in range(1000):
        throttle.take(str(client))
    assert [throttle.take(str(client)) > 0 for client in range(990, 1000)] == [True] * 10
    assert throttle.take("989") == 0


def test_threads_that_ask_at_once_get_no_more_than_the_burst(clock):
    throttle = Throttle(60, burst=50, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        passed = sum(not wait for wait in pool.map(lambda _: throttle.take("a"), range(400)))
    assert passed == 50


def test_waits_double_up_to_the_longest(clock):
    waits = Waits(longest=30, clock=clock)
    assert [waits.failed("a") for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert waits.left("a") == 30
    clock.now += 29
    assert waits.left("a") == 1
    clock.now += 1
    assert waits.left("a") == 0


def test_whoever_waited_still_waits_longer_the_next_time(clock):
    waits = Waits(clock=clock)
    waits.failed("a")
    clock.now += 100
    assert waits.left("a") == 0
    assert waits.failed("a") == 2


def test_an_address_that_was_quiet_for_long_begins_anew(clock):
    waits = Waits(forgiven=600, clock=clock)
    for _ in range(5):
        waits.failed("a")
    clock.now += 16 + 601
    assert waits.failed("a") == 1


def test_nobody_waits_for_another_address(clock):
    waits = Waits(clock=clock)
    waits.failed("a")
    assert waits.left("b") == 0
    assert waits.failed("b") == 1


def test_no_more_addresses_wait_than_stated(clock):
    waits = Waits(most=10, clock=clock)
    for address in range(1000):
        waits.failed(str(address))
    assert [client for client in range(1000) if waits.left(str(client))] == list(range(990, 1000))
    assert waits.left("999") == 1


def test_a_clock_that_begins_at_zero_makes_nobody_wait_or_pass():
    clock = Clock()
    clock.now = 0.0
    waits = Waits(clock=clock)
    assert waits.left("a") == 0
    assert waits.failed("a") == 1
    assert waits.left("a") == 1


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (("192.0.2.7", 1), "192.0.2.7"),
        (("2001:db8::1", 1), "2001:db8::/64"),
        (("2001:db8:0:0:ffff::1", 1), "2001:db8::/64"),
        (("2001:db8:0:1::1", 1), "2001:db8:0:1::/64"),
        (("::ffff:192.0.2.7", 1), "192.0.2.7"),
        (("fe80::1%eth0", 1), "fe80::/64"),
        (("a:strange:name", 1), "a:strange:name"),
        (None, "local"),
    ],
)
def test_a_client_is_told_by_its_address_and_a_network_of_ipv6_is_one(client, address):
    assert address_of({"client": client}) == address


@given(st.floats(0, 1e6, allow_nan=False))
def test_whoever_comes_again_after_the_header_says_so_has_waited_long_enough(seconds):
    told = int(retry_after(seconds)["Retry-After"])
    assert max(seconds, 1) <= told < seconds + 1 or told == 1


def test_too_many_requests_are_a_problem_that_says_when_to_come_again(clock):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    limited = RateLimit(app, Throttle(6, burst=1, clock=clock))
    sent = []

    async def keep(message):
        sent.append(message)

    scope = {
        "type": "http",
        "path": "/api/health",
        "client": ("192.0.2.7", 1),
        "method": "GET",
        "headers": [],
    }
    for _ in range(2):
        asyncio.run(limited(scope, None, keep))
    assert [message["status"] for message in sent if "status" in message] == [200, 429]
    headers = dict(sent[2]["headers"])
    assert headers[b"retry-after"] == b"10"
    assert headers[b"content-type"] == b"application/problem+json"
    assert json.loads(sent[3]["body"])["type"] == "too-many-requests"
