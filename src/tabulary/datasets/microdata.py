"""Records of made-up people: as many as wanted, in memory or in a Parquet file, in bounded memory."""

import operator
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import overload

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from tabulary.core.progress import Progress
from tabulary.datasets.population import joint_probability, people_domain
from tabulary.errors import InvalidArgument

MAX_PEOPLE = 100_000_000
"""The most records that `people` makes."""


# The number of records per draw and per row group of the file. A seed depends on it: do not change it.
CHUNK = 1 << 20


@overload
def people(
    n: int, seed: int = 0, path: None = None, *, progress: Progress | None = None
) -> pyarrow.Table: ...
@overload
def people(
    n: int, seed: int = 0, path: str | os.PathLike[str] = ..., *, progress: Progress | None = None
) -> Path: ...
def people(
    n: int,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
) -> pyarrow.Table | Path:
    """Return `n` records of `people_domain()`; with a `path`, write them to that Parquet file and return it.

    Each record is an independent draw from one fixed population, so the same `n` and `seed` give the same
    records. No record is in a structural zero. A file appears only when it is complete and never replaces another;
    writing it takes the memory of about a million records, for any `n`.

    >>> table = people(1000, seed=7)
    >>> table.num_rows, table.column_names[:3]
    (1000, ['region', 'sex', 'age'])
    """
    records = _checked_number(n, "the number of records", least=1, most=MAX_PEOPLE)
    chunks = _chunks(records, _checked_number(seed, "the seed", least=0, most=2**64 - 1), progress)
    if path is None:
        return pyarrow.Table.from_batches(chunks, schema=_schema())
    return _write(chunks, Path(path))


@dataclass(frozen=True)
class _Alias:
    """A table for draws in constant time (Walker 1977): a slot gives its own cell or another one."""

    keep: NDArray[np.float64]
    other: NDArray[np.intp]
    codes: NDArray[np.int8]

    def draw(self, uniform: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return one cell for each uniform number: its whole part picks the slot, the rest decides."""
        scaled = uniform * len(self.keep)
        slot = scaled.astype(np.intp)
        scaled -= slot
        return np.where(scaled < self.keep[slot], slot, self.other[slot])


def alias_table(probability: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return, for each slot, the share of it that keeps its own cell and the cell that takes the rest.

    Cells below the average are topped up by those above, each light cell from the heavy one whose surplus is
    being used up; a heavy cell left short is topped up by the next. Running sums of the shortfalls and of the
    surpluses match the cells, so that no loop is needed.

    >>> keep, other = alias_table(np.array([0.125, 0.875]))
    >>> keep.tolist(), other.tolist()
    ([0.25, 1.0], [1, 1])
    """
    weight = probability * len(probability) / probability.sum()
    keep, other = np.ones(len(weight)), np.arange(len(weight))
    # Rounding can leave every weight slightly below one; the largest still counts as heavy.
    is_heavy = weight >= min(1.0, weight.max())
    light, heavy = np.flatnonzero(~is_heavy), np.flatnonzero(is_heavy)
    surplus, shortfall = np.cumsum(weight[heavy] - 1), np.cumsum(1 - weight[light])
    before = np.concatenate([[0.0], shortfall])[:-1]
    # The last heavy cell takes the rest that rounding leaves.
    giver = np.searchsorted(surplus, before, side="right").clip(max=len(heavy) - 1)
    keep[light], other[light] = weight[light], heavy[giver]
    # The light cell at which each heavy one runs out, if that is between two sums and not at one.
    last = np.searchsorted(shortfall, surplus[:-1], side="right")
    short = np.flatnonzero(last < len(light))
    short = short[before[last[short]] < surplus[short]]
    keep[heavy[short]] = np.clip(1 + surplus[short] - shortfall[last[short]], 0, 1)
    other[heavy[short]] = heavy[short + 1]
    return keep, other


@cache
def _population() -> _Alias:
    joint = joint_probability()
    cells = np.flatnonzero(joint)
    keep, other = alias_table(joint.ravel()[cells])
    codes = np.array(np.unravel_index(cells, joint.shape), dtype=np.int8)
    return _Alias(keep, other, codes)


def _chunks(n: int, seed: int, progress: Progress | None) -> Iterator[pyarrow.RecordBatch]:
    population = _population()
    schema = _schema()
    labels = [pyarrow.array(levels, pyarrow.string()) for levels in people_domain().levels]
    # numpy.random is allowed here because this is a model of people and not a privacy noise.
    generator = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        cells = population.draw(generator.random(size))
        columns = [
            pyarrow.DictionaryArray.from_arrays(codes[cells], dictionary)
            for codes, dictionary in zip(population.codes, labels, strict=True)
        ]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)
        if progress is not None:
            progress("records", start + size, n)


def _schema() -> pyarrow.Schema:
    text = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
    return pyarrow.schema([pyarrow.field(a, text, nullable=False) for a in people_domain().attributes])


def _write(chunks: Iterator[pyarrow.RecordBatch], path: Path) -> Path:
    _refuse_existing(path)
    if not path.parent.is_dir():
        raise InvalidArgument(
            f"there is no folder {str(path.parent)!r} to write the records to. Make it first."
        )
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        with pyarrow.parquet.ParquetWriter(partial, _schema(), compression="zstd") as writer:
            for chunk in chunks:
                writer.write_batch(chunk, row_group_size=CHUNK)
        _refuse_existing(path)
        partial.chmod(0o644)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise InvalidArgument(f"{str(path)!r} already exists and was left as it is. Choose another path.")


def _checked_number(value: object, name: str, *, least: int, most: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most:
        raise InvalidArgument(f"{name} must be a whole number from {least:,} to {most:,}, not {value!r}.")
    return number
