"""Which records are counted: what unknown values mean, and when a whole source is refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.reading import Batch
from tabulary.confidential.store import Codes
from tabulary.confidential.weights import Weights, in_units
from tabulary.core.domain import Assignment, Domain, Margin
from tabulary.core.exact_numbers import show_fraction
from tabulary.errors import ImpossibleRecord, InvalidColumn, UnknownLevel, listed

# Sums of weights stay below this, so that they fit in 64 bits with the noise that is added to them.
LARGEST_SUM = 1 << 62


@dataclass(frozen=True)
class RecordFaults:
    """What was found in some records of a source; `|` joins the findings of two parts of it. Confidential.

    `refused` are the positions of the recodings that refuse unknown values and met one; `impossible` are the
    positions of the structural zeros that have a record; `absent`, `negative` and `clipped` are about weights.
    `admitted` is the number of records to count.
    """

    admitted: int = 0
    refused: frozenset[int] = frozenset()
    impossible: frozenset[int] = frozenset()
    absent: bool = False
    negative: bool = False
    clipped: bool = False

    def __or__(self, other: "RecordFaults") -> "RecordFaults":
        return RecordFaults(
            admitted=self.admitted + other.admitted,
            refused=self.refused | other.refused,
            impossible=self.impossible | other.impossible,
            absent=self.absent or other.absent,
            negative=self.negative or other.negative,
            clipped=self.clipped or other.clipped,
        )

    def check(self, domain: Domain, recodings: Sequence[Recoding], weights: Weights | None) -> None:
        """Refuse the whole source if it contains something invalid; the message contains only public things.

        An empty source is counted like any other: it may be a neighbour of a source with one record.
        """
        if self.refused:
            raise UnknownLevel(_unknown_message([recodings[place] for place in sorted(self.refused)]))
        if weights is not None:
            self._check_weights(weights)
        if self.impossible:
            zeros = [domain.structural_zeros[place] for place in sorted(self.impossible)]
            raise ImpossibleRecord(
                "at least one record is in a cell that the domain declares impossible: "
                f"{'; '.join(map(_show, zeros[:6]))}{'; and more' if len(zeros) > 6 else ''}. Nothing was "
                "counted. Correct the records, or remove the structural zero from the domain."
            )

    def _check_weights(self, weights: Weights) -> None:
        found = ["missing or not a finite number"] * self.absent + ["negative"] * self.negative
        if found:
            raise InvalidColumn(
                f"column {weights.column!r} has a weight that is {', and one that is '.join(found)}, in at "
                "least one record. Nothing was counted. Correct the weights, or leave those records out."
            )
        if self.admitted * weights.sensitivity >= LARGEST_SUM:
            raise InvalidColumn(
                f"the sums of the weights {weights.column!r} may not fit in 64 bits: there are too many "
                "records for such a small unit. Nothing was counted. Choose a larger unit."
            )


class Validation:
    """Validates the records of a source, or of a part of it, batch by batch, and keeps the findings.

    An unknown value in a column that refuses them is an error even in a record that another column drops. The
    source is read to its end before it is refused, so that the error names every column in question.

    Weights that are negative or not finite are refused in every record; weights above the maximum are clipped.
    """

    def __init__(self, domain: Domain, recodings: Sequence[Recoding], weights: Weights | None = None) -> None:
        self._domain = domain
        self._recodings = recodings
        self._weights = weights
        self.found = RecordFaults()

    def admit(self, batch: Batch) -> list[Codes] | None:
        """Return the codes of the records that are counted and, last, their weights in units if there are any.

        None as soon as the source will be refused: then no more counting is needed.
        """
        columns, kept, refused = self._levels(batch)
        now = RecordFaults(refused=refused)
        if self._weights is not None:
            now = replace(now, absent=bool(np.isnan(batch[-1]).any()), negative=bool((batch[-1] < 0).any()))
        self.found |= now
        if self.found.refused or self.found.absent or self.found.negative:
            return None
        if kept is not None:
            columns = [codes[kept] for codes in columns]
        now = RecordFaults(admitted=len(columns[0]), impossible=_impossible(self._domain, columns))
        if self._weights is not None:
            units, clipped = in_units(self._weights, batch[-1] if kept is None else batch[-1][kept])
            columns.append(units)
            now = replace(now, clipped=clipped)
        self.found |= now
        return None if self.found.impossible else columns

    def _levels(self, batch: Batch) -> tuple[list[Codes], NDArray[np.bool_] | None, frozenset[int]]:
        """Return the codes, which records have a level in every column, and which columns refuse the source."""
        refused: set[int] = set()
        columns: list[Codes] = []
        kept: NDArray[np.bool_] | None = None
        # Not strict: the weights, if any, come last.
        for place, (recoding, codes) in enumerate(zip(self._recodings, batch, strict=False)):
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
        return columns, kept, frozenset(refused)


def clipping_warning(weights: Weights) -> str:
    """Return the warning about clipped weights; it contains only public things."""
    return (
        f"column {weights.column!r} has weights above the public maximum {show_fraction(weights.maximum)}. "
        "They count as the maximum, so weighted tables are too low in those cells. This message is for the "
        "custodian only, because it depends on the records. A larger maximum clips less and needs more "
        "noise; choose it without looking at the weights."
    )


def zeros_at(domain: Domain, attributes: Margin, cells: NDArray[np.int64]) -> frozenset[int]:
    """Return the positions of the structural zeros that contain one of the cells, numbered as in the flat margin.

    >>> domain = Domain({"age": ["0-14", "15+"], "job": ["none", "paid"]}, [{"age": "0-14", "job": "paid"}])
    >>> zeros_at(domain, ("age", "job"), np.array([1]))
    frozenset({0})
    """
    codes = dict(zip(attributes, np.unravel_index(cells, domain.shape_of(attributes)), strict=True))
    found: set[int] = set()
    for place, zero in enumerate(domain.structural_zeros):
        if not all(attribute in codes for attribute, _ in zero):
            continue
        inside = np.ones(len(cells), dtype=bool)
        for attribute, levels in zero:
            inside &= np.isin(codes[attribute], [domain.code(attribute, level) for level in levels])
        if inside.any():
            found.add(place)
    return frozenset(found)


def _impossible(domain: Domain, columns: Sequence[Codes]) -> frozenset[int]:
    """Return the positions of the structural zeros that have a record."""
    found: frozenset[int] = frozenset()
    for attributes, mask in domain.zero_blocks:
        index = np.zeros(len(columns[0]), dtype=np.int64)
        for attribute in attributes:
            index *= len(domain.levels_of(attribute))
            index += columns[domain.position(attribute)]
        hit = index[mask.reshape(-1)[index]]
        if hit.size:
            found |= zeros_at(domain, attributes, np.unique(hit))
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
