"""`tabulary synth`: synthetic rows, from a release or from the records of a plan file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, progress_bar
from tabulary.cli.new_file import check_new
from tabulary.cli.payer import AccountOption, LedgerOption, WitnessOption, paying_account
from tabulary.errors import InvalidArgument
from tabulary.release import Release
from tabulary.synth import SyntheticRecords, from_release, utility
from tabulary.workflows import read_plan_file
from tabulary.workflows.synthesizing import SynthesisMethod, synthesize


def synth(
    file: Annotated[Path, typer.Argument(help="A release folder, or a plan file in TOML.")],
    path: Annotated[Path, typer.Option("--output", "-o", help="A new .csv or .parquet file for the rows.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="The number of rows. Default: the number of people.")
    ] = None,
    method: Annotated[
        SynthesisMethod, typer.Option(help="The method that makes rows from the records of a plan file.")
    ] = SynthesisMethod.release,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, help="The number of rounds of rap, mwem or graphical. Each method has its own default."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="A file name, without ending, for a picture of how well the rows fit: .svg and .png."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file from which rap continues after an interruption.")
    ] = None,
    ledger: LedgerOption = None,
    account: AccountOption = None,
    witness: WitnessOption = None,
) -> None:
    """Make synthetic rows: from a release, which spends nothing, or from the records that a plan file names.

    Examples: tabulary synth census-2026 -o people.csv,
    or: tabulary synth census.toml -o people.parquet --ledger ledger.sqlite --account census,
    or: tabulary synth census.toml -o people.csv --method mwem --rounds 8
    """
    if path.suffix not in (".csv", ".parquet"):
        raise InvalidArgument(
            f"--output {path.name}: rows are written as .csv or .parquet. Nothing was made."
        )
    check_new(path, "Nothing was made.")
    if not file.exists():
        raise InvalidArgument(
            f"there is no release folder and no plan file {str(file)!r}. Nothing was made. Check the path."
        )
    release: Release | None
    if file.is_dir():
        for_records = {
            "--rounds": rounds,
            "--checkpoint": checkpoint,
            "--ledger": ledger,
            "--account": account,
            "--witness": witness,
        }
        made, release = _of_folder(file, rows, method, for_records)
    else:
        planned = read_plan_file(file)
        with paying_account(planned, ledger, account, witness) as payer, progress_bar() as progress:
            made, release = synthesize(
                planned,
                method,
                rows=rows,
                rounds=rounds,
                ledger=payer,
                checkpoint=checkpoint,
                progress=progress,
            )
    made.write(path)
    output.print(f"{len(made):,} rows of {len(made.domain.shape)} attributes, {made.origin}.", markup=False)
    output.print(
        f"Promised to the people who are counted: {made.guarantee}. The rows spend no more.", markup=False
    )
    if release is not None:
        fit = utility(made, release)
        output.print(str(fit), markup=False)
        if picture is not None:
            for drawn in fit.draw(picture):
                output.print(f"Picture: {drawn}", markup=False, soft_wrap=True)
    output.print(f"Rows: {path}", markup=False, soft_wrap=True)


def _of_folder(
    folder: Path, rows: int | None, method: SynthesisMethod, for_records: Mapping[str, object]
) -> tuple[SyntheticRecords, Release]:
    idle = [option for option, value in for_records.items() if value is not None]
    if method is not SynthesisMethod.release:
        idle.insert(0, f"--method {method}")
    if idle:
        raise InvalidArgument(
            f"{idle[0]} is only for a plan file. A release is public, and rows from it spend nothing. "
            "Nothing was made."
        )
    release = Release.load(folder)
    with progress_bar() as progress:
        return from_release(release, rows, progress=progress), release
