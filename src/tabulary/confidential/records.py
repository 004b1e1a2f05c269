"""The records: read once, encoded, counted as often as there are margins to count."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tabulary.confidential.coding import Coding, Recoding, resolve_all
from tabulary.confidential.encoding import encode
from tabulary.confidential.engines import Engine, files
from tabulary.confidential.engines.duckdb import DuckDBEngine, check_columns
from tabulary.confidential.fingerprint import fingerprint
from tabulary.confidential.frames import pandas_table, polars_table
from tabulary.confidential.held import HeldRecords
from tabulary.confidential.store import MEMORY_BYTES
from tabulary.confidential.tally import Tally, margins_of
from tabulary.confidential.weights import Weights
from tabulary.core.domain import MAX_CELLS, Domain
from tabulary.core.workload import Workload
from tabulary.errors import InvalidPlan, MissingExtra, UnreadableSource

if TYPE_CHECKING:
    import pandas
    import polars

    from tabulary.confidential.counting import Progress

Codings = Mapping[str, Coding]
"""How attributes are read, by name; one that is not named is read from the column of its own name."""


class Records(HeldRecords):
    """Confidential records, one a person, with the attributes of a domain and nothing else.

    Columns outside the domain are never read. What it prints is the domain, not even the number of records:
    that is confidential where neighbours differ by one record. It cannot be copied or pickled. Encoded
    records above 256 MiB lie in a temporary file without a name; `close`, the end of a `with`, the garbage
    collector and the end of the process each let go of it.

    With `weights` a record counts as much as its survey weight says, up to a public maximum, and a tally holds
    sums of weights in whole units.

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

    def __init__(
        self,
        engine: Engine,
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        recodings = resolve_all(domain, codings)
        _check_weights(weights)
        self._domain = domain
        self._weights = weights
        super().__init__(encode(engine, domain, recodings, weights, memory_bytes=memory_bytes))

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a CSV or Parquet file, of a folder of them, or of a glob.

        The name says the format: .csv, .csv.gz or .parquet.
        """
        kind, paths = files.find_files(path)
        return cls(DuckDBEngine.of_files(kind, paths), domain, codings, weights=weights)

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
            raise InvalidPlan(f"a delimiter is one character such as ',' or ';', not {delimiter!r}.")
        kind, paths = files.find_files(path, files.CSV)
        return cls(DuckDBEngine.of_files(kind, paths, delimiter=delimiter), domain, codings, weights=weights)

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
        return cls(DuckDBEngine.of_files(kind, paths), domain, codings, weights=weights)

    @classmethod
    def from_arrow(
        cls, data: Any, domain: Domain, codings: Codings | None = None, *, weights: Weights | None = None
    ) -> Self:
        """Return the records of an Arrow table, record batch or record batch reader; a reader is used up."""
        return cls(DuckDBEngine.of_arrow(data), domain, codings, weights=weights)

    @classmethod
    def from_pandas(
        cls,
        frame: "pandas.DataFrame",
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a pandas frame, one a row."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra(
                "pandas is not installed. Install it: pip install 'tabulary[frames]'."
            ) from None
        if not isinstance(frame, pandas.DataFrame):
            raise UnreadableSource(f"from_pandas reads a pandas DataFrame, not {type(frame).__name__}.")
        wanted = _columns(resolve_all(domain, codings), weights)
        check_columns(list(frame.columns), wanted, "the pandas frame")
        table = pandas_table(frame, wanted)
        return cls(DuckDBEngine.of_arrow(table, "the pandas frame"), domain, codings, weights=weights)

    @classmethod
    def from_polars(
        cls,
        frame: "polars.DataFrame",
        domain: Domain,
        codings: Codings | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a polars frame, one a row."""
        try:
            import polars
        except ImportError:
            raise MissingExtra(
                "polars is not installed. Install it: pip install 'tabulary[frames]'."
            ) from None
        if not isinstance(frame, polars.DataFrame):
            raise UnreadableSource(f"from_polars reads a polars DataFrame, not {type(frame).__name__}.")
        wanted = _columns(resolve_all(domain, codings), weights)
        check_columns(frame.columns, wanted, "the polars frame")
        table = polars_table(frame, wanted)
        return cls(DuckDBEngine.of_arrow(table, "the polars frame"), domain, codings, weights=weights)

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self._domain

    @property
    def weights(self) -> Weights | None:
        """The survey weights; None where every record counts one."""
        return self._weights

    def tally(
        self,
        margins: Workload | Iterable[Iterable[str]],
        *,
        progress: "Progress | None" = None,
        max_cells: int = MAX_CELLS,
    ) -> Tally:
        """Return the exact counts of some margins, or the exact sums of the weights in units. Confidential.

        `progress` is called about twice a second with what is done, how many hundredths of it, and 100. The
        first tally after an install compiles the counting code, which takes a few seconds.
        """
        # Loading the compiler takes longer than starting Python, and a plan never counts.
        from tabulary.confidential.counting import count

        wanted = margins_of(self._domain, margins)
        counts = count(self._store, self._domain, wanted, progress=progress, max_cells=max_cells)
        return Tally(self._domain, counts, weights=self._weights)

    def fingerprint(self, key: bytes) -> str:
        """Return 32 digits that name these records under a secret key, in whatever order they stand.

        It changes with every record that is added, removed or changed, with the domain and with the weights; without
        the key it tells nothing else (`confidential.fingerprint`).
        """
        return fingerprint(self._store, self._domain, self._weights, key)

    def __repr__(self) -> str:
        shown = " × ".join(f"{a} {len(self._domain.levels_of(a))}" for a in self._domain.attributes)
        return f"<Records of {shown}{f', {self._weights}' if self._weights else ''}>"


def _check_weights(weights: object) -> None:
    if weights is not None and not isinstance(weights, Weights):
        raise InvalidPlan(
            "survey weights are given as Weights('w', maximum=50, unit='1/100'), not as "
            f"{type(weights).__name__}. Nothing was read."
        )


def _columns(recodings: Iterable[Recoding], weights: Weights | None) -> tuple[str, ...]:
    """Return the columns to read, each once."""
    _check_weights(weights)
    named = [recoding.column for recoding in recodings] + ([weights.column] if weights else [])
    return tuple(dict.fromkeys(named))
