"""How often one client may ask, and how long one that guesses tokens has to wait.

Both are kept in the memory of a worker and shared with no other: a service of w workers lets through up to w times as
much, and a restart forgives. That is enough to keep one client from taking the service from the others; against many
addresses at once it takes what stands before the service.
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
"""Seconds since some moment; never set back."""

MOST_CLIENTS = 1 << 16
"""How many clients are remembered. Past that, the one that was seen longest ago is forgotten."""

TOO_OFTEN = "Too many requests came from here in a short time. Nothing was asked, nothing was spent."


class Throttle:
    """A bucket of requests for each client: `burst` at once, and `requests_a_minute` in the long run.

    The bucket is held as the one moment at which it will be full again (the generic cell rate algorithm): a request
    moves it by the time in which one request is earned, and is refused if that would be more than `burst` of them
    ahead. Whoever is refused has lost nothing and waits no longer for having asked.

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
        """Return 0 and count a request of this client, or return how many seconds it has to wait for one."""
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at.get(client, now), now)
            wait = full_at - now - self._ahead
            # What is less than a thousandth of a request is rounding.
            if wait > self._interval / 1000:
                return wait
            self._full_at[client] = full_at + self._interval
            self._full_at.move_to_end(client)
            if len(self._full_at) > self._most:
                self._full_at.popitem(last=False)
            return 0.0


class Waits:
    """How long an address has to wait after tokens that were not good: a second, doubled with every other one.

    Nobody at another address waits for it. A good token shortens nothing, or one that somebody has could be shown
    between two guesses. An address that has waited and then was quiet for `forgiven` seconds begins anew.

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
        """Return how many seconds the address still has to wait."""
        with self._lock:
            _, until = self._waits.get(address, (0.0, 0.0))
            return max(0.0, until - self._clock()) if until else 0.0

    def failed(self, address: str) -> float:
        """Count a token that was not good; return how many seconds the address has to wait from now on."""
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
    """Return the network address of a request; of IPv6 the first half, since one client has all of the other.

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
    """Return the header that says when to come again, in whole seconds.

    >>> retry_after(0.1)
    {'Retry-After': '1'}
    """
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def refuse_too_often(throttle: Throttle, client: str) -> None:
    """Count a request of the client, or raise the problem that there were too many."""
    if wait := throttle.take(client):
        raise HTTPProblem(429, "too-many-requests", TOO_OFTEN, retry_after(wait))


class RateLimit:
    """Pure ASGI: answers a client that asks too often with 429 and when to come again.

    Clients are told apart by their address: what a request says about itself could be said anew with every request.
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
