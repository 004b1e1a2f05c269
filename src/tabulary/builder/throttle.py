"""Limit the requests of one client, and make a client that guesses tokens wait.

Each worker keeps both in its own memory: a service of w workers lets through up to w times as much, and a restart
forgets everything. That is enough to stop one client from blocking the others. Against many addresses at once, use a
protection in front of the service.
"""

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from tabulary.builder.problems import HTTPProblem, problem

MonotonicClock = Callable[[], float]
"""Seconds since a fixed moment; they never go back."""

MOST_CLIENTS = 1 << 16
"""The number of remembered clients. Beyond it, the client with the oldest request is forgotten."""

TOO_OFTEN = "Too many requests came from here in a short time. Nothing was asked, nothing was spent."


class Throttle:
    """A bucket of requests for each client: `burst` at once, and `requests_a_minute` in the long run.

    The bucket is stored as the one moment when it will be full again (the generic cell rate algorithm). A request moves
    this moment forward by the time that refills one request. It is refused if the moment would then be more than
    `burst` such times ahead. A refused request does not make the client wait longer.

    >>> seconds = 0.0
    >>> throttle = Throttle(60, burst=2, clock=lambda: seconds)
    >>> [throttle.take("192.0.2.1") for _ in range(3)]
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self,
        requests_a_minute: int,
        *,
        burst: int,
        most: int = MOST_CLIENTS,
        clock: MonotonicClock = time.monotonic,
    ) -> None:
        self._interval = 60 / requests_a_minute
        self._ahead = self._interval * (burst - 1)
        self._most = most
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, client: str) -> float:
        """Return 0 and count a request of this client, or return the seconds that it has to wait."""
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at.get(client, now), now)
            wait = full_at - now - self._ahead
            # Less than a thousandth of a request is a rounding error.
            if wait > self._interval / 1000:
                return wait
            self._full_at[client] = full_at + self._interval
            self._full_at.move_to_end(client)
            if len(self._full_at) > self._most:
                self._full_at.popitem(last=False)
            return 0.0


class Waits:
    """The waiting time of an address after invalid tokens: one second, doubled with every further one.

    Other addresses do not wait. A valid token does not shorten the wait: otherwise a guesser could send one between two
    guesses. An address that has waited and was then quiet for `forgiven` seconds starts again at one second.

    >>> seconds = 0.0
    >>> waits = Waits(clock=lambda: seconds)
    >>> waits.failed("192.0.2.1"), waits.failed("192.0.2.1")
    (1.0, 2.0)
    >>> waits.left("192.0.2.1"), waits.left("192.0.2.2")
    (2.0, 0.0)
    """

    def __init__(
        self,
        *,
        longest: float = 900.0,
        forgiven: float = 3600.0,
        most: int = MOST_CLIENTS,
        clock: MonotonicClock = time.monotonic,
    ) -> None:
        self._longest = longest
        self._forgiven = forgiven
        self._most = most
        self._clock = clock
        # The last wait of an address, and when it ends.
        self._waits: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def left(self, address: str) -> float:
        """Return the seconds that the address still has to wait."""
        with self._lock:
            _, until = self._waits.get(address, (0.0, 0.0))
            return max(0.0, until - self._clock()) if until else 0.0

    def failed(self, address: str) -> float:
        """Count an invalid token; return the seconds that the address has to wait from now on."""
        with self._lock:
            now = self._clock()
            last, until = self._waits.get(address, (0.0, now))
            wait = 1.0 if not last or now > until + self._forgiven else min(2 * last, self._longest)
            self._waits[address] = (wait, now + wait)
            self._waits.move_to_end(address)
            if len(self._waits) > self._most:
                self._waits.popitem(last=False)
            return wait


def address_of(scope: Scope) -> str:
    """Return the network address of a request; for IPv6 only the first half, because one client owns the second.

    >>> address_of({"client": ("2001:db8:1:2:3::4", 51000)})
    '2001:db8:1:2::/64'
    """
    client = scope.get("client")
    if client is None:
        # A socket on this machine has no address.
        return "local"
    host = str(client[0])
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header that says when to try again, in whole seconds.

    >>> retry_after(0.1)
    {'Retry-After': '1'}
    """
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def refuse_too_often(throttle: Throttle, client: str) -> None:
    """Count a request of the client; raise a problem if there were too many."""
    if wait := throttle.take(client):
        raise HTTPProblem(429, "too-many-requests", TOO_OFTEN, retry_after(wait))


class RateLimit:
    """Pure ASGI: answers a client that asks too often with 429 and the time to try again.

    The address identifies a client: everything else in a request could change with every request.
    """

    def __init__(self, app: ASGIApp, throttle: Throttle) -> None:
        self.app = app
        self.throttle = throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http" and (wait := self.throttle.take(address_of(scope))):
            refusal = problem(scope["path"], 429, "too-many-requests", TOO_OFTEN, retry_after(wait))
            await refusal(scope, receive, send)
            return
        await self.app(scope, receive, send)
