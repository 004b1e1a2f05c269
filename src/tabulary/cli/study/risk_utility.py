"""`tabulary study risk-utility`: what ε and mechanism do to the tables of one's own plan."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import progress_bar
from tabulary.cli.study.running import Folder, Fresh, Processes, Quick, Repetitions, Seed, carry_out
from tabulary.studies.running import PROCESSES
from tabulary.workflows import read_plan_file


def risk_utility(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file in TOML.")],
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            help="An ε to compare, again for each; an eighth to eight times the plan's unless told."
        ),
    ] = None,
    rho: Annotated[list[str] | None, typer.Option(help="The same for a plan that promises a ρ.")] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            help="A mechanism to compare, again for each; all that can answer the plan unless told."
        ),
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(help='Tables whose errors count, such as "[sex age]"; all of the plan unless told.'),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help='A log-linear model to fit, such as "[sex age][age job]".')
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help='Two attributes to test for independence, such as "[sex job]".')
    ] = None,
    target: Annotated[
        float, typer.Option(help="A relative error; the page says from which ε on it is kept.")
    ] = 0.1,
    public: Annotated[
        Path | None,
        typer.Option(
            help="The folder of an earlier release: people made up from it take the place of the records."
        ),
    ] = None,
    folder: Folder = None,
    quick: Quick = False,
    repetitions: Repetitions = None,
    seed: Seed = 1,
    processes: Processes = PROCESSES,
    fresh: Fresh = False,
) -> None:
    """Compare amounts of privacy and mechanisms on the records of a plan file, by measures of your choice.

    The page is CONFIDENTIAL: it is computed from exact counts and spends no budget, since nothing of it may leave. With
    --public no record is opened, and the page may be shown to whoever may see the release and the plan.

    Examples: tabulary study risk-utility census.toml --quick,
    or: tabulary study risk-utility census.toml --margin "[sex age]" --model "[sex][age]" --test "[sex job]",
    or: tabulary study risk-utility census.toml --public census-2025 -o may-be-shown
    """
    from tabulary.studies.own_data import PlanStudy

    planned = read_plan_file(file)
    with progress_bar() as progress:
        study = PlanStudy.of(
            planned,
            epsilons=epsilon or (),
            rhos=rho or (),
            mechanisms=mechanism or (),
            margins=margin or (),
            models=model or (),
            tests=test or (),
            repetitions=repetitions,
            target=target,
            public=public,
            quick=quick,
            progress=progress,
        )
    carry_out(study, folder, seed=seed, processes=processes, fresh=fresh)
