"""The engine that counts where the records are: in any SQL database, or in DuckDB in this process.

Values are recoded in SQL. A covering margin is one GROUP BY over one whole number, and only the numbers of its
cells come back.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tabulary.core.progress import Progress
from tabulary.errors import InvalidAddress, MissingExtra, UnreadableSource, WeightsClipped

try:
    import ibis  # noqa: F401  (that it is there)
except ImportError:
    raise MissingExtra(
        "counting in a database needs Ibis, which is not installed. Install it: pip install 'tabulary[database]'."
    ) from None

from tabulary.confidential.coding import Coding, resolve_all
from tabulary.confidential.cover import SuperMargin, cover
from tabulary.confidential.dropping import dropping
from tabulary.confidential.engines import Counts
from tabulary.confidential.engines.database.elsewhere import Elsewhere
from tabulary.confidential.engines.database.embedded import DuckDBDatabase, DuckDBFiles, SQLiteDatabase
from tabulary.confidential.engines.database.places import Answer, Place, Session
from tabulary.confidential.engines.database.postgres import Postgres
from tabulary.confidential.engines.database.queries import RecodedQuery
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.confidential.validation import RecordFaults, clipping_warning, zeros_at
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain, Margin
from tabulary.core.urls import scheme_of

PLACES: dict[str, Callable[[str, str], Place]] = {
    "postgresql": Postgres,
    "postgres": Postgres,
    "duckdb": DuckDBDatabase,
    "sqlite": SQLiteDatabase,
}

# GROUP BY keeps a cell as a row of a hash table and sends it as a row of the answer, so larger queries cost more
# than they save. PostgreSQL, 254 margins of a million records: 22 s at 2**12 cells, 19 s at 2**14, 22 s at 2**16,
# 26 s at 2**18.
SUPER_CELLS = 1 << 14

_HUNDREDTHS = 100

# The number of frames from `count` to the caller of `Records.tally`, where the warning points.
_TO_THE_CALLER = 3


class DatabaseEngine:
    """The records of a table, or of files, counted in a database; see `Engine`.

    The engine keeps nothing, not even a connection: a tally connects, asks everything about one state of the
    records, and disconnects. Faults of the records are found then; faults of the columns are found now. The account
    needs only the right to read the columns: nothing is created, not even for a moment.

    Costs one GROUP BY per covering margin. Only whole numbers come back: the counts of the cells that are not
    empty, and yes or no to the question if there is an unknown value.
    """

    def __init__(
        self,
        place: Place,
        domain: Domain,
        codings: Mapping[str, Coding] | None = None,
        *,
        weights: Weights | None = None,
    ) -> None:
        self.name = place.name
        self.domain = domain
        self.weights = weights
        self._recodings = resolve_all(domain, codings)
        self.drops = dropping(codings)
        self._place: Place | None = place
        with place.open(weights) as session:
            asked = [query for part in self._recoded(session) for query in part.nothing]
            for _ in session.answers(asked):
                pass

    @classmethod
    def connect(
        cls,
        url: str,
        table: str,
        domain: Domain,
        codings: Mapping[str, Coding] | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a table or a view: "people", or "census.people" with its schema.

        `url` is postgresql://user:password@host:port/database, duckdb:///people.duckdb or sqlite:///people.sqlite,
        with four slashes before an absolute path; or that of another database with an Ibis backend, which gets one
        statement and no weights.
        """
        scheme = scheme_of(url) if isinstance(url, str) and "://" in url else None
        if scheme is None:
            raise InvalidAddress(
                "the address of a database begins with its kind, as in postgresql://host/database or "
                "sqlite:///people.sqlite. Nothing was counted."
            )
        place = PLACES.get(scheme, Elsewhere)(url, table)
        if weights is not None and isinstance(place, Elsewhere):
            raise InvalidAddress(
                f"weights cannot be summed at {scheme}://, because that database rounds them in another "
                "way. Nothing was counted. Export the records to Parquet, and count the file."
            )
        return cls(place, domain, codings, weights=weights)

    @classmethod
    def of_reader(
        cls,
        reader: DuckDBReader,
        domain: Domain,
        codings: Mapping[str, Coding] | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of files, or of an Arrow table, counted in a DuckDB that can open nothing else."""
        return cls(DuckDBFiles(reader), domain, codings, weights=weights)

    def count(self, margins: Sequence[Margin], *, progress: Progress | None = None) -> Counts:
        """Return the exact counts of each margin, or the exact sums of the weights; see `Engine.count`."""
        # Loading the compiler takes longer than starting Python, and planning never counts.
        from tabulary.confidential.counting import project

        if self._place is None:
            raise UnreadableSource("these records were closed. Open them again to count them.")
        wanted = tuple(dict.fromkeys(margins))
        blocks = tuple(attributes for attributes, _ in self.domain.zero_blocks)
        # A weight may be zero, so sums do not show which cells have records.
        standing = blocks if self.weights else tuple(dict.fromkeys(wanted + blocks))
        counting = cover(self.domain, standing, cells=SUPER_CELLS)
        summing = cover(self.domain, wanted, cells=SUPER_CELLS) if self.weights else ()
        with self._place.open(self.weights) as session:
            parts = self._recoded(session)
            finding = [query for part in parts for query in part.findings]
            queries = [part.counts(larger.margin) for larger in counting for part in parts]
            queries += [part.sums(larger.margin) for larger in summing for part in parts]
            answers = session.answers([*finding, *queries])
            clipped = self._admit(parts, answers)
            report = _Report(progress, len(counting) + len(summing))
            counted = self._cells(counting, len(parts), answers, report)
            summed = self._cells(summing, len(parts), answers, report)
        records = project(self.domain, counting, standing, counted)
        self._check_impossible(records)
        if self.weights is not None and clipped:
            warnings.warn(clipping_warning(self.weights), WeightsClipped, stacklevel=_TO_THE_CALLER)
        report.end()
        if self.weights is not None:
            return project(self.domain, summing, wanted, summed)
        return {margin: records[margin] for margin in wanted}

    def fingerprint(self, key: bytes) -> NoReturn:
        """Refuse: a fingerprint needs all records, and this engine reads none of them."""
        raise InvalidAddress(
            "a fingerprint needs all records, but these are counted where they are and do not come here. "
            "Nothing was counted. Export them to Parquet, and read the file with the engine 'compiled'."
        )

    def close(self) -> None:
        """Forget where the records are, and who may read them."""
        self._place = None

    def _recoded(self, session: Session) -> list[RecodedQuery]:
        return [
            RecodedQuery(
                relation, self.domain, self._recodings, self.weights, session.dialect, probed=session.collates
            )
            for relation in session.relations
        ]

    def _admit(self, parts: Sequence[RecodedQuery], answers: Iterator[Answer]) -> bool:
        """Refuse the records if one of them is invalid; return whether a weight was clipped."""
        found = RecordFaults()
        for part in parts:
            found |= part.found([int(next(answers)[1][0]) for _ in part.findings])
        found.check(self.domain, self._recodings, self.weights)
        return found.clipped

    def _cells(
        self, covering: Sequence[SuperMargin], parts: int, answers: Iterator[Answer], report: "_Report"
    ) -> dict[Margin, NDArray[np.int64]]:
        """Return the flat cells of each covering margin, summed over the parts of the source."""
        counted: dict[Margin, NDArray[np.int64]] = {}
        for larger in covering:
            cells = np.zeros(self.domain.cells(larger.margin), dtype=np.int64)
            for _ in range(parts):
                keys, numbers = next(answers)
                if len(keys) and not 0 <= keys.min() <= keys.max() < len(cells):
                    raise UnreadableSource(
                        "the database counted records in a cell that does not exist. Nothing was counted. This should "
                        "not happen: please report it, with the kind of the database and its version."
                    )
                np.add.at(cells, keys, numbers)
            counted[larger.margin] = cells
            report.step()
        if len({int(cells.sum()) for cells in counted.values()}) > 1:
            raise UnreadableSource(
                "the records changed during the count, so the tables do not have the same number of "
                "records. Nothing was counted. Count again when nobody writes, or count a copy."
            )
        return counted

    def _check_impossible(self, records: Counts) -> None:
        found: frozenset[int] = frozenset()
        for attributes, mask in self.domain.zero_blocks:
            cells = np.flatnonzero((records[attributes] > 0) & mask)
            found |= zeros_at(self.domain, attributes, cells)
        RecordFaults(impossible=found).check(self.domain, self._recodings, None)


class _Report:
    """Reports how many hundredths of the covering margins are counted."""

    def __init__(self, progress: Progress | None, steps: int) -> None:
        self._progress = progress
        self._steps = steps
        self._done = 0

    def step(self) -> None:
        self._done += 1
        # The last one is reported at the end, when nothing can be refused any more.
        if self._progress is not None and self._done < self._steps:
            self._progress("counting", _HUNDREDTHS * self._done // self._steps, _HUNDREDTHS)

    def end(self) -> None:
        if self._progress is not None:
            self._progress("counting", _HUNDREDTHS, _HUNDREDTHS)
