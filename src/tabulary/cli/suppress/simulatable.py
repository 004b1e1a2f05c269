"""`tabulary suppress simulatable`: cells left out by decisions that never read them, with a proven promise."""

from enum import StrEnum
from typing import Annotated

import typer

from tabulary.cli.console import output, print_points, print_promise, progress_bar
from tabulary.cli.options import assigned, whole_number
from tabulary.cli.suppress.inputs import (
    NOTHING_DONE,
    By,
    CountColumn,
    DatasetName,
    Delta,
    Epsilon,
    File,
    Levels,
    NewFolder,
    Past,
    PeopleColumn,
    Persons,
    PriorInput,
    PrivateColumn,
    Probability,
    table_input,
)
from tabulary.cli.suppressed_tables import new_folder, print_suppressed, say_written
from tabulary.errors import InvalidArgument


class DecisionRule(StrEnum):
    """How a decision is made: from the probability of an unsafe answer, or from simulated answers."""

    computed = "computed"
    sampled = "sampled"


def simulatable(
    context: typer.Context,
    file: File = None,
    dataset: DatasetName = None,
    by: By = None,
    levels: Levels = None,
    people: PeopleColumn = "people",
    count: CountColumn = "count",
    persons: Persons = False,
    private: PrivateColumn = None,
    probability: Probability = None,
    past: Past = None,
    epsilon: Epsilon = "0.5",
    delta: Delta = "0.2",
    bins: Annotated[
        list[str] | None,
        typer.Option(help="Bin an ordered attribute into at most this number of parts: age=4. Repeatable."),
    ] = None,
    rule: Annotated[
        DecisionRule,
        typer.Option(help="Compute the probability of an unsafe answer, or estimate it from sampled tables."),
    ] = DecisionRule.computed,
    seed: Annotated[
        str | None,
        typer.Option(help="The seed of the public random numbers. By default it follows from the inputs."),
    ] = None,
    path: NewFolder = None,
) -> None:
    """Leave cells out by decisions that never read them. The promise has a proof, and anyone can replay the decisions.

    Examples: tabulary suppress simulatable --dataset hair-eye-gene --epsilon 0.5 --delta 0.2 -o genes,
    or: tabulary suppress simulatable cells.csv --by eye --by hair --probability 0.4 -o genes,
    or: tabulary suppress simulatable people.csv --persons --by age --by region --private ill --probability risk
    --bins age=4
    """
    # The samplers are compiled code that takes a moment to load.
    from tabulary.suppress.pages.promise import in_short, promise_of
    from tabulary.suppress.pages.report import title_of
    from tabulary.suppress.simulatable_method.simulatable import simulatable as suppress
    from tabulary.workflows.suppressing import write_suppressed

    if persons and private is None:
        raise InvalidArgument(
            f"--persons needs --private: the column of the private attribute. {NOTHING_DONE}"
        )
    source = table_input(
        context,
        file=file,
        dataset=dataset,
        by=by,
        levels=levels,
        people=people,
        count=count,
        persons=persons,
        private=private,
    )
    prior = PriorInput(probability, past)
    limits = assigned("--bins", bins or (), "age=4")
    with new_folder(path) as staged, progress_bar() as progress:
        progress("reading", 0, 0)
        groups = source.groups(private=True, probability=prior.column)
        table = suppress(
            prior.people(groups),
            groups.counts,
            None,
            epsilon,
            delta,
            bins={name: whole_number("--bins", limit) for name, limit in limits.items()},
            rule=rule,
            seed=seed,
            progress=progress,
        )
        promised = promise_of(table)
        if staged is not None:
            write_suppressed(staged, table, {"method": "simulatable suppression"})
    print_suppressed(table, title_of(table))
    if table.outcome != "table":
        output.print(
            "▲ No safe binning: there is no table. Not all sums may be released. The sums that were released are "
            "shown.",
            style="bold yellow",
            markup=False,
        )
    print_promise(promised)
    print_points("Decisions", in_short(table))
    say_written(path)
