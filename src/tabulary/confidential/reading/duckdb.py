"""CSV, Parquet and Arrow data, read and recoded by an embedded DuckDB."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.reading import Batch, files
from tabulary.confidential.reading.sql import Recoded, is_readable, numbers, quoted, recoded, text_of
from tabulary.errors import InvalidColumn, TabularyError, UnreadableSource, listed
from tabulary.threads import available_threads

if TYPE_CHECKING:
    import pyarrow

_BATCH_ROWS = 1 << 17
_MEMORY = "1GB"
_MAX_THREADS = 4

# Signs in DuckDB's text, and our own words instead: DuckDB's text quotes the line.
_CSV_REASONS = {
    "Expected Number of Columns": "a row has more or fewer fields than the header",
    "unterminated quote": "a quote is not closed, or there is text next to a quoted field",
    "invalid state": "its quotes or its line ends do not follow one CSV dialect",
    "unicode": "it is not UTF-8 text",
    "Maximum line size": "a row is longer than two million bytes",
    "GZIP": "it is not a complete gzip file",
}

_OTHER_NAME = "; give a column with another name by Coding(column=...), a column of weights by Weights(...)"

_T = TypeVar("_T")


@dataclass(frozen=True)
class SourcePart:
    """One relation to read: its SQL, the names of its columns in order, and its name in an error."""

    relation: str
    names: tuple[object, ...]
    called: str
    data: Any = None
    """Arrow data; the SQL calls it `source`."""


class DuckDBReader:
    """Records in parts; each part has the wanted columns, and the parts are read one after the other.

    In memory, without network, extensions or temporary files; it can open only the named files.
    """

    def __init__(self, parts: Sequence[Callable[[], SourcePart]], allowed: Sequence[Path] = ()) -> None:
        self.parts = parts
        self.allowed = allowed

    @classmethod
    def of_files(cls, kind: str, paths: Sequence[Path], *, delimiter: str = ",") -> "DuckDBReader":
        """Return the reader of these files."""

        def part(path: Path) -> Callable[[], SourcePart]:
            return lambda: _csv(path, delimiter) if kind == files.CSV else _parquet(path)

        return cls([part(path) for path in paths], paths)

    @classmethod
    def of_arrow(cls, data: Any, called: str = "the Arrow table") -> "DuckDBReader":
        """Return the reader of an Arrow table, batch or reader."""
        import pyarrow

        if isinstance(data, pyarrow.RecordBatch):
            data = pyarrow.Table.from_batches([data])
        if not isinstance(data, pyarrow.Table | pyarrow.RecordBatchReader):
            raise UnreadableSource(
                "Arrow data must be a Table, a RecordBatch or a RecordBatchReader, not a "
                f"{type(data).__name__}."
            )
        return cls([lambda: SourcePart("source", tuple(data.schema.names), called, data)])

    def batches(self, recodings: Sequence[Recoding], weights: str | None = None) -> Iterator[Batch]:
        """Yield the records as level codes; see `Reader.batches`."""
        connection = connect(self.allowed)
        try:
            for number, described in enumerate(self.parts):
                yield from _read(connection, described(), recodings, weights, number)
        finally:
            connection.close()

    def columns(self, texts: Sequence[str], amounts: Sequence[str] = ()) -> "pyarrow.Table":
        """Return whole columns in the order of the source, for a source that is a table or fits in memory.

        `texts` are read like levels, `amounts` as doubles; a missing value, or one that is not a finite number, is
        null.
        """
        import pyarrow

        connection = connect(self.allowed, ordered=True)
        try:
            parts = [_columns(connection, described(), texts, amounts) for described in self.parts]
        finally:
            connection.close()
        return pyarrow.concat_tables(parts)


def check_columns(
    names: Sequence[object], wanted: Iterable[str], called: str, *, remedy: str = _OTHER_NAME
) -> None:
    """Refuse a source that lacks a wanted column or has it twice.

    The error does not list the names that the source has: without a header line they would be a record.
    """
    wanted = list(dict.fromkeys(wanted))
    missing = [column for column in wanted if column not in names]
    if missing:
        raise InvalidColumn(
            f"{called} has no column {listed(missing)}. Nothing was counted. The spelling must be exactly "
            f"the same{remedy}."
        )
    doubled = [column for column in wanted if list(names).count(column) > 1]
    if doubled:
        raise InvalidColumn(
            f"{called} has more than one column {listed(doubled)}, so it is unclear which one to read. "
            "Nothing was counted. Rename one of them."
        )


def _read(
    connection: Any, part: SourcePart, recodings: Sequence[Recoding], weights: str | None, number: int
) -> Iterator[Batch]:
    wanted = [recoding.column for recoding in recodings] + ([] if weights is None else [weights])
    check_columns(part.names, wanted, part.called)
    # Columns are used by position: DuckDB treats "Sex" and "sex" as one name and silently renames the second.
    relation = f"{part.relation} AS source({', '.join(f'c{i}' for i in range(len(part.names)))})"
    columns = [f"c{part.names.index(column)}" for column in wanted]
    kinds = guarded(lambda: _types(connection, part, relation, columns), part.called)
    # Not strict, here and below: the weights come last, after all recodings.
    for recoding, kind in zip(recodings, kinds, strict=False):
        if not is_readable(kind):
            raise InvalidColumn(
                f"column {recoding.column!r} of {part.called} has the type {kind}, whose values have no "
                "text that can be a level. Nothing was counted."
            )
    ways = [
        recoded(recoding, column, kind, f"levels_{number}_{place}")
        for place, (recoding, column, kind) in enumerate(zip(recodings, columns, kinds, strict=False))
    ]
    if weights is not None:
        ways.append(_weights(weights, columns[-1], kinds[-1], part.called))
    reader = guarded(lambda: _query(connection, relation, ways, number), part.called)
    while True:
        batch = guarded(lambda: next(reader, None), part.called)
        if batch is None:
            return
        yield tuple(_codes(batch.column(i), way) for i, way in enumerate(ways))


def _columns(
    connection: Any, part: SourcePart, texts: Sequence[str], amounts: Sequence[str]
) -> "pyarrow.Table":
    wanted = [*texts, *amounts]
    check_columns(part.names, wanted, part.called, remedy="")
    relation = f"{part.relation} AS source({', '.join(f'c{i}' for i in range(len(part.names)))})"
    columns = [f"c{part.names.index(name)}" for name in wanted]
    kinds = guarded(lambda: _types(connection, part, relation, columns), part.called)
    chosen = []
    for place, (name, column, kind) in enumerate(zip(wanted, columns, kinds, strict=True)):
        way = numbers(column, kind)
        if place < len(texts):
            way = Recoded(text_of(column, kind), None) if is_readable(kind) else None
        if way is None:
            raise InvalidColumn(
                f"column {name!r} of {part.called} has a type whose values are not "
                f"{'levels' if place < len(texts) else 'numbers'}. Nothing was counted."
            )
        chosen.append(f"{way.expression} AS k{place}")
    query = f"SELECT {', '.join(chosen)} FROM {relation}"
    found: pyarrow.Table = guarded(lambda: connection.sql(query).to_arrow_table(), part.called)
    return found.rename_columns(wanted)


def _weights(name: str, column: str, kind: str, called: str) -> Recoded:
    way = numbers(column, kind)
    if way is None:
        # The type is not shown: a dictionary type names its values.
        raise InvalidColumn(
            f"column {name!r} of {called} has a type whose values are not numbers, so they cannot be "
            "weights. Nothing was counted. Name a column of numbers."
        )
    return way


def _types(connection: Any, part: SourcePart, relation: str, columns: Sequence[str]) -> list[str]:
    if part.data is not None:
        connection.register("source", part.data)
    return [str(kind) for kind in connection.sql(f"SELECT {', '.join(columns)} FROM {relation}").types]


def _query(connection: Any, relation: str, ways: Sequence[Recoded], number: int) -> Any:
    for place, way in enumerate(ways):
        if way.texts:
            levels = ", ".join(map(quoted, way.texts))
            connection.execute(f"CREATE TYPE levels_{number}_{place} AS ENUM ({levels})")
    chosen = ", ".join(f"{way.expression} AS k{place}" for place, way in enumerate(ways))
    return connection.sql(f"SELECT {chosen} FROM {relation}").to_arrow_reader(_BATCH_ROWS)


def _codes(column: Any, way: Recoded) -> NDArray[Any]:
    raw: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if way.codes is None:
        # A null has become NaN.
        return raw
    if raw.dtype == way.codes.dtype and np.array_equal(way.codes, np.arange(len(way.codes))):
        return raw
    codes: NDArray[Any] = way.codes[raw]
    return codes


def _csv(path: Path, delimiter: str) -> SourcePart:
    names = files.csv_header(path, delimiter)
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    compression = "gzip" if files.is_compressed(path) else "none"
    # Nothing is guessed: text stays text, so that 01 is not 1, and a row that does not fit is an error.
    relation = (
        f"read_csv({quoted(str(path))}, auto_detect = false, columns = {{{columns}}}, header = true, "
        f"delim = {quoted(delimiter)}, quote = '\"', escape = '\"', nullstr = '', comment = '', "
        f"strict_mode = true, null_padding = false, ignore_errors = false, encoding = 'utf-8', "
        f"compression = {quoted(compression)}, hive_partitioning = false)"
    )
    return SourcePart(relation, names, f"the CSV file {path.name!r}")


def _parquet(path: Path) -> SourcePart:
    from pyarrow.parquet import read_schema

    called = f"the Parquet file {path.name!r}"
    schema = guarded(lambda: read_schema(path), called)
    relation = f"read_parquet({quoted(str(path))}, hive_partitioning = false, union_by_name = false)"
    return SourcePart(relation, tuple(schema.names), called)


def connect(allowed: Sequence[Path], *, ordered: bool = False) -> Any:
    """Return a connection to a DuckDB in memory, without network, extensions or temporary files.

    It can open only the allowed files, and nobody can change that afterwards.
    """
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": available_threads(_MAX_THREADS),
            "memory_limit": _MEMORY,
            "temp_directory": "",
            "preserve_insertion_order": ordered,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        },
    )
    connection.execute(f"SET allowed_paths = [{', '.join(quoted(str(path)) for path in allowed)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def guarded(action: Callable[[], _T], called: str) -> _T:
    """Return what the action returns; if it fails, raise our own error without the original text."""
    reason = ""
    try:
        return action()
    except (TabularyError, MemoryError):
        raise
    except Exception as problem:
        # Any library may quote a value: only the kind of problem is kept.
        text = str(problem)
        reason = next((said for sign, said in _CSV_REASONS.items() if sign in text), "")
    said = f": {reason}" if reason else ", or is damaged"
    # Raised here, outside the handler, so that the original error is not even its context.
    raise UnreadableSource(f"{called} cannot be read{said}. Nothing was counted.")
