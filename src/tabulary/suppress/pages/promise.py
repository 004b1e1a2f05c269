"""The promise of a table with suppressed cells, in plain words, and what it does not promise."""

import math
from collections.abc import Iterable

from tabulary.core.exact_numbers import show_fraction
from tabulary.release.promise import Promise
from tabulary.suppress.simulatable_method.decisions import FOLLOWS
from tabulary.suppress.simulatable_method.simulatable import SimulatableTable
from tabulary.suppress.simulatable_method.suppressor import TABLE

_NOT_DIFFERENTIAL = (
    "Differential privacy. The numbers are exact: a reader who knows the private values of all but one person, or "
    "knows more than the prior, may learn more. If you must protect against such a reader, add noise."
)


def promise_of(table: SimulatableTable) -> Promise:
    """Return what simulatable suppression promises for a table: (ε, δ) semantic privacy, Nabar & Mishra (2010)."""
    epsilon, delta = show_fraction(table.epsilon), show_delta(table.promised_delta)
    share = f"{float(table.epsilon):.0%}".replace("%", "\N{NO-BREAK SPACE}%")
    added = table.promised_delta > float(table.delta)
    asked = (
        f" It is the requested δ = {show_fraction(table.delta)} plus the error of simulated decisions."
        if added
        else ""
    )
    return Promise(
        statement=f"This table keeps ε-semantic privacy with ε = {epsilon}, except with a probability of at most "
        f"δ = {delta}.",
        meaning=(
            "For a reader who knows the prior and how the table was made: nobody's probability of having the private "
            f"attribute, or of not having it, changes by more than {share} of its prior value.",
            "δ is a probability over the private values: of all tables drawn from the prior and published in this "
            f"way, at most a share δ = {delta} break that bound.{asked}",
            "The choice of the cells that are left out discloses nothing: each decision was made before its cell "
            "was read, and anyone can repeat it.",
        ),
        protected="Every person is protected, in every cell.",
        conditions=(
            "The prior is right: every person has the private attribute with the stated probability, independently "
            "of all others. The prior does not come from this table.",
            "The number of people in each cell was public before.",
            "Nothing else is published about the same private values. A second table is not covered.",
        ),
        not_promised=(
            _NOT_DIFFERENTIAL,
            "Anything against a reader with a different prior. Such a reader may learn the prior from the table.",
        ),
    )


def classical_promise() -> Promise:
    """Return what classical suppression promises: something about cells, nothing about persons."""
    return Promise(
        statement="Cells were left out by a rule. That is no guarantee for any person.",
        meaning=(
            "For every cell that is sensitive by the rule, the interval that follows from the published numbers "
            "alone is as wide as the rule requires.",
            "The table does not say which cells were sensitive and which were left out to protect them.",
        ),
        protected="Sensitive cells are protected, not the people in them.",
        conditions=(
            "The reader uses the published cells and sums of this table and nothing else.",
            "The reader does not use the way in which cells were chosen. A reader who does may identify the "
            "sensitive cells.",
        ),
        not_promised=(
            "Any bound on what a reader learns about a person. `tabulary attack suppression` shows what follows.",
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
        f"The probability of an unsafe answer was computed for {made - simulated - followed} of them and estimated "
        f"from simulated tables for {simulated}; {followed} answers followed from others."
    )
    cells = int(table.suppressed.sum())
    if table.outcome == TABLE and cells:
        yield (
            f"{cells} of {table.counts.size} cells are left out: an unsafe answer was too likely there, or its "
            "probability could not be certified."
        )
    elif table.outcome == TABLE:
        yield "No cell is left out."
