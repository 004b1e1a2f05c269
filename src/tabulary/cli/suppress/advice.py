"""`tabulary suppress advice`: what simulatable suppression would release, before a private value is read."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import typer

from tabulary.cli.console import output, print_points, progress_bar
from tabulary.cli.suppress.inputs import (
    By,
    DatasetName,
    Delta,
    Epsilon,
    File,
    Levels,
    Past,
    PeopleColumn,
    Persons,
    PriorInput,
    Probability,
    table_input,
)

if TYPE_CHECKING:
    from tabulary.suppress.simulatable_method.advice import Advice


def advice(
    context: typer.Context,
    file: File = None,
    dataset: DatasetName = None,
    by: By = None,
    levels: Levels = None,
    people: PeopleColumn = "people",
    persons: Persons = False,
    probability: Probability = None,
    past: Past = None,
    epsilon: Epsilon = "0.5",
    delta: Delta = "0.2",
) -> None:
    """Tell what simulatable suppression would release, and which levels to merge. No private value is read.

    Examples: tabulary suppress advice cells.csv --by eye --by hair --probability 0.4,
    or: tabulary suppress advice --dataset hair-eye-gene --epsilon 0.25
    """
    # The samplers are compiled code that takes a moment to load.
    from tabulary.suppress.simulatable_method.advice import advice as advise

    source = table_input(
        context, file=file, dataset=dataset, by=by, levels=levels, people=people, persons=persons
    )
    prior = PriorInput(probability, past)
    everyone = prior.people(source.groups(private=False, probability=prior.column))
    with progress_bar() as progress:
        found = advise(everyone, epsilon, delta, progress=progress)
    output.print(str(found), markup=False)
    print_points("By the theorems of Nabar & Mishra (2010), and exactly", _theorems(found))
    output.print("\nNo private value was read.", style="dim")


def _theorems(found: "Advice") -> Iterator[str]:
    from tabulary.suppress.simulatable_method.theorems import (
        full_release_bound,
        people_needed,
        people_needed_by_bound,
        release_bound,
        release_chance,
    )

    people, epsilon, delta = found.people, found.epsilon, found.delta
    everyone = people.count_law(tuple((0, levels) for levels in people.shape))
    # A cell without people publishes nothing about anyone.
    cells = people.in_cells[people.in_cells > 0]
    if not cells.size:
        yield "The table has no people."
        return
    margin = float(np.minimum(everyone.probability, 1 - everyone.probability).min())
    number, least, wished = int(cells.size), int(cells.min()), float(1 - delta)
    bound = full_release_bound(least, margin=margin, epsilon=epsilon, cells=number)
    yield (
        f"Theorem 5, for {number} cells of at least {least:,} people, priors from {margin:.3g} to {1 - margin:.3g}: "
        f"all cells may be released with probability {_at_least(bound)}."
    )
    by_bound = people_needed_by_bound(margin=margin, epsilon=epsilon, chance=wished, cells=number)
    exactly = people_needed(margin, epsilon=epsilon, chance=wished, cells=number)
    yield (
        f"For a probability of {wished:.0%} each cell needs {by_bound:,} people by Theorem 5, and exactly {exactly:,} "
        f"if the prior of everyone is {margin:.3g}."
    )
    bound = release_bound(everyone.size, margin=margin, epsilon=epsilon, delta=delta)
    chance = release_chance(everyone, epsilon=epsilon, delta=delta)
    yield (
        "Theorem 6, for the total alone and decisions by sampling: it is released with probability "
        f"{_at_least(bound)}; exactly, {chance:.2%}."
    )


def _at_least(bound: float) -> str:
    return f"at least {bound:.2%}" if bound > 0 else "at least 0, so it says nothing here"
