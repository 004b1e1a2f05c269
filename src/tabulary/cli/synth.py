"""`tabulary synth`: rows that stand for nobody, from a release or from the records of a plan file."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import errors, output, progress_bar
from tabulary.errors import InvalidPlan, ReleaseExists
from tabulary.ledger import Ledger
from tabulary.release import Release
from tabulary.synth import SyntheticRecords, from_release, utility
from tabulary.workflows import PlanFile, read_plan_file
from tabulary.workflows.synthesizing import Method, synthesize


def synth(
    file: Annotated[Path, typer.Argument(help="A release folder, or a plan file in TOML.")],
    path: Annotated[Path, typer.Option("--output", "-o", help="A new .csv or .parquet file for the rows.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many; as many as there are people, unless told.")
    ] = None,
    method: Annotated[
        Method, typer.Option(help="How rows are made of a plan file's records.")
    ] = Method.release,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of rap, mwem or graphical; each has its own default.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="A name for a picture of how well the rows fit, as .svg and .png.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file that rap goes on from when it was interrupted.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that pays; overrides the plan file's [ledger].")
    ] = None,
    account: Annotated[str | None, typer.Option(help="The account in that ledger.")] = None,
) -> None:
    """Make synthetic rows: of a release, which spends nothing, or of the records that a plan file names.

    Examples: tabulary synth census-2026 -o people.csv,
    or: tabulary synth census.toml -o people.parquet --ledger ledger.sqlite --account census,
    or: tabulary synth census.toml -o people.csv --method mwem --rounds 8
    """
    if path.suffix not in (".csv", ".parquet"):
        raise InvalidPlan(f"--output {path.name}: rows are written as .csv or .parquet. Nothing was made.")
    if path.exists():
        raise ReleaseExists(f"--output {path} is already there. Choose another name. Nothing was made.")
    release: Release | None
    if file.is_dir():
        made, release = _of_folder(file, rows, method, rounds, checkpoint, ledger, account)
    else:
        made, release = _of_records(read_plan_file(file), method, rows, rounds, checkpoint, ledger, account)
    made.write(path)
    output.print(f"{len(made):,} rows of {len(made.domain.shape)} attributes, {made.origin}.", markup=False)
    output.print(f"Promised to the people counted: {made.guarantee}. Rows spend nothing more.", markup=False)
    if release is not None:
        fit = utility(made, release)
        output.print(str(fit), markup=False)
        if picture is not None:
            for drawn in fit.draw(picture):
                output.print(f"Picture: {drawn}", markup=False, soft_wrap=True)
    output.print(f"Rows: {path}", markup=False, soft_wrap=True)


def _of_folder(
    folder: Path,
    rows: int | None,
    method: Method,
    rounds: int | None,
    checkpoint: Path | None,
    ledger: Path | None,
    account: str | None,
) -> tuple[SyntheticRecords, Release]:
    wanted = {"--rounds": rounds, "--checkpoint": checkpoint, "--ledger": ledger, "--account": account}
    idle = [option for option, value in wanted.items() if value is not None]
    if method is not Method.release:
        idle.insert(0, f"--method {method}")
    if idle:
        raise InvalidPlan(
            f"{idle[0]} is for a plan file. A release is public, and rows of it spend nothing. Nothing was made."
        )
    release = Release.load(folder)
    with progress_bar() as progress:
        return from_release(release, rows, progress=progress), release


def _of_records(
    planned: PlanFile,
    method: Method,
    rows: int | None,
    rounds: int | None,
    checkpoint: Path | None,
    ledger: Path | None,
    account: str | None,
) -> tuple[SyntheticRecords, Release | None]:
    if (ledger is None) != (account is None):
        raise InvalidPlan(
            "--ledger and --account go together: name the ledger file and the account that pays."
        )
    book, name = (ledger, account) if ledger else (planned.ledger, planned.account)
    with progress_bar() as progress:
        if book is None or name is None:
            errors.print(
                "No ledger is named: nothing adds up what is spent on these records.", style="yellow"
            )
            return synthesize(
                planned, method, rows=rows, rounds=rounds, checkpoint=checkpoint, progress=progress
            )
        with Ledger.open(book) as opened:
            return synthesize(
                planned,
                method,
                rows=rows,
                rounds=rounds,
                ledger=opened.account(name),
                checkpoint=checkpoint,
                progress=progress,
            )
