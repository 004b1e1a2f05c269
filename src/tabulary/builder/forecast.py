"""What datasets of a service file would promise, and how accurate they would be, before anything is opened or spent."""

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
from tabulary.core.domain import Margin
from tabulary.core.workload import Workload
from tabulary.planning import ExpectedError, plan
from tabulary.planning.allowed_tables import Universe
from tabulary.release.promise import Promise
from tabulary.workflows.answering.cell_key import cell_key_promise
from tabulary.workflows.answering.edition import keyed_promise
from tabulary.workflows.answering.fixed import plan_of_universe
from tabulary.workflows.answering.interactive import answerable


@dataclass(frozen=True)
class Forecast:
    """What a dataset would give, in a sentence; what the public would read of it; and how accurate its tables would be.

    `promise` is None where the budget stands in the ledger alone, `errors` is empty where nothing is known beforehand.
    """

    sentence: str
    promise: Promise | None
    errors: tuple[ExpectedError, ...] = ()


def forecast(declared: Declaration, confidence: float = 0.95) -> Forecast:
    """Return what to expect of a dataset. Reads no records: it is a function of the service file alone.

    Of an interactive dataset, where each table has a plan of its own, the largest table for each number of attributes.
    """
    universe, protection = declared.universe, declared.protection
    match protection:
        case FixedProtection():
            made = plan_of_universe(
                universe,
                privacy=protection.payment.cost,
                neighbours=protection.payment.neighbours,
                mechanism=protection.mechanism,
                reconstruct=protection.reconstruct,
                about=protection.about,
            )
            way = "unbiased" if made.reconstruct == "none" else "non-negative, which biases them a little"
            tables = _tables(universe, universe.margins)
            return Forecast(
                f"Fixed: {tables}, {way}, all of them together for {made.privacy} ({made.neighbours}).",
                keyed_promise(made.privacy, made.neighbours),
                tuple(made.expected_error(confidence)),
            )
        case InteractiveProtection(payment=paid):
            tables = _tables(universe, answerable(universe, paid.neighbours))
            return Forecast(
                f"Interactive: {tables}, each new one for {paid.cost} ({paid.neighbours}).",
                None if paid.budget is None else keyed_promise(paid.budget, paid.neighbours),
                _largest(universe, paid, confidence),
            )
        case CellKeyProtection():
            tables = _tables(universe, universe.margins)
            return Forecast(
                f"Cell keys: {tables}. NOT differentially private, and how far a count is off depends on the count.",
                cell_key_promise(protection.sparsity),
            )


def _tables(universe: Universe, margins: Sequence[Margin]) -> str:
    return f"{len(margins):,} tables of up to {universe.order} attributes"


def _largest(universe: Universe, paid: Payment, confidence: float) -> tuple[ExpectedError, ...]:
    found: list[ExpectedError] = []
    for _, margins in groupby(answerable(universe, paid.neighbours), key=len):
        largest = max(margins, key=universe.domain.cells)
        made = plan(
            universe.domain,
            Workload(universe.domain, [largest]),
            privacy=paid.cost,
            neighbours=paid.neighbours,
            mechanism="margins",
            reconstruct="none",
            max_cells=universe.max_cells,
        )
        found += made.expected_error(confidence)
    return tuple(found)
