"""Answers from a published release. Nothing here reads a record, a key or a ledger, and no answer costs anything.

A release holds everything that its tables are made of. So anyone with the folder can answer every question about its
tables and their sums, with the published face for readers and the unbiased face for tests. The contract of imports in
`pyproject.toml` keeps this module apart from all code that can see a record.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from tabulary.core.cache import Cache, CacheSection
from tabulary.core.domain import Domain, Margin
from tabulary.planning import ExpectedError, Plan
from tabulary.planning.accuracy import expected_error
from tabulary.planning.allowed_tables import MOST_CELLS, AllowedTables
from tabulary.release import Release, ReleasedTable
from tabulary.release.promise import Promise, promise_of
from tabulary.workflows.answering.answers import ProtectionMethod, TableAnswer

# As much of the digest as a reader can compare; the details of the dataset hold all of it.
_DIGITS = 16


@dataclass(frozen=True, eq=False)
class ReleasedAnswers:
    """A release that answers questions about every table that can be made of it. Made by `of`.

    The release itself holds its tables, once. Tables that are made on request go to the cache of the service.

    >>> import numpy as np
    >>> from tabulary.core.privacy import PureDP
    >>> from tabulary.planning import Measurement, plan
    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> planned = plan(domain, "[sex job]", privacy=PureDP(1), mechanism="margins")
    >>> answers = ReleasedAnswers.of(Release(Measurement(planned, (np.array([[12, 30], [-1, 41]]),))))
    >>> bool((answers.answer(("sex",)).table.counts >= 0).all())
    True
    >>> answers.answer(("sex",), linear=True).table.counts.tolist()
    [42, 40]
    >>> print(answers.price(("sex",)))
    None
    """

    release: Release
    allowed_tables: AllowedTables
    version: str
    promise: Promise
    _made: CacheSection[Margin, ReleasedTable]

    @classmethod
    def of(cls, release: Release, *, max_cells: int = MOST_CELLS, cache: Cache | None = None) -> Self:
        """Return the answers of a release. A table of more than `max_cells` is not given.

        The version is the beginning of the digest of a saved release, so that a changed release is another version.
        """
        largest = tuple(release.plan.estimator.cover)
        allowed = AllowedTables(
            release.plan.domain,
            order=max(1, *map(len, largest)),
            max_cells=max_cells,
            within=largest,
        )
        version = "unsaved" if release.digest is None else release.digest[:_DIGITS]
        made: CacheSection[Margin, ReleasedTable] = CacheSection(
            Cache() if cache is None else cache, bytes_of=_bytes_of
        )
        return cls(release, allowed, version, promise_of(release.plan), made)

    @property
    def method(self) -> ProtectionMethod:
        """How the dataset is protected."""
        return ProtectionMethod.released

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""
        return self.allowed_tables.domain

    def plan_of(self, margin: Margin) -> Plan:
        """Return the plan of the release. It is behind every answer."""
        self._allowed(margin)
        return self.release.plan

    def expected(self, margin: Margin, confidence: float = 0.95) -> ExpectedError:
        """Return the accuracy of the published table on `margin`: it exists, so its own errors are known."""
        named = self._allowed(margin)
        return expected_error(named, self._table(named).errors, confidence)

    def price(self, margin: Margin) -> None:
        """Return None: a release has been paid for by its publisher."""
        self._allowed(margin)

    def answer(self, margin: Margin, *, asker: str | None = None, linear: bool = False) -> TableAnswer:
        """Return the table on `margin`, the same for ever and for everyone: `linear` gives its unbiased face."""
        table = self._table(self._allowed(margin))
        shown = table.unbiased if linear else table
        return TableAnswer(shown, self.promise, self.release.plan, reconstructed=shown is not table.unbiased)

    def close(self) -> None:
        """Forget the tables that were made on request."""
        self._made.clear()

    def __repr__(self) -> str:
        return f"<ReleasedAnswers of {self.release!r}>"

    def _allowed(self, margin: Margin) -> Margin:
        named = self.domain.margin(margin)
        self.allowed_tables.refuse(named)
        return named

    def _table(self, margin: Margin) -> ReleasedTable:
        if margin in self._listed:
            return self.release[margin]
        return self._made.get(margin, lambda: self.release[margin])

    @cached_property
    def _listed(self) -> frozenset[Margin]:
        return frozenset(self.release.margins)


def _bytes_of(table: ReleasedTable) -> int:
    faces = [table] if table.linear is None else [table, table.linear]
    return sum(face.counts.nbytes + 2 * face.standard_errors.nbytes for face in faces)
