"""Noise that can be drawn again: words from a secret key and a description of what they are for.

A service that answers the same question for years, from several processes and machines, must add the same noise every
time: fresh noise averages out. So its words come from a key that only the custodian has, and from the context they
are drawn for. Without the key, nobody can distinguish them from fresh ones.
"""

import hashlib
import hmac

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidNoise

SMALLEST_KEY = 32
"""A key has at least this many bytes: nobody guesses 256 bits."""

# Fixed for ever: another block size would give other words, and so other noise for the same question.
_BLOCK_WORDS = 512


def derived_key(key: bytes, *context: str) -> bytes:
    """Return a key of 32 bytes for this context: HMAC-SHA-256 of the context under the key.

    Each part of the context goes with its length, so that no two contexts are the same bytes. For anyone without the
    key, the keys of different contexts look independent, and none reveals the key.

    >>> derived_key(bytes(32), "noise", "census").hex()[:16]
    'fb3092241bdea1a2'
    >>> derived_key(bytes(32), "noise", "census") == derived_key(bytes(32), "noisec", "ensus")
    False
    """
    if not isinstance(key, bytes) or len(key) < SMALLEST_KEY:
        raise InvalidNoise(f"a secret key has at least {SMALLEST_KEY} bytes. Nothing was drawn.")
    spelled = [part.encode() for part in context]
    message = b"".join(len(part).to_bytes(8, "big") + part for part in spelled)
    return hmac.digest(key, message, "sha256")


class KeyedEntropy:
    """The words of one key and context: always the same, for any number of calls.

    SHAKE-256 over the derived key and the number of the block, 512 words per block. As good as fresh words against
    everybody without the key, if no context is used twice for different data: the difference of two answers with the
    same noise is exact.

    >>> first, again = (KeyedEntropy(bytes(32), "census").words(3) for _ in range(2))
    >>> bool((first == again).all())
    True
    """

    def __init__(self, key: bytes, *context: str) -> None:
        self._key = derived_key(key, "words", *context)
        self._block = 0
        self._left = np.zeros(0, dtype=np.uint64)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words of the stream."""
        missing = count - self._left.size
        blocks = -(-missing // _BLOCK_WORDS) if missing > 0 else 0
        drawn = b"".join(self._bytes(self._block + i) for i in range(blocks))
        self._block += blocks
        stream = np.concatenate([self._left, np.frombuffer(drawn, dtype="<u8").astype(np.uint64)])
        self._left = stream[count:]
        return stream[:count]

    def __repr__(self) -> str:
        return "KeyedEntropy()"

    def _bytes(self, block: int) -> bytes:
        return hashlib.shake_256(self._key + block.to_bytes(8, "big")).digest(8 * _BLOCK_WORDS)
