"""What all methods of protecting a table builder's dataset have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tabulary.core.domain import Domain, Margin
from tabulary.core.privacy import Privacy
from tabulary.planning import ExpectedError, Plan
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.release import ReleasedTable
from tabulary.release.cutting import Sliceable
from tabulary.release.exchange import WithheldCounts
from tabulary.release.promise import Promise


class ProtectionMethod(StrEnum):
    """How a dataset is protected."""

    fixed = "fixed"
    interactive = "interactive"
    cell_key = "cell-key"
    released = "released"

    @property
    def has_one_plan(self) -> bool:
        """Whether one plan is behind all tables of a dataset."""
        return self in (ProtectionMethod.fixed, ProtectionMethod.released)


class PerturbedCounts(WithheldCounts, Sliceable, Protocol):
    """A table whose counts were perturbed one by one, without a known law of the errors."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        ...

    @property
    def ptable(self) -> Mapping[str, object]:
        """The perturbation of its counts as plain data."""
        ...


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """A table that may be shown to anyone, in the domain's order, and the plan behind it.

    `plan` says what was measured and promised; None where there is no differential privacy. `reconstructed` says
    whether the table was made non-negative, so that its errors are simulated, or is the linear estimate.
    """

    table: ReleasedTable | PerturbedCounts
    promise: Promise
    plan: Plan | None
    reconstructed: bool = False


class Answerer(Protocol):
    """A dataset that answers questions, protected in one way. Safe to use from several threads.

    A refusal and its words depend only on the allowed tables, the budget and the asker's account. All of these are
    public.
    """

    @property
    def method(self) -> ProtectionMethod:
        """How the dataset is protected."""
        ...

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""
        ...

    @property
    def allowed_tables(self) -> AllowedTables:
        """Which tables may be asked for."""
        ...

    @property
    def version(self) -> str:
        """Which version of the dataset this is."""
        ...

    @property
    def promise(self) -> Promise:
        """What all answers together promise; for an interactive dataset, what its whole budget promises."""
        ...

    def plan_of(self, margin: Margin) -> Plan | None:
        """Return the plan behind an answer, without asking for the answer; None without differential privacy."""
        ...

    def expected(self, margin: Margin, confidence: float = 0.95) -> ExpectedError | None:
        """Return the accuracy of the table on `margin`, from the plan; None if it is not known. Free."""
        ...

    def price(self, margin: Margin) -> Privacy | None:
        """Return what the table on `margin` would cost now; None if it is free. Only new interactive tables cost."""
        ...

    def answer(self, margin: Margin, *, asker: str | None = None, linear: bool = False) -> TableAnswer:
        """Return the table on `margin`, the same for ever.

        If answers cost, `asker` names the ledger account that pays together with the dataset's account. `linear` asks
        for the unbiased linear estimate, which tests need, if the published table is a different one. Both come from
        the same measurements, so neither costs more.
        """
        ...

    def close(self) -> None:
        """Forget the records."""
        ...
