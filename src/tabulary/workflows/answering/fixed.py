r"""Answers from one measurement that is paid for once. Anyone may ask for any allowed table, any number of times.

The measurement consists of the parts of one plan for all allowed tables. The noise of each part is a function of the
custodian's key and is drawn when it is first needed (`mechanisms.on_demand` has the sensitivity and the privacy). Every
answer is post-processing of that one measurement, so the service does not need to limit the questions.

The same question has the same answer. The default mechanism, `residual`, makes every table from the same noisy
residuals. So all tables agree on their common margins: the difference of two answers equals the third answer that it
implies, including the noise.

If few tables are allowed, the service measures all parts at once and makes them into non-negative tables that agree
(`reconstruct` "shrink"). These are biased and have simulated errors. The linear estimates, which tests need, come from
the same parts.
"""

import json
import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from tabulary.confidential.dropping import counted_neighbours
from tabulary.confidential.records import Records
from tabulary.confidential.tally_cache import TallyCache
from tabulary.core.cache import Cache
from tabulary.core.domain import Domain, Margin, check_same_domain
from tabulary.core.head import Receipt
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import Privacy, describe_privacy
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument
from tabulary.ledger import Account
from tabulary.mechanisms.on_demand import MeasuredOnDemand, check_measurable
from tabulary.planning import ExpectedError, Plan, plan
from tabulary.planning.accuracy import expected_error, normal_quantile
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.planning.planners import RESIDUAL
from tabulary.reconstruct.linear import TablesOnDemand
from tabulary.release import Release, ReleasedTable
from tabulary.release.promise import Promise
from tabulary.workflows.answering.answers import ProtectionMethod, TableAnswer
from tabulary.workflows.answering.artifacts import Artifacts, Warn, seal_key
from tabulary.workflows.answering.edition import Edition, key_fingerprint, keyed_promise, records_key

MOST_RECONSTRUCTED = 50_000
"""With more cells than this over all allowed tables, tables are reconstructed only on request."""

RECONSTRUCTIONS = ("none", "shrink")

USUAL = RESIDUAL.name
"""The mechanism that measures the allowed tables unless the custodian names another."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class FixedAnswers:
    """A dataset whose allowed tables were measured once, with noise from a secret key. Made by `open`.

    `tables` are the linear estimates. `release` holds the reconstructed tables; None if the linear ones are served.
    Safe to use from several threads.
    """

    allowed_tables: AllowedTables
    version: str
    plan: Plan
    tables: TablesOnDemand
    release: Release | None
    _records: Records
    _tallies: TallyCache
    _measured: MeasuredOnDemand

    @classmethod
    def open(
        cls,
        records: Records,
        allowed: AllowedTables,
        *,
        privacy: Privacy,
        neighbours: Relation | Neighbours,
        account: Account,
        secret: bytes,
        dataset: str,
        version: str,
        mechanism: str = USUAL,
        reconstruct: str = "auto",
        about: int | None = None,
        artifacts: Path | None = None,
        cache: Cache | None = None,
        warn: Warn = _log.warning,
        progress: Progress | None = None,
    ) -> Self:
        """Return the dataset, ready to answer. Debits `privacy` once for each version, however often it is opened.

        The order of the steps protects the data. The steps that can fail come first: this makes the plan and counts
        the records before it spends anything. Then it writes the debit to disk, unless an earlier start or another
        worker has already paid. Only then does it draw noise. It refuses records or a plan that differ from an earlier
        entry for this version.

        Args:
            records: the records; they are closed with the answers.
            allowed: the tables that may be asked for.
            privacy: what all of them cost together.
            neighbours: what one person can change.
            account: the ledger account that pays.
            secret: the custodian's key.
            dataset: its name, one word.
            version: its version, one word; changed records need a new one.
            mechanism: the name of the mechanism that measures the tables.
            reconstruct: "none" for the linear estimates, "shrink" for non-negative tables that agree, "auto" for
                "shrink" if the mechanism allows it and all tables together have at most 50,000 cells.
            about: the approximate number of records, if that is public: "shrink" assumes it.
            artifacts: a folder for the plan and the reconstructed tables, which other workers and later starts load. An
                artifact that was changed or damaged is made again.
            cache: keeps exact counts, noisy values and estimates, each in a section of its own, below one limit.
            warn: called with a sentence about such an artifact.
            progress: called with (what, done, total); a total of zero is unknown.
        """
        check_same_domain(
            records.domain,
            allowed.domain,
            things="the records and the allowed tables",
            state="Nothing was measured.",
        )
        tell = progress or _say_nothing
        way = _way(allowed, reconstruct)
        tell("reading", 0, 0)
        edition = Edition(dataset, version, records.fingerprint(records_key(secret)), key_fingerprint(secret))
        entries = account.entries()
        edition.refuse_changed_records(entries)
        tell("planning", 0, 0)
        relation = counted_neighbours(_relation(neighbours), records.drops)
        declared = _Declared(allowed, privacy, relation, mechanism, way, about)
        store = Artifacts(artifacts, seal_key(secret), edition.purpose, warn)

        def plan_anew() -> Plan:
            anew = declared.plan()
            # Checked before it is stored: a plan that was not paid for must not take the place of the paid one.
            edition.refuse_another_plan(entries, anew.digest())
            return anew

        # The plan that was first made for this edition, even if today's planner would make another.
        planned = store.plan(declared.described(), plan_anew)
        digest = planned.digest()
        edition.refuse_another_plan(entries, digest)
        if account.paid(edition.purpose, digest) is None:
            account.check(planned.privacy, planned.neighbours)
        shared = Cache() if cache is None else cache
        tallies = TallyCache(records, shared)
        tallies.prepare(planned.counted, progress=progress)
        check_measurable(tallies, planned)
        entry = account.debit(
            planned.privacy, planned.neighbours, purpose=edition.purpose, plan_digest=digest, once=True
        )
        key = edition.noise_key(secret, digest)
        measured = MeasuredOnDemand(tallies, planned, key, cache=shared)

        def made() -> Release:
            tell("making the tables non-negative", 0, 0)
            return _reconstructed(measured, f"{dataset} {version}", account.receipt(entry))

        release = None if way == "none" else store.release(planned, made)
        tables = TablesOnDemand(planned, measured.values, cache=shared)
        return cls(allowed, version, planned, tables, release, records, tallies, measured)

    @property
    def method(self) -> ProtectionMethod:
        """How the dataset is protected."""
        return ProtectionMethod.fixed

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""
        return self.allowed_tables.domain

    @cached_property
    def promise(self) -> Promise:
        """What all answers together promise."""
        return keyed_promise(self.plan.privacy, self.plan.neighbours)

    def plan_of(self, margin: Margin) -> Plan:
        """Return the plan of all allowed tables. It is behind every answer."""
        self._allowed(margin)
        return self.plan

    def expected(self, margin: Margin, confidence: float = 0.95) -> ExpectedError:
        """Return the accuracy of the table on `margin`, from the plan; for a reconstructed table, from a model."""
        named = self._allowed(margin)
        if self.release is None:
            return expected_error(named, self.plan.error_of(named), confidence)
        row = self._expected_shrunk[named]
        return replace(row, half_width=normal_quantile(confidence) * row.standard_error)

    def price(self, margin: Margin) -> None:
        """Return None: every allowed table is already paid for."""
        self._allowed(margin)

    def answer(self, margin: Margin, *, asker: str | None = None, linear: bool = False) -> TableAnswer:
        """Return the table on `margin`, the same for ever and for everyone.

        If tables are reconstructed, `linear` gives the linear estimate instead.
        """
        named = self._allowed(margin)
        if self.release is not None and not linear:
            return TableAnswer(self.release[named], self.promise, self.plan, reconstructed=True)
        counts = self.tables.table(named)
        table = ReleasedTable(Table(self.domain.project(named), counts), self.plan.error_of(named))
        return TableAnswer(table, self.promise, self.plan)

    def close(self) -> None:
        """Forget the records, their counts and everything made from them."""
        self.tables.close()
        self._measured.close()
        self._tallies.close()
        self._records.close()

    def __repr__(self) -> str:
        return f"<FixedAnswers of {len(self.allowed_tables.margins):,} tables at {self.plan.privacy}>"

    def _allowed(self, margin: Margin) -> Margin:
        named = self.domain.margin(margin)
        self.allowed_tables.refuse(named)
        return named

    @cached_property
    def _expected_shrunk(self) -> dict[Margin, ExpectedError]:
        return {row.margin: row for row in self.plan.expected_error()}


@dataclass(frozen=True)
class _Declared:
    """The custodian's declaration. The plan is a function of this declaration only."""

    allowed_tables: AllowedTables
    privacy: Privacy
    neighbours: Neighbours
    mechanism: str
    way: str
    about: int | None

    def plan(self) -> Plan:
        """Return the plan for all allowed tables."""
        return plan(
            self.allowed_tables.domain,
            self.allowed_tables.workload(),
            privacy=self.privacy,
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            reconstruct=self.way,
            records=self.about,
            max_cells=self.allowed_tables.max_cells,
        )

    def described(self) -> str:
        """Return the whole declaration as text. Its artifacts are stored under this text."""
        return json.dumps(
            {
                "domain": self.allowed_tables.domain.describe(),
                "allowed_tables": self.allowed_tables.describe(),
                "privacy": describe_privacy(self.privacy),
                "neighbours": str(self.neighbours),
                "mechanism": self.mechanism,
                "reconstruct": self.way,
                "about": self.about,
            }
        )


def plan_of_allowed_tables(
    allowed: AllowedTables,
    *,
    privacy: Privacy,
    neighbours: Relation | Neighbours,
    mechanism: str = USUAL,
    reconstruct: str = "auto",
    about: int | None = None,
) -> Plan:
    """Return the plan that `FixedAnswers.open` would make for the same arguments. Reads no records, costs nothing."""
    way = _way(allowed, reconstruct)
    return _Declared(allowed, privacy, _relation(neighbours), mechanism, way, about).plan()


def _relation(neighbours: Relation | Neighbours) -> Neighbours:
    return neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)


def _way(allowed: AllowedTables, reconstruct: str) -> str:
    """Return how the tables are made."""
    cells = sum(map(allowed.domain.cells, allowed.margins))
    if reconstruct not in (*RECONSTRUCTIONS, "auto"):
        raise InvalidArgument(
            f"the tables of a fixed dataset are made by reconstruct = 'none', 'shrink' or 'auto', not {reconstruct!r}."
        )
    way = reconstruct
    if way == "auto":
        way = "shrink" if cells <= MOST_RECONSTRUCTED else "none"
    return way


def _reconstructed(measured: MeasuredOnDemand, title: str, receipt: Receipt) -> Release:
    return Release(measured.measurement(), title=title, receipt=receipt)


def _say_nothing(what: str, done: int, total: int) -> None:
    return
