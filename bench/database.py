"""Counting in a database beside one GROUP BY a margin there: `python -m bench.database`.

A million records of twenty dependent attributes; all 190 two-way margins and 64 three-way ones. In a real PostgreSQL,
over one connection each, and in a Parquet file, by the DuckDB in this process. Elapsed time, since the work is done
elsewhere; the counts must be identical. `--records N` makes it shorter; `--cells` shows other caps of a covering margin
beside the one that is used.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.report import line
from bench.tabulate import CHUNK, DOMAIN, THREADS, margins, people
from tabulary.confidential.cover import cover
from tabulary.confidential.engines.database import engine as database
from tabulary.confidential.engines.database.engine import DatabaseEngine
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.core.domain import Margin
from tests.databases import PostgresServer

CAPS = (1 << 12, 1 << 14, 1 << 16, 1 << 18)

# What a server of this size is given to keep a million records in memory.
SHARED_BUFFERS = "512MB"


def group_by(fetch: Callable[[str], list[Any]], source: str, margin: Margin) -> NDArray[np.int64]:
    names = ", ".join(margin)
    *codes, numbers = fetch(f"SELECT {names}, count(*) AS n FROM {source} GROUP BY {names}")
    counts = np.zeros(DOMAIN.shape_of(margin), dtype=np.int64)
    counts[tuple(codes)] = numbers
    return counts


def compare(
    name: str, engine: DatabaseEngine, fetch: Callable[[str], list[Any]], source: str, records: int
) -> None:
    wanted = margins()
    # Once before the clock starts: what is loaded from disk, and what Python imports.
    engine.count(wanted[:1])
    group_by(fetch, source, wanted[0])
    start = time.perf_counter()
    ours = engine.count(wanted)
    taken = time.perf_counter() - start
    start = time.perf_counter()
    theirs = [group_by(fetch, source, margin) for margin in wanted]
    grouped = time.perf_counter() - start
    for margin, counts in zip(wanted, theirs, strict=True):
        assert np.array_equal(ours[margin], counts), margin
    queries = len(cover(DOMAIN, wanted, cells=database.SUPER_CELLS))
    line(
        f"engine {name}, super-margins of {database.SUPER_CELLS:,} cells",
        "one GROUP BY a margin",
        taken,
        grouped,
        1,
        unit="s elapsed",
        records=records,
        margins=len(wanted),
        queries=queries,
    )


def postgresql(table: pa.Table, caps: tuple[int, ...]) -> None:
    server = PostgresServer(shared_buffers=SHARED_BUFFERS)
    try:
        server.start()
        url = server.url("census")
        with psycopg.connect(url, autocommit=True) as connection:
            columns = ", ".join(f"{attribute} smallint" for attribute in DOMAIN.attributes)
            connection.execute(f"CREATE TABLE people ({columns})")
            rows = BytesIO()
            pyarrow.csv.write_csv(table, rows, pyarrow.csv.WriteOptions(include_header=False))
            with connection.cursor().copy("COPY people FROM STDIN (FORMAT csv)") as copy:
                copy.write(rows.getvalue())
            connection.execute("VACUUM ANALYZE people")

            def fetch(query: str) -> list[Any]:
                found = connection.cursor(binary=True).execute(query).fetchall()
                return list(np.array(found, dtype=np.int64).T)

            for cap in caps:
                database.SUPER_CELLS = cap
                engine = DatabaseEngine.connect(url, "people", DOMAIN)
                compare("postgresql", engine, fetch, "people", len(table))
    finally:
        server.close()


def parquet(table: pa.Table, caps: tuple[int, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as folder:
        path = Path(folder, "people.parquet")
        pq.write_table(table, path)
        connection = duckdb.connect(config={"threads": THREADS})

        def fetch(query: str) -> list[Any]:
            return list(connection.execute(query).fetchnumpy().values())

        for cap in caps:
            database.SUPER_CELLS = cap
            engine = DatabaseEngine.of_reader(DuckDBReader.of_files("Parquet", [path]), DOMAIN)
            compare("duckdb", engine, fetch, f"'{path}'", len(table))
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--cells", action="store_true", help="other caps of a covering margin too")
    given = parser.parse_args()
    table = pa.concat_tables(
        people(min(CHUNK, given.records - at), at) for at in range(0, given.records, CHUNK)
    )
    caps = CAPS if given.cells else (database.SUPER_CELLS,)
    postgresql(table, caps)
    parquet(table, caps)


if __name__ == "__main__":
    main()
