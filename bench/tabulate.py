"""Counting beside DuckDB's GROUP BY: `python -m bench.tabulate`.

Ten million records of twenty dependent attributes; all 190 two-way margins and 64 three-way ones. Processor
time of the whole process, all threads included, ours and theirs in the same run and on the same columns of
one byte in memory; the counts must be identical. Then a hundred million records in a Parquet file, read and
counted in a process of its own, whose peak memory is told. `--records N` and `--no-large` make it shorter.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.report import line
from tabulary.confidential.records import Records
from tabulary.core.domain import Domain, Margin

LEVELS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 20, 2, 3, 4, 5, 6, 8, 9, 2, 15, 18)
DOMAIN = Domain({f"a{i:02}": range(n) for i, n in enumerate(LEVELS)})
CHUNK = 1_000_000
LARGE = 100_000_000
ALLOWED_GB = 4.0
THREADS = 2
ROUNDS = 3


def margins() -> list[Margin]:
    pairs = list(combinations(DOMAIN.attributes, 2))
    triples = list(combinations(DOMAIN.attributes, 3))
    chosen = np.random.default_rng(3).choice(len(triples), 64, replace=False)
    return pairs + [triples[i] for i in sorted(chosen)]


def people(rows: int, seed: int) -> pa.Table:
    """Records whose attributes all lean on one hidden trait, so that they depend on each other."""
    generator = np.random.default_rng(seed)
    trait = generator.random(rows, dtype=np.float32)
    columns = {}
    for attribute, levels in zip(DOMAIN.attributes, LEVELS, strict=True):
        place = 0.4 * trait + 0.6 * generator.random(rows, dtype=np.float32)
        columns[attribute] = np.minimum(place * place * levels, levels - 1).astype(np.uint8)
    return pa.table(columns)


def group_by(connection: Any, margin: Margin) -> NDArray[np.int64]:
    names = ", ".join(margin)
    found = connection.execute(f"SELECT {names}, count(*) AS n FROM people GROUP BY {names}").fetchnumpy()
    counts = np.zeros(DOMAIN.shape_of(margin), dtype=np.int64)
    counts[tuple(np.asarray(found[a]) for a in margin)] = found["n"]
    return counts


def compare(records: int) -> None:
    wanted = margins()
    table = pa.concat_tables(people(min(CHUNK, records - at), at) for at in range(0, records, CHUNK))
    # Compiled before the clock starts, as in every process after the first.
    with Records.from_arrow(table.slice(0, 1000), DOMAIN) as few:
        few.tally(wanted)

    encoding, counting = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        with Records.from_arrow(table, DOMAIN) as kept:
            encoded = time.process_time()
            tally = kept.tally(wanted)
            encoding.append(encoded - start)
            counting.append(time.process_time() - encoded)

    connection = duckdb.connect(config={"threads": THREADS})
    connection.register("source", table)
    start = time.process_time()
    connection.execute("CREATE TABLE people AS SELECT * FROM source")
    loaded = time.process_time() - start
    group_by(connection, wanted[0])
    start = time.process_time()
    theirs = [group_by(connection, margin) for margin in wanted]
    grouped = time.process_time() - start

    for margin, counts in zip(wanted, theirs, strict=True):
        assert np.array_equal(tally.exact(margin), counts), margin
    told: dict[str, Any] = {"records": records, "margins": len(wanted), "unit": "s of processor time"}
    line("tally", "DuckDB GROUP BY, all margins", min(counting), grouped, 20, **told)
    ours = min(e + c for e, c in zip(encoding, counting, strict=True))
    line("encode from Arrow and tally", "DuckDB load and GROUP BY", ours, loaded + grouped, 5, **told)


def large(records: int) -> None:
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as folder:
        path = Path(folder, "people.parquet")
        with pq.ParquetWriter(path, people(1, 0).schema) as writer:
            for at in range(0, records, CHUNK):
                writer.write_table(people(min(CHUNK, records - at), at))
        ran = subprocess.run(
            [sys.executable, "-m", "bench.tabulate", "--count", str(path)], check=True, capture_output=True
        )
    told = json.loads(ran.stdout)
    assert told.pop("total") == records
    line("peak memory", "the promise", told.pop("peak"), ALLOWED_GB, 1, unit="GB", records=records, **told)


def count_one(path: str) -> None:
    start = time.perf_counter()
    with Records.from_file(path, DOMAIN) as records:
        read = time.perf_counter()
        tally = records.tally(margins())
    # The peak of a process that has been started anew: kilobytes on Linux, bytes on a Mac.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    told = {
        "total": int(tally.exact(DOMAIN.attributes[:2]).sum()),
        "peak": peak / 1e9,
        "seconds_to_read": round(read - start, 1),
        "seconds_to_count": round(time.perf_counter() - read, 1),
    }
    print(json.dumps(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--no-large", action="store_true", help="leave out the hundred million records")
    parser.add_argument("--count", metavar="FILE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.count:
        count_one(given.count)
        return
    compare(given.records)
    if not given.no_large:
        large(LARGE)


if __name__ == "__main__":
    main()
