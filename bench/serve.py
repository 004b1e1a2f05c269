"""A table builder under load, beside the same server doing almost nothing: `python -m bench.serve`.

Ten million generated records of twelve attributes, all tables of up to three of them, noise of ρ = 1/8 in zCDP, and
`tabulary serve` with two workers on this machine. The load runs on the same two cores.

- the first answer to each table, before anything is cached, beside DuckDB's GROUP BY of the same records in memory:
  what an answer without protection, server or text would cost.
- random tables of one to three attributes in random order, once each worker was asked for every margin: as many as
  sixteen connections can get, and two hundred a second, whether or not the server keeps up.
- the cached table of a thousand cells beside `/api/health`, over one connection and over sixteen, in turns.
- of a server that has cached nothing, tables while forty connections ask for one slow test after the other, beside
  tables while nobody does; and how long the server takes to end when it is told to in the midst of this.

A ratio above one says that ours takes less; `met` whether it reaches the target, and the exit code is one if a line
does not. `--quick` asks 200,000 records for a few seconds.
"""

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import combinations, cycle
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import numpy as np
import pyarrow.parquet as pq

from bench.accuracy import compared
from bench.load import CONNECTIONS, closed, once_each, opened
from bench.tabulate import CHUNK, LEVELS, people
from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise
from tests.services import ServerProcess
from tests.waiting import wait_until

ATTRIBUTES = {f"a{i:02}": levels for i, levels in enumerate(LEVELS[:12])}
ORDER = 3
WORKERS = 2
THOUSAND = ("a03", "a07", "a09")
RATE, LONGEST, DEARER = 200.0, 250.0, 3.0
ROUNDS = 5
HOSTILE, SLOWER, ENDING = 40, 10.0, 5.0
UNCACHED = 40

SERVICE = """
title = "Tables of generated people"
[server]
workers = 2
[state]
database = "state.sqlite"
[ledger]
database = "ledger.sqlite"
[key]
file = "secret.key"
[limits]
requests_a_minute = 100000000
burst = 100000000
tests_a_caller = 1000
tables_a_caller = 1000
connections_a_caller = 1000
[dataset.people]
title = "People"
version = "1"
source = "people.parquet"
method = "fixed"
account = "people"
[dataset.people.privacy]
rho = "1/8"
neighbours = "add-remove"
[dataset.people.budget]
rho = "1/8"
[dataset.people.tables]
order = 3
"""


def tables() -> list[tuple[str, ...]]:
    """Every table of one to three attributes, in the order of the attributes."""
    return [margin for k in range(1, ORDER + 1) for margin in combinations(ATTRIBUTES, k)]


def random_tables(count: int) -> list[tuple[str, ...]]:
    """Tables of one to three attributes, each number as likely, in whatever order somebody names them."""
    generator = np.random.default_rng(5)
    return [
        tuple(
            map(str, generator.choice(list(ATTRIBUTES), size=generator.integers(1, ORDER + 1), replace=False))
        )
        for _ in range(count)
    ]


def path_of(margin: Sequence[str]) -> str:
    return f"/api/datasets/people/tables?{urlencode([('by', a) for a in margin])}"


def configure(folder: Path, records: int) -> Path:
    """Write the records and the configuration, open the account, and return the configuration."""
    with pq.ParquetWriter(folder / "people.parquet", people(1, 0).select(list(ATTRIBUTES)).schema) as writer:
        for at in range(0, records, CHUNK):
            writer.write_table(people(min(CHUNK, records - at), at).select(list(ATTRIBUTES)))
    domain = "".join(
        f"[dataset.people.domain.{a}]\nlevels = {list(range(levels))}\n" for a, levels in ATTRIBUTES.items()
    )
    file = folder / "service.toml"
    file.write_text(SERVICE + domain, "utf-8")
    initialise(read_service_file(file))
    return file


@contextmanager
def table_builder(records: int) -> Iterator[tuple[ServerProcess, Path]]:
    """Serve so many records; give the server and the file of records, and print the seconds until it answers."""
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as folder:
        file = configure(Path(folder), records)
        start = time.perf_counter()
        with ServerProcess(file, workers=WORKERS) as server:
            starting = round(time.perf_counter() - start, 1)
            print(json.dumps({"bench": "serve: start", "records": records, "seconds": starting}), flush=True)
            yield server, Path(folder, "people.parquet")


def group_by_milliseconds(source: Path, margins: Sequence[Sequence[str]]) -> list[float]:
    """Return how long DuckDB takes for the exact counts of each margin, from records in memory."""
    took = []
    with duckdb.connect(config={"threads": WORKERS}) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(source)])
        for margin in margins:
            names = ", ".join(margin)
            start = time.perf_counter()
            connection.execute(f"SELECT {names}, count(*) FROM people GROUP BY {names}").fetchnumpy()
            took.append(1000 * (time.perf_counter() - start))
    return took


def first_answers(server: ServerProcess, source: Path, records: int) -> bool:
    asked = tables()
    ours = []
    for worker in server.workers():
        # A connection stays with one worker, and both must have answered before the load comes.
        with server.only(worker):
            ours += once_each(server.port, [path_of(margin) for margin in asked])
    theirs = group_by_milliseconds(source, asked)
    return compared(
        "serve: the first answer to a table, nothing cached",
        "DuckDB GROUP BY, exact and unserved",
        statistics.median(ours),
        statistics.median(theirs),
        1,
        unit="ms, median over all tables",
        records=records,
        tables=len(asked),
        slowest=round(max(ours), 1),
        slowest_of_peer=round(max(theirs), 1),
    )


def under_load(port: int, seconds: float) -> list[bool]:
    paths = [path_of(margin) for margin in random_tables(4096)]
    title, promise = "serve: random tables of 1-3 attributes, margins cached", "the promise"
    met = []
    for load in (
        closed(port, paths, seconds=seconds),
        opened(port, paths, rate=RATE, seconds=seconds),
    ):
        told = {
            "generator": load.generator,
            "requests": load.requests,
            "failed": load.failed,
            "requests_a_second": round(load.requests_a_second, 1),
            "p50": round(load.p50, 2),
        }
        met += [
            compared(f"{title}, p99", promise, load.p99, LONGEST, 1, unit="ms", **told),
            load.failed == 0,
        ]
        if "closed" in load.generator:
            each = 1000 / load.requests_a_second
            unit = "ms between answers"
            met.append(compared(f"{title}, pace", promise, each, 1000 / RATE, 1, unit=unit, **told))
    return met


def beside_health(port: int, seconds: float) -> list[bool]:
    met = []
    for connections in (1, CONNECTIONS):
        # In turns, so that whatever else the machine does meets both.
        loads = [
            [
                closed(port, [path], seconds=seconds / ROUNDS, connections=connections)
                for path in ("/api/health", path_of(THOUSAND))
            ]
            for _ in range(ROUNDS)
        ]
        health, thousand = (statistics.median(load.p50 for load in kind) for kind in zip(*loads, strict=True))
        met.append(
            compared(
                f"serve: a cached table of 1,000 cells, {connections} connections",
                "/api/health of the same server",
                thousand,
                health,
                round(1 / DEARER, 4),
                unit="ms, median of the p50 of five rounds",
                generator=loads[0][0].generator,
            )
        )
    return met


def slow_tests() -> list[bytes]:
    """Tests of independence of the attributes with the most levels, each among people of another kind."""
    by = ("a08", "a09")
    others = {a: levels for a, levels in ATTRIBUTES.items() if a not in by}
    return [
        json.dumps({"test": "independence", "by": list(by), "where": {a: str(level)}}).encode()
        for a, levels in others.items()
        for level in range(levels)
    ]


@contextmanager
def hostile_tests(port: int) -> Iterator[Counter[int]]:
    """Ask for slow tests over forty connections, each for the next as soon as it has its answer; give the statuses."""
    tests, ending, heard = cycle(slow_tests()), threading.Event(), Counter[int]()

    def keep_asking() -> None:
        # A server that is gone is not asked again.
        with suppress(OSError, http.client.HTTPException):
            while not ending.is_set():
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/api/datasets/people/tests", next(tests), headers)
                heard[connection.getresponse().status] += 1
                connection.close()

    threads = [threading.Thread(target=keep_asking, daemon=True) for _ in range(HOSTILE)]
    for thread in threads:
        thread.start()
    try:
        yield heard
    finally:
        ending.set()


def beside_hostile_tests(server: ServerProcess) -> list[bool]:
    margins = [margin for margin in tables() if len(margin) == ORDER]
    np.random.default_rng(7).shuffle(margins)
    paths = [path_of(margin) for margin in margins]
    # A connection stays with one worker, which has then imported all that an answer needs.
    once_each(server.port, paths[:2])
    quiet = once_each(server.port, paths[2 : UNCACHED + 2])
    with hostile_tests(server.port) as heard:
        # All of them wait, and some were answered: what tests need is imported.
        wait_until(lambda: heard[200] > WORKERS, "tests that were made")
        crowded = once_each(server.port, paths[UNCACHED + 2 : 2 * UNCACHED + 2])
        made = dict(heard)
        start = time.perf_counter()
        server.terminate()
        server.exit_code()
        ended = time.perf_counter() - start
    return [
        compared(
            f"serve: a table that is not cached, under {HOSTILE} hostile tests",
            "the same server while nobody tests",
            statistics.median(crowded),
            statistics.median(quiet),
            1 / SLOWER,
            unit="ms, median over as many tables",
            tables=UNCACHED,
            slowest=round(max(crowded), 1),
            slowest_of_peer=round(max(quiet), 1),
            tests_by_status=made,
        ),
        compared(
            f"serve: SIGTERM under {HOSTILE} hostile tests",
            "the promise",
            ended,
            ENDING,
            1,
            unit="s until it ended",
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of load, for each kind of it")
    parser.add_argument("--quick", action="store_true", help="200,000 records and a few seconds of load")
    given = parser.parse_args()
    records, seconds = (200_000, 2.0) if given.quick else (given.records, given.seconds)

    with table_builder(records) as (server, source):
        met = [
            first_answers(server, source, records),
            *under_load(server.port, seconds),
            *beside_health(server.port, seconds),
        ]
    with table_builder(records) as (server, _):
        met += beside_hostile_tests(server)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
