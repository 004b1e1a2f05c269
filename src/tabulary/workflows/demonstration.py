"""A release to try out: people who do not exist, and the plan file that a custodian would write for them."""

import shutil
from pathlib import Path

from tabulary import datasets
from tabulary.core.domain import Domain
from tabulary.core.progress import Progress
from tabulary.errors import ReleaseExists

PEOPLE = 200_000
"""The default number of people."""

LABELS = {
    "region": "Region",
    "sex": "Sex",
    "age": "Age in years",
    "employment": "Employment status",
    "occupation": "Occupation",
    "education": "Highest level of education",
    "birth_country": "Country of birth",
}
"""The attributes of the generated people, for readers."""

_MARK = ".tabulary-demo"
_SEED = 2026
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


def empty_folder(folder: Path) -> None:
    """Make an empty folder; only one that an earlier demonstration made is cleared."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARK).exists():
            raise ReleaseExists(f"{folder} is not empty and not an earlier demo. Choose another folder.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()


def write_people(folder: Path, rows: int = PEOPLE, *, progress: Progress | None = None) -> Path:
    """Write generated people as Parquet into a folder; return the file. They are the same every time."""
    file = folder / "people.parquet"
    datasets.people(rows, seed=_SEED, path=file, progress=progress)
    return file


def write_plan(file: Path, source: str = "people.parquet", table: str | None = None) -> Path:
    """Write a plan of about twenty tables of those people at ε = 1, wherever they are; return its file."""
    file.write_text(_plan_text(datasets.people_domain(), source, table), encoding="utf-8")
    return file


def _plan_text(domain: Domain, source: str, table: str | None) -> str:
    """Return the plan file, written out as a custodian would."""
    lines = [
        "# What is published about the generated people, and how well they are protected.",
        "[data]",
        f'source = "{source}"',
        *([] if table is None else [f'table = "{table}"']),
        "",
        "[output]",
        'title = "Generated people: a demonstration"',
        'unit = "persons"',
        'source = "Drawn from an invented population"',
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
    ]
    for attribute in domain.attributes:
        levels = ", ".join(f'"{level}"' for level in domain.levels_of(attribute))
        lines += [f"[domain.{attribute}]", f"levels = [{levels}]", f'label = "{LABELS[attribute]}"', ""]
    for zero in domain.structural_zeros:
        lines.append("[[structural_zeros]]")
        for attribute, levels_of_zero in zero:
            listed = ", ".join(f'"{level}"' for level in levels_of_zero)
            lines.append(f"{attribute} = [{listed}]")
        lines.append("")
    return "\n".join(lines)
