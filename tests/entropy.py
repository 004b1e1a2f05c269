"""Entropy that a test can replay. None of it is in the package: a release must never depend on a seed."""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class SeededEntropy:
    """Words from SHAKE-256 in counter mode: the same seed, the same words."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        self._calls += 1
        digest = hashlib.shake_256(f"{self._seed}:{self._calls}".encode()).digest(8 * count)
        return np.frombuffer(digest, dtype="<u8").astype(np.uint64)

    def __repr__(self) -> str:
        return f"SeededEntropy({self._seed})"


class ScriptedEntropy:
    """Hands out the given words in order, and fails when they run out."""

    def __init__(self, script: Iterable[int]) -> None:
        self._script = list(script)

    @property
    def left(self) -> int:
        return len(self._script)

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > len(self._script):
            raise AssertionError(f"asked for {count} words, the script holds {len(self._script)} more")
        given, self._script = self._script[:count], self._script[count:]
        return np.array(given, dtype=np.uint64)

    def __repr__(self) -> str:
        return f"ScriptedEntropy({self._script})"
