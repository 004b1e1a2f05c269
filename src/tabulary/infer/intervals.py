"""Intervals for the cells, margins, sums, differences and ratios of a released table, with the noise that it states.

They are of the unbiased face of the table, whatever was published: sums of published faces have errors of unknown law.
Two things may be asked. What was in these records: the only error is the noise, and its law is known, so an interval
holds the truth exactly as often as stated (a little more often where whole numbers leave no choice). Or what the
population is like of which the records are a sample: then the number of records in a cell is itself Poisson, the rate
of a group binomial, and an interval is wider by that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain
from tabulary.core.long_form import TableForm, long_columns, value_name
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.infer.table_noise import GivenNoise, unbiased_table
from tabulary.infer.weighted_sums import Interval, Sums, Target, check_interval
from tabulary.release import ReleasedTable
from tabulary.release.table import CONFIDENCE

Level = str | int
Selection = Mapping[str, Level | Sequence[Level]] | NDArray[Any] | Sequence[Any]
"""Cells by the levels of some attributes, one level or several of each; or one weight for each cell."""


@dataclass(frozen=True, eq=False)
class Intervals(TableForm):
    """A table of intervals, one per cell. The confidence holds for each interval, not for all of them together."""

    domain: Domain
    estimates: Floats
    lower: Floats
    upper: Floats
    confidence: float
    target: Target

    def __getitem__(self, labels: Level | tuple[Level, ...]) -> Interval:
        """Return one interval by its labels, in the order of the attributes."""
        given = labels if isinstance(labels, tuple) else (labels,)
        if len(given) != len(self.domain.attributes):
            raise InvalidTable(
                f"an interval of this table has {len(self.domain.attributes)} labels, one for each of "
                f"{list(self.domain.attributes)}, not {len(given)}."
            )
        index = tuple(
            self.domain.code(a, label) for a, label in zip(self.domain.attributes, given, strict=True)
        )
        estimate, lower, upper = (float(array[index]) for array in (self.estimates, self.lower, self.upper))
        return Interval(estimate, lower, upper, self.confidence, self.target)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table in long form: the attributes, then the estimate and both ends."""
        values = {"estimate": self.estimates, "lower": self.lower, "upper": self.upper}
        return long_columns(
            self.domain, {value_name(name, self.domain.attributes): v for name, v in values.items()}
        )


def interval(
    table: Table | ReleasedTable,
    of: Selection,
    *,
    minus: Selection | None = None,
    per: Selection | None = None,
    confidence: float = CONFIDENCE,
    target: Target = "records",
    noise: GivenNoise | None = None,
) -> Interval:
    """Return the interval of a sum of cells, less another sum, or per another sum: a difference or a ratio.

    `of={"sex": "F", "age": ["15-64", "65+"]}` sums all cells of these levels, `of={}` all cells; an array is one
    weight for each cell. `per={}` makes a share of the whole table, `per={"sex": "F"}` a rate among women.

    * A sum or a difference of these records: the released one, and a half-width that is exact where all draws behind
      it are of one noise; else that of a normal law corrected for the kurtosis, within 1 % of the confidence. Where
      no weight is negative the interval is cut at zero, for no number of records is below it; if nothing is left, both
      ends are zero.
    * A ratio: the set of Fieller, cut to what a ratio can be: 0 to 1 for a part of a whole, 0 and more for other sums
      of counts. An end is infinite where the noise leaves it open.
    * `target="population"`: a sum has the means of a Poisson count that the released value does not contradict (exact
      as above), a share those of a binomial one (Wilson's interval, with the noise in it), and other sums and ratios
      a variance that is larger by the released counts times their squared weights.

    Impossible cells are known to be empty, whatever is asked.

    `noise` is what `noise_of` takes, for a table that states none. Post-processing: reads no data.

    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[12, 30], [-1, 41]])
    >>> laplace = DiscreteLaplace(2)
    >>> print(interval(table, {"job": "none"}, noise=laplace))
    11 (3 to 19 with 95 % confidence, in these records)
    >>> print(interval(table, {"job": "none"}, noise=laplace, target="population"))
    11 (1.92 to 23.5 with 95 % confidence, in the population they are drawn from)
    >>> print(interval(table, {"sex": "F", "job": "paid"}, per={"sex": "F"}, noise=laplace))
    0.714 (0.613 to 0.837 with 95 % confidence, in these records)
    """
    check_interval(confidence, target)
    if minus is not None and per is not None:
        raise InvalidArgument(
            "an interval of a difference (minus) and of a ratio (per) cannot be asked for at once. Leave one out."
        )
    plain = unbiased_table(table)
    weights = selected_weights(plain, of)
    if minus is not None:
        weights = weights - selected_weights(plain, minus)
    if per is None and target == "records" and noise is None and _is_one_cell(weights):
        alone = _of_one_cell(table, weights, confidence)
        if alone is not None:
            return alone
    sums = Sums.of(table, noise, confidence, target)
    return sums.ratio(weights, selected_weights(plain, per)) if per is not None else sums.total(weights)


def intervals(
    table: Table | ReleasedTable,
    margin: Iterable[str] | None = None,
    *,
    per: Iterable[str] | None = None,
    confidence: float = CONFIDENCE,
    target: Target = "records",
    noise: GivenNoise | None = None,
) -> Intervals:
    """Return the intervals of all cells of a table, or of all cells of one of its margins.

    `per` names some of the attributes of the margin: each cell is then given as a share of its cell of that margin,
    such as the jobs of each sex with `margin=["sex", "job"], per=["sex"]`; `per=[]` makes shares of the whole.
    Attributes keep the order of the table. Each interval is that of `interval`, except that draws with different
    weights are taken as normal with a corrected kurtosis, as `ReleasedTable.interval` does.

    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[12, 30], [-1, 41]])
    >>> found = intervals(table, ["job"], noise=DiscreteLaplace(2))
    >>> found.lower.tolist(), found.upper.tolist()
    ([3.0, 63.0], [19.0, 79.0])
    >>> print(intervals(table, per=["sex"], noise=DiscreteLaplace(2))["F", "paid"])
    0.714 (0.613 to 0.837 with 95 % confidence, in these records)
    """
    check_interval(confidence, target)
    plain = unbiased_table(table)
    wanted = plain.domain.margin(plain.domain.attributes if margin is None else margin)
    within = None if per is None else plain.domain.margin(per)
    if within is not None and not set(within) <= set(wanted):
        raise InvalidArgument(
            "shares are computed within levels of attributes of the margin. Name these attributes in `margin` too."
        )
    domain = plain.domain.project(wanted)
    as_released = target == "records" and within is None and wanted == plain.domain.attributes
    if as_released and isinstance(table, ReleasedTable) and noise is None:
        lower, upper = (end.astype(np.float64) for end in table.unbiased.interval(confidence))
        return Intervals(domain, plain.counts.astype(np.float64), lower, upper, confidence, target)
    sums = Sums.of(table, noise, confidence, target, most_weights=1)
    found = np.zeros((3, domain.size))
    for number, cell in enumerate(np.ndindex(domain.shape)):
        levels = dict(zip(wanted, cell, strict=True))
        weights = _indicator(plain.domain, levels)
        if within is None or not np.any(weights * sums.possible):
            one = sums.total(weights)
        else:
            one = sums.ratio(weights, _indicator(plain.domain, {a: levels[a] for a in within}))
        found[:, number] = one.estimate, one.lower, one.upper
    estimates, lower, upper = (ends.reshape(domain.shape) for ends in found)
    return Intervals(domain, estimates, lower, upper, confidence, target)


def selected_weights(table: Table, selection: Selection) -> Floats:
    """Return one weight for each cell: ones for the cells of the named levels, or the array that was given."""
    if isinstance(selection, Mapping):
        levels = {
            a: [table.domain.code(a, level) for level in ([v] if isinstance(v, str | int) else v)]
            for a, v in selection.items()
        }
        return _indicator(table.domain, levels)
    return checked_weights(selection, table.shape)


def checked_weights(weights: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return weights as numbers, or raise InvalidTable unless there is a finite one for each cell."""
    given = np.asarray(weights)
    if given.shape != shape or given.dtype.kind not in "biuf" or not np.isfinite(given).all():
        raise InvalidTable(
            f"cells are selected by their levels, such as {{'sex': 'F'}}, or by one finite weight for each cell of "
            f"this table of shape {shape}; what was given has shape {given.shape}."
        )
    return given.astype(np.float64)


def _indicator(domain: Domain, codes: Mapping[str, Any]) -> Floats:
    """Return ones in the cells with these levels, given by their places."""
    inside = np.ones(domain.shape)
    for a, chosen in codes.items():
        axis = domain.position(a)
        along = np.zeros(domain.shape[axis])
        along[chosen] = 1.0
        inside = inside * along.reshape([-1 if i == axis else 1 for i in range(inside.ndim)])
    return inside


def _is_one_cell(weights: Floats) -> bool:
    return bool(np.count_nonzero(weights) == 1 and weights.max() == 1)


def _of_one_cell(table: Table | ReleasedTable, weights: Floats, confidence: float) -> Interval | None:
    """Return the interval of a cell whose errors the release states one by one, and no sum of them."""
    if not isinstance(table, ReleasedTable) or table.unbiased.covariance is not None:
        return None
    here = tuple(axis[0] for axis in np.nonzero(weights))
    lower, upper = (float(end[here]) for end in table.interval(confidence))
    return Interval(float(table.counts[here]), lower, upper, confidence, "records")
