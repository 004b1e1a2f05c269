"""What `bench.scale` finds, and the tables that docs/explanation/scale.md shows of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.scale_model import WIDE, Job, Run, ScaleModel, shuffled_bytes, tasks_of, wanted_of, within
from bench.spark import WORKERS, beside
from bench.tabulate import DOMAIN

EXTRAPOLATED = (10**9, 10**10)
CLUSTERS = (16, 64, 256)


@dataclass(frozen=True)
class Findings:
    """All that the page tells."""

    load: float
    model: ScaleModel
    calibration: list[Run]
    checks: list[Run]
    bytes_a_record: dict[int, float]
    covers: list[dict[str, Any]]
    releases: list[dict[str, Any]]

    def extrapolations(self) -> Iterator[tuple[Job, int]]:
        """Yield the jobs that are too large for this machine, and the cores that each is given."""
        for domain in (DOMAIN, WIDE):
            for records in EXTRAPOLATED:
                for cores in CLUSTERS:
                    tasks = tasks_of(records, self.bytes_a_record[len(domain.attributes)], cores)
                    yield Job.of(domain, wanted_of(domain), records, tasks), cores

    def kept(self) -> bool:
        """Return whether every prediction was near enough, by a model in which records cost something."""
        # Beside other work a fit may find that they do not, and still be near where a start takes longest.
        return min(self.model.value, self.model.count) > 0 and all(
            within(run.seconds, self.model.seconds(run.job, cores=WORKERS))
            and within(run.driver_bytes, self.model.driver_bytes(run.job))
            for run in self.checks
        )


def markdown(found: Findings) -> str:
    """Return the tables of the page."""
    sections = {
        "Rates": _rates(found),
        "Predicted and measured": _checks(found),
        "Covers": _covers(found),
        "One machine": _releases(found),
        "Extrapolated": _extrapolations(found),
    }
    said = [f"Printed by `python -m bench.scale --markdown` on {WORKERS} cores; {beside(found.load)}"]
    for title, rows in sections.items():
        said += ["", f"### {title}", *rows]
    return "\n".join(said)


def _rates(found: Findings) -> list[str]:
    model = found.model
    narrow, wide = (Job.of(domain, wanted_of(domain), 1, 1) for domain in (DOMAIN, WIDE))
    sent = [
        run.shuffled / (run.job.cells * run.job.tasks)
        for run in found.calibration + found.checks
        if run.job.margins > 1
    ]
    collected = [run.collected / run.job.cells for run in found.checks]
    return [
        "| rate | measured |",
        "| --- | --- |",
        f"| `start`: a job without tasks | {model.start:.2g} s |",
        f"| `task`: a task without records | {model.task:.2g} s |",
        f"| `value`: read, recode, pack, send, unpack and admit one value | {1e9 * model.value:.3g} ns |",
        f"| `count`: one record in one covering margin | {1e9 * model.count:.3g} ns |",
        f"| `counter`: one counter of one task, sent and added | {1e9 * model.counter:.3g} ns |",
        f"| `answer`: one counter on the driver | {1e9 * model.answer:.3g} ns |",
        f"| `driver`: its memory in any case | {model.driver / 1e6:.0f} MB |",
        f"| `driver_counter`: its memory a counter | {model.driver_counter:.0f} bytes |",
        f"| records a second and core, 254 margins of 20 attributes | {_thousands(model.records_a_second(narrow))} |",
        f"| records a second and core, 9,880 margins of 40 attributes | {_thousands(model.records_a_second(wide))} |",
        f"| bytes shuffled a counter and task | {min(sent):.1f} to {max(sent):.1f} |",
        *(
            f"| counters a margin, {job.margins:,} margins in {job.super_margins:,} that cover them "
            f"| {job.cells / job.margins:,.0f} |"
            for job in (narrow, wide)
        ),
        f"| bytes collected a counter | {min(collected):.1f} to {max(collected):.1f} |",
    ]


def _checks(found: Findings) -> list[str]:
    rows = [
        "| records | margins | tasks | predicted | measured | driver predicted | driver measured | shuffled |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in found.checks:
        seconds, held = found.model.seconds(run.job, cores=WORKERS), found.model.driver_bytes(run.job)
        rows.append(
            f"| {run.job.records:,} | {run.job.margins:,} | {run.job.tasks} | {seconds:.3g} s | {run.seconds:.3g} s "
            f"| {held / 1e6:.0f} MB | {run.driver_bytes / 1e6:.0f} MB | {run.shuffled / 1e6:.1f} MB |"
        )
    return rows


def _covers(found: Findings) -> list[str]:
    rows = [
        "| margins | cells at most | covering margins | counters, million | found in | a record in all of them |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in found.covers:
        rows.append(
            f"| {each['margins']:,} | 2^{each['cap']} | {each['super_margins']:,} | {each['cells'] / 1e6:.3g} "
            f"| {each['seconds']:.2g} s | {1e6 * each['a_record']:.2g} µs |"
        )
    return rows


def _releases(found: Findings) -> list[str]:
    rows = ["| margins | cells | reconstruction | plan | noise | answers | files | their size | peak memory |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for each in found.releases:
        steps = " | ".join(f"{each[step]:.1f} s" for step in ("plan", "noise", "answers", "files"))
        rows.append(
            f"| {each['margins']:,} | {each['cells']:,} | {each['reconstruct']} | {steps} "
            f"| {each['bytes'] / 1e6:.0f} MB | {each['peak'] / 1e6:.0f} MB |"
        )
    return rows


def _extrapolations(found: Findings) -> list[str]:
    rows = [
        "| records | margins | cores | tasks | time | core-hours | shuffled, at most | memory of the driver |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for job, cores in found.extrapolations():
        seconds = found.model.seconds(job, cores=cores)
        rows.append(
            f"| 10^{math.log10(job.records):.0f} | {job.margins:,} | {cores} | {job.tasks} | {_duration(seconds)} "
            f"| {cores * seconds / 3600:.2g} | {shuffled_bytes(job) / 1e9:.2g} GB "
            f"| {found.model.driver_bytes(job) / 1e9:.2g} GB |"
        )
    return rows


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _thousands(number: float) -> str:
    if math.isinf(number):
        return "not found"
    return f"{round(number, 1 - math.floor(math.log10(number))):,.0f}"
