"""`tabulary demo`: the main task on generated people, from records to a report."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, print_expected, progress_bar
from tabulary.cli.printed_table import print_released
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.infer import independence
from tabulary.ledger import Ledger
from tabulary.release import Release
from tabulary.release.totals import with_totals
from tabulary.workflows import read_plan_file, release_to_folder
from tabulary.workflows.demonstration import PEOPLE, empty_folder, write_people, write_plan


def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder to write into.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="How many people to generate.")] = PEOPLE,
    confidence: Annotated[float, typer.Option(help="The confidence of the error bars.")] = 0.95,
) -> None:
    """Generate people, plan about twenty tables at ε = 1, publish them, show one with its totals, and test it.

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
            labels=planned.labels,
            progress=progress,
        )
        left = account.balance().remaining

    release = Release.load(folder / "release")
    output.print(f"4. Checking: every file, every claim, every number. Left in the account: {left}")
    with progress_bar() as progress:
        checked = release.verify(progress=progress)
    output.print(f"{checked}\n", markup=False)
    totalled = with_totals(release, ("employment", "sex"))
    print_released(totalled, confidence, totalled.labels)
    # The same release, tested: by its measurements, whose noise is known exactly.
    related = independence(release["employment", "sex"])
    output.print(
        f"\nAre employment and sex related? {'Yes' if related.rejects() else 'No sign of it'}: the test counts the "
        f"noise in (χ² = {related.statistic:,.0f} on {related.degrees_of_freedom} d.f.).",
        markup=False,
    )
    output.print(
        f"\nOpen {(folder / 'release' / 'report.html').absolute()} in a browser for all tables.\n"
        f"More: tabulary show {folder / 'release'} region age, or: tabulary serve {folder / 'release'}",
        markup=False,
        soft_wrap=True,
    )
