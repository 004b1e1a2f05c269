"""Records that reproduce the tables of a release. They cost no budget: a release is public."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.core.progress import Progress
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidTable
from tabulary.noise import Entropy, SystemEntropy
from tabulary.release import Release
from tabulary.synth.particles import particles
from tabulary.synth.rows import SyntheticRecords, check_rows

# Enough weighted rows for tables of some ten thousand cells.
_FEWEST = 300_000
_PER_ROW = 2
_AGREE = 1e-6


def from_release(
    release: Release,
    rows: int | None = None,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> SyntheticRecords:
    """Return records whose tables are as near to those of the release as whole records allow.

    `rows` is by default the number of people in the release. The release must be consistent and not negative: made
    with reconstruct "shrink", "least-squares" or "lp". An attribute that no table of the release has is left out.
    Post-processing: reads no record, spends no budget; the promise of the release holds for the rows. The rows know
    only what the release says: of the distributions with its tables, they follow one close to a tree of the strongest
    associations. If the release counts nobody, the rows are spread evenly over the possible cells.
    """
    named = [
        name for name in release.plan.domain.attributes if any(name in margin for margin in release.margins)
    ]
    if not named:
        raise InvalidTable("the release has no table by an attribute, so it gives no rows.")
    domain = release.plan.domain.project(named)
    tables = {
        margin: np.asarray(release[margin].counts, dtype=np.float64) for margin in release.margins if margin
    }
    total = _checked_total(tables)
    if total <= 0:
        # Nobody is counted: only the possible cells are known.
        tables = {margin: domain.multiplicity(margin).astype(np.float64) for margin in tables}
    wanted = max(1, round(total)) if rows is None else rows
    check_rows(wanted, len(named))
    source = entropy or SystemEntropy()
    made = particles(domain, tables, max(_FEWEST, _PER_ROW * wanted), entropy=source, progress=progress)
    return SyntheticRecords(
        domain,
        made.whole(wanted, source),
        guarantee=str(release.plan.privacy),
        origin=f"from a release of {len(tables)} tables",
    )


def _checked_total(tables: Mapping[Margin, NDArray[np.float64]]) -> float:
    """Return the number of people, or raise where tables are negative or contradict each other."""
    remedy = "Release with reconstruct='shrink', 'least-squares' or 'lp'."
    totals = {margin: float(table.sum()) for margin, table in tables.items()}
    first = next(iter(totals.values()))
    for margin, table in tables.items():
        if table.min() < 0:
            raise InvalidTable(f"the table {show_margin(margin)} has a negative count. {remedy}")
    for margin, total in totals.items():
        if abs(total - first) > _AGREE * max(first, 1.0):
            raise InvalidTable(
                f"the tables do not add up to the same total: see {show_margin(margin)}. {remedy}"
            )
    sums: dict[str, NDArray[np.float64]] = {}
    for margin, table in tables.items():
        for place, name in enumerate(margin):
            line = table.sum(axis=tuple(other for other in range(table.ndim) if other != place))
            if name in sums and np.abs(line - sums[name]).max() > _AGREE * max(first, 1.0):
                raise InvalidTable(
                    f"the tables do not agree on {name!r}: see {show_margin(margin)}. {remedy}"
                )
            sums.setdefault(name, line)
    return first
