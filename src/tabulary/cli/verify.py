"""`tabulary verify`: whether a release folder is whole and its claims hold."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output
from tabulary.release import Release


def verify(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    digest: Annotated[
        str | None, typer.Option(help="The digest that its publisher gave elsewhere; compared too.")
    ] = None,
) -> None:
    """Check every byte and every claim of a release: files, tables, scales, privacy, expected errors.

    Example: tabulary verify census-2026
    """
    release = Release.load(folder)
    release.verify(expected_digest=digest)
    output.print(
        f"{folder}: {len(release)} tables, every file and claim holds.", markup=False, soft_wrap=True
    )
    output.print(f"Promise: {release.plan.privacy} ({release.plan.neighbours})", markup=False)
    output.print(f"Digest: {release.digest}", markup=False, soft_wrap=True)
