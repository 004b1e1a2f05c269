"""Synthetic records: rows of labels that describe no real person."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.core.long_form import LongForm, OrderedLabels
from tabulary.core.table import Table
from tabulary.errors import InvalidTable, ReleaseError, ReleaseExists, TooManyCells
from tabulary.release.table import arrow_labels

if TYPE_CHECKING:
    import pyarrow

# Rows that need more bytes than this together are refused.
MEMORY = 4 * 2**30
_WRITERS = (".csv", ".parquet")


@dataclass(frozen=True, eq=False)
class SyntheticRecords(LongForm):
    """Rows of level codes, one column for each attribute, made from public data.

    `guarantee` is the promise to the people whose records were measured; making rows spends nothing more. `origin`
    says how the rows were made.

    >>> rows = SyntheticRecords(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), np.array([[0, 1], [1, 1]]))
    >>> rows.table("job").counts.tolist()
    [0, 2]
    """

    domain: Domain
    codes: NDArray[np.int32]
    guarantee: str = ""
    origin: str = ""

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.domain.shape) or codes.dtype.kind not in "iu":
            raise InvalidTable("synthetic records must be rows of whole codes, one column per attribute.")
        if codes.size and ((codes < 0) | (codes >= np.array(self.domain.shape))).any():
            raise InvalidTable("a synthetic record has a code that its attribute does not have.")
        codes = codes.astype(np.int32)
        if forbidden(self.domain, codes).any():
            raise InvalidTable("a synthetic record is in a cell that the domain declares impossible.")
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def table(self, *margin: str | Iterable[str]) -> Table:
        """Return the number of rows in each cell of a margin."""
        names = [name for part in margin for name in ((part,) if isinstance(part, str) else part)]
        attributes = self.domain.margin(names)
        shape = self.domain.shape_of(attributes)
        self.domain.check_cells(attributes)
        places = [self.domain.position(name) for name in attributes]
        cells = (
            np.ravel_multi_index(tuple(self.codes[:, places].T), shape)
            if places
            else np.zeros(len(self), int)
        )
        counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
        return Table(self.domain.project(attributes), counts)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the labels of each attribute, one per row."""
        return {
            name: np.array(levels, dtype=object)[codes]
            for name, (levels, codes) in self.ordered_columns().items()
        }

    def ordered_columns(self) -> dict[str, OrderedLabels]:
        """Return the labels of each attribute, one per row, in the order of their levels."""
        return {
            name: OrderedLabels(self.domain.levels_of(name), np.ascontiguousarray(self.codes[:, place]))
            for place, name in enumerate(self.domain.attributes)
        }

    def to_arrow(self) -> "pyarrow.Table":
        """Return an Arrow table of labels, each column an ordered dictionary of its levels."""
        import pyarrow

        return pyarrow.table(arrow_labels(self))

    def write(self, path: str | Path) -> None:
        """Write a new file of labels, CSV or Parquet by its name; an existing file is never overwritten."""
        import pyarrow.csv
        import pyarrow.parquet

        target = Path(path)
        if target.suffix not in _WRITERS:
            raise ReleaseError(
                f"rows are written as .csv or .parquet, not as {target.name!r}. Nothing was written."
            )
        if target.exists():
            raise ReleaseExists(f"{target.name!r} already exists. Nothing was written; name a new file.")
        partial = target.with_name(f".{target.name}.partial")
        table = self.to_arrow()
        try:
            if target.suffix == ".csv":
                plain = pyarrow.table(
                    {name: table[name].cast(pyarrow.string()) for name in table.column_names}
                )
                pyarrow.csv.write_csv(plain, partial)
            else:
                pyarrow.parquet.write_table(table, partial)
            partial.replace(target)
        except OSError as problem:
            partial.unlink(missing_ok=True)
            raise ReleaseError(f"{target.name!r} could not be written: {problem.strerror}.") from None

    def __repr__(self) -> str:
        return f"<SyntheticRecords: {len(self):,} rows of {len(self.domain.shape)} attributes>"


def forbidden(domain: Domain, codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows are in a cell that the domain declares impossible."""
    found = np.zeros(codes.shape[0], dtype=np.bool_)
    for attributes, block in domain.zero_blocks:
        places = [domain.position(name) for name in attributes]
        found |= block[tuple(codes[:, place] for place in places)]
    return found


def check_rows(rows: int, attributes: int, *, memory: int = MEMORY) -> None:
    """Raise if this many rows would not fit in the allowed memory."""
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise InvalidTable(f"the number of rows must be 1 or more, not {rows!r}.")
    # Codes, weights, and the labels while they are written.
    needed = int(rows) * (4 * attributes + 16)
    if needed > memory:
        raise TooManyCells(
            f"{rows:,} rows of {attributes} attributes take about {needed / 2**30:,.1f} GiB and {memory / 2**30:,.1f} "
            "may be used. Nothing was made; ask for fewer rows, or make them in several runs."
        )
