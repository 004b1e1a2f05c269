"""What a mechanism measures of a few invented records, by its own code and without noise."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.tally import Tally
from tabulary.core.domain import Domain
from tabulary.errors import InvalidDomain
from tabulary.mechanisms import measure
from tabulary.noise import Drawable, Entropy, Sampler
from tabulary.planning import Measurement, Plan

InventedRecord = tuple[int, ...]
"""The position of the level of each attribute, in the domain's order."""

# Structural zeros may forbid nearly every combination; then a possible one is not found by trying.
_TRIES = 10_000


@dataclass(frozen=True)
class NoNoise:
    """Adds zero everywhere, so that the exact measured values are visible. No release may use it."""

    def draw(self, noise: Drawable, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return zeros."""
        return np.zeros(size, dtype=np.int64)


def tally_of(plan: Plan, records: Mapping[InventedRecord, int]) -> Tally:
    """Return the exact counts of invented records, each with how often it occurs, on the margins the plan needs."""
    positions = {attribute: i for i, attribute in enumerate(plan.domain.attributes)}
    counts = {margin: np.zeros(plan.domain.shape_of(margin), dtype=np.int64) for margin in plan.counted}
    for margin, cells in counts.items():
        for record, times in records.items():
            cells[tuple(record[positions[a]] for a in margin)] += times
    return Tally(plan.domain, counts)


def measured(
    plan: Plan, records: Mapping[InventedRecord, int], sampler: Sampler | None = None
) -> Measurement:
    """Return what `mechanisms.measure` makes of invented records: without noise, unless a sampler is given."""
    return measure(tally_of(plan, records), plan, sampler or NoNoise())


def noisy_numbers(measurement: Measurement) -> NDArray[np.int64]:
    """Return all numbers that get noise, in the plan's order, as one vector."""
    return _flat(measurement.values[: len(measurement.plan.measured)])


def exact_numbers(measurement: Measurement) -> NDArray[np.int64]:
    """Return all numbers that the plan releases without noise, as one vector."""
    return _flat(measurement.values[len(measurement.plan.measured) :])


def numbers_of(plan: Plan) -> int:
    """Return how many numbers get noise."""
    return sum(math.prod(plan.shape_of(part)) for part in plan.measured)


def is_possible(domain: Domain, record: InventedRecord) -> bool:
    """Return whether no structural zero forbids the record."""
    return not any(
        mask[tuple(record[domain.position(a)] for a in attributes)] for attributes, mask in domain.zero_blocks
    )


def every_record(domain: Domain) -> Iterator[InventedRecord]:
    """Yield every possible record of a small domain."""
    return (record for record in np.ndindex(*domain.shape) if is_possible(domain, record))


def random_record(domain: Domain, entropy: Entropy) -> InventedRecord:
    """Return a possible record, uniform up to the remainder of a 64-bit word."""
    for _ in range(_TRIES):
        words = entropy.words(len(domain.shape))
        record = tuple(int(word) % levels for word, levels in zip(words, domain.shape, strict=True))
        if is_possible(domain, record):
            return record
    raise InvalidDomain(
        f"no possible record was found in {_TRIES:,} tries: the structural zeros forbid nearly every combination. "
        "Nothing was audited. Leave out levels that no record can have."
    )


def contrary_records(domain: Domain, base: InventedRecord) -> Iterator[InventedRecord]:
    """Yield possible records that differ from `base` in all attributes, in all but one, in one, and in two.

    Which records lie furthest apart depends on the plan: for counts those that differ everywhere, for contrasts those
    that differ in about half of the attributes, for residuals in between. Prefixes give one of every number.
    """
    every = range(len(base))
    sets: list[Sequence[int]] = [tuple(every)]
    sets += [tuple(every)[:k] for k in every if k]
    sets += [(i,) for i in every]
    sets += [tuple(j for j in every if j != i) for i in every]
    sets += [(i, j) for i in every for j in range(i)]
    for chosen in dict.fromkeys(sets):
        for step in (1, -1):
            moved = tuple(
                (c + step) % k if i in chosen else c
                for i, (c, k) in enumerate(zip(base, domain.shape, strict=True))
            )
            if moved != base and is_possible(domain, moved):
                yield moved


def _flat(values: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([v.reshape(-1) for v in values]) if values else np.zeros(0, dtype=np.int64)
