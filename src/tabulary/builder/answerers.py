"""Open a declared dataset: read its records and pay for its tables, so that it can answer."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tabulary.builder.declarations import (
    CellKeyProtection,
    Declaration,
    FixedProtection,
    InteractiveProtection,
    Payment,
)
from tabulary.cellkey import KeyedRecords
from tabulary.confidential.records import Records
from tabulary.core.cache import Cache
from tabulary.core.progress import Progress
from tabulary.errors import ServiceError
from tabulary.ledger import Account, Ledger
from tabulary.workflows.answering.answers import Answerer
from tabulary.workflows.answering.artifacts import Warn
from tabulary.workflows.answering.cell_key import CellKeyAnswers
from tabulary.workflows.answering.fixed import FixedAnswers
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tabulary.workflows.sections import located


@dataclass(frozen=True)
class Means:
    """The means to open datasets: the key, the ledger, the cache, and a folder for slow results.

    `warn` is called with a sentence about each damaged result in that folder.
    """

    secret: bytes | None = field(repr=False)
    ledger: Ledger | None
    artifacts: Path
    warn: Warn
    cache: Cache = field(default_factory=Cache)

    def account(self, payment: Payment) -> Account:
        """Return the account that pays; refuse one whose budget differs from the file."""
        account = self.required_ledger.account(payment.account)
        if payment.budget is not None and payment.budget != account.budget:
            raise ServiceError(
                f"the file says that account {account.name!r} has a budget of {payment.budget}, but it was opened with "
                f"{account.budget}, and a budget never changes. Nothing was spent. Correct the file."
            )
        return account

    @property
    def required_ledger(self) -> Ledger:
        """The ledger, if the service has one."""
        if self.ledger is None:
            raise ServiceError("this table builder has no ledger to pay from. Nothing was spent.")
        return self.ledger

    @property
    def required_key(self) -> bytes:
        """The key, if the service has one."""
        if self.secret is None:
            raise ServiceError("this table builder has no key to draw noise from. Nothing was spent.")
        return self.secret


def open_answers(declared: Declaration, means: Means, progress: Progress | None = None) -> Answerer:
    """Return the dataset, ready to answer. An error names the dataset, and its records are closed."""
    return located(f"dataset {declared.name!r}", lambda: _open(declared, means, progress))


def _open(declared: Declaration, means: Means, progress: Progress | None) -> Answerer:
    with ExitStack() as failed:
        answers: Answerer
        match declared.protection:
            case FixedProtection() as protection:
                records = failed.enter_context(_records(declared))
                answers = _fixed(declared, protection, records, means, progress)
            case InteractiveProtection() as protection:
                records = failed.enter_context(_records(declared))
                answers = _interactive(declared, protection, records, means)
            case CellKeyProtection() as protection:
                keyed = failed.enter_context(_keyed_records(declared, protection))
                answers = _cell_keys(declared, protection, keyed, means)
        # From here on the answers close their records.
        failed.pop_all()
    return answers


def _records(declared: Declaration) -> Records:
    return Records.from_file(declared.source, declared.allowed_tables.domain, declared.codings)


def _keyed_records(declared: Declaration, protection: CellKeyProtection) -> KeyedRecords:
    domain = declared.allowed_tables.domain
    return KeyedRecords.from_file(declared.source, domain, declared.codings, keys=protection.keys)


def _fixed(
    declared: Declaration,
    protection: FixedProtection,
    records: Records,
    means: Means,
    progress: Progress | None,
) -> FixedAnswers:
    payment = protection.payment
    return FixedAnswers.open(
        records,
        declared.allowed_tables,
        privacy=payment.cost,
        neighbours=payment.neighbours,
        account=means.account(payment),
        secret=means.required_key,
        dataset=declared.name,
        version=declared.version,
        mechanism=protection.mechanism,
        reconstruct=protection.reconstruct,
        about=protection.about,
        artifacts=means.artifacts,
        cache=means.cache,
        warn=means.warn,
        progress=progress,
    )


def _interactive(
    declared: Declaration, protection: InteractiveProtection, records: Records, means: Means
) -> InteractiveAnswers:
    payment = protection.payment
    return InteractiveAnswers.open(
        records,
        declared.allowed_tables,
        cost=payment.cost,
        ledger=means.required_ledger,
        account=means.account(payment),
        neighbours=payment.neighbours,
        secret=means.required_key,
        dataset=declared.name,
        version=declared.version,
        cache=means.cache,
    )


def _cell_keys(
    declared: Declaration, protection: CellKeyProtection, records: KeyedRecords, means: Means
) -> CellKeyAnswers:
    return CellKeyAnswers.open(
        records,
        declared.allowed_tables,
        protection.ptable(),
        dataset=declared.name,
        version=declared.version,
        secret=means.secret,
        minimum=protection.minimum,
        sparsity=protection.sparsity,
        cache=means.cache,
    )
