"""What a tally on a cluster costs, as a model, and whether the model is right: `python -m bench.scale`.

A standalone master and two workers of one core each on 127.0.0.1 count small numbers of generated records: one margin,
the 254 margins of `bench.tabulate`, and all 9,880 three-way margins of forty attributes, in few tasks and in more. The
rates of `ScaleModel` are fitted to these runs. Then its predictions stand beside runs of 10^6, 10^7 and 10^8 records
that it has not seen, each in a process of its own, whose peak memory is told with that of its Java. A ratio is off by
as much as the prediction is; beyond a factor 1.5 either way the exit code is one.

What stays on one machine (the cover, the plan, the noise, the answers, the files) is measured for about 10^2, 10^3 and
10^4 margins; none of it depends on the number of records. Last come the model's words on 10^9 and 10^10 records.

`--records N …` checks other sizes, `--quick` fits and measures small ones, `--markdown` prints the tables of
docs/explanation/scale.md, and the lines go to stderr. Takes about 2 GB of disk.
"""

import argparse
import contextlib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import tabulary as tb
from bench.report import line
from bench.scale_model import FACTOR, WIDE, Job, Run, ScaleModel, shuffled_bytes, wanted_of
from bench.scale_page import Findings, markdown
from bench.spark import WARM_UPS, WORKERS, Traffic, cluster
from bench.tabulate import DOMAIN, people
from tabulary.confidential.counting import Counter
from tabulary.confidential.cover import cover
from tabulary.confidential.store import CHUNK_ROWS, Layout
from tabulary.core.domain import Domain, Margin
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALIBRATION = (500_000, 2_000_000, 4_000_000)
CHECKED = (1_000_000, 10_000_000, 100_000_000)
LARGEST_WIDE = 10_000_000
CAPS = (12, 14, 16, 18, 20)
ROUNDS = 3
FILE_RECORDS = 1_000_000
# A task reads whole groups of records.
GROUP_RECORDS = 1 << 16

# So many records warm up a session.
SOME = 1_000_000

# How many tasks a calibration makes of its files, so that what a task costs can be told from what a record costs.
MORE_TASKS = 8

# So many attributes have about a hundred, a thousand and ten thousand three-way margins.
ATTRIBUTES = (9, 19, 40)
RHO = "1/8"
RELEASED_RECORDS = 100_000


def write(folder: Path, domain: Domain, records: int) -> Path:
    """Write generated records of a domain in an even number of files of one size, and return where they are."""
    files = 2 * max(1, records // (2 * FILE_RECORDS))
    folder.mkdir()
    for number in range(files):
        rows = records * (number + 1) // files - records * number // files
        pq.write_table(
            _people(domain, rows, number), folder / f"{number:03}.parquet", row_group_size=GROUP_RECORDS
        )
    return folder


def _people(domain: Domain, rows: int, seed: int) -> pa.Table:
    columns = people(rows, seed).columns
    if len(domain.attributes) > len(columns):
        columns += people(rows, 10_000 + seed).columns
    return pa.table(columns[: len(domain.attributes)], names=list(domain.attributes))


def bytes_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def count(asked: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Count some folders of records in one session of this process, and yield what each took."""
    with cluster() as (_, spark), tempfile.TemporaryDirectory(prefix="tabulary-bench-") as place:
        # Before the clock starts Python beside the executors does, and Java compiles what it has seen often.
        some = spark.read.parquet(str(write(Path(place, "some"), DOMAIN, SOME)))
        for _ in range(WARM_UPS if asked[0]["rounds"] > 1 else 1):
            with tb.Records.from_spark(some, DOMAIN) as records:
                records.tally(wanted_of(DOMAIN))
        for each in asked:
            domain = WIDE if each["wide"] else DOMAIN
            wanted = wanted_of(domain)[: each["margins"]]
            _cut(spark, Path(each["folder"]), each["tasks"])
            frame = spark.read.parquet(each["folder"])
            tasks = frame.rdd.getNumPartitions()
            took = []
            for _ in range(each["rounds"]):
                before = Traffic.of(spark)
                start = time.perf_counter()
                with tb.Records.from_spark(frame, domain) as records:
                    total = int(records.tally(wanted).exact(wanted[0]).sum())
                took.append(time.perf_counter() - start)
                moved = Traffic.of(spark) - before
            assert total == each["records"]
            java = psutil.Process(spark.sparkContext._gateway.proc.pid).memory_info().rss
            yield {
                "tasks": tasks,
                "seconds": min(took),
                "shuffled": moved.shuffled,
                "collected": moved.collected,
                "driver_bytes": peak() + java,
            }


def _cut(spark: "SparkSession", folder: Path, tasks: int | None) -> None:
    """Make about so many tasks of the files, or as many as Spark makes unasked."""
    settings = {"spark.sql.files.openCostInBytes": 0, "spark.sql.files.maxPartitionBytes": 0}
    if tasks is None:
        for name in settings:
            spark.conf.unset(name)
        return
    settings["spark.sql.files.maxPartitionBytes"] = math.ceil(bytes_of(folder) / tasks)
    for name, value in settings.items():
        spark.conf.set(name, str(value))


def peak() -> int:
    """Return the peak memory of this process, which was started anew."""
    # Linux counts the process that started this one into `ru_maxrss`, and a Mac has no other.
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [kilobytes] = [text.split()[1] for text in status.read_text().splitlines() if text.startswith("VmHWM")]
    return 1024 * int(kilobytes)


def release(attributes: int, reconstruction: str) -> dict[str, Any]:
    """Return what one machine does for all three-way margins of so many attributes, and how long it takes."""
    domain = Domain({a: WIDE.levels_of(a) for a in WIDE.attributes[:attributes]})
    wanted = wanted_of(domain)
    told: dict[str, Any] = {"margins": len(wanted), "cells": sum(map(domain.cells, wanted))}

    @contextlib.contextmanager
    def step(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        told[name] = time.perf_counter() - start

    def plan(margins: Sequence[Margin]) -> tb.Plan:
        return tb.plan(domain, tb.Workload(domain, margins), privacy=tb.ZCDP(RHO), reconstruct=reconstruction)

    with tb.Records.from_arrow(_people(domain, RELEASED_RECORDS, 0), domain) as records:
        # Compiled before the clock starts, as in every process after the first.
        measure(records.tally(wanted[:2]), plan(wanted[:2]), ExactSampler())
        with step("cover"):
            cover(domain, wanted)
        with step("plan"):
            planned = plan(wanted)
        tally = records.tally(planned.counted)
    with step("noise"):
        measured = measure(tally, planned, ExactSampler())
    with step("answers"):
        released = tb.Release(measured)
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as folder, step("files"):
        released.save(Path(folder, "release"))
        told |= {"mechanism": planned.mechanism, "reconstruct": planned.reconstruct}
        told |= {"bytes": bytes_of(Path(folder)), "peak": peak()}
    return told


def covers() -> Iterator[dict[str, Any]]:
    """Yield how many margins cover the wanted ones, by the most cells of one, and what counting them takes."""
    for domain in (DOMAIN, WIDE):
        wanted = wanted_of(domain)
        for cap in CAPS:
            start = time.perf_counter()
            counted = [each.margin for each in cover(domain, wanted, cells=1 << cap)]
            yield {
                "margins": len(wanted),
                "cap": cap,
                "super_margins": len(counted),
                "cells": sum(map(domain.cells, counted)),
                "seconds": time.perf_counter() - start,
                "a_record": seconds_a_record(domain, counted),
            }


def seconds_a_record(domain: Domain, counted: Sequence[Margin]) -> float:
    """Return the processor seconds of a record in all covering margins, from codes to counters, without Spark."""
    layout = Layout(domain.shape)
    counter = Counter(counted, domain, layout, weighted=False)
    took = []
    # Other records each time: the same ones would find their counters near the core.
    for seed in range(1 + ROUNDS):
        chunk = layout.matrices(np.zeros(layout.chunk_bytes, dtype=np.uint8))
        for place, codes in enumerate(_people(domain, CHUNK_ROWS, seed).columns):
            layout.column(chunk, place)[:] = codes.to_numpy()
        start = time.process_time()
        counter.add(CHUNK_ROWS, chunk)
        took.append(time.process_time() - start)
    # The first is told apart: it gets the memory of the counters.
    return min(took[1:]) / CHUNK_ROWS


def alone(task: str, asked: Any) -> list[dict[str, Any]]:
    """Return what a process of its own prints for a task of `TASKS_ALONE`."""
    command = [sys.executable, "-m", "bench.scale", "--alone", task, json.dumps(asked)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(text) for text in said.splitlines()]


def runs_of(folders: Sequence[tuple[Path, bool, int]], *, rounds: int, calibrate: bool = False) -> list[Run]:
    """Count folders of (place, wide or not, records) in a session of their own.

    To calibrate, one margin is counted too, and more tasks are made of the same files.
    """
    asked = []
    for folder, wide, records in folders:
        each = {"folder": str(folder), "wide": wide, "records": records, "rounds": rounds, "tasks": None}
        full = len(wanted_of(WIDE if wide else DOMAIN))
        asked += [each | {"margins": full}]
        if calibrate:
            asked += [each | {"margins": 1}, each | {"margins": full, "tasks": MORE_TASKS}]
    # The smaller before the larger: the peak of a driver is that of all it has done.
    asked.sort(key=lambda each: each["margins"])
    took = alone("count", asked)
    return [
        Run(
            Job.of(
                domain := WIDE if each["wide"] else DOMAIN,
                wanted_of(domain)[: each["margins"]],
                each["records"],
                told.pop("tasks"),
            ),
            **told,
        )
        for each, told in zip(asked, took, strict=True)
    ]


def calibrated(sizes: Sequence[int], *, rounds: int) -> tuple[list[Run], dict[int, float]]:
    """Return runs of small numbers of records, and the bytes of a record in files, by its number of attributes."""
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as place:
        folders = [
            (write(Path(place, f"{domain is WIDE}-{records}"), domain, records), domain is WIDE, records)
            for records in sizes
            for domain in (DOMAIN, WIDE)
        ]
        stored = {
            len((WIDE if wide else DOMAIN).attributes): bytes_of(folder) / records
            for folder, wide, records in folders
        }
        return runs_of(folders, rounds=rounds, calibrate=True), stored


def find(
    sizes: Sequence[int], calibration: Sequence[int], attributes: Sequence[int], *, rounds: int
) -> Findings:
    """Measure, fit, check and extrapolate; print a line for all that is found, as soon as it is."""
    load = os.getloadavg()[0]
    runs, stored = calibrated(calibration, rounds=rounds)
    for run in runs:
        _tell(
            "calibration", vars(run.job) | {name: value for name, value in vars(run).items() if name != "job"}
        )
    model = ScaleModel.fitted(runs, cores=WORKERS)
    _tell("rates", vars(model))
    checks = [
        checked(model, domain, records, rounds=rounds)
        for domain in (DOMAIN, WIDE)
        for records in sizes
        if domain is DOMAIN or records <= LARGEST_WIDE
    ]
    covered = [_tell("cover", each) for each in covers()]
    released = [
        _tell("one machine", alone("release", (count, how))[0])
        for count in attributes
        for how in ("none", "auto")
    ]
    found = Findings(load, model, runs, checks, stored, covered, released)
    for job, cores in found.extrapolations():
        seconds = model.seconds(job, cores=cores)
        more = {
            "cores": cores,
            "seconds": seconds,
            "core_hours": cores * seconds / 3600,
            "bytes_shuffled": shuffled_bytes(job),
            "driver_bytes": model.driver_bytes(job),
        }
        _tell("extrapolated", vars(job) | more)
    return found


def checked(model: ScaleModel, domain: Domain, records: int, *, rounds: int) -> Run:
    """Print the model's prediction beside a run of so many records, for the seconds and the driver's memory."""
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as place:
        folder = write(Path(place, "people"), domain, records)
        [run] = runs_of([(folder, domain is WIDE, records)], rounds=1 if records > LARGEST_WIDE else rounds)
    told = vars(run.job) | {
        "cores": WORKERS,
        "bytes_shuffled": run.shuffled,
        "bytes_collected": run.collected,
    }
    name = f"scale: {records:,} records, {run.job.margins:,} margins"
    peer = "the model's prediction"
    predicted = model.seconds(run.job, cores=WORKERS)
    line(f"{name}, time", peer, run.seconds, predicted, round(1 / FACTOR, 2), unit="s", **told)
    held = model.driver_bytes(run.job)
    line(
        f"{name}, memory of the driver",
        peer,
        run.driver_bytes,
        held,
        round(1 / FACTOR, 2),
        unit="bytes",
        **told,
    )
    return run


def _tell(name: str, told: dict[str, Any]) -> dict[str, Any]:
    short = {key: float(f"{value:.3g}") if isinstance(value, float) else value for key, value in told.items()}
    print(json.dumps({"bench": f"scale: {name}"} | short, ensure_ascii=False), flush=True)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, nargs="+", default=CHECKED)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--alone", nargs=2, metavar=("TASK", "ASKED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        task, asked = given.alone[0], json.loads(given.alone[1])
        for told in count(asked) if task == "count" else [release(*asked)]:
            print(json.dumps(told), flush=True)
        return
    small = (CALIBRATION[:2], ATTRIBUTES[:1], 1)
    calibration, attributes, rounds = small if given.quick else (CALIBRATION, ATTRIBUTES, ROUNDS)
    with contextlib.redirect_stdout(sys.stderr) if given.markdown else contextlib.nullcontext():
        found = find(given.records, calibration, attributes, rounds=rounds)
    if given.markdown:
        print(markdown(found))
    sys.exit(not found.kept())


if __name__ == "__main__":
    main()
