"""Which records are counted: what unknown values mean, and why a whole source is refused."""

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

# Sums of weights stay below this, so that neither they nor the noise that is added to them leave 64 bits.
LARGEST_SUM = 1 << 62


@dataclass(frozen=True)
class Findings:
    """What was found in some records of a source; `|` joins what was found in two parts of it. Confidential.

    `refused` are the places of the recodings that refuse an unknown value and met one, `impossible` those of the
    structural zeros in which a record stands; `absent`, `negative` and `clipped` speak of weights. `admitted` is how
    many records are to be counted.
    """

    admitted: int = 0
    refused: frozenset[int] = frozenset()
    impossible: frozenset[int] = frozenset()
    absent: bool = False
    negative: bool = False
    clipped: bool = False

    def __or__(self, other: "Findings") -> "Findings":
        return Findings(
            admitted=self.admitted + other.admitted,
            refused=self.refused | other.refused,
            impossible=self.impossible | other.impossible,
            absent=self.absent or other.absent,
            negative=self.negative or other.negative,
            clipped=self.clipped or other.clipped,
        )

    def check(self, domain: Domain, recodings: Sequence[Recoding], weights: Weights | None) -> None:
        """Refuse the whole source if something in it must not be; the message is made of public things only.

        A source without a record is counted like any other: it and one of a single record may be neighbours.
        """
        if self.refused:
            raise UnknownLevel(_unknown_message([recodings[place] for place in sorted(self.refused)]))
        if weights is not None:
            self._check_weights(weights)
        if self.impossible:
            zeros = [domain.structural_zeros[place] for place in sorted(self.impossible)]
            raise ImpossibleRecord(
                f"at least one record stands in a cell that the domain declares impossible: "
                f"{'; '.join(map(_show, zeros[:6]))}{'; and more' if len(zeros) > 6 else ''}. "
                "Nothing was counted. Correct the records, or take the structural zero out of the domain."
            )

    def _check_weights(self, weights: Weights) -> None:
        found = ["missing or no finite number"] * self.absent + ["negative"] * self.negative
        if found:
            raise InvalidColumn(
                f"column {weights.column!r} holds a weight that is {', and one that is '.join(found)}, in at "
                "least one record. Nothing was counted. Correct the weights, or leave those records out."
            )
        if self.admitted * weights.sensitivity >= LARGEST_SUM:
            raise InvalidColumn(
                f"the sums of the weights {weights.column!r} may not fit 64 bits: there are too many records "
                "for so small a unit. Nothing was counted. Choose a larger unit."
            )


class Admission:
    """Looks at the records of a source, or of a part of it, batch by batch, and keeps what it found.

    An unknown value in a column that refuses them is an error even in a record that another column drops. Nothing is
    refused before the source has been read to its end, so that the error names every column in question.

    Weights that are no finite numbers, or are negative, are refused in every record; those above the maximum are
    clipped.
    """

    def __init__(self, domain: Domain, recodings: Sequence[Recoding], weights: Weights | None = None) -> None:
        self._domain = domain
        self._recodings = recodings
        self._weights = weights
        self.found = Findings()

    def admit(self, batch: Batch) -> list[Codes] | None:
        """Return the codes of the records that are counted, and their weights in units last if there are any.

        None once the source is going to be refused: then nothing more needs to be counted.
        """
        columns, kept, refused = self._levels(batch)
        now = Findings(refused=refused)
        if self._weights is not None:
            now = replace(now, absent=bool(np.isnan(batch[-1]).any()), negative=bool((batch[-1] < 0).any()))
        self.found |= now
        if self.found.refused or self.found.absent or self.found.negative:
            return None
        if kept is not None:
            columns = [codes[kept] for codes in columns]
        now = Findings(admitted=len(columns[0]), impossible=_impossible(self._domain, columns))
        if self._weights is not None:
            units, clipped = in_units(self._weights, batch[-1] if kept is None else batch[-1][kept])
            columns.append(units)
            now = replace(now, clipped=clipped)
        self.found |= now
        return None if self.found.impossible else columns

    def _levels(self, batch: Batch) -> tuple[list[Codes], NDArray[np.bool_] | None, frozenset[int]]:
        """Return the codes of levels, which records have one in every column, and which columns refuse the source."""
        refused: set[int] = set()
        columns: list[Codes] = []
        kept: NDArray[np.bool_] | None = None
        # Not strict: where there are weights, they come last.
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
    """Return what is said where weights were clipped: made of public things only."""
    return (
        f"column {weights.column!r} holds weights above the public maximum "
        f"{show_fraction(weights.maximum)}. They count as the maximum, so weighted tables are too low "
        "where they stand. For the custodian only: that this is said depends on the records. A larger "
        "maximum clips less and needs more noise; choose it without looking at the weights."
    )


def zeros_at(domain: Domain, attributes: Margin, cells: NDArray[np.int64]) -> frozenset[int]:
    """Return the places of the structural zeros that hold one of the cells, which are numbered as in the flat margin.

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
    """Return the places of the structural zeros in which a record stands."""
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
