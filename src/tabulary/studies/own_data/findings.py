"""What many repetitions come to: medians with the range of eight in ten, root mean squares, shares."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tabulary.core.budget import amount, column
from tabulary.core.privacy import Privacy
from tabulary.planning.accuracy import normal_quantile
from tabulary.planning.comparison import show_error
from tabulary.studies.own_data.grid import Series
from tabulary.studies.study import Row, Sheets

LOW, HIGH = 0.1, 0.9

ENOUGH = 9
"""From so many repetitions on, the percentiles lie among them, and one release in its band eight times out of ten."""

SHARE_BAND = "share of the repetitions, band of a 95 % confidence interval (Wilson)"


def band_ends(repetitions: int) -> str:
    """Return what the ends of a band are.

    >>> band_ends(20), band_ends(3)
    ('the 10th to the 90th percentile', 'the smallest to the largest of 3')
    """
    if repetitions < ENOUGH:
        return f"the smallest to the largest of {repetitions}"
    return "the 10th to the 90th percentile"


def band_words(repetitions: int) -> str:
    """Return what a line and its band are."""
    return f"median of the repetitions, band from {band_ends(repetitions)}"


def band_chance(repetitions: int) -> float:
    """Return the probability that the error of one release lies in a band.

    Of n + 1 values that are alike, a given one is neither the smallest nor the largest with (n - 1)/(n + 1).

    >>> band_chance(20), band_chance(3)
    (0.8, 0.5)
    """
    return HIGH - LOW if repetitions >= ENOUGH else (repetitions - 1) / (repetitions + 1)


@dataclass(frozen=True)
class Band:
    """A number in the middle of others, and where most of these lie."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> "Band":
        """Return the median, the 10th and the 90th percentile; of fewer than nine, the smallest and the largest.

        The percentiles are those of Weibull (1939), at (n + 1) p among n values: another value of the same kind lies
        between them with probability 0.8. Between the usual ones, at 1 + (n - 1) p, it lies less often.

        >>> Band.of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
        Band(low=1.0, middle=5.0, high=9.0)
        """
        low, middle, high = np.quantile(values, [LOW, 0.5, HIGH], method="weibull").tolist()
        return cls(low, middle, high)

    @classmethod
    def of_share(cls, held: list[bool]) -> "Band":
        """Return the share of those that hold, with its 95 % confidence interval (Wilson 1927).

        >>> Band.of_share([True] * 20).middle, round(Band.of_share([True] * 20).low, 2)
        (1.0, 0.84)
        """
        n, share, z = len(held), sum(held) / len(held), normal_quantile(0.95)
        centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
        return cls(max(0.0, min(centre - half, share)), share, min(1.0, max(centre + half, share)))


@dataclass(frozen=True)
class Findings:
    """The numbers of a study by mechanism and amount of privacy, and by the table or model that they are about."""

    sheets: Sheets
    privacy: Privacy

    def rows(self, sheet: str, series: Series, privacy: Privacy, about: str | None = None) -> Sequence[Row]:
        """Return the repetitions of one mechanism at one amount; `about` one table or model, or all of them."""
        return self._index.get((sheet, series.name, float(amount(privacy)), about), ())

    def band(
        self, sheet: str, measure: str, series: Series, privacy: Privacy, about: str | None = None
    ) -> Band | None:
        """Return the band of a measure; None where no repetition has it."""
        values = _numbers(self.rows(sheet, series, privacy, about), measure)
        return Band.of(values) if values else None

    def share(
        self, sheet: str, measure: str, series: Series, privacy: Privacy, about: str | None = None
    ) -> Band | None:
        """Return in which share of the repetitions something holds."""
        rows = self.rows(sheet, series, privacy, about)
        held = [bool(row[measure]) for row in rows if row[measure] is not None]
        return Band.of_share(held) if held else None

    def rmse(self, series: Series, privacy: Privacy, table: str | None = None) -> float | None:
        """Return the root mean square of the errors over cells and repetitions, of all tables together or of one.

        This, and no median, is what a plan expects: its square is the mean of squares.
        """
        rows = self.rows("all" if table is None else "tables", series, privacy, table)
        squares = [value**2 for value in _numbers(rows, "rmse")]
        return math.sqrt(sum(squares) / len(squares)) if squares else None

    def expected(self, series: Series, privacy: Privacy) -> float | None:
        """Return what the plan alone expects of all tables together; None where it does not tell."""
        rows = self.rows("expected", series, privacy)
        if not rows or any(row["rmse"] is None for row in rows):
            return None
        squares = sum(float(row["rmse"] or 0) ** 2 * int(row["cells"] or 0) for row in rows)
        return math.sqrt(squares / max(sum(int(row["cells"] or 0) for row in rows), 1))

    def worst_table(
        self, series: Series, privacy: Privacy, tables: Iterable[str]
    ) -> tuple[str, float] | None:
        """Return the table with the largest root mean squared error, and that error."""
        errors = {name: self.rmse(series, privacy, name) for name in tables}
        measured = {name: error for name, error in errors.items() if error is not None}
        return max(measured.items(), key=lambda item: item[1], default=None)

    def measured(self, measure: str, series: Series, grid: Iterable[Privacy]) -> list[Privacy]:
        """Return the amounts at which a mechanism was measured; at others it was refused, or came to no end."""
        return [privacy for privacy in grid if self.band("all", measure, series, privacy) is not None]

    def kept_from(
        self, measure: str, target: float, series: Series, grid: Iterable[Privacy]
    ) -> Fraction | None:
        """Return the smallest amount from which on the median keeps to a target; None where the last does not."""
        found = None
        for privacy in reversed(self.measured(measure, series, grid)):
            band = self.band("all", measure, series, privacy)
            if band is None or band.middle > target:
                break
            found = amount(privacy)
        return found

    @cached_property
    def _index(self) -> dict[tuple[str, str, float, str | None], list[Row]]:
        # Hundreds of tables make hundreds of thousands of rows, too many to go through for each number of the page.
        index: dict[tuple[str, str, float, str | None], list[Row]] = defaultdict(list)
        at = column(self.privacy)
        for sheet, rows in self.sheets.items():
            for row in rows:
                place = (sheet, str(row["mechanism"]), float(row[at] or 0))
                index[*place, None].append(row)
                about = row.get("table", row.get("model"))
                if about is not None:
                    index[*place, str(about)].append(row)
        return dict(index)


def _numbers(rows: Iterable[Row], measure: str) -> list[float]:
    return [float(value) for row in rows if (value := row[measure]) is not None]


def people(value: float | None) -> str:
    """Return an error in people for a reader."""
    return "–" if value is None else show_error(value)


def percent(value: float | None) -> str:
    """Return a share for a reader.

    >>> percent(0.1234), percent(0.00051), percent(2.5)
    ('12 %', '0.051 %', '250 %')
    """
    if value is None:
        return "–"
    return f"{100 * value:,.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def small(value: float | None) -> str:
    """Return a number without a unit for a reader."""
    return "–" if value is None else f"{value:,.3g}"


def ranged(band: Band | None, show: Any) -> str:
    """Return a band as its middle and its ends."""
    return "–" if band is None else f"{show(band.middle)} ({show(band.low)} to {show(band.high)})"
