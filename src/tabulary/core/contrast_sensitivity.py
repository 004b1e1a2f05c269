"""How much one person can change contrast coefficients: exact L1 and squared L2 sensitivities.

A record in cell x adds to the coefficients of a set S the product over its attributes of the column of the basis at
x: Π (k - 1) in L1, for any x, and Π n(x) in squared L2, where n is largest at the last level.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tabulary.core import basis
from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import exact_sum
from tabulary.core.neighbours import Neighbours
from tabulary.core.sensitivity import Sensitivity
from tabulary.errors import InvalidArgument

# Above these numbers the pairs of cells are not compared one by one.
_MOST_BITS = 22
MOST_CELLS = 4_096
_MOST_WORK = 2_000_000_000


def contrast_sensitivity(
    domain: Domain,
    sets: Sequence[Margin],
    neighbours: Neighbours,
    *,
    scales: Sequence[Fraction] | None = None,
    squared_scales: Sequence[Fraction] | None = None,
) -> Sensitivity:
    """Return the sensitivity of the coefficients that vary on each of `sets`, each divided by its scale.

    Add-remove, c records per person: Δ₁ = c Σ_S Π (k - 1) / s, the same for every record. Δ₂² = c² max over
    possible x of Σ_S Π n(x) / s².

    Replace: Δ₁ = c max over pairs x, y of Σ_S ‖r_S(x) - r_S(y)‖₁ / s, where r_S(x) is what a record in x adds
    to the coefficients of S; Δ₂² likewise. On binary attributes only d = x ⊕ y matters: a coefficient moves
    by two where ⟨S, d⟩ is odd, so both follow from one Walsh–Hadamard transform of the scales. On others the
    pairs are compared one by one. With sensitive attributes, only pairs that agree on all others count.
    Exact; on domains too large for that, twice (four times, squared) the add-remove value, which is never
    too small. Where a replaced record may be dropped, both are the larger of the two.

    >>> domain = Domain({letter: "01" for letter in "ABC"})
    >>> sets = [(), ("A",), ("B",), ("A", "B")]
    >>> contrast_sensitivity(domain, sets, Neighbours("add-remove")).l1
    Fraction(4, 1)
    >>> contrast_sensitivity(domain, sets, Neighbours("replace")).l1
    Fraction(4, 1)
    """
    named = [domain.margin(s) for s in sets]
    for given in (scales, squared_scales):
        if given is not None and (len(given) != len(named) or min(given, default=1) <= 0):
            raise InvalidArgument(f"{len(named)} sets of coefficients need as many positive scales.")
    weights = [1 / s for s in scales] if scales is not None else [Fraction(1)] * len(named)
    squares = [1 / s for s in squared_scales] if squared_scales is not None else [w * w for w in weights]
    added = Sensitivity(
        exact_sum(weights, [basis.coefficients(domain.shape_of(s)) for s in named]),
        _largest_square(domain, named, squares),
    )
    found = [added] if "add-remove" in neighbours.steps else []
    if "replace" in neighbours.steps:
        used = domain.margin({a for s in named for a in s} | set(neighbours.sensitive))
        fixed = [i for i, a in enumerate(used) if neighbours.sensitive and a not in neighbours.sensitive]
        exact = _compare(domain, used, named, weights, squares, fixed)
        found.append(exact or Sensitivity(2 * added.l1, 4 * added.l2_squared))
    return Sensitivity.largest(found, neighbours.records)


def _largest_square(domain: Domain, sets: Sequence[Margin], squares: Sequence[Fraction]) -> Fraction:
    """Return the largest Σ_S Π n(x) / s² over the possible cells."""
    norms = {a: basis.level_l2_squared(len(domain.levels_of(a))) for a in domain.attributes}
    choices: list[list[dict[str, int]]] = []
    for attributes, mask in domain.zero_blocks:
        cells = np.argwhere(~mask)
        squared = np.stack([norms[a][cells[:, i]] for i, a in enumerate(attributes)], axis=1)
        best = _undominated(np.unique(squared, axis=0))
        choices.append([dict(zip(attributes, map(int, row), strict=True)) for row in best])
    blocked = {a for attributes, _ in domain.zero_blocks for a in attributes}
    free = {a: int(norms[a].max()) for a in domain.attributes if a not in blocked}
    if math.prod(map(len, choices)) > MOST_CELLS:
        # A bound that may not be reached, but is never too small: every attribute at its largest level.
        choices = [[{a: max(option[a] for option in options) for a in options[0]}] for options in choices]

    def total(chosen: Iterable[dict[str, int]]) -> Fraction:
        at = dict(free)
        for part in chosen:
            at.update(part)
        return exact_sum(squares, [math.prod(at[a] for a in s) for s in sets])

    return max(total(chosen) for chosen in product(*choices))


def _undominated(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(rows) > MOST_CELLS:
        # A bound that may not be reached, but is never too small: the largest of every attribute.
        return np.asarray(rows.max(axis=0, keepdims=True))
    # The sum grows in every coordinate, so only rows that no other row exceeds everywhere can be largest.
    kept = [row for row in rows if not ((rows >= row).all(axis=1) & (rows > row).any(axis=1)).any()]
    return np.array(kept)


def _compare(
    domain: Domain,
    used: Margin,
    sets: Sequence[Margin],
    weights: Sequence[Fraction],
    squares: Sequence[Fraction],
    fixed: Sequence[int],
) -> Sensitivity | None:
    """Return the sensitivity of replacing one record, or None if the domain is too large to compute it."""
    if all(len(domain.levels_of(a)) == 2 for a in used):
        if len(used) > _MOST_BITS:
            return None
        return _compare_bits(domain, used, sets, weights, squares, fixed)
    cells = domain.cells(used)
    rows = sum(basis.coefficients(domain.shape_of(s)) for s in sets)
    if cells > MOST_CELLS or cells * cells * rows > _MOST_WORK:
        return None
    return _compare_cells(domain, used, sets, weights, squares, fixed)


def _compare_bits(
    domain: Domain,
    used: Margin,
    sets: Sequence[Margin],
    weights: Sequence[Fraction],
    squares: Sequence[Fraction],
    fixed: Sequence[int],
) -> Sensitivity:
    shape = (2,) * len(used)
    # Which differences two possible cells can have: the mask correlated with itself.
    possible = (~domain.impossible(used)).astype(np.int64)
    reached = basis.contrasts(basis.contrasts(possible) ** 2) > 0
    for axis in fixed:
        reached[tuple(1 if i == axis else slice(None) for i in range(len(used)))] = False

    def largest(values: Sequence[Fraction], factor: int) -> Fraction:
        def per_difference(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
            table = np.zeros(shape, dtype=np.int64)
            for s, number in zip(sets, numbers, strict=True):
                table[tuple(int(a in s) for a in used)] += number
            odd: NDArray[np.int64] = (table.sum() - basis.contrasts(table)) // 2
            return odd

        return factor * _largest_sum(values, per_difference, reached)

    return Sensitivity(largest(weights, 2), largest(squares, 4))


def _compare_cells(
    domain: Domain,
    used: Margin,
    sets: Sequence[Margin],
    weights: Sequence[Fraction],
    squares: Sequence[Fraction],
    fixed: Sequence[int],
) -> Sensitivity:
    possible = np.argwhere(~domain.impossible(used))
    columns = {a: basis.contrast_matrix(len(domain.levels_of(a)))[1:].T for a in used}
    added = []
    for s in sets:
        rows = np.ones((len(possible), 1), dtype=np.int64)
        for a in s:
            here = columns[a][possible[:, used.index(a)]]
            rows = (rows[:, :, None] * here[:, None, :]).reshape(len(possible), -1)
        added.append(rows)

    def largest(values: Sequence[Fraction], power: int) -> Fraction:
        def per_pair(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
            best = np.zeros(len(possible), dtype=np.int64)
            for i in range(len(possible)):
                moved = np.zeros(len(possible), dtype=np.int64)
                for rows, number in zip(added, numbers, strict=True):
                    moved += number * (np.abs(rows - rows[i]) ** power).sum(axis=1)
                alike = (possible[:, fixed] == possible[i, fixed]).all(axis=1)
                best[i] = moved[alike].max()
            return best

        return _largest_sum(values, per_pair, np.ones(len(possible), dtype=bool))

    return Sensitivity(largest(weights, 1), largest(squares, 2))


def _largest_sum(
    values: Sequence[Fraction],
    sums: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    reached: NDArray[np.bool_],
) -> Fraction:
    """Return the largest of `sums` of the values, computed in whole numbers over their common denominator."""
    common = math.lcm(*(v.denominator for v in values))
    numbers = [int(v * common) for v in values]
    if sum(numbers) >= 1 << 36:
        # Coarser numbers, rounded up, stay within 64 bits and are never too small.
        step = sum(numbers) >> 35
        numbers, common_step = [-(-n // step) for n in numbers], Fraction(step, common)
    else:
        common_step = Fraction(1, common)
    found = sums(np.array(numbers, dtype=np.int64))
    return int(found[reached].max()) * common_step
