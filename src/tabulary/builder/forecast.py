"""Forecast the promise and the accuracy of the datasets of a service file, before anything is opened or spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tabulary.builder.declarations import (
    CellKeyProtection,
    Declaration,
    FixedProtection,
    InteractiveProtection,
    Payment,
)
from tabulary.builder.release_folders import ReleasedDataset
from tabulary.core.domain import Margin
from tabulary.core.workload import Workload
from tabulary.planning import ExpectedError, plan
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.release.promise import Promise, promise_of
from tabulary.workflows.answering.cell_key import cell_key_promise
from tabulary.workflows.answering.edition import keyed_promise
from tabulary.workflows.answering.fixed import plan_of_allowed_tables
from tabulary.workflows.answering.interactive import answerable


@dataclass(frozen=True)
class DatasetForecast:
    """The forecast for a dataset: a summary, the public promise, and the expected errors of its tables.

    `promise` is None if only the ledger has the budget. `errors` is empty if nothing is known beforehand.
    """

    sentence: str
    promise: Promise | None
    errors: tuple[ExpectedError, ...] = ()


def forecast(declared: Declaration | ReleasedDataset, confidence: float = 0.95) -> DatasetForecast:
    """Return the forecast for a dataset. Reads no records: it is a function of the service file and of releases only.

    In an interactive dataset each table has its own plan: the forecast takes the largest for each number of attributes.
    """
    if isinstance(declared, ReleasedDataset):
        made = declared.release.plan
        return DatasetForecast(
            f"Released: {_tables(declared.allowed_tables, declared.allowed_tables.margins)}, published for "
            f"{made.privacy} ({made.neighbours}). They cost nothing here.",
            promise_of(made),
            tuple(made.expected_error(confidence)),
        )
    allowed, protection = declared.allowed_tables, declared.protection
    match protection:
        case FixedProtection():
            made = plan_of_allowed_tables(
                allowed,
                privacy=protection.payment.cost,
                neighbours=protection.payment.neighbours,
                mechanism=protection.mechanism,
                reconstruct=protection.reconstruct,
                about=protection.about,
            )
            way = "unbiased" if made.reconstruct == "none" else "non-negative, which biases them a little"
            tables = _tables(allowed, allowed.margins)
            return DatasetForecast(
                f"Fixed: {tables}, {way}, all of them together for {made.privacy} ({made.neighbours}).",
                keyed_promise(made.privacy, made.neighbours),
                tuple(made.expected_error(confidence)),
            )
        case InteractiveProtection(payment=paid):
            tables = _tables(allowed, answerable(allowed, paid.neighbours))
            return DatasetForecast(
                f"Interactive: {tables}, each new one for {paid.cost} ({paid.neighbours}).",
                None if paid.budget is None else keyed_promise(paid.budget, paid.neighbours),
                _largest(allowed, paid, confidence),
            )
        case CellKeyProtection():
            tables = _tables(allowed, allowed.margins)
            return DatasetForecast(
                f"Cell keys: {tables}. NOT differentially private, and how far a count is off depends on the count.",
                cell_key_promise(protection.sparsity),
            )


def _tables(allowed: AllowedTables, margins: Sequence[Margin]) -> str:
    return f"{len(margins):,} tables of up to {allowed.order} attributes"


def _largest(allowed: AllowedTables, paid: Payment, confidence: float) -> tuple[ExpectedError, ...]:
    found: list[ExpectedError] = []
    for _, margins in groupby(answerable(allowed, paid.neighbours), key=len):
        largest = max(margins, key=allowed.domain.cells)
        made = plan(
            allowed.domain,
            Workload(allowed.domain, [largest]),
            privacy=paid.cost,
            neighbours=paid.neighbours,
            mechanism="margins",
            reconstruct="none",
            max_cells=allowed.max_cells,
        )
        found += made.expected_error(confidence)
    return tuple(found)
