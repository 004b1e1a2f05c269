"""The records: read once, encoded, and counted for any number of margins."""

import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from tabulary.confidential.coding import Coding, Recoding, resolve_all
from tabulary.confidential.engines import Engine
from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.frames import pandas_table, polars_table
from tabulary.confidential.reading import files
from tabulary.confidential.reading.duckdb import DuckDBReader, check_columns
from tabulary.confidential.tally import Tally, margins_of
from tabulary.confidential.weights import Weights, check_weights
from tabulary.core.domain import MAX_CELLS, Domain
from tabulary.core.progress import Progress
from tabulary.core.uncopyable import Uncopyable
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, MissingExtra, UnreadableSource

if TYPE_CHECKING:
    import pandas
    import polars
    import pyspark.sql

Codings = Mapping[str, Coding]
"""How attributes are read, by name; any other attribute is read from the column with its own name."""


# Cells of a table are numbered in 32 bits.
_LARGEST_TABLE = (1 << 32) - 1

# The engine that counts files in DuckDB and keeps no records.
_DUCKDB = "duckdb"


class Closable(Protocol):
    """An object that contains records, here or elsewhere."""

    def close(self) -> None:
        """Release them."""
        ...


class HeldRecords(Uncopyable):
    """Records that another object contains: a store here, or an engine anywhere.

    `close`, the end of a `with`, the garbage collector and the end of the process each release them. They cannot be
    copied or pickled, and formatting them shows no more than `repr`.
    """

    def __init__(self, held: Closable) -> None:
        self._finalizer = weakref.finalize(self, held.close)

    def close(self) -> None:
        """Forget the records, in memory and on disk."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Records(HeldRecords):
    """Confidential records, one per person, with the attributes of a domain and nothing else.

    Columns outside the domain are never read. The printed form shows the domain, and not even the number of
    records: that number is confidential if neighbours differ by one record. Records cannot be copied or pickled.
    Encoded records above 256 MiB are in an unnamed temporary file; `close`, the end of a `with`, the garbage
    collector and the end of the process each delete it.

    With `weights` a record counts as much as its survey weight, up to a public maximum, and a tally has sums of
    weights in whole units.

    >>> import pyarrow
    >>> domain = Domain({"sex": ["F", "M"]})
    >>> with Records.from_arrow(pyarrow.table({"sex": ["F", "M", "F"]}), domain) as records:
    ...     print(records)
    ...     print(records.tally([["sex"]]))
    <Records of sex 2>
    <Tally of 1 margins, 2 cells: [sex]>
    >>> survey = pyarrow.table({"sex": ["F", "M", "F"], "w": [2.5, 4.0, 1.25]})
    >>> with Records.from_arrow(survey, domain, weights=Weights("w", 5, unit="1/4")) as records:
    ...     print(records.tally([["sex"]]))
    <Tally of 1 margins, 2 cells, weights 'w' up to 5 in units of 0.25: [sex]>
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        super().__init__(engine)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
        engine: str = CompiledEngine.name,
    ) -> Self:
        """Return the records of a CSV or Parquet file, of a folder of such files, or of a glob.

        The name gives the format: .csv, .csv.gz or .parquet. The engine "compiled" reads the files now and keeps
        the records encoded, so that each later count takes a few nanoseconds per record. The engine "duckdb" keeps
        nothing: every tally reads the files again and counts in DuckDB. This suits one tally of files that are
        larger than memory and disk; faults of the records are then found when they are counted.
        """
        kind, paths = files.find_files(path)
        return cls(_engine(DuckDBReader.of_files(kind, paths), domain, codings, weights, engine))

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        domain: Domain,
        codings: Codings | None = None,
        *,
        delimiter: str = ",",
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of CSV files: UTF-8, a header line, fields quoted with double quotes.

        Every field is text, so 01 and 1 are different values. An empty field is an unknown value.
        """
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
            raise InvalidArgument(f"a delimiter must be one character such as ',' or ';', not {delimiter!r}.")
        kind, paths = files.find_files(path, files.CSV)
        return cls(_engine(DuckDBReader.of_files(kind, paths, delimiter=delimiter), domain, codings, weights))

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of Parquet files."""
        kind, paths = files.find_files(path, files.PARQUET)
        return cls(_engine(DuckDBReader.of_files(kind, paths), domain, codings, weights))

    @classmethod
    def from_arrow(
        cls, data: Any, domain: Domain, codings: Codings | None = None, *, weights: Weights | None = None
    ) -> Self:
        """Return the records of an Arrow table, record batch or record batch reader; a reader is used up."""
        return cls(_engine(DuckDBReader.of_arrow(data), domain, codings, weights))

    @classmethod
    def from_pandas(
        cls,
        frame: "pandas.DataFrame",
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a pandas frame, one per row."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra(
                "pandas is not installed. Install it: pip install 'tabulary[frames]'."
            ) from None
        if not isinstance(frame, pandas.DataFrame):
            raise UnreadableSource(f"from_pandas needs a pandas DataFrame, not a {type(frame).__name__}.")
        wanted = _columns(resolve_all(domain, codings), weights)
        check_columns(list(frame.columns), wanted, "the pandas frame")
        table = pandas_table(frame, wanted)
        return cls(_engine(DuckDBReader.of_arrow(table, "the pandas frame"), domain, codings, weights))

    @classmethod
    def from_polars(
        cls,
        frame: "polars.DataFrame",
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a polars frame, one per row."""
        try:
            import polars
        except ImportError:
            raise MissingExtra(
                "polars is not installed. Install it: pip install 'tabulary[frames]'."
            ) from None
        if not isinstance(frame, polars.DataFrame):
            raise UnreadableSource(f"from_polars needs a polars DataFrame, not a {type(frame).__name__}.")
        wanted = _columns(resolve_all(domain, codings), weights)
        check_columns(frame.columns, wanted, "the polars frame")
        table = polars_table(frame, wanted)
        return cls(_engine(DuckDBReader.of_arrow(table, "the polars frame"), domain, codings, weights))

    @classmethod
    def from_database(
        cls,
        url: str,
        table: str,
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a table or view, counted where they are: only counts leave the database.

        `url` is postgresql://user:password@host:port/database, duckdb:///people.duckdb, sqlite:///people.sqlite,
        another address that Ibis knows, or spark://host:port of a Spark master; `table` may include a schema, as in
        "census.people". Each tally sees one state of the table; two tallies may see different states. Faults of the
        records are found when they are counted.
        """
        check_weights(weights)
        if url.startswith("spark://"):
            from tabulary.confidential.engines.spark.engine import SparkEngine

            return cls(SparkEngine.connect(url, table, domain, codings, weights=weights))
        from tabulary.confidential.engines.database.engine import DatabaseEngine

        return cls(DatabaseEngine.connect(url, table, domain, codings, weights=weights))

    @classmethod
    def from_spark(
        cls,
        frame: "pyspark.sql.DataFrame",
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a Spark frame, one per row; each tally is one pass on the cluster.

        The executors' Python needs the same version of Tabulary. Faults of the records are found when they are
        counted.
        """
        check_weights(weights)
        from tabulary.confidential.engines.spark.engine import SparkEngine

        return cls(SparkEngine(frame, domain, codings, weights=weights))

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self._engine.domain

    @property
    def weights(self) -> Weights | None:
        """The survey weights; None if every record counts one."""
        return self._engine.weights

    @property
    def drops(self) -> tuple[str, ...]:
        """The attributes for which a record with an unknown value is left out: public, like their codings."""
        return self._engine.drops

    @property
    def engine(self) -> str:
        """The name of the engine that counts them: public."""
        return self._engine.name

    def tally(
        self,
        margins: Workload | Iterable[Iterable[str]],
        *,
        progress: Progress | None = None,
        max_cells: int = MAX_CELLS,
    ) -> Tally:
        """Return the exact counts of some margins, or the exact sums of the weights in units. Confidential.

        `progress` is called about twice a second with the name of the work, the hundredths that are done, and 100.
        The first tally after an installation compiles the counting code, which takes a few seconds.
        """
        wanted = margins_of(self.domain, margins)
        for margin in wanted:
            self.domain.check_cells(margin, min(max_cells, _LARGEST_TABLE))
        counts = self._engine.count(wanted, progress=progress)
        return Tally(self.domain, counts, weights=self.weights, drops=self.drops)

    def fingerprint(self, key: bytes) -> str:
        """Return 32 digits that identify these records under a secret key, independent of their order.

        They change with every record that is added, removed or changed, with the domain and with the weights;
        without the key they show nothing else (`confidential.fingerprint`).
        """
        return self._engine.fingerprint(key)

    def __repr__(self) -> str:
        shown = " × ".join(f"{a} {len(self.domain.levels_of(a))}" for a in self.domain.attributes)
        return f"<Records of {shown}{f', {self.weights}' if self.weights else ''}>"


def _engine(
    reader: DuckDBReader,
    domain: Domain,
    codings: Codings | None,
    weights: Weights | None,
    engine: str = CompiledEngine.name,
) -> Engine:
    if engine == CompiledEngine.name:
        return CompiledEngine(reader, domain, codings, weights=weights)
    if engine == _DUCKDB:
        # Ibis takes a moment to load, and is an extra.
        from tabulary.confidential.engines.database.engine import DatabaseEngine

        check_weights(weights)
        return DatabaseEngine.of_reader(reader, domain, codings, weights=weights)
    raise InvalidArgument(
        f"files are counted by the engine 'compiled' or 'duckdb', not by {engine!r}. Nothing was read."
    )


def _columns(recodings: Iterable[Recoding], weights: Weights | None) -> tuple[str, ...]:
    """Return the columns to read, each once."""
    check_weights(weights)
    named = [recoding.column for recoding in recodings] + ([weights.column] if weights else [])
    return tuple(dict.fromkeys(named))
