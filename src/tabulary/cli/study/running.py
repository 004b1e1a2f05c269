"""What every study's command has in common: its options, and the run with its progress bar."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import errors, output, progress_bar
from tabulary.studies.running import PROCESSES, run
from tabulary.studies.study import Study

Folder = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The folder for numbers, figures and page; study-NAME otherwise."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A small grid that is done in seconds.")]
Repetitions = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="How often each experiment is repeated, instead of the study's own number. Fresh tables and "
        "single draws, where a study has them, keep their own number.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed makes the same numbers.")]
Processes = Annotated[int, typer.Option(min=1, help="How many processes work side by side.")]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Begin anew where an earlier run would be gone on with.")
]


def carry_out(
    study: Study, folder: Path | None, *, seed: int = 1, processes: int = PROCESSES, fresh: bool = False
) -> None:
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
