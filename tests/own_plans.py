"""A custodian's records and the plan for them, as `tabulary study risk-utility` is given them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from tabulary.core.progress import Progress
from tabulary.planning.comparison import Comparison
from tabulary.workflows import PlanFile, read_plan_file

PLAN = """
[data]
source = "{source}"

[domain.sex]
levels = ["F", "M"]

[domain.age]
levels = ["young", "middle", "old"]

[domain.job]
levels = ["none", "paid", "own"]

[privacy]
{privacy}

[tables]
margins = "{margins}"

[mechanism]
{mechanism}
"""

# Numbers that nobody would take for anything else, and sex without a say in anything.
COUNTS = np.array([[[4099, 1237, 211], [6011, 7919, 1741], [5303, 307, 97]]] * 2) + np.array([[[0]], [[1]]])


def write_people(folder: Path, name: str = "people.parquet", counts: NDArray[np.int64] = COUNTS) -> None:
    """Write a record for each of those counted."""
    sexes, ages, jobs = ["F", "M"], ["young", "middle", "old"], ["none", "paid", "own"]
    cells = [(s, a, j) for s in sexes for a in ages for j in jobs]
    rows = np.repeat(np.arange(len(cells)), counts.reshape(-1))
    frame = pd.DataFrame(cells, columns=["sex", "age", "job"]).iloc[rows]
    frame.to_parquet(folder / name, index=False)


def write_plan(
    folder: Path,
    privacy: str = "epsilon = 1",
    margins: str = "[sex age][age job]",
    mechanism: str = 'name = "margins"\nreconstruct = "none"',
    source: str = "people.parquet",
    name: str = "census.toml",
) -> PlanFile:
    """Write a plan file and return what it says."""
    text = PLAN.format(privacy=privacy, margins=margins, mechanism=mechanism, source=source)
    (folder / name).write_text(text, encoding="utf-8")
    return read_plan_file(folder / name)


@contextmanager
def compared_once() -> Iterator[None]:
    """Compare every mechanism once for a plan: what a study makes of that is what is tested."""
    compare, known = PlanFile.comparison, {}

    def comparison(self: PlanFile, progress: Progress | None = None) -> Comparison:
        key = (self.plan.digest(), self.objective)
        if key not in known:
            known[key] = compare(self, progress)
        return known[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PlanFile, "comparison", comparison)
        yield


def leave_undrawn(patched: pytest.MonkeyPatch, *, svg: bool = False) -> None:
    """Leave the figures empty, or those in PNG: they take longer than everything else of a small study."""
    patched.setattr(import_module("tabulary.release.drawing"), "png", lambda chart: b"")
    if not svg:
        patched.setattr(import_module("tabulary.release.drawing"), "svg", lambda chart: "")


def sheet(folder: Path, name: str) -> pd.DataFrame:
    """Return the numbers of a study."""
    return pd.read_csv(folder / "numbers" / f"{name}.csv")


def words(folder: Path) -> str:
    """Return what the page of a study says, without its marks."""
    text = re.sub(r'<style>.*?</style>|src="data:[^"]*"', "", (folder / "index.html").read_text(), flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", text).replace("&#39;", "'").split())
