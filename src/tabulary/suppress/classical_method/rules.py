"""The rules of statistical offices: which cells are sensitive, and how uncertain an attacker must remain.

None of this is a guarantee for a person: a rule says which numbers look dangerous, not what is learnt from those that
are published. Nabar & Mishra (2010), section 3, show what follows where the rule is known, and `attack` does it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.suppress.classical_method.contributions import Contributions

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class ProtectionLevels:
    """Protection levels: how far an attacker's interval for a sensitive cell must reach.

    Fischetti & Salazar (2000): it holds value - `lower` and value + `upper`, and is at least `width` wide. In the
    field they are LPL, UPL and the sliding level SPL. One number for every cell, or an array.

    >>> ProtectionLevels(upper=[3, 0]).joined(ProtectionLevels(upper=1, width=8)).upper.tolist()
    [3.0, 1.0]
    """

    lower: Floats = 0.0  # type: ignore[assignment]
    upper: Floats = 0.0  # type: ignore[assignment]
    width: Floats = 0.0  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "width"):
            try:
                level = np.array(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError):
                raise InvalidArgument(
                    f"the {name} protection level is not a number or an array of numbers."
                ) from None
            if not np.isfinite(level).all() or (level < 0).any():
                raise InvalidArgument(f"a {name} protection level is negative, infinite or missing.")
            level.setflags(write=False)
            object.__setattr__(self, name, level)

    def __repr__(self) -> str:
        # A level may follow from a count.
        return f"<{type(self).__name__}>"

    def stretched(self, shape: tuple[int, ...]) -> "ProtectionLevels":
        """Return the levels of every cell of a table."""
        try:
            return ProtectionLevels(*(np.broadcast_to(level, shape) for level in self._all))
        except ValueError:
            raise InvalidArgument(f"the protection levels do not fit a table of shape {shape}.") from None

    def joined(self, other: "ProtectionLevels") -> "ProtectionLevels":
        """Return levels that are met only where both are."""
        return ProtectionLevels(*map(np.maximum, self._all, other._all))

    def of(self, cells: Mask) -> "ProtectionLevels":
        """Return the levels of some cells, and none for the others."""
        return ProtectionLevels(*(np.where(cells, level, 0.0) for level in self._all))

    def replaced(self, part: tuple[slice | int, ...], other: "ProtectionLevels") -> "ProtectionLevels":
        """Return the levels with others for a part of the cells."""
        changed = tuple(level.copy() for level in self._all)
        for level, given in zip(changed, other._all, strict=True):
            level[part] = given
        return ProtectionLevels(*changed)

    @property
    def _all(self) -> tuple[Floats, Floats, Floats]:
        return self.lower, self.upper, self.width


class Rule(Protocol):
    """What makes a cell sensitive, and the levels at which it is protected."""

    def sensitive(self, values: ArrayLike, contributions: Contributions | None = None) -> Mask:
        """Return which cells are sensitive."""
        ...

    def levels(self, values: ArrayLike, contributions: Contributions | None = None) -> ProtectionLevels:
        """Return the protection levels of the cells; they mean something where these are sensitive."""
        ...


@dataclass(frozen=True)
class Threshold:
    """A cell is sensitive if it counts at most `limit` people: ≤, as in Nabar & Mishra (2010), section 3.

    Where contributions are given the table is one of amounts, and it is the contributors that are counted. Empty cells
    are sensitive too unless `zeros` is False.

    `hides` says what an attacker must not find out. "value": the count itself; his interval is at least one wide, which
    is Gusfield's (1988) "no exact disclosure" and what Nabar & Mishra attack. "range": that the count is small; his
    interval goes above the limit. Neither says anything about persons. An amount is hidden by an interval of a tenth of
    it, which is a choice and no standard; `protection` of `classical` overrides it.

    >>> Threshold(5).sensitive([0, 5, 6]).tolist()
    [True, True, False]
    >>> Threshold(5, hides="range").levels([0, 5, 6]).upper.tolist()
    [6.0, 1.0, 0.0]
    """

    limit: int
    zeros: bool = True
    hides: Literal["value", "range"] = "value"

    def __post_init__(self) -> None:
        whole = isinstance(self.limit, int | np.integer) and not isinstance(self.limit, bool)
        if not whole or self.limit < 0:
            raise InvalidArgument(f"the threshold must be a whole number of at least 0, not {self.limit!r}.")
        if self.hides not in ("value", "range"):
            raise InvalidArgument(f"`hides` must be 'value' or 'range', not {self.hides!r}.")

    def sensitive(self, values: ArrayLike, contributions: Contributions | None = None) -> Mask:
        """Return which cells count at most `limit`."""
        counted = np.asarray(values) if contributions is None else contributions.number
        small = counted <= self.limit
        return np.asarray(small if self.zeros else small & (counted > 0))

    def levels(self, values: ArrayLike, contributions: Contributions | None = None) -> ProtectionLevels:
        """Return a width of one person, of a tenth of an amount, or the step above the limit."""
        counted = np.asarray(values, dtype=np.float64)
        if self.hides == "value":
            return ProtectionLevels(width=np.ones(counted.shape) if contributions is None else counted / 10)
        if contributions is not None:
            raise InvalidArgument(
                "a threshold on the number of contributors cannot hide the range of an amount. "
                "Use hides='value', or give the protection levels."
            )
        return ProtectionLevels(upper=np.maximum(self.limit + 1 - counted, 0))


@dataclass(frozen=True)
class Dominance:
    """A cell is sensitive if its `n` largest contributions exceed `k` percent of its total: the (n, k) rule.

    Protected is what would make it safe: its total could be as large as 100/k times those contributions, and as far
    below. Hundepool et al. (2012), Statistical Disclosure Control, chapter 4.

    >>> firms = Contributions((2,), cells=[0, 0, 0, 1, 1, 1], amounts=[90, 5, 5, 40, 30, 30])
    >>> rule = Dominance(1, 80)
    >>> rule.sensitive([100, 100], firms).tolist(), rule.levels([100, 100], firms).upper.tolist()
    ([True, False], [12.5, 0.0])
    """

    n: int
    k: float

    def __post_init__(self) -> None:
        if not isinstance(self.n, int | np.integer) or isinstance(self.n, bool) or self.n < 1:
            raise InvalidArgument(
                f"n of the dominance rule must be a whole number of at least 1, not {self.n!r}."
            )
        if not 0 < self.k < 100:
            raise InvalidArgument(
                f"k of the dominance rule must be between 0 and 100 percent, not {self.k!r}."
            )

    def sensitive(self, values: ArrayLike, contributions: Contributions | None = None) -> Mask:
        """Return which cells are dominated by their largest contributions."""
        return np.asarray(self._excess(contributions) > 0)

    def levels(self, values: ArrayLike, contributions: Contributions | None = None) -> ProtectionLevels:
        """Return 100/k · (x₁ + … + xₙ) - X on both sides, though nothing goes below zero."""
        return _on_both_sides(self._excess(contributions), contributions)

    def _excess(self, contributions: Contributions | None) -> Floats:
        given = _given(contributions, "the dominance rule")
        # Divided last, so that a share of exactly k percent is not more than k percent by a rounding.
        return np.asarray((100 * given.largest(self.n).sum(axis=-1) - self.k * given.total) / self.k)


@dataclass(frozen=True)
class PPercent:
    """A cell is sensitive if its second contributor can estimate the largest to within `p` percent: the p % rule.

    All but the two largest together are less than p percent of the largest. Protected is what is missing to that:
    p/100 · x₁ - (X - x₁ - x₂), on both sides. Hundepool et al. (2012), Statistical Disclosure Control, chapter 4.

    >>> firms = Contributions((2,), cells=[0, 0, 0, 1, 1, 1], amounts=[90, 5, 5, 40, 30, 30])
    >>> rule = PPercent(10)
    >>> rule.sensitive([100, 100], firms).tolist(), rule.levels([100, 100], firms).upper.tolist()
    ([True, False], [4.0, 0.0])
    """

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p < np.inf:
            raise InvalidArgument(f"p of the p percent rule must be above 0, not {self.p!r}.")

    def sensitive(self, values: ArrayLike, contributions: Contributions | None = None) -> Mask:
        """Return which cells let one contributor estimate another too well."""
        return np.asarray(self._missing(contributions) > 0)

    def levels(self, values: ArrayLike, contributions: Contributions | None = None) -> ProtectionLevels:
        """Return p/100 · x₁ - (X - x₁ - x₂) on both sides, though nothing goes below zero."""
        return _on_both_sides(self._missing(contributions), contributions)

    def _missing(self, contributions: Contributions | None) -> Floats:
        given = _given(contributions, "the p percent rule")
        first, second = np.moveaxis(given.largest(2), -1, 0)
        return np.asarray((self.p * first - 100 * (given.total - first - second)) / 100)


def primary(
    values: ArrayLike, rules: Rule | Sequence[Rule], contributions: Contributions | None = None
) -> tuple[Mask, ProtectionLevels]:
    """Return which cells any of the rules calls sensitive, and the levels that satisfy all that do.

    >>> cells, levels = primary([3, 40], [Threshold(5), Threshold(4, hides="range")])
    >>> cells.tolist(), levels.upper.tolist(), levels.width.tolist()
    ([True, False], [2.0, 0.0], [1.0, 0.0])
    """
    several = list(rules) if isinstance(rules, Sequence) else [rules]
    if not several:
        raise InvalidArgument(
            "no rule was given that says which cells are sensitive. Give one, such as Threshold(5)."
        )
    shape = np.shape(values)
    if contributions is not None and contributions.shape != shape:
        raise InvalidTable(f"the table's shape is {shape} but the contributions' is {contributions.shape}.")
    cells, levels = np.zeros(shape, dtype=np.bool_), ProtectionLevels().stretched(shape)
    for rule in several:
        found = rule.sensitive(values, contributions)
        cells |= found
        levels = levels.joined(rule.levels(values, contributions).of(found))
    return cells, levels


def _on_both_sides(level: Floats, contributions: Contributions | None) -> ProtectionLevels:
    upper = np.maximum(level, 0)
    return ProtectionLevels(np.minimum(upper, _given(contributions, "the rule").total), upper)


def _given(contributions: Contributions | None, rule: str) -> Contributions:
    if contributions is None:
        raise InvalidArgument(
            f"{rule} compares single contributions. Give them: contributions=Contributions(...)."
        )
    return contributions
