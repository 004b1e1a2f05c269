"""`tabulary suppress`: a table of exact counts with cells left out, and what that promises."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from tabulary.cli.console import output, print_points, print_promise, progress_bar
from tabulary.cli.options import assigned, check_together, given_options, option_name, whole_number
from tabulary.cli.suppress_classical import ClassicalRules, Cost, suppress_classically
from tabulary.cli.suppress_input import Asked, Prior
from tabulary.cli.suppressed import new_folder, print_suppressed, say_written
from tabulary.errors import InvalidArgument, ReleaseDamaged

if TYPE_CHECKING:
    from tabulary.suppress.simulatable_method.advice import Advice

_NAMES = {"path": "--output", "file": "a file", "promise": "suppression with a promise"}

# What may be said together: the options beside each that chooses what is done.
_INPUT = frozenset({"file", "by", "levels", "people", "persons"})
_PRIOR = frozenset({"probability", "past", "dataset"})
_RULES = frozenset({"threshold", "dominance", "p_percent"})
_TOGETHER = {
    "replay": frozenset[str](),
    "advice": _INPUT | _PRIOR | {"epsilon", "delta"},
    "classical": _INPUT | _RULES | {"count", "private", "value", "cost", "never", "dataset", "path"},
    "promise": _INPUT | _PRIOR | {"count", "private", "epsilon", "delta", "bins", "rule", "seed", "path"},
}
_NO_TABLE = (
    "No safe binning: there is no table. Not even all of the sums may be released; "
    "what was released on the way is shown."
)
_STATE = "Nothing was read, nothing was released."


class Decided(StrEnum):
    """How a decision is made: from the probability of an unsafe answer, or from simulated answers."""

    computed = "computed"
    sampled = "sampled"


def suppress(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="A CSV or Parquet file: one row a cell, or with --persons a person.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="A published table instead of a file: hair-eye-gene.")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="An attribute of the table, a column of the file. Repeat it.")
    ] = None,
    levels: Annotated[
        list[str] | None,
        typer.Option(help="The levels of an attribute in their order: size=small,medium,large. Repeatable."),
    ] = None,
    people: Annotated[str, typer.Option(help="The column with the number of people of a cell.")] = "people",
    count: Annotated[
        str, typer.Option(help="The column with how many of them have the private attribute.")
    ] = "count",
    persons: Annotated[bool, typer.Option("--persons", help="The file has one row for each person.")] = False,
    private: Annotated[
        str | None, typer.Option(help="With --persons: the private column, 0, 1, true or false.")
    ] = None,
    probability: Annotated[
        str | None,
        typer.Option(help="The prior of having the attribute: a number, or a column of the file."),
    ] = None,
    past: Annotated[
        list[Path] | None,
        typer.Option(help="A past public table, as CSV or folder, to fit the prior from. Repeatable."),
    ] = None,
    epsilon: Annotated[
        str, typer.Option(help="ε: how far anyone's probability may move, as a share of what it was.")
    ] = "0.5",
    delta: Annotated[str, typer.Option(help="δ: the probability that it moves further.")] = "0.2",
    bins: Annotated[
        list[str] | None,
        typer.Option(help="The most parts of an ordered attribute, which is binned: age=4. Repeatable."),
    ] = None,
    rule: Annotated[
        Decided, typer.Option(help="Whether the probability of an unsafe answer is computed or sampled.")
    ] = Decided.computed,
    seed: Annotated[
        str | None, typer.Option(help="The seed of the public coins; otherwise it follows from the inputs.")
    ] = None,
    advice: Annotated[
        bool,
        typer.Option("--advice", help="What would be released, and which levels to merge; reads no count."),
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(help="Make the decisions of a published folder again, and compare them.")
    ] = None,
    classical: Annotated[
        bool,
        typer.Option("--classical", help="Suppress as agencies do: by a rule, without a promise to people."),
    ] = False,
    threshold: Annotated[
        int | None, typer.Option(help="Classical: counts up to this one are sensitive.")
    ] = None,
    dominance: Annotated[
        str | None, typer.Option(help="Classical: n,k: cells whose n largest exceed k percent are sensitive.")
    ] = None,
    p_percent: Annotated[
        float | None,
        typer.Option(
            help="Classical: cells whose largest can be estimated to within p percent are sensitive."
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(help="Classical: the column of amounts, in a file with one row for each contributor."),
    ] = None,
    cost: Annotated[
        Cost, typer.Option(help="Classical: suppress as few cells, or as small a sum of counts, as can be.")
    ] = Cost.cells,
    never: Annotated[
        list[str] | None,
        typer.Option(
            help="Classical: cells that must be published, status z: eye=blue,hair=fair. Repeatable."
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A new folder for the table, its record and a report."),
    ] = None,
) -> None:
    """Leave cells out of a table, with a proof or as agencies do, and print what that promises.

    Examples: tabulary suppress --dataset hair-eye-gene --epsilon 0.5 --delta 0.2 -o genes,
    or: tabulary suppress cells.csv --by eye --by hair --probability 0.4 -o genes,
    or: tabulary suppress people.csv --persons --by age --by region --private ill --probability risk --bins age=4,
    or: tabulary suppress cells.csv --by eye --by hair --probability 0.4 --advice,
    or: tabulary suppress --replay genes,
    or: tabulary suppress cells.csv --by eye --by hair --classical --threshold 5 -o table
    """
    given = given_options(context)
    if not given:
        output.print(context.get_help(), markup=False)
        return
    mode = next((mode for mode in ("replay", "advice", "classical") if mode in given), "promise")
    check_together(given, mode, _TOGETHER[mode], _NAMES, _STATE)
    if replay is not None:
        _replay(replay)
        return
    if dataset is not None:
        _check_dataset(given)
    elif file is None:
        raise InvalidArgument(f"name a file, or a published table with --dataset hair-eye-gene. {_STATE}")
    asked = Asked(
        file, dataset, tuple(by or ()), _levels(levels), people, count, persons, private, "people" in given
    )
    if classical:
        rules = ClassicalRules(threshold, dominance, p_percent, value)
        suppress_classically(asked, rules, cost=cost, never=never or (), path=path)
        return
    prior = Prior(probability, tuple(past or ()))
    if advice:
        _advise(asked, prior, epsilon, delta)
        return
    limits = assigned("--bins", bins or (), "age=4")
    parts = {name: whole_number("--bins", limit) for name, limit in limits.items()}
    _simulatable(asked, prior, epsilon, delta, bins=parts, rule=rule, seed=seed, path=path)


def _check_dataset(given: set[str]) -> None:
    alien = sorted(given & (_INPUT | {"count", "private", "value", "probability"}))
    if alien:
        raise InvalidArgument(
            f"--dataset brings its people, counts and prior with it, so {option_name(alien[0], _NAMES)} has no "
            f"meaning. {_STATE}"
        )


def _levels(texts: Sequence[str] | None) -> dict[str, list[str]]:
    declared = assigned("--levels", texts or (), "size=small,medium,large")
    return {name: labels.split(",") for name, labels in declared.items()}


def _simulatable(
    asked: Asked,
    prior: Prior,
    epsilon: str,
    delta: str,
    *,
    bins: Mapping[str, int],
    rule: Decided,
    seed: str | None,
    path: Path | None,
) -> None:
    # The samplers are compiled code that takes a moment to load.
    from tabulary.suppress.pages.promise import in_short, promise_of
    from tabulary.suppress.pages.report import title_of
    from tabulary.suppress.simulatable_method.simulatable import simulatable
    from tabulary.workflows.suppressing import write_suppressed

    with new_folder(path) as staged, progress_bar() as progress:
        progress("reading", 0, 0)
        groups = asked.groups(private=True, probability=prior.column)
        table = simulatable(
            prior.people(groups),
            groups.counts,
            None,
            epsilon,
            delta,
            bins=bins,
            rule=rule,
            seed=seed,
            progress=progress,
        )
        promised = promise_of(table)
        if staged is not None:
            write_suppressed(staged, table, {"method": "simulatable suppression"})
    print_suppressed(table, title_of(table))
    if table.outcome != "table":
        output.print(f"▲ {_NO_TABLE}", style="bold yellow", markup=False)
    print_promise(promised)
    print_points("Decisions", in_short(table))
    say_written(path)


def _advise(asked: Asked, prior: Prior, epsilon: str, delta: str) -> None:
    from tabulary.suppress.simulatable_method.advice import advice

    groups = asked.groups(private=False, probability=prior.column)
    people = prior.people(groups)
    with progress_bar() as progress:
        found = advice(people, epsilon, delta, progress=progress)
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
    everyone = people.crowd(tuple((0, levels) for levels in people.shape))
    # Where nobody stands nothing is published of anyone.
    cells = people.in_cells[people.in_cells > 0]
    if not cells.size:
        yield "Nobody stands in the table."
        return
    margin = float(np.minimum(everyone.probability, 1 - everyone.probability).min())
    number, least, wished = int(cells.size), int(cells.min()), float(1 - delta)
    bound = full_release_bound(least, margin=margin, epsilon=epsilon, cells=number)
    yield (
        f"Theorem 5, for {number} cells of at least {least:,} people, priors from {margin:.3g} to {1 - margin:.3g}: "
        f"all may be released with probability {_at_least(bound)}."
    )
    by_bound = people_needed_by_bound(margin=margin, epsilon=epsilon, chance=wished, cells=number)
    exactly = people_needed(margin, epsilon=epsilon, chance=wished, cells=number)
    yield (
        f"For {wished:.0%} each cell needs {by_bound:,} people by Theorem 5, and {exactly:,} exactly, if all have a "
        f"prior of {margin:.3g}."
    )
    bound = release_bound(everyone.size, margin=margin, epsilon=epsilon, delta=delta)
    chance = release_chance(everyone, epsilon=epsilon, delta=delta)
    yield (
        "Theorem 6, for the total alone and decisions by sampling: it is released with probability "
        f"{_at_least(bound)}; exactly, {chance:.2%}."
    )


def _at_least(bound: float) -> str:
    return f"at least {bound:.2%}" if bound > 0 else "at least 0, so it says nothing here"


def _replay(folder: Path) -> None:
    from tabulary.suppress.pages.files import read_table
    from tabulary.suppress.simulatable_method.replay import replay
    from tabulary.suppress.simulatable_method.simulatable import SimulatableTable

    table = read_table(folder).table
    if not isinstance(table, SimulatableTable):
        raise InvalidArgument(f"{folder} holds no decisions: it was not made by simulatable suppression.")
    with progress_bar() as progress:
        found = replay(table, progress=progress)
    if found.difference is not None:
        raise ReleaseDamaged(
            f"{folder}: {found.difference}. What is published does not follow from its record."
        )
    output.print(
        f"All {len(table.decisions)} decisions follow from what is public: made again, they are the same.",
        markup=False,
    )
    if not found.derived_seed:
        output.print(
            "▲ The seed of the coins does not follow from the public inputs: whoever chose it may have tried several.",
            style="bold yellow",
            markup=False,
        )
