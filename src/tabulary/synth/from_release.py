"""Records that reproduce the tables of a release. They cost no budget: a release is public."""

import numpy as np

from tabulary.core.progress import Progress
from tabulary.errors import InvalidTable
from tabulary.noise import Entropy, SystemEntropy
from tabulary.release import Release
from tabulary.synth.particles import particles
from tabulary.synth.rows import SyntheticRecords, check_rows

# Enough weighted rows for tables of some ten thousand cells.
_FEWEST = 300_000
_PER_ROW = 2


def from_release(
    release: Release,
    rows: int | None = None,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> SyntheticRecords:
    """Return records whose tables are as near to those of the release as whole records allow.

    `rows` is by default the number of people in the release. Where its published tables may be negative or contradict
    each other, the official ones are made from its measurements. An attribute that no table of the release has is left
    out.
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
    face = release.face if release.face.face.official else release.rebuild(progress=progress).face
    tables = {m: np.asarray(face.table(m), dtype=np.float64) for m in release.margins if m}
    total = float(next(iter(tables.values())).sum())
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
