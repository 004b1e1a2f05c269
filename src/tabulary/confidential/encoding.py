"""From an engine's batches to encoded records: what unknown values mean, and which records cannot be."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.engines import Engine
from tabulary.confidential.store import MEMORY_BYTES, Codes, Store
from tabulary.confidential.weights import Weights, in_units
from tabulary.core.domain import Assignment, Domain
from tabulary.core.exact import show_fraction
from tabulary.errors import (
    ImpossibleRecord,
    InvalidColumn,
    UnknownLevel,
    UnreadableSource,
    WeightsClipped,
    listed,
)

# Sums of weights stay below this, so that neither they nor the noise that is added to them leave 64 bits.
_LARGEST_SUM = 1 << 62

# From `encode` to who called a constructor of `Records`: that line is the one to look at.
_TO_THE_CALLER = 4


def encode(
    engine: Engine,
    domain: Domain,
    recodings: Sequence[Recoding],
    weights: Weights | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
) -> Store:
    """Return the records of an engine, encoded; or refuse them all.

    An unknown value in a column that refuses them is an error even in a record that another column drops. The
    source is read to its end before it is refused, so that the error names every column in question.

    Weights that are no finite numbers, or are negative, are refused in every record; those above the maximum
    are clipped, with a `WeightsClipped` warning if one of a record that is kept was.
    """
    scale = None if weights is None else _Scale(weights)
    store = Store(
        domain.shape, largest_weight=weights.sensitivity if weights else None, memory_bytes=memory_bytes
    )
    try:
        _fill(store, engine, domain, recodings, scale)
        store.finish()
        if scale is not None and scale.clipped:
            warnings.warn(scale.told(), WeightsClipped, stacklevel=_TO_THE_CALLER)
    except BaseException:
        store.close()
        raise
    return store


class _Scale:
    """What weighs the records, batch by batch, and remembers what was wrong with their weights."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.clipped = False
        self._absent = False
        self._negative = False

    def sound(self, numbers: NDArray[np.float64]) -> bool:
        """Return whether all weights so far are finite and not negative."""
        self._absent = self._absent or bool(np.isnan(numbers).any())
        self._negative = self._negative or bool((numbers < 0).any())
        return not (self._absent or self._negative)

    def units(self, numbers: NDArray[np.float64]) -> NDArray[np.uint32]:
        """Return sound weights in units."""
        units, clipped = in_units(self.weights, numbers)
        self.clipped = self.clipped or clipped
        return units

    def check(self, records: int) -> None:
        """Refuse what was wrong."""
        found = ["missing or no finite number"] * self._absent + ["negative"] * self._negative
        if found:
            raise InvalidColumn(
                f"column {self.weights.column!r} holds a weight that is {', and one that is '.join(found)}, in at "
                "least one record. Nothing was counted. Correct the weights, or leave those records out."
            )
        if records * self.weights.sensitivity >= _LARGEST_SUM:
            raise InvalidColumn(
                f"the sums of the weights {self.weights.column!r} may not fit 64 bits: there are too many records "
                "for so small a unit. Nothing was counted. Choose a larger unit."
            )

    def told(self) -> str:
        """Return what the warning says: made of public things only."""
        return (
            f"column {self.weights.column!r} holds weights above the public maximum "
            f"{show_fraction(self.weights.maximum)}. They count as the maximum, so weighted tables are too low "
            "where they stand. For the custodian only: that this is said depends on the records. A larger "
            "maximum clips less and needs more noise; choose it without looking at the weights."
        )


def _fill(
    store: Store, engine: Engine, domain: Domain, recodings: Sequence[Recoding], scale: _Scale | None
) -> None:
    refused: set[int] = set()
    impossible: set[Assignment] = set()
    empty = True
    for batch in engine.batches(recodings, scale.weights.column if scale else None):
        empty = empty and not len(batch[0])
        columns: list[Codes] = []
        kept: NDArray[np.bool_] | None = None
        # Not strict: where there are weights, they come last.
        for place, (recoding, codes) in enumerate(zip(recodings, batch, strict=False)):
            unknown = codes == recoding.unknown
            known = codes
            if unknown.any():
                if recoding.otherwise is not None:
                    known = np.where(unknown, codes.dtype.type(recoding.otherwise), codes)
                elif recoding.drop:
                    kept = ~unknown if kept is None else kept & ~unknown
                else:
                    refused.add(place)
            columns.append(known)
        sound = scale is None or scale.sound(batch[-1])
        if refused or not sound:
            continue
        if kept is not None:
            columns = [codes[kept] for codes in columns]
        impossible |= _impossible(domain, columns)
        if scale is not None:
            columns.append(scale.units(batch[-1] if kept is None else batch[-1][kept]))
        if not impossible:
            store.append(columns)
    if empty:
        raise UnreadableSource("the source holds no record. Nothing was counted.")
    if refused:
        raise UnknownLevel(_unknown_message([recodings[place] for place in sorted(refused)]))
    if scale is not None:
        scale.check(store.rows)
    if impossible:
        zeros = [zero for zero in domain.structural_zeros if zero in impossible]
        raise ImpossibleRecord(
            f"at least one record stands in a cell that the domain declares impossible: "
            f"{'; '.join(map(_show, zeros[:6]))}{'; and more' if len(zeros) > 6 else ''}. "
            "Nothing was counted. Correct the records, or take the structural zero out of the domain."
        )


def _impossible(domain: Domain, columns: Sequence[Codes]) -> set[Assignment]:
    """Return the structural zeros in which a record stands."""
    found: set[Assignment] = set()
    for attributes, mask in domain.zero_blocks:
        index = np.zeros(len(columns[0]), dtype=np.int64)
        for attribute in attributes:
            index *= len(domain.levels_of(attribute))
            index += columns[domain.position(attribute)]
        hit = mask.reshape(-1)[index]
        if not hit.any():
            continue
        for zero in domain.structural_zeros:
            if zero[0][0] not in attributes:
                continue
            inside = hit.copy()
            for attribute, levels in zero:
                codes = [domain.code(attribute, level) for level in levels]
                inside &= np.isin(columns[domain.position(attribute)], codes)
            if inside.any():
                found.add(zero)
    return found


def _show(zero: Assignment) -> str:
    return " with ".join(f"{attribute} {' or '.join(map(repr, levels))}" for attribute, levels in zero)


def _unknown_message(refused: Sequence[Recoding]) -> str:
    if len(refused) > 1:
        return (
            f"{len(refused)} columns hold a value outside their domain in at least one record: "
            f"{listed(recoding.column for recoding in refused)}. Nothing was counted. Add the levels to the "
            'domain, or declare `unknown = "drop"` for those columns.'
        )
    (recoding,) = refused
    told = 'or declare `unknown = "drop"` for that column.'
    if recoding.edges:
        return (
            f"column {recoding.column!r} holds a value in none of the bins of {recoding.attribute!r} in at "
            f"least one record. Add a bin, {told}"
        )
    if recoding.texts != recoding.levels:
        return (
            f"column {recoding.column!r} holds a value outside the mapping of {recoding.attribute!r} in at "
            f"least one record. Add the value to the mapping, {told}"
        )
    return (
        f"column {recoding.column!r} holds a value outside its domain [{listed(recoding.levels)}] in at "
        f"least one record. Add the level to the domain, {told}"
    )
