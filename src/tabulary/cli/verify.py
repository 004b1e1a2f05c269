"""`tabulary verify`: check that a release folder is complete and its claims are correct."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, progress_bar
from tabulary.release import PublicKey, Release


def verify(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    digest: Annotated[
        str | None,
        typer.Option(help="The digest that the publisher gave elsewhere. The release must have it."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="The publisher's public key. The release must be signed with it."),
    ] = None,
) -> None:
    """Check every byte and every claim of a release: files, tables, scales, privacy, expected errors, signature.

    The published tables are made again from the measurements and compared, number by number. So are the report and the
    files in other formats.

    Examples: tabulary verify census-2026, or: tabulary verify census-2026 --key office.pem.pub
    """
    expected = None if key is None else PublicKey.read(key)
    release = Release.load(folder, expected_digest=digest, key=expected)
    with progress_bar() as progress:
        checked = release.verify(progress=progress)
    # Of what did not come out again, only the bytes are known to be those that the manifest states.
    holds = "and every claim is correct" if checked.complete else "has the bytes that the manifest states"
    output.print(f"{folder}: {len(release)} tables; every file {holds}.", markup=False, soft_wrap=True)
    output.print(str(checked), markup=False, soft_wrap=True)
    output.print(f"Promise: {release.plan.privacy} ({release.plan.neighbours})", markup=False)
    output.print(f"Digest: {release.digest}", markup=False, soft_wrap=True)
    output.print(_signed(release.signer, expected), markup=False, soft_wrap=True)


def _signed(signer: PublicKey | None, expected: PublicKey | None) -> str:
    if expected is not None:
        return f"Signed by {expected}: the key that you gave."
    if signer is None:
        return "Not signed."
    return (
        f"Signed by {signer}. Nobody has checked that this is the key of {signer.name}: give the known key "
        "with --key."
    )
