"""From an engine's batches to encoded records: what unknown values mean, and which records cannot be."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.engines import Engine
from tabulary.confidential.store import MEMORY_BYTES, Codes, Store
from tabulary.core.domain import Assignment, Domain
from tabulary.errors import ImpossibleRecord, UnknownLevel, UnreadableSource, listed


def encode(
    engine: Engine, domain: Domain, recodings: Sequence[Recoding], *, memory_bytes: int = MEMORY_BYTES
) -> Store:
    """Return the records of an engine, encoded; or refuse them all.

    An unknown value in a column that refuses them is an error even in a record that another column drops. The
    source is read to its end before it is refused, so that the error names every column in question.
    """
    store = Store(domain.shape, memory_bytes=memory_bytes)
    try:
        _fill(store, engine, domain, recodings)
        store.finish()
    except BaseException:
        store.close()
        raise
    return store


def _fill(store: Store, engine: Engine, domain: Domain, recodings: Sequence[Recoding]) -> None:
    refused: set[int] = set()
    impossible: set[Assignment] = set()
    empty = True
    for batch in engine.batches(recodings):
        empty = empty and not len(batch[0])
        columns: list[Codes] = []
        kept: NDArray[np.bool_] | None = None
        for place, (recoding, codes) in enumerate(zip(recodings, batch, strict=True)):
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
        if refused:
            continue
        if kept is not None:
            columns = [codes[kept] for codes in columns]
        impossible |= _impossible(domain, columns)
        if not impossible:
            store.append(columns)
    if empty:
        raise UnreadableSource("the source holds no record. Nothing was counted.")
    if refused:
        raise UnknownLevel(_unknown_message([recodings[place] for place in sorted(refused)]))
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
