"""The noise of a table: stated by the released table, or given with a plain table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats, Integers
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import AddedNoise, Drawable, Entropy, IntegerNoise, Tabulated, noise_from_description
from tabulary.planning import CellErrors
from tabulary.planning.covariance import CellCovariance
from tabulary.release import ReleasedTable


class CountRow(Protocol):
    """The published values of one original count, from `lowest` upwards, with their probabilities."""

    @property
    def lowest(self) -> int:
        """The lowest published value."""
        ...

    @property
    def probabilities(self) -> Floats:
        """The probabilities of the lowest value and those that follow it."""
        ...


@runtime_checkable
class CountLaw(Protocol):
    """The law of the published value of a count, which may depend on the count; see `tabulary.perturb`.

    From the count `settled` on all rows are one row moved along; None if there is none. `bound` is the largest
    change, None for a law without one.
    """

    @property
    def bound(self) -> int | None:
        """The largest change of a count."""
        ...

    @property
    def settled(self) -> int | None:
        """The count from which all rows are the same row, moved; None if there is none."""
        ...

    def row(self, original: int) -> CountRow:
        """Return the law of the published value of an original count."""
        ...

    def drawn(self, original: int) -> Drawable:
        """Return what is drawn and added to an original count."""
        ...


TableLaw = AddedNoise | CountLaw
"""A noise that is added to every count, or a law that depends on the count."""


@dataclass(frozen=True, eq=False)
class IndependentNoise:
    """Noise that is drawn for every cell separately: one law, and the number of its draws in each cell.

    A cell with no draw is exact: a structural zero, or a count that was never protected. `minimum` is the value
    that smaller ones were published as; None where negative values were kept.

    >>> from tabulary.noise import DiscreteLaplace
    >>> noise = IndependentNoise(DiscreteLaplace(10), np.array([[1, 1], [1, 0]]))
    >>> noise.standard_deviations.round(1).tolist()
    [[14.1, 14.1], [14.1, 0.0]]
    """

    law: TableLaw
    terms: Integers
    minimum: int | None = None

    def __post_init__(self) -> None:
        terms = np.array(self.terms, dtype=np.int64)
        if np.any(terms < 0):
            raise InvalidNoise("the number of draws in a cell must not be negative.")
        if isinstance(self.law, CountLaw) and np.any(terms > 1):
            raise InvalidNoise("a perturbation that depends on the count must be drawn once for each cell.")
        if self.minimum is not None and np.any(terms > 1):
            raise InvalidNoise("a minimum applies to one perturbed count, not to a sum of several draws.")
        terms.flags.writeable = False
        object.__setattr__(self, "terms", terms)

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> "IndependentNoise":
        """Return the noise of exact counts: no draw in any cell."""
        return cls(Tabulated(0, (1,)), np.zeros(shape, dtype=np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return self.terms.shape

    @property
    def standard_deviations(self) -> Floats:
        """The standard deviation of the noise in each cell, if negative values are kept.

        Of a law that depends on the count, that of large counts; of one that never settles there is none.
        """
        return np.asarray(np.sqrt(self.terms * self._variance()))

    def _variance(self) -> float:
        if not isinstance(self.law, CountLaw):
            return self.law.variance
        if self.law.settled is None:
            raise InvalidNoise(
                "the spread of this perturbation grows with the count: it has no single standard deviation."
            )
        row = self.law.row(self.law.settled)
        values = row.lowest + np.arange(row.probabilities.size, dtype=np.float64)
        mean = float(row.probabilities @ values)
        return float(row.probabilities @ (values - mean) ** 2)

    def transpose(self, order: Sequence[int]) -> "IndependentNoise":
        """Return the same noise with the axes in another order."""
        return IndependentNoise(self.law, self.terms.transpose(order), self.minimum)

    def released(self, counts: Integers, entropy: Entropy) -> Integers:
        """Return the counts as they would be published, with fresh noise from `entropy`."""
        published = np.array(counts, dtype=np.int64)
        if isinstance(self.law, CountLaw):
            noisy = self.terms > 0
            rows = published if self.law.settled is None else np.minimum(published, self.law.settled)
            for original in np.unique(rows[noisy]):
                here = noisy & (rows == original)
                published[here] += self.law.drawn(int(original)).sample(int(here.sum()), entropy)
        else:
            for count in np.unique(self.terms[self.terms > 0]):
                here = self.terms == count
                drawn = self.law.sample((int(here.sum()), int(count)), entropy)
                published[here] += drawn.sum(axis=1)
        if self.minimum is not None:
            published = np.where(self.terms > 0, np.maximum(published, self.minimum), published)
        return published


@dataclass(frozen=True, eq=False)
class CorrelatedNoise:
    """Noise that cells share: its covariance, cells in order, the last attribute fastest.

    `draws` are the independent draws behind it, where they are known: they tell how heavy its tails are.

    >>> noise = CorrelatedNoise(np.array([[4.0, -1.0], [-1.0, 4.0]]), (2,))
    >>> noise.standard_deviations.tolist()
    [2.0, 2.0]
    """

    covariance: Floats
    shape: tuple[int, ...]
    draws: CellCovariance | None = None

    def __post_init__(self) -> None:
        covariance = np.array(self.covariance, dtype=np.float64)
        cells = int(np.prod(self.shape))
        if covariance.shape != (cells, cells) or not np.isfinite(covariance).all():
            raise InvalidNoise(
                f"the covariance of the noise of {cells:,} cells must be a table of {cells:,} × {cells:,} finite "
                "numbers."
            )
        if not np.allclose(covariance, covariance.T, rtol=1e-9, atol=1e-9) or np.any(np.diag(covariance) < 0):
            raise InvalidNoise("a covariance must be symmetric, and its variances must not be negative.")
        covariance.flags.writeable = False
        object.__setattr__(self, "covariance", covariance)

    @property
    def standard_deviations(self) -> Floats:
        """The standard deviation of the error of each cell."""
        deviations: Floats = np.sqrt(np.diag(self.covariance))
        return deviations.reshape(self.shape)

    def released(self, counts: Integers, entropy: Entropy) -> Floats:
        """Return the counts as they would be estimated, with fresh noise from `entropy`.

        Where the draws are not known it is normal.
        """
        flat = counts.reshape(-1).astype(np.float64)
        if self.draws is None:
            from tabulary.reconstruct.rounding.full_table import normals_from

            return (flat + self._root @ normals_from(entropy)((flat.size,))).reshape(self.shape)
        for law, copies, shares in self._shares:
            drawn = law.sample((shares.shape[1], copies), entropy).sum(axis=1)
            flat = flat + shares @ drawn
        return flat.reshape(self.shape)

    @cached_property
    def _root(self) -> Floats:
        """A matrix R with R R' = the covariance: independent standard draws times R have it."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def _shares(self) -> list[tuple[IntegerNoise, int, Floats]]:
        """The laws that were drawn from, the copies of each draw, and the share of each draw in each cell."""
        assert self.draws is not None, "normal noise has no draws"
        cells = np.eye(len(self.covariance)).reshape(-1, *self.shape)
        by_law = zip(*(self.draws.draws_of(cell) for cell in cells), strict=True)
        return [(of[0].noise, of[0].copies, np.array([each.weights for each in of])) for of in by_law]


TableNoise = IndependentNoise | CorrelatedNoise
GivenNoise = TableLaw | TableNoise | Mapping[str, object]


def unbiased_table(table: Table | ReleasedTable) -> Table:
    """Return the counts that a test may use: of a released table its unbiased face, never the published one."""
    return table.unbiased.table if isinstance(table, ReleasedTable) else _plain_table(table)


def published_table(table: Table | ReleasedTable) -> Table:
    """Return the counts as they are published, which a naive method takes as exact."""
    return table.table if isinstance(table, ReleasedTable) else _plain_table(table)


def _plain_table(table: Table) -> Table:
    """Return a table, or raise InvalidTable. One with totals would count each person several times."""
    if not isinstance(table, Table):
        raise InvalidTable(
            f"this is not a table of counts but {type(table).__name__}. Give a table of a release, such as "
            "release['sex', 'age'], or a Table with its noise. Of a table with totals, give its .table."
        )
    return table


def noise_of(table: Table | ReleasedTable, noise: GivenNoise | None = None) -> TableNoise:
    """Return the noise of the unbiased face of a released table, or what is given with a table that states none.

    `noise` may be a law such as `tabulary.noise.DiscreteLaplace(10)`, its description, a perturbation, or what
    this function returns. Impossible cells are exact.

    >>> from tabulary import Domain, Table
    >>> table = Table(Domain({"sex": ["F", "M"]}), [120, -2])
    >>> noise_of(table, {"family": "discrete-laplace", "scale": "3"}).law
    DiscreteLaplace(scale=Fraction(3, 1))
    """
    if isinstance(table, ReleasedTable):
        if noise is not None:
            raise InvalidNoise(
                "a released table states its own noise. Leave `noise` out, or give the .table of the release."
            )
        return _stated(table.unbiased)
    if noise is None:
        raise InvalidNoise(
            "a table does not state its noise. Give the released table, which states it, or the law: "
            "noise=tabulary.noise.DiscreteLaplace(10). Exact counts need no correction: method='naive'."
        )
    if isinstance(noise, IndependentNoise | CorrelatedNoise):
        if noise.shape != table.shape:
            raise InvalidNoise(f"the noise describes {noise.shape} cells, but the table has {table.shape}.")
        return noise
    possible = ~table.domain.impossible(table.domain.attributes)
    return IndependentNoise(law_given(noise), possible.astype(np.int64))


def law_given(noise: TableLaw | Mapping[str, object]) -> TableLaw:
    """Return the law that is given: a law, a perturbation that adds a law to every count, or a description.

    >>> law_given({"family": "discrete-gaussian", "variance_parameter": "9"})
    DiscreteGaussian(variance_parameter=Fraction(9, 1))
    """
    return _plain(noise_from_description(noise) if isinstance(noise, Mapping) else noise)


def whole_counts(counts: ArrayLike) -> Integers:
    """Return counts as whole numbers, or raise InvalidTable: integer noise leaves integers whole."""
    array = np.asarray(counts)
    if array.dtype.kind == "f" and np.array_equal(array, np.rint(array)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidTable(
            "these counts are not whole numbers, and whole noise was added to whole counts. They were changed "
            "since, so the stated noise is not theirs. Use the table as it was released."
        )
    return array.astype(np.int64)


def _stated(table: ReleasedTable) -> TableNoise:
    errors: Any = table.errors
    # One cell shares its draws with no other.
    if (
        isinstance(errors, CellErrors)
        and errors.scale == 1
        and (errors.shared is None or errors.terms.size == 1)
    ):
        return IndependentNoise(errors.noise, errors.terms)
    law = getattr(errors, "law", None)
    if law is not None:
        # A perturbation, which lives in a room above this one.
        return IndependentNoise(_plain(law), errors.possible.astype(np.int64), errors.minimum)
    covariance = getattr(errors, "covariance", None)
    if covariance is None:
        raise InvalidNoise(
            "this table has no unbiased face: the law of the noise in its counts is not known. Take the table from the "
            "release folder, or from a table builder with estimate='linear'. Or use method='naive' and distrust it."
        )
    return CorrelatedNoise(covariance.dense(), table.shape, covariance)


def _plain(law: Any) -> TableLaw:
    """Return the noise of a perturbation that adds the same noise to every count; return any other law unchanged."""
    noise = getattr(law, "noise", None)
    found = law if noise is None else noise
    if not isinstance(found, AddedNoise | CountLaw):
        raise InvalidNoise(f"a noise must be a law on the integers, not {type(law).__name__}.")
    return found
