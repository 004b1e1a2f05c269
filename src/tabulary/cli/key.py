"""`tabulary key`: keys that sign releases."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output
from tabulary.release import PublicKey, SigningKey
from tabulary.release.signing import PASSPHRASE_VARIABLE, is_encrypted, public_file

key = typer.Typer(help="Keys that sign releases: make one, show one.", no_args_is_help=True)


@key.command()
def create(
    file: Annotated[
        Path, typer.Argument(help="The file of the private key; the public key goes to FILE.pub.")
    ],
    name: Annotated[str, typer.Option(help="The name of the signer, as readers know it.")],
    passphrase: Annotated[
        bool,
        typer.Option(
            "--passphrase",
            help=f"Encrypt the private key. The passphrase comes from {PASSPHRASE_VARIABLE}, or the command "
            "asks for it.",
        ),
    ] = False,
) -> None:
    """Make a key that signs releases. The private key stays with you; the public key is for everybody.

    Example: tabulary key create office.pem --name "Statistics Office"
    """
    words = (os.environ.get(PASSPHRASE_VARIABLE) or _asked(twice=True)) if passphrase else None
    made = SigningKey.create(file, name, passphrase=words).public
    output.print(
        f"Private key: {file}. Only you can read it. Keep a copy where you keep secrets.", markup=False
    )
    output.print(
        f"Public key:  {public_file(file)}. Publish it where your readers can find it.", markup=False
    )
    output.print(f"Fingerprint: {made.fingerprint}", markup=False)


@key.command()
def show(file: Annotated[Path, typer.Argument(help="A public key.")]) -> None:
    """Print the owner and the fingerprint of a public key, to compare with what the owner published.

    Example: tabulary key show office.pem.pub
    """
    found = PublicKey.read(file)
    output.print(f"Signer: {found.name}", markup=False, soft_wrap=True)
    output.print(f"Fingerprint: {found.fingerprint}", markup=False)


def read_signing_key(file: Path) -> SigningKey:
    """Return the key in a file. Ask for its passphrase if it has one and nobody gave it."""
    asks = sys.stdin.isatty() and not os.environ.get(PASSPHRASE_VARIABLE)
    if asks and file.is_file() and is_encrypted(file.read_bytes()[: 1 << 14]):
        return SigningKey.read(file, passphrase=_asked(twice=False))
    return SigningKey.read(file)


def _asked(*, twice: bool) -> str:
    words: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True)
    return words
