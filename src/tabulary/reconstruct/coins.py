"""Coins that follow from the measurements: whoever has the numbers makes the same published tables again."""

import hashlib

import numpy as np

from tabulary.noise import Entropy
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning import Measurement


def measurement_digest(measurement: Measurement) -> str:
    """Return the SHA-256 of a measurement as 64 hexadecimal digits.

    Over the 32 bytes of the plan's digest, then every value as a little-endian 64-bit integer, in the order of the
    plan and row by row. The plan fixes the shape of each part, so two measurements have the same bytes only if they
    are the same.

    Post-processing: the digest is computed from public numbers, reads no data and spends no budget.
    """
    digest = hashlib.sha256(bytes.fromhex(measurement.plan.digest()))
    for values in measurement.values:
        digest.update(np.ascontiguousarray(values, dtype="<i8").data)
    return digest.hexdigest()


def coins_of(measurement: Measurement) -> Entropy:
    """Return the words for what is random in a published face: its rounding.

    They follow from the digest of the measurement, so that a face is a function of the measurement alone: anybody can
    make it again and compare.

    Nothing secret depends on these words, so everybody may know them. The noise that protects people was drawn
    before, from the system's entropy or a secret key, and is in the numbers already. A face is post-processing of
    these public numbers, and no choice of coins, known or unknown, can weaken the promise of privacy.
    """
    return KeyedEntropy(bytes.fromhex(measurement_digest(measurement)), "face")
