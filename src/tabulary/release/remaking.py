"""The published face made again from the measurements, and compared with the one that was published.

A face is a function of the measurements alone, so anybody can make it again. On the same kind of machine every number
is the same. Another processor may round the last bit of a real number otherwise, and a coin may then fall differently.
For that case there is a certificate, which no machine rounds: the tables are whole where they should be, not negative,
additive to the last unit, and zero where nothing is possible; and no count is farther from the one made here than the
error that the release states for it. The stated errors are made again, too. The certificate cannot tell another
processor from somebody who moved counts within their errors; it says so.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np

from tabulary.core.arrays import sum_onto
from tabulary.core.domain import Margin
from tabulary.core.table import CellCounts
from tabulary.core.workload import show_margin
from tabulary.errors import ReleaseDamaged
from tabulary.reconstruct.reconstruction import Reconstruction

# Two machines may compute a real number to a different last digit; a false one differs by more.
_TOLERANCE = 1e-9
# Real tables are made to agree by sweeps, which end when no sum differs by more than this share of the total.
_AGREEMENT = 1e-6
# Between two releases of one plan the errors of a table differ by less than this.
_ERRORS_APART = 0.05
_MOST_NAMED = 5


@dataclass(frozen=True)
class Verification:
    """How the published tables were checked: made again with the same numbers, or by their certificate.

    `facts` names what the manifest says about the making of the tables and what came out otherwise, and `files` the
    report and the files in other formats that came out with other bytes.
    """

    tables: int
    different: int = 0
    facts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def remade(self) -> bool:
        """Whether every published number came out again."""
        return not self.different

    @property
    def complete(self) -> bool:
        """Whether everything came out again: every number, every fact and every file."""
        return self.remade and not self.facts and not self.files

    def __str__(self) -> str:
        return " ".join(filter(None, (self._tables(), self._facts(), self._files())))

    def _facts(self) -> str:
        if not self.facts:
            return ""
        return (
            f"What the manifest says about their making came out otherwise: {', '.join(self.facts[:_MOST_NAMED])}. "
            "Another machine has made them, or somebody has changed the manifest."
        )

    def _files(self) -> str:
        if not self.files:
            return ""
        more = f" and {len(self.files) - _MOST_NAMED:,} more" if len(self.files) > _MOST_NAMED else ""
        return (
            f"Not checked number by number, because they came out with other bytes: "
            f"{', '.join(self.files[:_MOST_NAMED])}{more}. Another version of Tabulary or another machine has written "
            "them, or somebody has changed them together with the manifest. Use the CSV and Parquet files, or write "
            "the others anew with `tabulary rebuild`."
        )

    def _tables(self) -> str:
        if self.remade:
            return (
                f"The {self.tables:,} published tables were made again from the measurements: every number is the "
                "same."
            )
        return (
            f"{self.different:,} of the {self.tables:,} published tables came out differently when they were made "
            "again. Either this machine rounds a last digit otherwise than the publisher's, or somebody has moved "
            "counts within their errors: only the publisher's key or digest can tell. The tables are additive, not "
            "negative, and no count differs by more than its stated error."
        )


def verified_face(published: Reconstruction, again: Reconstruction) -> Verification:
    """Return how a published face was checked against the one made again; raise ReleaseDamaged if it does not hold."""
    problems = list(face_problems(published))
    different = differing_tables(published, again)
    for margin in different:
        distance = np.abs(published.table(margin) - again.table(margin))
        allowed = np.maximum(
            published.errors(margin).half_widths(0.95), again.errors(margin).half_widths(0.95)
        )
        if published.face.linear or (distance > allowed).any():
            problems.append(f"the table on {show_margin(margin)} does not follow from the measurements.")
    # Where tables came out differently, their errors may do so a little.
    slack = _ERRORS_APART if different else _TOLERANCE
    for margin, curve in again.curves.items():
        stated, found = published.curves[margin].describe(), curve.describe()
        if any(not math.isclose(stated[name], found[name], rel_tol=slack) for name in found):
            problems.append(f"the errors of {show_margin(margin)} do not follow from the measurements.")
    facts = []
    for name in sorted({*published.facts, *again.facts}):
        one, other = published.facts.get(name), again.facts.get(name)
        if None not in (one, other) and _kind(one) is not _kind(other):
            problems.append(f"the fact {name!r} about the making of the tables is not of its kind.")
        elif one != other:
            facts.append(name)
    if problems:
        listing = "\n".join(f"  - {problem}" for problem in problems)
        raise ReleaseDamaged(f"the published tables do not hold:\n{listing}\nDo not use them.")
    return Verification(len(published.plan.workload), len(different), tuple(facts))


def differing_tables(published: Reconstruction, again: Reconstruction) -> list[Margin]:
    """Return the listed tables that two faces have differently, real numbers up to the last digits."""
    return [m for m in published.plan.workload if not _same(published.table(m), again.table(m))]


def _kind(value: object) -> type:
    return next(kind for kind in (bool, int, float, str) if isinstance(value, kind))


def _same(one: CellCounts, other: CellCounts) -> bool:
    if one.dtype.kind == other.dtype.kind == "i":
        return np.array_equal(one, other)
    slack = _TOLERANCE * (1 + float(np.abs(one).sum()))
    return one.dtype.kind == other.dtype.kind and np.allclose(one, other, rtol=_TOLERANCE, atol=slack)


def face_problems(published: Reconstruction) -> Iterable[str]:
    """Yield what is wrong with the published tables by themselves: what an official face promises."""
    plan, face = published.plan, published.face
    margins = plan.workload.margins
    seen: dict[Margin, CellCounts] = {}
    for margin in margins:
        counts, where = published.table(margin), f"the table on {show_margin(margin)}"
        whole = counts.dtype.kind == "i"
        if whole != face.whole(plan):
            has, promised = ("whole", "real") if whole else ("real", "whole")
            yield f"{where} has {has} numbers, but {promised} numbers were promised."
        if not face.official:
            continue
        if (counts < 0).any():
            yield f"{where} has a negative cell."
        if (counts[plan.domain.impossible(margin)] != 0).any():
            yield f"{where} counts people where nobody can be."
        for shared in _shared(margin, margins):
            own = cast(CellCounts, sum_onto(counts, margin, shared))
            known = seen.setdefault(shared, own)
            slack = _AGREEMENT * (1 + float(counts.sum()))
            exact = own.dtype.kind == known.dtype.kind == "i"
            if not (np.array_equal(known, own) if exact else np.allclose(known, own, rtol=0, atol=slack)):
                yield f"the tables do not agree on {show_margin(shared)}."


def _shared(margin: Margin, margins: Sequence[Margin]) -> Iterable[Margin]:
    """Return the sets on which a table can be compared with others: all that it may share, or all that it shares."""
    if 2 ** len(margin) <= len(margins):
        return (s for order in range(len(margin) + 1) for s in combinations(margin, order))
    return {tuple(a for a in margin if a in other) for other in margins}
