"""Where the counts of a study come from: the records, which makes it confidential, or a twin of a public release."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import sum_onto
from tabulary.core.domain import Margin
from tabulary.core.workload import Workload, maximal_margins, show_margin
from tabulary.errors import InvalidArgument, InvalidTable, listed
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning import MECHANISMS
from tabulary.release import Release
from tabulary.synth import from_release
from tabulary.workflows import PlanFile

Counts = Mapping[Margin, NDArray[np.int64]]
"""Counts by margin. Of records: confidential, in memory only, handed from process to process and written nowhere."""


def counted_margins(tables: Workload, mechanisms: Iterable[str], *, max_cells: int) -> tuple[Margin, ...]:
    """Return what has to be counted for these mechanisms at any amount of privacy.

    The tables of the plan, and the one on all attributes if one of the mechanisms may measure that.
    """
    found = maximal_margins(tables.margins)
    named = tables.domain.margin({a for margin in tables for a in margin})
    whole = any(MECHANISMS[name].measures_full_table for name in mechanisms)
    if whole and named not in found and tables.domain.cells(named) <= max_cells:
        return (*found, named)
    return tuple(found)


def counts_of_records(planned: PlanFile, margins: Iterable[Margin]) -> dict[Margin, NDArray[np.int64]]:
    """Return the exact counts of the records of a plan file, which are opened and read once. Confidential."""
    records = planned.records()
    try:
        tally = records.tally(margins, max_cells=planned.max_cells)
        return {margin: tally.exact(margin) for margin in tally.margins}
    finally:
        records.close()


def counts_of_twin(release: Release, margins: Iterable[Margin]) -> dict[Margin, NDArray[np.int64]]:
    """Return the counts of people made up from a release. Public: reads no record, spends nothing.

    The same release always has the same twin, so that a study that was interrupted goes on with the same people.
    """
    key = hashlib.sha256(f"tabulary twin {release.digest}".encode()).digest()
    try:
        rows = from_release(release, entropy=KeyedEntropy(key, "twin"))
    except InvalidTable as problem:
        raise InvalidTable(
            f"no people can be made up from this release: {problem} Nothing was done."
        ) from None
    return {margin: np.asarray(rows.table(margin).counts, dtype=np.int64) for margin in margins}


def public_release(folder: Path, planned: PlanFile) -> Release:
    """Return the release in a folder, verified, or refuse one that cannot stand in for the plan's records."""
    release = Release.load(folder)
    release.verify()
    mine, theirs = planned.plan.domain, release.plan.domain
    if mine != theirs:
        differing = [a for a in mine.attributes if a not in theirs.attributes or _other(a, planned, release)]
        what = f"in {listed(differing)}" if differing else "in their order, or in what is impossible"
        raise InvalidArgument(
            f"the domain of the release {folder} differs from that of {planned.path.name} {what}. "
            "Nothing was done. Use a release of the same attributes and levels."
        )
    known = {attribute for margin in release.margins for attribute in margin}
    missing = mine.margin({a for margin in planned.plan.workload for a in margin} - known)
    if missing:
        raise InvalidArgument(
            f"no table of the release {folder} holds {listed(missing)}, which {planned.path.name} "
            "publishes. Nothing was done. Use a release with these attributes, or leave them out of the plan."
        )
    return release


def modelled_margins(margins: Iterable[Margin], release: Release) -> tuple[Margin, ...]:
    """Return the margins that no table of a release holds: what its twin has there is a model's guess."""
    return tuple(m for m in margins if not any(set(m) <= set(held) for held in release.margins))


def summed(counts: Counts, margin: Margin) -> NDArray[np.int64]:
    """Return the counts on a margin, from the smallest counted table that contains it."""
    holding = [held for held in counts if set(margin) <= set(held)]
    if not holding:
        raise InvalidArgument(f"{show_margin(margin)} was not counted.")
    source = min(holding, key=lambda held: counts[held].size)
    return sum_onto(counts[source], source, margin)


def _other(attribute: str, planned: PlanFile, release: Release) -> bool:
    mine, theirs = planned.plan.domain, release.plan.domain
    return mine.levels_of(attribute) != theirs.levels_of(attribute)
