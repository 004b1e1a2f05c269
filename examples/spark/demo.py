"""The demo plan twice, counted by this process and by a Spark cluster: two releases that differ in one word.

`make demo-spark`, or `python -m examples.spark.demo --output demo-spark`.
"""

import argparse
import json
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from examples.spark.cluster import ClusterFailed, LocalCluster, NoJava
from tabulary.cli.console import errors, output, progress_bar
from tabulary.errors import TabularyError
from tabulary.noise.keyed import KeyedEntropy
from tabulary.release import Release
from tabulary.workflows import PlanFile, read_plan_file, release_to_folder
from tabulary.workflows.demonstration import PEOPLE, empty_folder, write_people, write_plan

EXPECTED = {"software.engine", "digest"}
"""Where the two manifests may differ: the engine's name, and the digest of the manifest in which it stands."""

_MANIFEST = "manifest.json"
_LONGEST = 12


def demonstrate(folder: Path, rows: int, cluster: str) -> int:
    """Release the demo plan by both engines into a folder, print how the two differ, and return the exit code."""
    empty_folder(folder)
    output.print(f"1. Generating {rows:,} people into {folder / 'people.parquet'}", markup=False)
    with progress_bar() as progress:
        people = write_people(folder, rows, progress=progress).resolve()
    plans = {
        "compiled": read_plan_file(write_plan(folder / "plan.toml")),
        "spark": read_plan_file(write_plan(folder / "plan-spark.toml", cluster, people.as_posix())),
    }
    output.print(
        "2. Releasing the same plan twice, with the same noise, so that the two can be compared. Two real releases "
        "never share their noise: each draws its own from the operating system, since under shared noise whoever "
        "subtracts one table from another sees exactly how the records have changed.",
        markup=False,
    )
    key = secrets.token_bytes(32)
    # Nobody pays: each release would name the entry that paid for it, and these people were made up.
    made = {name: _released(planned, folder / name, key) for name, planned in plans.items()}
    for name, release in made.items():
        counted = f"   {name}: {len(release)} tables, counted from {plans[name].source.shown}"
        output.print(counted, markup=False, soft_wrap=True)
    differing = set(differences(folder / "compiled", folder / "spark"))
    output.print("3. Comparing every file, and every field of the two manifests")
    _print_comparison(folder, differing)
    report = (folder / "spark" / "report.html").absolute()
    output.print(
        f"\nOpen {report} in a browser for all tables: it is the same page as in {folder / 'compiled'}.",
        markup=False,
        soft_wrap=True,
    )
    return 0 if differing == EXPECTED else 1


def differences(one: Path, other: Path) -> Iterator[str]:
    """Yield what two release folders do not share: names of files, and places in the manifest."""
    files, others = _files(one), _files(other)
    yield from (name for name in sorted({*files, *others}) if files.get(name) != others.get(name))
    fields, others = _fields(_manifest(one)), _fields(_manifest(other))
    yield from (name for name in sorted({*fields, *others}) if fields.get(name) != others.get(name))


def _released(planned: PlanFile, folder: Path, key: bytes) -> Release:
    with progress_bar() as progress:
        release_to_folder(
            planned.records,
            planned.plan,
            folder,
            purpose=planned.path.name,
            labels=planned.labels,
            entropy=KeyedEntropy(key, planned.plan.digest()),
            progress=progress,
        )
    return Release.load(folder)


def _print_comparison(folder: Path, differing: set[str]) -> None:
    one, other = folder / "compiled", folder / "spark"
    grid = Grid(title_justify="left", box=None, pad_edge=False)
    for head in ("", "compiled", "spark", ""):
        grid.add_column(head, overflow="fold")
    files = sorted({*_files(one), *_files(other)})
    changed = [name for name in files if name in differing]
    grid.add_row(f"{len(files) - len(changed)} files beside {_MANIFEST}", "", "", "identical")
    for name in changed:
        _add_difference(grid, name, "", "")
    fields, others = _fields(_manifest(one)), _fields(_manifest(other))
    same = [name for name in {*fields, *others} if name not in differing]
    grid.add_row(f"{len(same):,} values in {_MANIFEST}", "", "", "identical")
    for name in sorted(differing - {*files}):
        _add_difference(grid, name, str(fields.get(name)), str(others.get(name)))
    output.print(grid)
    verdict = (
        "The manifests differ in the engine's name, and in the digest, which is taken of the whole manifest."
        if differing == EXPECTED
        else "The manifests do not differ in the engine's name alone."
    )
    output.print(Text(verdict, style="green" if differing == EXPECTED else "bold red"))


def _add_difference(grid: Grid, name: str, one: str, other: str) -> None:
    shown = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in (one, other)]
    verdict = Text("differs, as expected" if name in EXPECTED else "DIFFERS")
    grid.add_row(Text(name), *map(Text, shown), verdict, style="" if name in EXPECTED else "bold red")


def _files(folder: Path) -> dict[str, bytes]:
    """Return every file of a release but the manifest."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != _MANIFEST}


def _manifest(folder: Path) -> object:
    return json.loads((folder / _MANIFEST).read_bytes())


def _fields(value: object, place: str = "") -> dict[str, object]:
    """Return every value in a manifest by its place, such as `software.engine`."""
    if isinstance(value, Mapping):
        inside = [(str(name), each) for name, each in value.items()]
    elif isinstance(value, list):
        inside = [(str(number), each) for number, each in enumerate(value)]
    else:
        return {place: value}
    found: dict[str, object] = {}
    for name, each in inside:
        found |= _fields(each, f"{place}.{name}" if place else name)
    return found


def main() -> int:
    """Start a cluster, run the demonstration on it, and stop it."""
    parser = argparse.ArgumentParser(
        description="Release the demo plan by this process and by a Spark cluster on 127.0.0.1, and compare the two."
    )
    parser.add_argument("--output", "-o", type=Path, default=Path("demo-spark"), help="where it may write")
    parser.add_argument("--rows", type=int, default=PEOPLE, help="how many people to generate")
    arguments = parser.parse_args()
    try:
        with ExitStack() as running:
            with errors.status("Starting a Spark cluster of two workers …"):
                cluster = running.enter_context(LocalCluster())
                # The session that the engine finds: its settings are this cluster's.
                running.enter_context(cluster.session())
            return demonstrate(arguments.output, arguments.rows, cluster.url)
    except (TabularyError, NoJava, ClusterFailed) as problem:
        errors.print(str(problem), markup=False, style="red")
        return 2


if __name__ == "__main__":
    sys.exit(main())
