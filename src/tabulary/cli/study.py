"""`tabulary study`: a custodian's own comparison of mechanisms, and the studies that other packages add."""

import inspect
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tabulary.cli.console import errors, output, progress_bar
from tabulary.errors import ExtensionError
from tabulary.studies import STUDIES, Study, run
from tabulary.workflows import read_plan_file

PAPERS = (
    "The experiments of the papers are in a package of their own, which is not installed. Install it: "
    "pip install tabulary-papers (in a copy of the repository: pip install ./papers)."
)

# What every study is asked for in the same words, by the name of the parameter.
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "quick": (Annotated[bool, typer.Option("--quick", help="Use a small grid that takes seconds.")], False),
    "repetitions": (
        Annotated[
            int | None,
            typer.Option(
                min=2,
                help="How often each experiment is repeated, instead of the study's own number. Fresh tables and "
                "single draws, where a study has them, keep their own number.",
            ),
        ],
        None,
    ),
    "folder": (
        Annotated[
            Path | None,
            typer.Option("--output", "-o", help="The folder for numbers, figures and page; else study-NAME."),
        ],
        None,
    ),
    "seed": (Annotated[int, typer.Option(min=0, help="The same seed makes the same numbers.")], 1),
    "processes": (Annotated[int, typer.Option(min=1, help="How many processes work at the same time.")], 2),
    "fresh": (
        Annotated[bool, typer.Option("--fresh", help="Start again and forget what an earlier run has done.")],
        False,
    ),
}
_OF_EVERY_RUN = ("folder", "seed", "processes", "fresh")


def risk_utility(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file in TOML.")],
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            help="An ε to compare; repeat it for more. Default: an eighth to eight times the plan's."
        ),
    ] = None,
    rho: Annotated[list[str] | None, typer.Option(help="The same for a plan that promises a ρ.")] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            help="A mechanism to compare; repeat it for more. Default: all that can answer the plan."
        ),
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(help='Tables whose errors count, such as "[sex age]". Default: all of the plan.'),
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
            help="The folder of an earlier release. Made-up people drawn from it replace the records."
        ),
    ] = None,
    quick: bool = False,
    repetitions: int | None = None,
) -> Study:
    """Compare amounts of privacy and mechanisms on the records of a plan file, by measures of your choice.

    The page is CONFIDENTIAL: it is computed from exact counts. It spends no budget, since nothing of it may leave. With
    --public no record is opened, and the page may be shown to everyone who may see the release and the plan.

    Examples: tabulary study risk-utility census.toml --quick,
    or: tabulary study risk-utility census.toml --margin "[sex age]" --model "[sex][age]" --test "[sex job]",
    or: tabulary study risk-utility census.toml --public census-2025 -o may-be-shown
    """
    from tabulary.studies import PlanStudy

    planned = read_plan_file(file)
    with progress_bar() as progress:
        return PlanStudy.of(
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


STUDIES.register("risk-utility", risk_utility)


class _Studies(TyperGroup):
    """The studies, looked up when one is named or all are listed, so that other commands load none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the studies."""
        return sorted(STUDIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a study."""
        try:
            make = STUDIES[cmd_name]
        except ExtensionError as problem:
            if _papers_are_missing():
                problem.add_note(PAPERS)
            raise
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cmd_name)(command_of(make))
        return typer.main.get_command(app)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write how to get the other studies, if they are missing."""
        self.epilog = PAPERS if _papers_are_missing() else None
        super().format_epilog(ctx, formatter)


def _papers_are_missing() -> bool:
    return find_spec("tabulary_papers") is None


def command_of(make: Callable[..., Study]) -> Callable[..., None]:
    """Return the command of a study: the options of its own function, and those of every run."""

    def command(folder: Path | None, seed: int, processes: int, fresh: bool, **options: Any) -> None:
        _carry_out(make(**options), folder, seed=seed, processes=processes, fresh=fresh)

    own = inspect.signature(make, eval_str=True).parameters.values()
    taken = {each.name: each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own}
    for name, (annotation, default) in _OPTIONS.items():
        if name in taken or name in _OF_EVERY_RUN:
            taken[name] = inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
    command.__signature__ = inspect.Signature(list(taken.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: each.annotation for name, each in taken.items()}
    command.__doc__ = make.__doc__
    return command


def _carry_out(study: Study, folder: Path | None, *, seed: int, processes: int, fresh: bool) -> None:
    """Run a study into its folder and say where the page is."""
    where = folder or Path(f"study-{study.name}")
    try:
        with progress_bar() as progress:
            page = run(study, where, seed=seed, processes=processes, fresh=fresh, progress=progress)
    except KeyboardInterrupt:
        kept = (
            "is kept, CONFIDENTIAL as it is computed from exact counts," if study.confidential else "is kept"
        )
        errors.print(
            f"What was done {kept} in {where}; give the same command again to go on.",
            markup=False,
            soft_wrap=True,
        )
        raise
    if study.confidential:
        errors.print(
            "CONFIDENTIAL: the page is computed from exact counts. It must not be published.",
            style="bold red",
        )
    output.print(f"Page: {page}", markup=False, soft_wrap=True)


study = typer.Typer(
    cls=_Studies,
    help="Compare mechanisms on your own data, or run an experiment of a paper again: numbers, figures and a page.",
    no_args_is_help=True,
)


@study.callback()
def _no_options() -> None:
    """Make `study` a group of commands although it holds none yet."""
