"""A table builder to try out, with generated people in a temporary folder."""

from pathlib import Path

from tabulary import datasets
from tabulary.core.domain import Domain
from tabulary.core.progress import Progress
from tabulary.workflows.demonstration import LABELS

PEOPLE = 100_000


def write_demonstration(folder: Path, *, progress: Progress | None = None) -> Path:
    """Write generated people and the service file of a table builder over them; return the file.

    ρ = 1/8 for all tables of up to three of seven attributes. The file declares no structural zeros: a plan of
    residuals without reconstruction adds noise to them as to any other cell.
    """
    datasets.people(PEOPLE, seed=2026, path=folder / "people.parquet", progress=progress)
    file = folder / "service.toml"
    file.write_text(_service_text(datasets.people_domain()), encoding="utf-8")
    return file


def _service_text(domain: Domain) -> str:
    lines = [
        'title = "Tables of people who do not exist"',
        "[state]",
        'database = "state.sqlite"',
        "[ledger]",
        'database = "ledger.sqlite"',
        "[key]",
        'file = "secret.key"',
        "[dataset.people]",
        f'title = "{PEOPLE:,} generated people"',
        'description = "A made-up census: every record is drawn from an invented population."',
        'version = "1"',
        'source = "people.parquet"',
        'method = "fixed"',
        "[dataset.people.privacy]",
        'rho = "1/8"',
        'neighbours = "add-remove"',
        "[dataset.people.budget]",
        'rho = "1/8"',
        "[dataset.people.tables]",
        "order = 3",
        "[dataset.people.mechanism]",
        'reconstruct = "none"',
    ]
    for attribute in domain.attributes:
        levels = ", ".join(f'"{level}"' for level in domain.levels_of(attribute))
        lines += [
            f"[dataset.people.domain.{attribute}]",
            f"levels = [{levels}]",
            f'label = "{LABELS[attribute]}"',
        ]
    return "\n".join([*lines, ""])
