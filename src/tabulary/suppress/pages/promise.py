"""What a table with suppressed cells promises, in plain words, and what it does not."""

import math
from collections.abc import Iterable

from tabulary.core.exact_numbers import show_fraction
from tabulary.release.promise import Promise
from tabulary.suppress.simulatable_method.decisions import FOLLOWS
from tabulary.suppress.simulatable_method.simulatable import SimulatableTable
from tabulary.suppress.simulatable_method.suppressor import TABLE

_NOT_DIFFERENTIAL = (
    "Differential privacy. The numbers are exact: who knows the private value of all but one person, or has other "
    "knowledge than the prior, may learn more. Where that is to be feared, add noise."
)


def promise_of(table: SimulatableTable) -> Promise:
    """Return what simulatable suppression promises for a table: (ε, δ) semantic privacy, Nabar & Mishra (2010)."""
    epsilon, delta = show_fraction(table.epsilon), show_delta(table.promised_delta)
    share = f"{float(table.epsilon):.0%}".replace("%", "\N{NO-BREAK SPACE}%")
    added = table.promised_delta > float(table.delta)
    asked = (
        f" It is the δ = {show_fraction(table.delta)} asked for plus what simulated decisions leave open."
        if added
        else ""
    )
    return Promise(
        statement=f"This table keeps ε-semantic privacy with ε = {epsilon}, except with a probability of at most "
        f"δ = {delta}.",
        meaning=(
            "For a reader who knew the prior, and knows how the table was made, nobody's probability of having the "
            f"private attribute, or of not having it, moves by more than {share} of what it was before.",
            f"δ is over the people's values: at most a share δ = {delta} of all tables drawn from the prior and "
            f"published so breaks that.{asked}",
            "Which cells are left out gives nothing away: each decision was made before its cell was looked at, and "
            "anyone can make it again.",
        ),
        protected="Each person is protected, whatever cell that person stands in.",
        conditions=(
            "The prior is right: every person has the private attribute with the probability that is stated, "
            "independently of all others. It was not taken from this table.",
            "How many people stand in each cell was public before.",
            "Nothing else is published about the same private values. A second table is not covered.",
        ),
        not_promised=(
            _NOT_DIFFERENTIAL,
            "Anything against a reader whose prior is another one: what he learns may be the prior itself.",
        ),
    )


def classical_promise() -> Promise:
    """Return what classical suppression promises: something about cells, nothing about persons."""
    return Promise(
        statement="Cells were left out by a rule. That is no guarantee for any person.",
        meaning=(
            "No cell that the rule calls sensitive follows from the published numbers alone to within the width that "
            "the rule asks for.",
            "Which cells were sensitive, and which were left out to protect those, is not told.",
        ),
        protected="Sensitive cells are protected, not the people in them.",
        conditions=(
            "The reader uses the published cells and sums of this table and nothing else.",
            "The reader does not consider how the cells were chosen. Who does may tell the sensitive ones.",
        ),
        not_promised=(
            "Any bound on what is learned about a person. `tabulary attack` shows what follows.",
            _NOT_DIFFERENTIAL.split(".")[0] + ".",
        ),
    )


def show_delta(delta: float) -> str:
    """Return a δ rounded upward to four digits, so that what is said is never less.

    >>> show_delta(0.2), show_delta(0.2000001)
    ('0.2', '0.2001')
    """
    step = 10.0 ** (math.floor(math.log10(delta)) - 3)
    return f"{math.ceil(round(delta / step, 6)) * step:.4g}"


def in_short(table: SimulatableTable) -> Iterable[str]:
    """Return how the decisions went, in short sentences."""
    made = len(table.decisions)
    refused = sum(not decision.released for decision in table.decisions)
    yield f"{made} decisions in a public order, {made - refused} to release and {refused} to withhold."
    simulated = sum(decision.draws is not None for decision in table.decisions)
    followed = sum(decision.reason == FOLLOWS for decision in table.decisions)
    yield (
        f"How likely an unsafe answer was is computed for {made - simulated - followed} of them, and estimated from "
        f"simulated tables for {simulated}; {followed} answers followed from others."
    )
    cells = int(table.suppressed.sum())
    if table.outcome == TABLE and cells:
        yield (
            f"{cells} of {table.counts.size} cells are left out: an unsafe answer was too likely there, or how likely "
            "it is could not be made sure of."
        )
    elif table.outcome == TABLE:
        yield "No cell is left out."
