"""`tabulary release`: count, debit, measure and publish the tables of a plan file."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, print_expected, progress_bar
from tabulary.cli.key import read_signing_key
from tabulary.cli.payer import AccountOption, LedgerOption, WitnessOption, paying_account
from tabulary.ledger import Account
from tabulary.release import Release, SigningKey
from tabulary.workflows import PlanFile, read_plan_file, release_to_folder


def release(
    file: Annotated[Path, typer.Argument(help="A plan file in TOML.")],
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder to write; it must not exist.")],
    ledger: LedgerOption = None,
    account: AccountOption = None,
    witness: WitnessOption = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="The engine that counts files: compiled, or duckdb, which keeps no records in memory; "
            "replaces [data] of the plan file."
        ),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(help="The private key that signs the release, from `tabulary key create`.")
    ] = None,
) -> None:
    """Publish the tables of a plan file in a new folder: all of them or none.

    Examples: tabulary release census.toml -o census-2026 --ledger ledger.sqlite --account census,
    or: tabulary release census.toml -o census-2026 --ledger ledger.sqlite --account census --witness heads.txt,
    or: tabulary release census.toml -o census-2026 --engine duckdb,
    or: tabulary release census.toml -o census-2026 --sign office.pem
    """
    # Before anything is read or spent: if the release cannot be signed, it is not made.
    key = None if sign is None else read_signing_key(sign)
    planned = read_plan_file(file)
    if engine is not None:
        planned = replace(planned, source=planned.source.counted_by(engine))
    print_expected(planned.plan.expected_error())
    with paying_account(planned, ledger, account, witness) as payer:
        made = _write(planned, folder, payer, key)
        if payer is not None:
            left = payer.balance().remaining
            output.print(
                f"Paid {planned.plan.privacy} from account {payer.name!r}; {left} is left.", markup=False
            )
    for fact in _facts(made):
        output.print(fact, markup=False)
    output.print(f"Released {len(made)} tables in {folder}", markup=False, soft_wrap=True)
    output.print(f"Report: {folder / 'report.html'}", markup=False, soft_wrap=True)
    output.print(f"Digest: {made.digest}", markup=False, soft_wrap=True)
    if made.signer is not None:
        output.print(f"Signed by {made.signer}", markup=False, soft_wrap=True)


def _facts(made: Release) -> list[str]:
    """Return what the custodian should know about the reconstruction."""
    facts = made.face.facts
    said = []
    if "b" in facts:
        found = "feasible" if facts["feasible"] else "not feasible"
        said.append(
            f"Linear program: {found}; the worst deviation is {float(facts['b']):.4g} (no table has less "
            f"than {float(facts['lower_bound']):.4g})."
        )
    if "bias_share" in facts:
        said.append(
            f"Shrunk tables: {float(facts['bias_share']):.0%} of the expected squared error in interactions "
            "is bias. The unbiased estimates are in the release as well."
        )
    return said


def _write(planned: PlanFile, folder: Path, payer: Account | None, key: SigningKey | None) -> Release:
    with progress_bar() as progress:
        return release_to_folder(
            planned.records,
            planned.plan,
            folder,
            payer,
            purpose=planned.path.name,
            labels=planned.labels,
            formats=planned.formats,
            epsilon=planned.epsilon,
            errors=planned.errors,
            signing_key=key,
            progress=progress,
        )
