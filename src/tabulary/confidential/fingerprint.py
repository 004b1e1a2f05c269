"""The fingerprint of records: a keyed digest that changes with every record and not with their order."""

import hashlib
import hmac
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.store import Store
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain

HEXADECIMAL_DIGITS = 32

_WORD_BITS = 64


def fingerprint(store: Store, domain: Domain, weights: Weights | None, key: bytes) -> str:
    """Return 32 digits that identify the multiset of the records, their domain and their weights.

    HMAC-SHA-256 over the domain's description and the records as whole numbers in ascending order, each in as many
    64-bit words as the domain needs. Two multisets of records have the same words only if they are equal, so two of
    them with the same fingerprint would be a collision of 128 bits of SHA-256.

    Without the key, a fingerprint shows only whether two sets of records are the same. With the key, one could try
    small populations one after another. Costs 8 bytes of memory per record and word; ten million records take one
    second, or about eight if a record needs two words.
    """
    header = {
        "domain": domain.describe(),
        "weights": None if weights is None else [weights.column, str(weights.maximum), str(weights.unit)],
        "records": store.rows,
    }
    spelled = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    made = hmac.new(key, len(spelled).to_bytes(8, "big") + spelled, hashlib.sha256)
    words = _words(store, (*domain.shape, weights.sensitivity + 1) if weights else domain.shape)
    if len(words) == 1:
        words[0].sort()
    elif words:
        ascending = np.lexsort(words)
        words = [word[ascending] for word in words]
    for word in words:
        made.update(word.astype("<u8", copy=False).data)
    return made.hexdigest()[:HEXADECIMAL_DIGITS]


def _words(store: Store, levels: Sequence[int]) -> list[NDArray[np.uint64]]:
    """Return the codes of every record in mixed radix, in as few words per record as possible."""
    groups = _groups(levels)
    words = [np.zeros(store.rows, dtype=np.uint64) for _ in groups]
    start = 0
    for rows, matrices in store.read():
        for word, group in zip(words, groups, strict=True):
            part = word[start : start + rows]
            for place in group:
                part *= np.uint64(levels[place])
                part += store.layout.column(matrices, place)[:rows]
        start += rows
    return words


def _groups(levels: Sequence[int]) -> list[list[int]]:
    """Return which columns go into each word: the next ones, as long as their combinations fit in 64 bits."""
    groups: list[list[int]] = []
    combinations = 1
    for place, count in enumerate(levels):
        combinations *= count
        if not groups or combinations > 1 << _WORD_BITS:
            groups.append([])
            combinations = count
        groups[-1].append(place)
    return groups
