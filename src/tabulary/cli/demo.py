"""`tabulary demo`: the main task on generated people, from records to a report."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, print_expected, print_released, progress_bar
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.ledger import Ledger
from tabulary.release import Release
from tabulary.workflows import read_plan_file, release_to_folder
from tabulary.workflows.demonstration import PEOPLE, empty_folder, write_people, write_plan


def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder to write into.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="How many people to generate.")] = PEOPLE,
    confidence: Annotated[float, typer.Option(help="The confidence of the error bars.")] = 0.95,
) -> None:
    """Generate people, plan about twenty tables at ε = 1, publish them, and show one with its error bars.

    Example: tabulary demo --output demo
    """
    empty_folder(folder)
    output.print(f"1. Generating {rows:,} people into {folder / 'people.parquet'}", markup=False)
    with progress_bar() as progress:
        write_people(folder, rows, progress=progress)
    plan_file = write_plan(folder / "plan.toml")

    output.print(f"2. Planning with {plan_file}; this reads no records", markup=False)
    planned = read_plan_file(plan_file)
    print_expected(planned.plan.expected_error(confidence))

    output.print(
        "3. Opening an account with ε = 2, paying ε = 1, counting, adding noise, writing the release"
    )
    with Ledger.create(folder / "ledger.sqlite") as ledger, progress_bar() as progress:
        account = ledger.create_account("people", PureDP(2), Neighbours())
        release_to_folder(
            planned.records,
            planned.plan,
            folder / "release",
            account,
            purpose="demo",
            title=planned.title,
            progress=progress,
        )
        left = account.balance().remaining

    release = Release.load(folder / "release")
    output.print(
        f"4. Verified: every file and every claim of {len(release)} tables is correct. Left in the account: "
        f"{left}\n"
    )
    print_released(release["age",], confidence)
    output.print(
        f"\nOpen {(folder / 'release' / 'report.html').absolute()} in a browser for all tables.\n"
        f"More: tabulary show {folder / 'release'} region employment",
        markup=False,
        soft_wrap=True,
    )
