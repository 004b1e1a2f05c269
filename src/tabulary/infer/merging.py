"""Levels of a released table merged into one, for every test that takes a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain
from tabulary.core.interruption import checkpoint
from tabulary.core.table import Table, with_zeros
from tabulary.errors import InvalidArgument
from tabulary.infer.intervals import Level
from tabulary.infer.sums import SumLaw, shared_noise
from tabulary.infer.table_noise import (
    GivenNoise,
    IndependentNoise,
    noise_of,
    published_table,
    unbiased_table,
)
from tabulary.noise import IntegerNoise
from tabulary.planning import CellErrors, ErrorLaw, StatedErrors
from tabulary.planning.accuracy import WeightedErrors
from tabulary.planning.covariance import CellCovariance, Draws
from tabulary.release import ReleasedTable
from tabulary.release.table import CONFIDENCE


def merged(
    table: Table | ReleasedTable,
    levels: Mapping[str, Sequence[Level]],
    *,
    noise: GivenNoise | None = None,
) -> ReleasedTable:
    """Return the table with some levels of some attributes merged into one, with the law of the noise of the sums.

    `{"score": ["Medium", "High"]}` makes one level "Medium+High" of both; the other levels stay. Every function of
    `tabulary.infer` takes the result. The unbiased face has the exact law of its noise. The errors of the published
    face are bounds: sums of published counts have errors of unknown law. `noise` is what `noise_of` takes, for a table
    that states none. Post-processing: reads no data.

    >>> from tabulary.infer import independence
    >>> from tabulary.noise import DiscreteLaplace
    >>> domain = Domain({"sex": ["F", "M"], "score": ["Low", "Medium", "High"]})
    >>> table = Table(domain, [[412, 133, 61], [398, 160, 84]])
    >>> two = merged(table, {"score": ["Medium", "High"]}, noise=DiscreteLaplace(5))
    >>> two.domain.levels_of("score"), two.counts.tolist()
    (('Low', 'Medium+High'), [[412, 194], [398, 244]])
    >>> round(independence(two).p_value, 3)
    0.067
    """
    covariance = shared_noise(table, noise)
    known = noise_of(table, noise)
    plain = unbiased_table(table)
    merging = _Merging.of(plain.domain, levels)
    law: ErrorLaw
    if isinstance(known, IndependentNoise) and isinstance(known.law, IntegerNoise):
        law = CellErrors(known.law, merging.summed(known.terms))
    else:
        law = _weighted(CellCovariance(_MergedNoise(covariance, merging)))
    linear = ReleasedTable(merging.table(plain), law)
    if not isinstance(table, ReleasedTable) or table.linear is None:
        return linear
    # Each of k intervals misses with 1/k of the probability, so that all hold together; errors add up at most.
    each = table.half_widths(1 - (1 - CONFIDENCE) / merging.most)
    bounds = StatedErrors(merging.summed(table.standard_errors), merging.summed(np.asarray(each, np.float64)))
    return ReleasedTable(merging.table(published_table(table)), bounds, linear)


@dataclass(frozen=True, eq=False)
class _Merging:
    """The domain after levels were merged, and for each cell before it, in order, the place of its cell afterwards."""

    domain: Domain
    places: NDArray[np.intp]

    @classmethod
    def of(cls, domain: Domain, levels: Mapping[str, Sequence[Level]]) -> "_Merging":
        named: dict[str, list[str]] = {a: list(domain.levels_of(a)) for a in domain.attributes}
        codes = [np.arange(size) for size in domain.shape]
        for attribute, chosen in levels.items():
            axis = domain.position(attribute)
            together = sorted({domain.code(attribute, level) for level in _several(attribute, chosen)})
            kept = [code for code in range(domain.shape[axis]) if code not in together[1:]]
            label = "+".join(named[attribute][code] for code in together)
            named[attribute] = [label if code == together[0] else named[attribute][code] for code in kept]
            codes[axis] = np.array(
                [kept.index(together[0] if code in together else code) for code in range(domain.shape[axis])]
            )
        after = Domain(named)
        grid = np.ix_(*codes)
        places = np.ravel_multi_index(grid, after.shape) if after.shape else np.zeros((), np.intp)
        merging = cls(after, np.asarray(places, dtype=np.intp).reshape(-1))
        possible = merging.summed(~domain.impossible(domain.attributes))
        return cls(with_zeros(after, possible == 0), merging.places) if not possible.all() else merging

    @property
    def most(self) -> int:
        """The most cells that became one."""
        return int(np.bincount(self.places).max())

    def summed(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return numbers of cells added up."""
        found = np.zeros(self.domain.size, dtype=np.result_type(cells.dtype, np.int64))
        np.add.at(found, self.places, cells.reshape(-1))
        return found.reshape(self.domain.shape)

    def table(self, table: Table) -> Table:
        """Return a table with its levels merged."""
        return Table(self.domain, self.summed(table.counts))


@dataclass(frozen=True, eq=False)
class _MergedNoise:
    """The errors of cells that were added up."""

    covariance: CellCovariance
    merging: _Merging

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table with merged levels."""
        return self.merging.domain.shape

    def covariances(self, weights: Floats) -> Floats:
        """Return Σw."""
        return self.merging.summed(self.covariance.covariances(self._before(weights)))

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield the draws behind the cells that were added up."""
        yield from self.covariance.draws_of(self._before(weights))

    def _before(self, weights: Floats) -> Floats:
        return weights.reshape(-1)[self.merging.places].reshape(self.covariance.shape)


def _weighted(covariance: CellCovariance) -> WeightedErrors:
    """Return the law of the error of each cell from that of all of them."""
    errors, kurtosis = np.zeros((2, covariance.cells))
    unit = np.zeros(covariance.cells)
    for cell in range(covariance.cells):
        checkpoint()
        unit[cell] = 1.0
        law = SumLaw.of(covariance, unit.reshape(covariance.shape))
        errors[cell], kurtosis[cell] = law.deviation, law.kurtosis
        unit[cell] = 0.0
    return WeightedErrors(errors.reshape(covariance.shape), kurtosis.reshape(covariance.shape), covariance)


def _several(attribute: str, chosen: Sequence[Level]) -> Sequence[Level]:
    if isinstance(chosen, str) or len(set(chosen)) < 2:
        raise InvalidArgument(
            f"at least two different levels of {attribute!r} are needed to merge levels into one. Nothing was "
            "merged and nothing was tested."
        )
    return chosen
