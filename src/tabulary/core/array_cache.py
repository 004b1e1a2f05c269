"""Arrays that are made when they are first asked for and kept while there is room."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)
Kind = TypeVar("Kind", bound=np.generic)


class BoundedCache(Generic[Key, Kind]):
    """Arrays by key, together at most so many bytes; the one that was asked for longest ago goes first.

    Safe to use from several threads. Those that ask for the same array at the same time get the same one, which one
    of them makes and the others wait for. Whoever makes an array must not ask the same cache for another one: two that
    do could wait for each other.

    >>> cache: BoundedCache[str, np.int64] = BoundedCache(16)
    >>> cache.get("a", lambda: np.array([1, 2])).tolist()
    [1, 2]
    >>> cache.get("a", lambda: np.array([3, 4])).tolist()
    [1, 2]
    >>> cache
    <BoundedCache of 1 arrays, 16 of 16 bytes>
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._held: OrderedDict[Key, NDArray[Kind]] = OrderedDict()
        self._making: dict[Key, Future[NDArray[Kind]]] = {}
        self._lock = Lock()

    def get(self, key: Key, make: Callable[[], NDArray[Kind]]) -> NDArray[Kind]:
        """Return the array of this key, read-only; `make` it if it is not held. All who wait get what `make` raises."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
            making = self._making.get(key)
            if making is None:
                own = self._making[key] = Future[NDArray[Kind]]()
        if making is not None:
            return making.result()
        try:
            made = _frozen(make())
        except BaseException as problem:
            with self._lock:
                del self._making[key]
            own.set_exception(problem)
            raise
        with self._lock:
            self._put(key, made)
            del self._making[key]
        own.set_result(made)
        return made

    def put(self, key: Key, array: NDArray[Kind]) -> None:
        """Hold an array that was made elsewhere."""
        with self._lock:
            self._put(key, _frozen(array))

    def held(self) -> dict[Key, NDArray[Kind]]:
        """Return what is held now, the one that was asked for longest ago first."""
        with self._lock:
            return dict(self._held)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def __repr__(self) -> str:
        return f"<BoundedCache of {len(self._held):,} arrays, {self._bytes:,} of {self._most:,} bytes>"

    def _put(self, key: Key, array: NDArray[Kind]) -> None:
        # An array above the bound would push out all others and still not fit.
        if array.nbytes > self._most:
            return
        replaced = self._held.pop(key, None)
        self._bytes += array.nbytes - (0 if replaced is None else replaced.nbytes)
        self._held[key] = array
        while self._bytes > self._most:
            _, dropped = self._held.popitem(last=False)
            self._bytes -= dropped.nbytes


def _frozen(array: NDArray[Kind]) -> NDArray[Kind]:
    # What numpy computes on no axes is a scalar, which has no flags.
    found = np.asarray(array)
    found.flags.writeable = False
    return found
