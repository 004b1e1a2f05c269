"""`tabulary rebuild`: another published face of a release, made of the same measurements."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, progress_bar
from tabulary.cli.key import read_signing_key
from tabulary.release import Release, expected_bytes, staged_folder
from tabulary.release.table_sheet import ErrorPlace
from tabulary.release.writers import extra_formats


def rebuild(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    target: Annotated[Path, typer.Option("--output", "-o", help="The folder to write; it must not exist.")],
    reconstruct: Annotated[
        str,
        typer.Option(
            help="auto for the official tables: whole, not negative, additive; none for the unbiased estimates; "
            "shrink, least-squares, lp or shift."
        ),
    ] = "auto",
    rounding: Annotated[
        str, typer.Option(help="auto, controlled, nearest or none, as in a plan file.")
    ] = "auto",
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="A format besides CSV and Parquet; may be given several times."),
    ] = None,
    errors: Annotated[
        ErrorPlace, typer.Option(help="Where a workbook shows the ± of a number: below it or beside it.")
    ] = ErrorPlace.below,
    sign: Annotated[
        Path | None,
        typer.Option(help="The private key that signs the new folder, from `tabulary key create`."),
    ] = None,
) -> None:
    """Publish the measurements of a release once more with other tables. Reads no records and spends nothing.

    Examples: tabulary rebuild census-2026 -o census-2026-unbiased --reconstruct none,
    or: tabulary rebuild census-2026 -o census-2026-excel --format xlsx
    """
    # Before anything is read: if the folder cannot be signed, it is not made.
    key = None if sign is None else read_signing_key(sign)
    release = Release.load(folder)
    extra = extra_formats(formats or ())
    room = expected_bytes(release.plan, extra, release.translations)
    # The folder is prepared first: a place that cannot be written is found before tables are made for minutes.
    with staged_folder(target, expected_bytes=room) as staged, progress_bar() as progress:
        made = release.rebuild(reconstruct=reconstruct, rounding=rounding, progress=progress)
        made.write_into(staged, formats=extra, errors=errors, signing_key=key)
    face = made.face.face
    output.print(
        f"Written: {target}, {len(made)} tables with reconstruct = {face.reconstruct!r} and rounding = "
        f"{face.rounding!r}. Nothing was spent.",
        markup=False,
        soft_wrap=True,
    )
    output.print(f"Digest: {made.digest}", markup=False, soft_wrap=True)
