"""`tabulary demo`: the main job on generated people, from records to a report."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from tabulary import datasets
from tabulary.cli.console import output, print_expected, print_released, progress_bar
from tabulary.core.domain import Domain
from tabulary.core.privacy import Neighbours, PureDP
from tabulary.errors import ReleaseExists
from tabulary.ledger import Ledger
from tabulary.release import Release
from tabulary.workflows import read_plan_file, release_to_folder

_MARK = ".tabulary-demo"
_TABLES = (
    ("region", "sex"),
    ("region", "age"),
    ("region", "employment"),
    ("region", "education"),
    ("region", "birth_country"),
    ("sex", "age"),
    ("sex", "employment"),
    ("sex", "occupation"),
    ("sex", "education"),
    ("age", "employment"),
    ("age", "education"),
    ("employment", "education"),
    ("occupation", "education"),
)


def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where the demo may write.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="How many people to generate.")] = 200_000,
    confidence: Annotated[float, typer.Option(help="The confidence of the error bars.")] = 0.95,
) -> None:
    """Generate people, plan about twenty tables at ε = 1, publish them, and show one with its error bars.

    Example: tabulary demo --output demo
    """
    _prepare(folder)
    output.print(f"1. Generating {rows:,} people into {folder / 'people.parquet'}", markup=False)
    with progress_bar() as progress:
        datasets.people(rows, seed=2026, path=folder / "people.parquet", progress=progress)
    plan_file = folder / "plan.toml"
    plan_file.write_text(_plan_text(datasets.people_domain()), encoding="utf-8")

    output.print(f"2. Reading the plan {plan_file}, which reads no records", markup=False)
    planned = read_plan_file(plan_file)
    print_expected(planned.plan.expected_error(confidence))

    output.print("3. Opening an account of ε = 2, paying ε = 1, counting, adding noise, writing the release")
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
        f"4. Verified: every file and claim of {len(release)} tables holds. Left in the account: {left}\n"
    )
    print_released(release["age",], confidence)
    output.print(
        f"\nOpen {(folder / 'release' / 'report.html').absolute()} in a browser for all tables.\n"
        f"More: tabulary show {folder / 'release'} region employment",
        markup=False,
        soft_wrap=True,
    )


def _prepare(folder: Path) -> None:
    """Make an empty folder; only one that an earlier demo made is cleared."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARK).exists():
            raise ReleaseExists(
                f"{folder} is not empty and not an earlier demo. Choose another folder with -o."
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()


def _plan_text(domain: Domain) -> str:
    """Return the demo's plan file, written out as a custodian would."""
    lines = [
        "# What is published about the generated people, and how well they are protected.",
        "[data]",
        'source = "people.parquet"',
        "",
        "[output]",
        'title = "Generated people: a demonstration"',
        "",
        "[privacy]",
        "epsilon = 1",
        'neighbours = "add-remove"',
        "",
        "[tables]",
        "k_way = 1",
        'margins = """',
        *(f"  [{' '.join(margin)}]" for margin in _TABLES),
        '"""',
        "",
        "[mechanism]",
        "# Non-negative tables that agree with each other, in whole numbers.",
        'reconstruct = "shrink"',
        'rounding = "controlled"',
        "",
    ]
    for attribute in domain.attributes:
        levels = ", ".join(f'"{level}"' for level in domain.levels_of(attribute))
        lines += [f"[domain.{attribute}]", f"levels = [{levels}]", ""]
    for zero in domain.structural_zeros:
        lines.append("[[structural_zeros]]")
        for attribute, levels_of_zero in zero:
            listed = ", ".join(f'"{level}"' for level in levels_of_zero)
            lines.append(f"{attribute} = [{listed}]")
        lines.append("")
    return "\n".join(lines)
