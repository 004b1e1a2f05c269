"""Budgets side by side for the same tables, and the smallest budget that reaches a target. Reads no data."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.core.budget import amount, ascending, column, show_amount, symbol, with_amount
from tabulary.core.domain import Margin
from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.core.long_form import LongForm
from tabulary.core.privacy import ZCDP, Privacy
from tabulary.core.progress import Progress
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidArgument, InvalidPlan, UnknownMargin
from tabulary.planning.accuracy import ExpectedError, ExpectedErrors, show_width
from tabulary.planning.plan import Plan

MOST = 100
"""The largest ε, or ρ, that the search for the smallest budget tries: a larger one promises nobody anything."""

LEAST_EPSILON, LEAST_RHO = Fraction(1, 10**6), Fraction(1, 10**12)
"""The smallest budgets that the search tries."""

_NUMBER = r"(\d{1,3}(?:,\d{3})+|[\d./]+)"
_WIDTH = re.compile(rf"(?:±|\+/?-)?\s*{_NUMBER}")
_SHARE = re.compile(rf"{_NUMBER}\s*%\s*of\s+(?:(?:a\s+)?cells?\s+of\s+)?{_NUMBER}", re.IGNORECASE)

# The search tries numbers of four digits: 1,000 to 9,999 times a power of ten.
_FIRST, _STEPS = 1_000, 9_000
# The first step of a search whose guess was close, about half a percent, in numbers of four digits.
_STEP = 20
# If another mechanism would be chosen at a tenth of the budget, the search looks at the far shares of the found budget
# too: when the mechanism changes, the error of one table may jump in either direction. The budget of shrunk tables is
# divided by a search of its own, whose errors go up and down a little between budgets that are nearly the same.
_TENTH = Fraction(1, 10)
_NEAR = tuple(map(Fraction, ("0.999", "0.99")))
_FAR = tuple(map(Fraction, ("0.9", "0.75", "0.5", "0.25")))


class Planner(Protocol):
    """Whatever plans the same tables at any promise, such as `functools.partial(tb.plan, domain, workload)`."""

    def __call__(self, *, privacy: Privacy) -> Plan:
        """Return the plan at this promise."""
        ...


@dataclass(frozen=True)
class Target:
    """What is wanted of every cell: a half-width of at most `half_width`, as a share of a `cell` or by itself.

    >>> print(Target.parse("10% of cells of 1000"))
    ±100 (10 % of a cell of 1,000)
    >>> print(Target.parse("±10"))
    ±10
    """

    half_width: Fraction
    cell: Fraction | None = None

    def __post_init__(self) -> None:
        if self.half_width <= 0 or (self.cell is not None and self.cell <= 0):
            raise InvalidArgument(
                "a target must be above zero, such as ±10 or '10% of cells of 1000'. Nothing was planned."
            )

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Return the target that is written as "10% of cells of 1000", "±10", "+-10" or "10"."""
        if (found := _SHARE.fullmatch(text.strip())) is not None:
            share, cell = map(_number, found.groups())
            return cls(share / 100 * cell, cell)
        if (found := _WIDTH.fullmatch(text.strip())) is not None:
            return cls(_number(found[1]))
        raise InvalidArgument(
            f"the target {text!r} is not understood. Write the largest half-width of a cell, such as ±10, or a share "
            "of a cell, such as '10% of cells of 1000'. Nothing was planned."
        )

    def __str__(self) -> str:
        width = f"±{_shown(self.half_width)}"
        if self.cell is None:
            return width
        return f"{width} ({_shown(100 * self.half_width / self.cell)} % of a cell of {_shown(self.cell)})"


@dataclass(frozen=True)
class BudgetPlan:
    """The plan at one budget, and what to expect of the tables that matter."""

    plan: Plan
    errors: ExpectedErrors

    @property
    def privacy(self) -> Privacy:
        """What the plan promises and costs."""
        return self.plan.privacy

    @property
    def modelled(self) -> bool:
        """Whether the errors are what a model expects of shrunk tables.

        Otherwise they follow from the noise alone and are exact for the unbiased estimates; the published face is more
        accurate where cells are small.
        """
        return self.plan.records is not None

    @property
    def worst(self) -> ExpectedError:
        """The table with the largest half-width, the first of those that are alike."""
        return max(self.errors, key=lambda row: row.half_width)

    def reaches(self, target: Target) -> bool:
        """Return whether the half-width of every cell is within the target."""
        return self.worst.half_width <= target.half_width

    @property
    def way(self) -> tuple[str, bool, type]:
        """How the budget is used: the mechanism, whether it is divided for shrunk tables, what the noise satisfies."""
        return self.plan.mechanism, self.modelled, type(self.plan.loss)


@dataclass(frozen=True)
class Budgets(LongForm):
    """The same tables at several budgets, the smallest budget first."""

    rows: tuple[BudgetPlan, ...]

    def __iter__(self) -> Iterator[BudgetPlan]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def confidence(self) -> float:
        """The confidence of the half-widths."""
        return self.rows[0].errors.confidence

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The tables, in the order of the plan."""
        return tuple(row.margin for row in self.rows[0].errors)

    def __str__(self) -> str:
        names = [show_margin(margin) for margin in self.margins]
        width = max(6, *map(len, names))
        heads = [f"{symbol(row.privacy)}={show_amount(amount(row.privacy))}" for row in self.rows]
        lines = [f"{'margin':<{width}} {' '.join(f'{head:>10}' for head in heads)}"]
        for name, margin in zip(names, self.margins, strict=True):
            widths = [f"±{show_width(row.errors[margin].half_width)}" for row in self.rows]
            lines.append(f"{name:<{width}} {' '.join(f'{each:>10}' for each in widths)}")
        return "\n".join(lines)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return one row per budget and table: budget, margin, cells, standard error and half-width."""
        each = [row.errors.columns() for row in self.rows]
        sizes = [len(row.errors) for row in self.rows]
        budgets = np.repeat([float(amount(row.privacy)) for row in self.rows], sizes)
        joined = {name: np.concatenate([columns[name] for columns in each]) for name in each[0]}
        return {column(self.rows[0].privacy): budgets, **joined}


def compare_budgets(
    planner: Planner,
    promises: Iterable[Privacy],
    *,
    tables: Iterable[Margin] = (),
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Budgets:
    """Return the same tables planned at several budgets. Reads no data and spends nothing.

    Each plan is the one that `planner` makes, so the mechanism may change with the budget. `tables` are the only ones
    that matter; by default all of the plan do. `progress` is called with (what, done, total).

    >>> from functools import partial
    >>> import tabulary as tb
    >>> domain = tb.Domain({"sex": ["F", "M"], "age": range(10)})
    >>> planner = partial(tb.plan, domain, "[sex][sex age]", reconstruct="none")
    >>> print(compare_budgets(planner, map(tb.PureDP, ["1/10", 1, 2])))
    margin         ε=0.1        ε=1        ε=2
    [sex]            ±89         ±9         ±4
    [sex age]        ±30         ±3         ±1
    """
    asked = ascending(promises)
    if not asked:
        raise InvalidArgument("name at least one budget. Nothing was planned.")
    rows = []
    for number, privacy in enumerate(asked):
        if progress is not None:
            progress("planning at every budget", number, len(asked))
        rows.append(_planned(planner, privacy, tuple(tables), confidence))
    if progress is not None:
        progress("planning at every budget", len(asked), len(asked))
    return Budgets(tuple(rows))


def smallest_budget(
    planner: Planner,
    privacy: Privacy,
    target: Target,
    *,
    tables: Iterable[Margin] = (),
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> BudgetPlan:
    """Return the plan at the smallest budget of four digits that reaches a target in every table. Reads no data.

    `privacy` says what varies, ε with its δ or ρ, and where the search begins. It is a bisection. Where the mechanism
    changes with the budget, the error of a table may jump; then the search also looks at four budgets down to a quarter
    of the one it found. The errors of shrunk tables go up and down a little between budgets that are nearly the same,
    so a budget that is some percent smaller may do as well. Refuses a target that no budget up to 100 reaches.

    >>> from functools import partial
    >>> import tabulary as tb
    >>> domain = tb.Domain({"sex": ["F", "M"], "age": range(10)})
    >>> planner = partial(tb.plan, domain, "[sex][sex age]", reconstruct="none")
    >>> found = smallest_budget(planner, tb.PureDP(1), Target.parse("±20"))
    >>> print(found.privacy, found.worst.margin, found.worst.half_width)
    ε = 0.429 ('sex',) 20
    """
    search = _Search(planner, privacy, target, tuple(tables), confidence, progress)
    found = search.smallest()
    tenth = search.at(max(search.place(amount(found.privacy) * _TENTH), search.first))
    shares = (*(_NEAR if found.modelled else ()), *(_FAR if tenth.way != found.way else ()))
    places = [search.place(amount(found.privacy) * share) for share in shares]
    reaching = [place for place in places if place >= search.first and search.reaches(place)]
    return search.down_to(min(reaching)) if reaching else found


class _Search:
    """The plans at budgets of four digits, each made once; places number these budgets in ascending order."""

    def __init__(
        self,
        planner: Planner,
        privacy: Privacy,
        target: Target,
        tables: tuple[Margin, ...],
        confidence: float,
        progress: Progress | None,
    ) -> None:
        self._planner, self._privacy, self._target = planner, privacy, target
        self._tables, self._confidence, self._progress = tables, confidence, progress
        self._made: dict[int, BudgetPlan] = {}
        # Noise shrinks with ε, and with the square root of ρ.
        self._power, least = (2, LEAST_RHO) if isinstance(privacy, ZCDP) else (1, LEAST_EPSILON)
        self.first, self.last = self.place(least), self.place(Fraction(MOST))

    def place(self, value: Fraction) -> int:
        """Return the place of the largest number of four digits that is at most `value`."""
        exponent = math.floor(math.log10(value))
        # The logarithm of a power of ten may be rounded to the wrong side of it.
        exponent += (value >= Fraction(10) ** (exponent + 1)) - (value < Fraction(10) ** exponent)
        digits = math.floor(value / Fraction(10) ** exponent * _FIRST)
        return exponent * _STEPS + digits - _FIRST

    def at(self, place: int) -> BudgetPlan:
        """Return the plan at a place."""
        if place not in self._made:
            if self._progress is not None:
                self._progress("looking for the smallest budget", len(self._made), 0)
            exponent, digits = divmod(place, _STEPS)
            value = Fraction(digits + _FIRST, _FIRST) * Fraction(10) ** exponent
            self._made[place] = _planned(
                self._planner, with_amount(self._privacy, value), self._tables, self._confidence
            )
        return self._made[place]

    def reaches(self, place: int) -> bool:
        """Return whether the plan at a place reaches the target."""
        return self.at(place).reaches(self._target)

    def smallest(self) -> BudgetPlan:
        """Return the plan at the end of a bisection, around places where noise inverse to ε would reach the target."""
        place, step = self._within(self.place(amount(self._privacy))), 0
        low, high = self.first - 1, self.last + 1
        while True:
            if self.reaches(place):
                high = place
            elif place == self.last:
                raise self._unreachable(self.at(place))
            else:
                low = place
            if (low in self._made and high in self._made) or high == self.first:
                return self.between(low, high)
            guess, step = self._inverse(place), 2 * step or _STEP
            # Beyond the guess by a step that grows, so that the next plan is on the other side of the target.
            place = self._within(min(guess, place) - step if high == place else max(guess, place) + step)

    def _inverse(self, place: int) -> int:
        """Return the place where the target would be if noise were inverse to ε, or to the root of ρ."""
        made = self.at(place)
        ratio = Fraction(made.worst.half_width) / self._target.half_width
        return self.place(amount(made.privacy) * max(ratio, Fraction(1, 10**6)) ** self._power)

    def down_to(self, high: int) -> BudgetPlan:
        """Return the plan at the first place that reaches the target, above all that are known to miss it."""
        missed = [place for place in self._made if place < high and not self.reaches(place)]
        return self.between(max(missed, default=self.first - 1), high)

    def between(self, low: int, high: int) -> BudgetPlan:
        """Return the plan at the first place above `low` that reaches the target; that at `high` does.

        Every other step is a guess between the errors at both ends, since a plan of many tables takes seconds.
        """
        guess = True
        while high - low > 1:
            middle = self._guess(low, high) if guess else (low + high) // 2
            low, high = (low, middle) if self.reaches(middle) else (middle, high)
            guess = not guess
        return self.at(high)

    def _guess(self, low: int, high: int) -> int:
        """Return the place between two where the target would be if the logarithm of the error were a straight line."""
        ends = [self._made[place].worst.half_width for place in (low, high) if place in self._made]
        if len(ends) < 2 or not ends[0] > ends[1] > 0:
            return (low + high) // 2
        share = math.log(ends[0] / self._target.half_width) / math.log(ends[0] / ends[1])
        return min(max(low + math.ceil(share * (high - low)), low + 1), high - 1)

    def _within(self, place: int) -> int:
        return min(max(place, self.first), self.last)

    def _unreachable(self, best: BudgetPlan) -> InvalidPlan:
        worst = best.worst
        return InvalidPlan(
            f"no {symbol(best.privacy)} up to {MOST} reaches {self._target}: at {best.privacy} the table "
            f"{show_margin(worst.margin)} still has ±{show_width(worst.half_width)}. Choose another target, fewer "
            "tables or coarser levels. Nothing was spent."
        )


def _planned(planner: Planner, privacy: Privacy, tables: tuple[Margin, ...], confidence: float) -> BudgetPlan:
    made = planner(privacy=privacy)
    expected = made.expected_error(confidence)
    if tables:
        for margin in tables:
            if margin not in made.workload.margins:
                known = ", ".join(map(show_margin, made.workload.margins[:12]))
                raise UnknownMargin(
                    f"the plan has no table {show_margin(margin)}. Its tables are {known}"
                    f"{' and more' if len(made.workload) > 12 else ''}. Nothing was planned."
                )
        expected = ExpectedErrors(tuple(row for row in expected if row.margin in tables), confidence)
    return BudgetPlan(made, expected)


def _shown(value: Fraction) -> str:
    return f"{value.numerator:,}" if value.denominator == 1 else show_fraction(value)


def _number(text: str) -> Fraction:
    return exact_fraction(text.replace(",", ""), name="a target", error=InvalidArgument)
