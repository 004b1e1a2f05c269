"""The difference and the ratio of two numbers of released tables; `infer.pairs` says how."""

from collections.abc import Iterable

from tabulary.core.table import Table
from tabulary.errors import InvalidArgument
from tabulary.infer.intervals import Selection
from tabulary.infer.pairs import Compared, Pair, Sides
from tabulary.infer.table_noise import GivenNoise
from tabulary.infer.weighted_sums import Target
from tabulary.release import ReleasedTable
from tabulary.release.table import CONFIDENCE

ASSUMED = (
    "the difference is that in these records: the noise is its only error",
    "the noise of the difference is taken as normal, with tails as heavy as its kurtosis says",
)
"""What the p-value of a difference of counts of these records rests on."""


def difference(
    table: Table | ReleasedTable,
    first: Selection,
    second: Selection | None = None,
    *,
    other: Table | ReleasedTable | None = None,
    per: Iterable[str] | None = None,
    confidence: float = CONFIDENCE,
    target: Target = "records",
    noise: GivenNoise | None = None,
    other_noise: GivenNoise | None = None,
) -> Compared:
    """Return a number of a released table less another one, with an interval that knows the noise of both.

    `first` and `second` select cells as in `interval`: `{"score": ["Medium", "High"]}` sums two levels, and an
    attribute that is left out is summed over. With `other`, a table of another release, the second number is from
    there; it is the same selection unless `second` says another. The two releases must have drawn their noise
    independently, as any two releases do; two tables of one release share noise and must not be given.

    `per` names attributes and makes percentages: each number is divided by the count of the levels that its own
    selection has of these attributes. With `per=["sex"]`, `{"sex": "F", "ill": "yes"}` is the rate among women;
    `per=[]` gives shares of the whole table. `target`, `noise` and the confidence are as in `interval`; for a
    population the people of two releases must be different ones. Post-processing: reads no data.

    >>> from tabulary import Domain
    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[12, 30], [-1, 41]])
    >>> print(difference(table, {"sex": "F"}, {"sex": "M"}, noise=DiscreteLaplace(2)))
    difference 2 (-9 to 13 with 95 % confidence, in these records), p = 0.694: not clear
    >>> paid = {"sex": "F", "job": "paid"}, {"sex": "M", "job": "paid"}
    >>> print(difference(table, *paid, per=["sex"], noise=DiscreteLaplace(2)))
    difference -0.286 (-0.387 to -0.12 with 95 % confidence, in these records), p = 0.0123: clearly less
    """
    sides = Sides.of(table, other, confidence, target, noise, other_noise)
    return _pair(sides, first, second, per).compared("difference")


def ratio(
    table: Table | ReleasedTable,
    first: Selection,
    second: Selection | None = None,
    *,
    other: Table | ReleasedTable | None = None,
    per: Iterable[str] | None = None,
    confidence: float = CONFIDENCE,
    target: Target = "records",
    noise: GivenNoise | None = None,
    other_noise: GivenNoise | None = None,
) -> Compared:
    """Return a number of a released table per another one; everything is as in `difference`.

    An end of the interval is infinite where the noise leaves open whether the second number is zero.

    >>> from tabulary import Domain
    >>> from tabulary.noise import DiscreteLaplace
    >>> ages = Domain({"age": ["0-14", "15-64", "65+"]})
    >>> before, after = Table(ages, [300, 900, 4]), Table(ages, [330, 720, 190])
    >>> noise = DiscreteLaplace(5)
    >>> print(ratio(after, {"age": ["0-14", "15-64"]}, other=before, noise=noise, other_noise=noise))
    ratio 0.875 (0.853 to 0.897 with 95 % confidence, in these records), p = 2.06e-08: clearly less
    >>> print(ratio(after, {"age": "65+"}, other=before, noise=noise, other_noise=noise))
    ratio 47.5 (9.82 to ∞ with 95 % confidence, in these records), p = 1.72e-09: clearly more
    """
    sides = Sides.of(table, other, confidence, target, noise, other_noise)
    return _pair(sides, first, second, per).compared("ratio")


def _pair(sides: Sides, first: Selection, second: Selection | None, per: Iterable[str] | None) -> Pair:
    if second is None and not sides.apart:
        raise InvalidArgument(
            "a comparison needs two numbers. Give a second selection, or a table of another release as `other`."
        )
    return sides.pair(first, first if second is None else second, per)
