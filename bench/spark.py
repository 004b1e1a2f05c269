"""Counting on a Spark cluster beside one groupBy a margin: `python -m bench.spark`.

Ten million records of twenty dependent attributes in ten Parquet files, all 190 two-way margins and 64 three-way ones;
a standalone master and two workers of one core each, every one a process of its own on 127.0.0.1, and one session. The
seconds are those on the wall, since the work is spread over processes. Every count is compared.

- ours beside one `groupBy(*margin).count()` a margin, on the files and then on the frame cached in the executors'
  memory. In turns: each round of ours is followed by its share of the groupBys. Ours is the best round, after four on
  all records, since Java compiles what it has seen often, as it has after 254 queries; and after one on few records
  that starts the executors' Python, whose time is told as `cold_seconds`.
- ours beside one pass in Spark alone, `explode` of the keys of all margins and one groupBy, on a tenth of the records;
  its time is multiplied by ten.
- a round in which an executor is killed after a third of the time, beside an undisturbed one.

A target of 0 is none. The exit code is one if a target is not reached. `--records N` and `--rounds R` make it shorter,
`--markdown` prints the table of docs/explanation/scale.md instead.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.report import line
from bench.tabulate import DOMAIN, margins, people
from examples.spark.cluster import LocalCluster
from tabulary.confidential.cover import cover
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.core.domain import Margin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORKERS = 2
MEMORY = "2g"
FILES = 10
FEW = 10_000
WARM_UPS = 4
ONE_PASS_TARGET = 20

QUIET = 2.5
"""The load average from which a machine has too much other work."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that tasks have shuffled, and bytes that they have sent to the driver."""

    shuffled: int
    collected: int

    def __sub__(self, before: "Traffic") -> "Traffic":
        return Traffic(self.shuffled - before.shuffled, self.collected - before.collected)

    @classmethod
    def of(cls, spark: "SparkSession") -> "Traffic":
        """Return that of all stages of a session until now, as Spark itself counts it."""
        virtual_machine = spark.sparkContext._gateway.jvm
        none = virtual_machine.java.util.ArrayList()
        quantiles = spark.sparkContext._gateway.new_array(virtual_machine.double, 0)
        store = spark.sparkContext._jsc.sc().statusStore()
        stages = store.stageList(none, False, False, quantiles, none)
        stages = [stages.apply(i) for i in range(stages.size())]
        return cls(sum(s.shuffleWriteBytes() for s in stages), sum(s.resultSize() for s in stages))


@contextlib.contextmanager
def cluster(**conf: str) -> Iterator[tuple[LocalCluster, "SparkSession"]]:
    """Run a master and two workers of one core each; give them and a session that forgets no stage."""
    settings = {"spark.ui.retainedStages": "1000000"} | conf
    with LocalCluster(WORKERS, memory=MEMORY, **settings) as running, running.session() as spark:
        yield running, spark


def write_people(folder: Path, records: int) -> str:
    """Write the records in files of the same size, and return where they are."""
    folder.mkdir()
    for number in range(FILES):
        rows = records * (number + 1) // FILES - records * number // FILES
        pq.write_table(people(rows, number), folder / f"{number:02}.parquet")
    return str(folder)


def ours(frame: "DataFrame", wanted: Sequence[Margin]) -> tuple[float, Tally]:
    """Return the seconds of a tally, from the frame to the counts, and the tally."""
    start = time.perf_counter()
    with Records.from_spark(frame, DOMAIN) as records:
        tally = records.tally(wanted)
    return time.perf_counter() - start, tally


def group_by(frame: "DataFrame", margin: Margin) -> NDArray[np.int64]:
    """Return the counts of one margin by a query of its own."""
    found = frame.groupBy(*margin).count().toArrow()
    counts = np.zeros(DOMAIN.shape_of(margin), dtype=np.int64)
    counts[tuple(found[attribute].to_numpy() for attribute in margin)] = found["count"].to_numpy()
    return counts


def exploded(frame: "DataFrame", wanted: Sequence[Margin]) -> list[NDArray[np.int64]]:
    """Return the counts of all margins by one query: a row for each record and margin, with the number of its cell."""
    from pyspark.sql import functions as f

    starts = np.cumsum([0, *map(DOMAIN.cells, wanted)])
    keys = []
    for start, margin in zip(starts.tolist(), wanted, strict=False):
        cell = f.lit(0)
        for attribute in margin:
            cell = cell * f.lit(len(DOMAIN.levels_of(attribute))) + f.col(attribute).cast("int")
        keys.append(cell + f.lit(start))
    found = frame.select(f.explode(f.array(*keys)).alias("key")).groupBy("key").count().toArrow()
    counts = np.zeros(int(starts[-1]), dtype=np.int64)
    counts[found["key"].to_numpy()] = found["count"].to_numpy()
    return [
        cells.reshape(DOMAIN.shape_of(margin))
        for cells, margin in zip(np.split(counts, starts[1:-1]), wanted, strict=True)
    ]


def check(tally: Tally, wanted: Sequence[Margin], theirs: Sequence[NDArray[np.int64]]) -> None:
    """Stop unless every count is the same."""
    for margin, counts in zip(wanted, theirs, strict=True):
        assert np.array_equal(tally.exact(margin), counts), margin


def in_turns(frame: "DataFrame", wanted: Sequence[Margin], rounds: int) -> tuple[list[float], float, Tally]:
    """Return the seconds of each round of ours, those of all groupBys together, and the tally they agree on."""
    group_by(frame, wanted[0])
    took, grouped = [], 0.0
    theirs: list[NDArray[np.int64]] = []
    for share in range(rounds):
        seconds, tally = ours(frame, wanted)
        took.append(seconds)
        start = time.perf_counter()
        theirs += [group_by(frame, m) for m in wanted[len(theirs) : len(wanted) * (share + 1) // rounds]]
        grouped += time.perf_counter() - start
    check(tally, wanted, theirs)
    return took, grouped, tally


def disturbed(
    running: LocalCluster, frame: "DataFrame", wanted: Sequence[Margin], undisturbed: float
) -> tuple[float, Tally]:
    """Return the seconds of a tally that loses an executor after a third of the usual time, and the tally."""
    killed = []
    timer = threading.Timer(undisturbed / 3, lambda: killed.append(running.kill_executor()))
    timer.start()
    seconds, tally = ours(frame, wanted)
    timer.join()
    assert killed
    assert seconds > undisturbed / 3, "the tally was over before the executor was lost"
    return seconds, tally


def compare(records: int, rounds: int) -> list[dict[str, Any]]:
    """Print the comparisons, and return them."""
    wanted = margins()
    told: dict[str, Any] = {
        "unit": "s",
        "records": records,
        "margins": len(wanted),
        "super_margins": len(cover(DOMAIN, wanted)),
        "cores": WORKERS,
    }
    lines = []
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as folder:
        few = write_people(Path(folder, "few"), FEW)
        tenth = write_people(Path(folder, "tenth"), records // 10)
        all_of_them = write_people(Path(folder, "all"), records)
        with cluster() as (running, spark):
            cold, _ = ours(spark.read.parquet(few), wanted)
            frame = spark.read.parquet(all_of_them)
            # Java compiles what it has seen often: 254 queries see to that for theirs, these tallies for ours.
            for _ in range(WARM_UPS):
                ours(frame, wanted)
            took, grouped, tally = in_turns(frame, wanted, rounds)
            before = Traffic.of(spark)
            took.append(ours(frame, wanted)[0])
            moved = Traffic.of(spark) - before
            best = min(took)
            lines.append(
                line(
                    "spark: Parquet files", "one groupBy a margin", best, grouped, ONE_PASS_TARGET,
                    **told, rounds=_rounded(took), cold_seconds=round(cold, 1),
                    bytes_shuffled=moved.shuffled, bytes_collected=moved.collected,
                )
            )  # fmt: skip

            frame.cache().count()
            took, grouped, _ = in_turns(frame, wanted, rounds)
            frame.unpersist(blocking=True)
            lines.append(
                line(
                    "spark: the frame in the executors' memory", "one groupBy a margin",
                    min(took), grouped, 0, **told, rounds=_rounded(took),
                )
            )  # fmt: skip

            part = spark.read.parquet(tenth)
            # Its code is long, and compiled by each executor once.
            exploded(spark.read.parquet(few), wanted)
            start = time.perf_counter()
            theirs = exploded(part, wanted)
            seconds = time.perf_counter() - start
            check(ours(part, wanted)[1], wanted, theirs)
            lines.append(
                line(
                    "spark: Parquet files", "explode of all keys, one groupBy", best, 10 * seconds, 0,
                    **told, measured_on=records // 10, measured_seconds=round(seconds, 1),
                )
            )  # fmt: skip

            seconds, again = disturbed(running, frame, wanted, best)
            check(again, wanted, [tally.exact(margin) for margin in wanted])
            lines.append(
                line(
                    "spark: an executor lost after a third of the time", "the same, undisturbed",
                    seconds, best, 0, **told,
                )
            )  # fmt: skip
    return lines


def beside(load: float) -> str:
    """Return what is to be said of a machine that had other work when a run began.

    >>> beside(0.5)
    'the load average before was 0.5.'
    >>> beside(9)
    'the load average before was 9.0, **too much for times that mean anything: to be run again at rest**.'
    """
    said = f"the load average before was {load:.1f}"
    return (
        f"{said}."
        if load < QUIET
        else f"{said}, **too much for times that mean anything: to be run again at rest**."
    )


def markdown(lines: Sequence[dict[str, Any]], load: float) -> str:
    """Return the comparisons as the table of the page."""
    first = lines[0]
    rows = [
        f"Printed by `python -m bench.spark --markdown`: {first['margins']} margins of {first['records']:,} records on "
        f"{first['cores']} cores; {beside(load)} The first tally of a session, of few "
        f"records, took {first['cold_seconds']:.0f} s. {first['bytes_shuffled'] / 1e6:.1f} MB were shuffled, and "
        f"{first['bytes_collected'] / 1e6:.1f} MB came to the driver.",
        "",
        "| | ours | beside it | | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for told in lines:
        what = told["bench"].removeprefix("spark: ")
        ratio = f"{told['ratio']:.0f}" if told["ratio"] >= 10 else f"{told['ratio']:.2g}"
        rows.append(f"| {what} | {told['ours']:.3g} s | {told['peer']} | {told['theirs']:.3g} s | {ratio} |")
    return "\n".join(rows)


def _rounded(seconds: Sequence[float]) -> list[float]:
    return [round(each, 2) for each in seconds]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--markdown", action="store_true", help="print the page's table; the lines go to stderr"
    )
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with contextlib.redirect_stdout(sys.stderr) if given.markdown else contextlib.nullcontext():
        lines = compare(given.records, given.rounds)
    if given.markdown:
        print(markdown(lines, load))
    sys.exit(any(told["ratio"] < told["target"] for told in lines))


if __name__ == "__main__":
    main()
