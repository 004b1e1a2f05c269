"""One cache for a whole process: values made on demand are kept as long as all together are below one limit."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

DEFAULT_BYTES = 512 << 20
"""The default limit of a cache, in bytes."""

ENTRY_BYTES = 512
"""The cost of an entry in addition to its bytes: its key and its place. So a million empty entries have a limit too."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Kind = TypeVar("Kind", bound=np.generic)


class Cache:
    """The limit that all sections share: together they keep at most `most_bytes`.

    A cache gives out nothing. Each owner has its own `CacheSection`, and an entry is found only through the section
    that put it there: exact counts and public answers share the limit, never a key. If there is no room, the entry
    that was not used for the longest time is dropped, for any owner.

    >>> cache = Cache(2000)
    >>> first, second = ArrayCache[str, np.int64](cache), ArrayCache[str, np.int64](cache)
    >>> first.get("a", lambda: np.array([1, 2])).tolist(), second.get("a", lambda: np.array([3])).tolist()
    ([1, 2], [3])
    >>> cache
    <Cache of 2 entries, 1,048 of 2,000 bytes>
    """

    def __init__(self, most_bytes: int = DEFAULT_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        # By owner and key, the one that was used longest ago first: how many bytes it takes.
        self._sizes: OrderedDict[tuple[CacheSection[Any, Any], Hashable], int] = OrderedDict()
        self._lock = Lock()

    @property
    def most_bytes(self) -> int:
        """The largest number of bytes of all sections together."""
        return self._most

    @property
    def held_bytes(self) -> int:
        """The present number of bytes of all sections together."""
        return self._bytes

    def __repr__(self) -> str:
        return f"<Cache of {len(self._sizes):,} entries, {self._bytes:,} of {self._most:,} bytes>"


class CacheSection(Generic[Key, Value]):
    """What one owner keeps in a cache, by key. `bytes_of` returns the size of a value.

    Safe to use from several threads. Threads that ask for the same value at the same time get the same one: one of
    them makes it, and the others wait. A thread that makes a value must not ask the same section for another one:
    two threads could wait for each other.
    """

    def __init__(self, cache: Cache, *, bytes_of: Callable[[Value], int]) -> None:
        self._cache = cache
        self._bytes_of = bytes_of
        self._values: dict[Key, Value] = {}
        self._making: dict[Key, Future[Value]] = {}

    @property
    def cache(self) -> Cache:
        """The cache that this section is a part of."""
        return self._cache

    def find(self, key: Key) -> Value | None:
        """Return the value of this key if it is held."""
        with self._cache._lock:
            return self._found(key)

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of this key; `make` it if it is missing. All waiting threads get what `make` raises."""
        with self._cache._lock:
            held = self._found(key)
            if held is not None:
                return held
            making = self._making.get(key)
            if making is None:
                own = self._making[key] = Future[Value]()
        if making is not None:
            return making.result()
        try:
            made = self._prepared(make())
        except BaseException as problem:
            with self._cache._lock:
                del self._making[key]
            own.set_exception(problem)
            raise
        with self._cache._lock:
            self._put(key, made)
            del self._making[key]
        own.set_result(made)
        return made

    def put(self, key: Key, value: Value) -> None:
        """Keep a value that was made elsewhere, if there is room for it."""
        with self._cache._lock:
            self._put(key, self._prepared(value))

    def held(self) -> dict[Key, Value]:
        """Return what this section contains now."""
        with self._cache._lock:
            return dict(self._values)

    def clear(self) -> None:
        """Forget everything in this section."""
        with self._cache._lock:
            for key in list(self._values):
                self._drop(key)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._values):,} entries>"

    def _prepared(self, value: Value) -> Value:
        return value

    def _found(self, key: Key) -> Value | None:
        found = self._values.get(key)
        if found is not None:
            self._cache._sizes.move_to_end((self, key))
        return found

    def _put(self, key: Key, value: Value) -> None:
        cache, size = self._cache, self._bytes_of(value) + ENTRY_BYTES
        if key in self._values:
            self._drop(key)
        # A value above the limit would push out all others and still not fit.
        if size > cache._most:
            return
        self._values[key] = value
        cache._sizes[self, key] = size
        cache._bytes += size
        while cache._bytes > cache._most:
            owner, oldest = next(iter(cache._sizes))
            owner._drop(oldest)

    def _drop(self, key: Key) -> None:
        del self._values[key]
        self._cache._bytes -= self._cache._sizes.pop((self, key))


class ArrayCache(CacheSection[Key, NDArray[Kind]]):
    """A section of arrays, which nobody can change after they are stored."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache, bytes_of=lambda array: array.nbytes)

    def _prepared(self, value: NDArray[Kind]) -> NDArray[Kind]:
        # What numpy computes on no axes is a scalar, which has no flags.
        found = np.asarray(value)
        found.flags.writeable = False
        return found
