r"""How much one person can change the parts of a residual measurement: exact L1 and squared L2 sensitivities.

A record in cell x adds to the part (S, B) the product over its axes of one column: on an axis of S\B a one at
x, on a centred axis of k ≥ 3 levels k - 1 at x and -1 elsewhere, on a centred axis of two levels 1 or -1. The
norms of a product are the products of the norms,

    L1 = Π_B l1(k),  l1(2) = 1, l1(k) = 2(k - 1)        L2² = Π_B l2(k),  l2(2) = 1, l2(k) = k(k - 1),

for any record. A centred axis of one level has no value, and nobody can change it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import product
from operator import add, or_

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import exact_sum
from tabulary.core.neighbours import Neighbours
from tabulary.core.sensitivity import Sensitivity
from tabulary.core.symmetry import Sets, interchangeable
from tabulary.errors import InvalidArgument, listed

# The patterns of agreement that are compared, and the work of comparing them (patterns times parts).
MOST_PATTERNS = 1 << 18
MOST_WORK = 1 << 28

# Doubles decide which patterns can be the largest; these are then added up exactly. A sum of n positive terms
# is good to n units in the last place, so this leaves room for millions of parts.
_NEAR = 1e-9
# The sums, one per weight and pattern, that are in memory together.
TOGETHER = 1 << 22


def residual_sensitivity(
    domain: Domain,
    parts: Sequence[tuple[Margin, Margin]],
    neighbours: Neighbours,
    *,
    scales: Sequence[Fraction] | None = None,
    squared_scales: Sequence[Fraction] | None = None,
) -> Sensitivity:
    r"""Return the sensitivity of these parts (margin, centred attributes), each divided by its scale.

    Add-remove, c records per person: every record adds the same norms, and all c may be alike, so
    Δ₁ = c Σ L1/s and Δ₂² = c² Σ L2²/s². Exact, whatever the structural zeros.

    Replace: let two records agree on some attributes and differ on all others. A part of which an attribute of
    S\B differs holds them in different cells, and moves by 2 L1 and 2 L2². Otherwise the columns u and v of
    the two records meet: with D the centred attributes that differ, ⟨u, v⟩ = Π_{B\D} l2(k) Π_D g(k) with
    g(2) = -1 and g(k) = -k, so ‖u - v‖² = 2 (Π_B l2(k) - ⟨u, v⟩), and ‖u - v‖₁ = Π_{B\D} l1(k) times a sum
    over the levels of D that are the one record's, the other's, or neither's. Only the pattern of agreement
    matters. Δ₁ and Δ₂² are the largest sums over all patterns, times c and c²; attributes of one level always
    agree, and with sensitive attributes all others do. Attributes that the parts treat alike are
    interchangeable, so how many of them differ is enough. Exact without structural zeros, which can only
    forbid patterns: never too small. With too many patterns to compare, the largest change of every part is
    added up instead, which is never too small either. Where a replaced record may be dropped, both are the larger of
    those of add-remove and replace.

    Scales default to one. `squared_scales` serves Gaussian noise, whose variance is rational while its
    standard deviation is not; `l1` then takes the scales as one.

    >>> domain = Domain({"A": "xy", "B": "xyz"})
    >>> residual_sensitivity(domain, [(("A", "B"), ("B",)), (("A",), ())], Neighbours("add-remove")).l1
    Fraction(5, 1)
    >>> residual_sensitivity(domain, [(("A", "B"), ("B",)), (("A",), ())], Neighbours("replace")).l1
    Fraction(10, 1)
    """
    named = [_checked(domain, part) for part in parts]
    for given in (scales, squared_scales):
        if given is not None and (len(given) != len(named) or min(given, default=1) <= 0):
            raise InvalidArgument(f"{len(named)} parts need as many positive scales.")
    weights = [1 / s for s in scales] if scales is not None else [Fraction(1)] * len(named)
    squares = [1 / s for s in squared_scales] if squared_scales is not None else [w * w for w in weights]
    levels = dict(zip(domain.attributes, domain.shape, strict=True))
    # An empty part costs nothing, and would only add patterns to compare.
    kept = [i for i, (_, centred) in enumerate(named) if all(levels[a] > 1 for a in centred)]
    l1, l2 = [weights[i] for i in kept], [squares[i] for i in kept]
    found = []
    if "add-remove" in neighbours.steps:
        norms = [_norms(tuple(sorted(levels[a] for a in named[i][1]))) for i in kept]
        found.append(
            Sensitivity(
                exact_sum(l1, [norm for norm, _ in norms]), exact_sum(l2, [norm for _, norm in norms])
            )
        )
    if "replace" in neighbours.steps:
        moving = [
            a
            for a in domain.attributes
            if levels[a] > 1 and (not neighbours.sensitive or a in neighbours.sensitive)
        ]
        columns = [_Column.of(named[i], levels, moving) for i in kept]
        found.append(
            Sensitivity(_largest(columns, l1, levels, norm=0), _largest(columns, l2, levels, norm=1))
        )
    return Sensitivity.largest(found, neighbours.records)


def _checked(domain: Domain, part: tuple[Margin, Margin]) -> tuple[Margin, Margin]:
    margin, centred = domain.margin(part[0]), domain.margin(part[1])
    if not set(centred) <= set(margin):
        raise InvalidArgument(
            f"the part on {listed(margin)} centres {listed(centred)}, and some of these are not its "
            "attributes."
        )
    return margin, centred


@dataclass(frozen=True)
class _Column:
    """What a part makes of a pattern: which attributes can differ, and the norms of each kind of difference."""

    counted: frozenset[str]
    centred: frozenset[str]
    # The centred attributes that can differ by their number of levels, and the levels of those that cannot.
    grouped: tuple[tuple[int, Margin], ...]
    fixed: tuple[int, ...]

    @classmethod
    def of(cls, part: tuple[Margin, Margin], levels: Mapping[str, int], moving: Sequence[str]) -> "_Column":
        margin, centred = part
        movable = set(moving)
        grouped: dict[int, list[str]] = defaultdict(list)
        for a in centred:
            if a in movable:
                grouped[levels[a]].append(a)
        return cls(
            frozenset(a for a in margin if a in movable and a not in centred),
            frozenset(a for a in centred if a in movable),
            tuple((k, tuple(grouped[k])) for k in sorted(grouped)),
            tuple(sorted(levels[a] for a in centred if a not in movable)),
        )

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels of all centred attributes."""
        return (*(k for k, names in self.grouped for _ in names), *self.fixed)

    def changes(self, norm: int) -> NDArray[np.int64]:
        """The norm by how many centred attributes of each size differ; the last axis is an attribute counted."""
        sizes = tuple(len(names) for _, names in self.grouped)
        return _changes(tuple(k for k, _ in self.grouped), sizes, self.fixed, norm)


def _largest(
    columns: Sequence[_Column], weights: Sequence[Fraction], levels: Mapping[str, int], *, norm: int
) -> Fraction:
    """Return the largest Σ weight · change over all patterns of agreement, or a bound on it."""
    # By the triangle inequality, whatever the pattern.
    bounds = [(2, 4)[norm] * _norms(column.levels)[norm] for column in columns]
    if not columns or sum(bounds) >= 1 << 62:
        return exact_sum(weights, bounds)
    # Distinct weights by number: a fraction is slow to compare.
    numbered = {weight: number for number, weight in enumerate(dict.fromkeys(weights))}
    laws = [numbered[weight] for weight in weights]
    classes = classes_alike(columns, laws, levels)
    patterns = math.prod(len(names) + 1 for names in classes)
    if patterns > MOST_PATTERNS or patterns * len(columns) > MOST_WORK:
        return exact_sum(weights, [int(column.changes(norm).max()) for column in columns])
    chosen = np.array(list(product(*(range(len(names) + 1) for names in classes))), dtype=np.int64)
    chosen = chosen.reshape(patterns, len(classes))
    unit = max(numbered)
    relative = np.array([float(weight / unit) for weight in numbered])
    largest, seen = Fraction(0), 0.0
    together = max(TOGETHER // len(numbered), 1)
    for start in range(0, patterns, together):
        sums = _sums(columns, laws, classes, chosen[start : start + together], norm)
        total = relative @ sums
        seen = max(seen, float(total.max()))
        # Patterns that move the parts of each weight by the same amounts have the same sum: one is enough.
        for row in np.unique(sums[:, total >= seen * (1 - _NEAR)], axis=1).T:
            largest = max(largest, exact_sum(list(numbered), row.tolist()))
    return largest


def _sums(
    columns: Sequence[_Column],
    laws: Sequence[int],
    classes: Sequence[Sequence[str]],
    chosen: NDArray[np.int64],
    norm: int,
) -> NDArray[np.int64]:
    """Return how far the parts of each weight, a row, move together in each of the chosen patterns, a column."""
    # Of a class of which m differ, let it be the first m.
    differ = {
        a: (chosen[:, c] > i).astype(np.intp) for c, names in enumerate(classes) for i, a in enumerate(names)
    }
    nobody = np.zeros(len(chosen), dtype=np.intp)
    sums = np.zeros((max(laws) + 1, len(chosen)), dtype=np.int64)
    for column, law in zip(columns, laws, strict=True):
        index = [reduce(add, [differ[a] for a in names]) for _, names in column.grouped]
        apart = reduce(or_, [differ[a] for a in column.counted], nobody)
        sums[law] += column.changes(norm)[(*index, apart)]
    return sums


def classes_alike(
    columns: Sequence[_Column], laws: Sequence[int], levels: Mapping[str, int]
) -> list[list[str]]:
    """Return the attributes in classes that all parts and weights treat alike."""
    described: dict[Sets, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for column, law in sorted(zip(columns, laws, strict=True), key=lambda pair: (pair[1], pair[0].fixed)):
        described[column.counted, column.centred].append((law, column.fixed))
    return interchangeable(levels, described)


@lru_cache(maxsize=4096)
def _changes(
    sizes: tuple[int, ...], counts: tuple[int, ...], fixed: tuple[int, ...], norm: int
) -> NDArray[np.int64]:
    shape = tuple(n + 1 for n in counts)
    found = np.zeros((*shape, 2), dtype=np.int64)
    for differing in np.ndindex(shape):
        agree = [k for k, n, d in zip(sizes, counts, differing, strict=True) for _ in range(n - d)]
        apart = [k for k, d in zip(sizes, differing, strict=True) for _ in range(d)]
        together, separate = _norms((*agree, *fixed))[norm], _norms(tuple(apart))[norm]
        found[differing] = together * _meeting(tuple(apart))[norm], together * separate * 2
    found.flags.writeable = False
    return found


@lru_cache(maxsize=4096)
def _norms(centred: tuple[int, ...]) -> tuple[int, int]:
    """Return L1 and L2² of what one record adds to a part, from the levels of its centred attributes."""
    return (
        math.prod(1 if k == 2 else 2 * (k - 1) for k in centred),
        math.prod(1 if k == 2 else k * (k - 1) for k in centred),
    )


@lru_cache(maxsize=4096)
def _meeting(differing: tuple[int, ...]) -> tuple[int, int]:
    """Return L1 and L2² of the difference of two columns on centred attributes that all differ.

    Every coordinate is a pair of entries, one of each record; on an axis there are the pairs (k-1, -1) and
    (-1, k-1) once and (-1, -1) k - 2 times, or on two levels the pair (1, -1). Equal pairs are counted
    together.
    """
    pairs = Counter({(1, 1): 1})
    for k in differing:
        axis = {(1, -1): 1} if k == 2 else {(k - 1, -1): 1, (-1, k - 1): 1, (-1, -1): k - 2}
        grown: Counter[tuple[int, int]] = Counter()
        for (x, y), many in pairs.items():
            for (u, v), times in axis.items():
                grown[x * u, y * v] += many * times
        pairs = grown
    return (
        sum(many * abs(x - y) for (x, y), many in pairs.items()),
        sum(many * (x - y) ** 2 for (x, y), many in pairs.items()),
    )
