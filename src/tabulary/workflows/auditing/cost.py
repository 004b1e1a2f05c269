r"""The cost of a plan, computed again from single records.

Every mechanism measures a linear function of the table, so what one person changes is a sum of differences of single
records, and the dearest change of c records is c times the dearest change of one. Here every possible record is
measured on its own, by the code that measures a release and without noise. The cost of a pair is Σ \|change\| / scale
for Laplace noise and Σ change² / (2σ²) for Gaussian noise, in exact fractions. No formula of a sensitivity is used.

Where the records are too many, the cost is the certificate of the plan (`core.sensitivity` and its siblings), and pairs
that were chosen to be far apart bound it from below.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tabulary.core.privacy import PureDP, implies
from tabulary.core.progress import Progress
from tabulary.noise import Entropy, IntegerNoise
from tabulary.planning import Plan
from tabulary.workflows.auditing.records import (
    InventedRecord,
    contrary_records,
    every_record,
    exact_numbers,
    measured,
    noisy_numbers,
    numbers_of,
    random_record,
)

# Within these, all records or all pairs of them take seconds.
_MOST_RECORDS = 4_000
_MOST_NUMBERS = 20_000_000
_MOST_DIFFERENCES = 2_000_000_000
# How many records are tried where there are too many.
_TRIED = 160
_FEWEST_TRIED = 8
# Costs are compared as floats first, and exactly where they are this close to the largest.
_CLOSE = 1 - 1e-9
# Several records at once, as often as these: whether the measured numbers of a table are sums over its records.
_TOGETHER = (1, 2, 3, 5, 7)

Pair = tuple[InventedRecord, InventedRecord | None]
"""Two records, or a record and nothing."""


@dataclass(frozen=True)
class CostCheck:
    """What one person costs, computed again; `worst` is the pair of records that costs most among those compared.

    `every_pair` says whether all neighbouring pairs were compared. Then `found` is the cost itself. Otherwise it
    bounds the cost from below, and `certificate` bounds it from above.
    """

    plan: Plan
    every_pair: bool
    records: int
    pairs: int
    found: Fraction
    certificate: Fraction
    worst: Pair
    additive: bool
    exact_is_public: bool

    @property
    def cost(self) -> Fraction:
        """What one person costs at most, in the currency of the plan's loss."""
        return self.found if self.every_pair else self.certificate

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not hold, in sentences."""
        loss = self.plan.loss
        allowed = loss.epsilon if isinstance(loss, PureDP) else loss.rho
        checks = {
            f"one person costs {_shown(self.cost)}, more than the plan's loss of {loss}": self.cost > allowed,
            f"two records differ by {_shown(self.found)}, more than the plan's own bound of "
            f"{_shown(self.certificate)}": self.found > self.certificate,
            f"a loss of {loss} does not imply the promised {self.plan.privacy}": not implies(
                loss, self.plan.privacy
            ),
            "the numbers measured of a table are not sums over its records": not self.additive,
            "a number that is released without noise differs between neighbours": not self.exact_is_public,
        }
        return tuple(sentence for sentence, broken in checks.items() if broken)


def check_cost(plan: Plan, entropy: Entropy, progress: Progress | None = None) -> CostCheck:
    """Return the cost of a plan by brute force over all neighbouring records, or over some where they are too many."""
    certificate = plan.cost()
    numbers = numbers_of(plan)
    pairs_too = "replace" in plan.neighbours.steps
    size = plan.domain.size
    every = size <= _MOST_RECORDS and size * numbers <= (_MOST_NUMBERS if pairs_too else 50 * _MOST_NUMBERS)
    every = every and (not pairs_too or size**2 * numbers <= 2 * _MOST_DIFFERENCES)
    records = list(every_record(plan.domain)) if every else _some_records(plan, numbers, entropy)
    search = _Search(plan, records, progress)
    search.run()
    return CostCheck(
        plan=plan,
        every_pair=every,
        records=len(records),
        pairs=search.compared,
        found=search.largest,
        certificate=certificate,
        worst=search.worst,
        additive=_is_additive(plan, records, search.worst),
        exact_is_public=search.exact_is_public,
    )


def change_between(plan: Plan, pair: Pair) -> NDArray[np.int64]:
    """Return by how much the first record of a pair moves every noisy number away from the second."""
    here, there = pair
    bare = noisy_numbers(measured(plan, {} if there is None else {there: 1}))
    return noisy_numbers(measured(plan, {here: 1})) - bare


def laws_of(plan: Plan) -> tuple[list[IntegerNoise], NDArray[np.intp]]:
    """Return the laws of a plan's noise, and for every noisy number which of them it has."""
    laws = list(dict.fromkeys(part.noise for part in plan.measured))
    index = {law: i for i, law in enumerate(laws)}
    sizes = [int(np.prod(plan.shape_of(part), dtype=np.int64)) for part in plan.measured]
    return laws, np.repeat(np.array([index[part.noise] for part in plan.measured], dtype=np.intp), sizes)


class _Search:
    """One pass over pairs of records, which keeps the dearest."""

    def __init__(self, plan: Plan, records: Sequence[InventedRecord], progress: Progress | None) -> None:
        self.plan, self.records = plan, records
        self.progress = progress or (lambda *_: None)
        self.power = 1 if plan.norm == "L1" else 2
        laws, group = laws_of(plan)
        # Numbers that share a law stand together, so that each group is summed in one go.
        self.order = np.argsort(group, kind="stable")
        # A law whose parts hold no number, as on an attribute of one level, is not among them.
        held, self.starts = np.unique(group[self.order], return_index=True)
        self.weights = [
            laws[i].unit_cost(type(plan.loss)) * plan.neighbours.records**self.power for i in held
        ]
        self.approximate = np.array([float(w) for w in self.weights])
        self.largest = Fraction(0)
        self.worst: Pair = (records[0], None)
        self.compared = 0
        self.exact_is_public = True

    def run(self) -> None:
        steps = self.plan.neighbours.steps
        # A record that may be dropped is replaced by another one, or by none.
        replace, alone = "replace" in steps, "add-remove" in steps
        nothing = measured(self.plan, {})
        bare, public = noisy_numbers(nothing)[self.order], exact_numbers(nothing)
        kept: list[NDArray[np.int64]] = []
        published: list[NDArray[np.int64]] = []
        for done, record in enumerate(self.records):
            self.progress("measuring records", done, len(self.records))
            measurement = measured(self.plan, {record: 1})
            moved = noisy_numbers(measurement)[self.order] - bare
            shown = exact_numbers(measurement)
            if alone:
                self._weigh(moved[np.newaxis], [(record, None)])
                self.exact_is_public &= bool((shown == public).all())
            if replace:
                kept.append(moved)
                published.append(shown)
        if replace:
            self._weigh_pairs(np.array(kept), np.array(published))

    def _weigh_pairs(self, numbers: NDArray[np.int64], published: NDArray[np.int64]) -> None:
        domain, sensitive = self.plan.domain, self.plan.neighbours.sensitive
        codes = np.array(self.records)
        fixed = [i for i, a in enumerate(domain.attributes) if sensitive and a not in sensitive]
        for i, here in enumerate(self.records):
            self.progress("comparing records", i, len(self.records))
            near = i + 1 + np.flatnonzero((codes[i + 1 :, fixed] == codes[i, fixed]).all(axis=1))
            # A few rows at a time: their differences have to fit the memory.
            for rows in np.array_split(near, max(1, near.size * numbers.shape[1] // _MOST_NUMBERS + 1)):
                if rows.size:
                    self._weigh(numbers[rows] - numbers[i], [(here, self.records[j]) for j in rows])
                    self.exact_is_public &= bool((published[rows] == published[i]).all())

    def _weigh(self, changes: NDArray[np.int64], pairs: Sequence[Pair]) -> None:
        self.compared += len(pairs)
        sizes = np.add.reduceat(np.abs(changes) ** self.power, self.starts, axis=1)
        costs = sizes @ self.approximate
        close = np.flatnonzero(costs >= max(costs.max(), float(self.largest)) * _CLOSE)
        _, first = np.unique(sizes[close], axis=0, return_index=True)
        for row in close[first]:
            cost = sum((int(s) * w for s, w in zip(sizes[row], self.weights, strict=True)), Fraction(0))
            if cost > self.largest:
                self.largest, self.worst = cost, pairs[row]


def _some_records(plan: Plan, numbers: int, entropy: Entropy) -> list[InventedRecord]:
    """Return records that differ from each other in few, in many and in all attributes, and some at random."""
    most = max(_FEWEST_TRIED, min(_TRIED, _MOST_NUMBERS // max(numbers, 1)))
    base = random_record(plan.domain, entropy)
    chosen: Iterable[InventedRecord] = islice(contrary_records(plan.domain, base), most // 2)
    found = dict.fromkeys([base, *chosen])
    if plan.neighbours.sensitive:
        # Neighbours share all other attributes, which records at random hardly ever do.
        free = [i for i, a in enumerate(plan.domain.attributes) if a in plan.neighbours.sensitive]
        for _ in range(most):
            other = random_record(plan.domain, entropy)
            found[tuple(other[i] if i in free else c for i, c in enumerate(base))] = None
    while len(found) < most:
        before = len(found)
        found.update(dict.fromkeys(random_record(plan.domain, entropy) for _ in range(most)))
        if len(found) == before:
            break
    return list(found)[: 2 * most]


def _is_additive(plan: Plan, records: Sequence[InventedRecord], worst: Pair) -> bool:
    """Return whether several records together measure what they measure one by one."""
    few = [r for r in worst if r is not None] + list(records[:: max(1, len(records) // 3)])
    together = dict(zip(dict.fromkeys(few), _TOGETHER, strict=False))
    nothing = noisy_numbers(measured(plan, {}))
    expected = nothing.copy()
    for record, times in together.items():
        expected += times * (noisy_numbers(measured(plan, {record: 1})) - nothing)
    return bool((noisy_numbers(measured(plan, together)) == expected).all())


def _shown(cost: Fraction) -> str:
    return f"{float(cost):.6g}"
