r"""The Efron–Stein terms as Yang, Fienberg & Rinaldo publish them: every f^S(x_S), more than are independent.

The component of a set S is f^S(x_S) = Σ_{S'⊆S} (-1)^{\|S∖S'\|} E[f | X_{S'} = x_{S'}] (their equation 4, uniform
measure). Times Π k over all attributes it is a whole number: the margin of S with k·I - J applied along each
of its axes, J being all ones. Π k numbers a set, of which only Π (k - 1) are independent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tabulary import Domain, Neighbours, Workload
from tabulary.core import Floats, Margin
from tabulary.errors import InvalidArgument, TooManyCells
from tabulary.planning import LinearMap, MarginMap

Number = TypeVar("Number", np.int64, np.float64)

# Above this many attributes the sets in which two records can differ are no longer listed.
_MOST_ATTRIBUTES = 16


def centred(margin: NDArray[Number]) -> NDArray[Number]:
    """Return k·I - J applied along each axis: f^S(x_S)·Π k from the margin of S. Symmetric; exact on integers.

    >>> centred(np.array([4, 1, 1])).tolist()
    [6, -3, -3]
    """
    for axis, levels in enumerate(margin.shape):
        margin = margin * margin.dtype.type(levels) - margin.sum(axis=axis, keepdims=True)
    return margin


@dataclass(frozen=True)
class RedundantMap(LinearMap):
    """A table to its terms f^S(x_S)·Π k, all of them for each of `sets` (tuples of axes, in this order).

    >>> RedundantMap((2, 3), ((), (1,))).forward(np.array([[1.0, 1, 0], [3, 0, 1]])).tolist()
    [6.0, 6.0, -3.0, -3.0]
    """

    sets: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The number of terms: N in Yang, Fienberg & Rinaldo, Theorem 3."""
        return self._margins.size

    def forward(self, table: Floats) -> Floats:
        """Return the terms of a full table."""
        return self._centred(self._margins.forward(table))

    def adjoint(self, values: Floats) -> Floats:
        """Return Σ value·f^{S,x_S}·Π k as a full table."""
        return self._margins.adjoint(self._centred(values))

    @cached_property
    def _margins(self) -> MarginMap:
        return MarginMap(self.shape, self.sets)

    def _centred(self, values: Floats) -> Floats:
        found = np.empty(self.size)
        start = 0
        for axes in self.sets:
            shape = [self.shape[axis] for axis in axes]
            part = slice(start, start + math.prod(shape))
            found[part] = centred(values[part].reshape(shape)).reshape(-1)
            start = part.stop
        return found


def exact_redundant_sensitivity(workload: Workload, neighbours: Neighbours) -> Fraction:
    r"""Return the exact L1 sensitivity of all terms f^S(x_S)·Π k, S in the downward closure of the workload.

    A record in cell x adds to the terms of S the product over its attributes of the vector k·e_x - 1, whose L1
    norm is 2(k - 1) at every level. Add-remove, c records per person: Δ = c Σ_S Π 2(k - 1).

    Replace: with D the attributes in which the two records differ and T = S ∩ D, the terms of S move by
    Π_{S∖D} 2(k - 1) times \|⊗_T (k·e_x - 1) - ⊗_T (k·e_y - 1)\|₁. Along an attribute of T the pair of entries is
    (k-1, -1) once, (-1, k-1) once and (-1, -1) for the other k - 2 levels, so the norm is a sum over the 3^\|T\|
    choices and depends on D alone. Δ is c times the largest sum over all D.

    Divided by Π k over all attributes of the domain this is the sensitivity in the paper's unit.

    >>> work = Workload.k_way(Domain({"A": range(4), "B": range(4), "C": range(16)}), 2)
    >>> float(exact_redundant_sensitivity(work, Neighbours("replace")) / 256)
    2.625
    """
    refuse_impossible_cells(workload.domain)
    sets = workload.closure().margins
    moved = max(
        sum(_alone(workload.domain.shape_of(s)) for s in sets)
        if step == "add-remove"
        else _replaced(workload.domain, sets)
        for step in neighbours.steps
    )
    return Fraction(neighbours.records * moved)


def refuse_impossible_cells(domain: Domain) -> None:
    """Refuse structural zeros: the published mechanisms have none."""
    if domain.structural_zeros:
        raise InvalidArgument(
            "the published mechanisms have no structural zeros, and this domain declares some. Nothing was "
            "measured. Study a domain without them, or plan a release."
        )


def _replaced(domain: Domain, sets: Sequence[Margin]) -> int:
    used = [a for a in domain.attributes if any(a in s for s in sets) and len(domain.levels_of(a)) > 1]
    if len(used) > _MOST_ATTRIBUTES:
        raise TooManyCells(
            f"the exact sensitivity of replacing a record compares 2^{len(used)} sets of attributes, more than "
            f"2^{_MOST_ATTRIBUTES}. Nothing was measured. Ask for fewer attributes, or for add-remove neighbours."
        )
    largest = 0
    for differs in product((False, True), repeat=len(used)):
        different = {a for a, d in zip(used, differs, strict=True) if d}
        moved = 0
        for s in sets:
            apart = tuple(a for a in s if a in different)
            if apart:
                same = tuple(a for a in s if a not in different)
                moved += _alone(domain.shape_of(same)) * _apart(tuple(sorted(domain.shape_of(apart))))
        largest = max(largest, moved)
    return largest


def _alone(shape: Sequence[int]) -> int:
    return math.prod(2 * (levels - 1) for levels in shape)


@lru_cache(maxsize=1024)
def _apart(shape: tuple[int, ...]) -> int:
    """Return the L1 distance between what two records add to one set, in all of whose attributes they differ."""
    moved = 0
    for choice in product((0, 1, 2), repeat=len(shape)):
        chosen = list(zip(choice, shape, strict=True))
        before = math.prod(levels - 1 for where, levels in chosen if where == 0)
        after = math.prod(levels - 1 for where, levels in chosen if where == 1)
        ways = math.prod(levels - 2 for where, levels in chosen if where == 2)
        # The signs of the two products agree where an even number of axes are at one of the two records' levels.
        agree = sum(where != 2 for where in choice) % 2 == 0
        moved += ways * (abs(before - after) if agree else before + after)
    return moved
