"""Choose which invalid tokens are logged: enough to see who tries, too few to fill a disk."""

import math
import threading
import time
from collections import OrderedDict

from tabulary.builder.state import Action, Actor, Token
from tabulary.builder.state.log import STRANGER, Log
from tabulary.builder.throttle import MOST_CLIENTS, MonotonicClock, Throttle

WINDOW = 3600.0
"""The seconds over which failures of one address or one token are added up."""


class Failures:
    """Counts failed sign-ins: with an expired or revoked token by token, all others by address.

    It logs the first failure, and then the second, the fourth, the eighth and so on, with their number. `lines` limits
    the log entries from all addresses together: 60 at once, and one per minute in the long run. The next entry gives
    the number of entries that were left out.
    """

    def __init__(
        self,
        log: Log,
        *,
        lines: Throttle | None = None,
        most: int = MOST_CLIENTS,
        clock: MonotonicClock = time.monotonic,
    ) -> None:
        self._log = log
        self._lines = lines or Throttle(1, burst=60, clock=clock)
        self._most = most
        self._clock = clock
        # The number of failures, and the time when it is forgotten.
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._left_out = 0
        self._lock = threading.Lock()

    def note(self, token: Token | None, address: str) -> None:
        """Count an invalid token; None means that no such token exists."""
        what = "a token that is not known" if token is None else f"the token {token.words}, which has ended"
        with self._lock:
            times = self._counted(address if token is None else f"token {token.id}")
            is_power_of_two = times & (times - 1) == 0
            if not is_power_of_two:
                return
            if self._lines.take("all"):
                self._left_out += 1
                return
            left_out, self._left_out = self._left_out, 0
        if times > 1:
            what += f", {times} times within {math.ceil(WINDOW / 60)} minutes"
        if left_out:
            what += f"; {left_out} such entries before were left out"
        by = Actor(STRANGER, None, address) if token is None else Actor.of(token, address)
        self._log.add(by, Action.sign_in_failed, what)

    def _counted(self, who: str) -> int:
        now = self._clock()
        times, until = self._counts.get(who, (0, now + WINDOW))
        if now >= until:
            times, until = 0, now + WINDOW
        self._counts[who] = (times + 1, until)
        self._counts.move_to_end(who)
        if len(self._counts) > self._most:
            self._counts.popitem(last=False)
        return times + 1
