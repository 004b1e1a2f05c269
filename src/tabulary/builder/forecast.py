"""How accurate the tables of a service file would be, before anything is opened or spent."""

from dataclasses import dataclass
from itertools import groupby

from tabulary.builder.declarations import Declaration, FixedProtection, InteractiveProtection, Payment
from tabulary.core.workload import Workload
from tabulary.planning import ExpectedError, plan
from tabulary.planning.universe import Universe
from tabulary.workflows.answering.fixed import plan_of_universe


@dataclass(frozen=True)
class Forecast:
    """What a dataset would promise, in a sentence, and the accuracy of its tables where that is known beforehand."""

    sentence: str
    errors: tuple[ExpectedError, ...] = ()


def forecast(declared: Declaration, confidence: float = 0.95) -> Forecast:
    """Return what to expect of a dataset. Reads no records: it is a function of the service file alone.

    Of an interactive dataset, where each table has a plan of its own, the largest table for each number of attributes.
    """
    universe, protection = declared.universe, declared.protection
    tables = f"{len(universe.margins):,} tables of up to {universe.order} attributes"
    match protection:
        case FixedProtection():
            made = plan_of_universe(
                universe,
                privacy=protection.payment.cost,
                neighbours=protection.payment.neighbours,
                reconstruct=protection.reconstruct,
                about=protection.about,
            )
            way = "unbiased" if made.reconstruct == "none" else "non-negative, which biases them a little"
            said = f"Fixed: {tables}, {way}, all of them together for {made.privacy} ({made.neighbours})."
            return Forecast(said, tuple(made.expected_error(confidence)))
        case InteractiveProtection():
            paid = protection.payment
            said = f"Interactive: {tables}, each new one for {paid.cost} ({paid.neighbours})."
            return Forecast(said, _largest(universe, paid, confidence))
        case _:
            return Forecast(
                f"Cell keys: {tables}. NOT differentially private, and how far a count is off depends on the count."
            )


def _largest(universe: Universe, paid: Payment, confidence: float) -> tuple[ExpectedError, ...]:
    found: list[ExpectedError] = []
    for _, margins in groupby(universe.margins, key=len):
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
