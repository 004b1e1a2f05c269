"""Thousands of tables in one plan: `python -m bench.planner`.

All 4,950 two-way margins of 100 attributes of ten levels, and all 19,600 three-way margins of 50 binary ones, of
100,000 generated records, at (1, 1e-9) and at ε = 1. Each case runs in a process of its own, whose peak memory is
told. Ours plans with `mechanism="auto"`, counts, measures and answers every table with its errors. Both sides are
unbiased: `reconstruct="none"`, because what a model expects of shrunk tables is no match for a known variance.

- time: processor seconds of all that, beside counting the same tables with the same code and adding OpenDP's noise
  to each, with the budget split evenly: what a custodian would do without a planner. The steps are told, and the
  seconds on the wall, whose limit is 60. OpenDP has no rounded Gaussian; it draws a discrete one.
- error: the root mean squared error expected of a cell, beside that of the even split. OpenDP's has the same law.

`--case pairs` or `--case triples` runs one of them, `--attributes N` makes it smaller.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

import tabulary as tb
from bench.report import line
from tabulary.mechanisms import measure
from tabulary.noise import DiscreteGaussian, ExactSampler, OpenDPSampler, RoundedGaussian

RECORDS = 100_000
# Attributes, levels and the order of the margins.
CASES = {"pairs": (100, 10, 2), "triples": (50, 2, 3)}
PRIVACIES = {"(1, 1e-9)": tb.ApproxDP(1, 1e-9), "ε = 1": tb.PureDP(1)}
ALLOWED_SECONDS = 60.0
ALLOWED_GB = 4.0


def people(domain: tb.Domain, rows: int) -> pa.Table:
    """Records whose attributes all lean on one hidden trait, so that they depend on each other."""
    generator = np.random.default_rng(7)
    trait = generator.random(rows, dtype=np.float32)
    columns = {}
    for attribute, levels in zip(domain.attributes, domain.shape, strict=True):
        place = 0.4 * trait + 0.6 * generator.random(rows, dtype=np.float32)
        columns[attribute] = np.minimum(place * place * levels, levels - 1).astype(np.uint8)
    return pa.table(columns)


class Steps:
    """Processor seconds of each step, and the seconds on the wall of all of them."""

    def __init__(self) -> None:
        self.processor: dict[str, float] = {}
        self.wall = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        start, wall = time.process_time(), time.perf_counter()
        yield
        self.processor[name] = round(time.process_time() - start, 2)
        self.wall += time.perf_counter() - wall

    @property
    def total(self) -> float:
        """The processor seconds of all steps."""
        return sum(self.processor.values())


def run(case: str, privacy: str, attributes: int | None) -> dict[str, Any]:
    """Return what one case takes, ours and theirs, in this process."""
    count, levels, order = CASES[case]
    domain = tb.Domain({f"x{i:02}": range(levels) for i in range(attributes or count)})
    records = tb.Records.from_arrow(people(domain, RECORDS), domain)
    promise = PRIVACIES[privacy]
    # Compiled before the clock starts, as in every process after the first.
    records.tally([domain.attributes[:order]])
    steps = Steps()
    with steps.step("plan"):
        plan = tb.plan(domain, tb.Workload.k_way(domain, order), privacy=promise, reconstruct="none")
    with steps.step("expected errors"):
        plan.expected_error()
    with steps.step("count"):
        tally = records.tally(plan.counted)
    with steps.step("measure"):
        measurement = measure(tally, plan, ExactSampler())
    with steps.step("answer all"):
        released = tb.Release(measurement)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    assert len(released) == len(plan.workload)
    even = tb.plan(domain, plan.workload, privacy=promise, mechanism="margins", reconstruct="none")
    noise = even.measured[0].noise
    if isinstance(noise, RoundedGaussian):
        noise = DiscreteGaussian(noise.variance_parameter)
    sampler = OpenDPSampler()
    start = time.process_time()
    exact = records.tally(plan.workload)
    for margin in plan.workload:
        _ = exact.exact(margin) + sampler.draw(noise, domain.shape_of(margin))
    return {
        "mechanism": plan.mechanism,
        "tables": len(plan.workload),
        "parts": len(plan.measured),
        "steps": steps.processor,
        "seconds": steps.total,
        "wall": round(steps.wall, 2),
        "gigabytes": round(peak, 2),
        "peer_seconds": time.process_time() - start,
        "error": plan.expected_rmse,
        "peer_error": even.expected_rmse,
    }


def compare(case: str, privacy: str, attributes: int | None) -> bool:
    """Print both comparisons of a case, from a process of its own; return whether it kept its limits."""
    asked = [sys.executable, "-m", "bench.planner", "--alone", "--case", case, "--privacy", privacy]
    asked += ["--attributes", str(attributes)] if attributes else []
    found = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    name = f"planner: {found['tables']:,} tables, {case} at {privacy}"
    met = found["wall"] <= ALLOWED_SECONDS and found["gigabytes"] <= ALLOWED_GB
    line(
        f"{name}, error",
        "even noise on every table",
        found["error"],
        found["peer_error"],
        1,
        unit="expected root mean squared error of a cell",
        mechanism=found["mechanism"],
        parts=found["parts"],
    )
    line(
        f"{name}, time",
        "OpenDP's noise on every table",
        found["seconds"],
        found["peer_seconds"],
        0.5,
        unit="s of processor time",
        steps=found["steps"],
        wall_seconds=found["wall"],
        allowed_seconds=ALLOWED_SECONDS,
        gigabytes=found["gigabytes"],
        allowed_gigabytes=ALLOWED_GB,
        met=met,
    )
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES))
    parser.add_argument("--privacy", choices=sorted(PRIVACIES))
    parser.add_argument("--attributes", type=int)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        print(json.dumps(run(asked.case, asked.privacy, asked.attributes)))
        return
    cases = [asked.case] if asked.case else list(CASES)
    privacies = [asked.privacy] if asked.privacy else list(PRIVACIES)
    met = [compare(case, privacy, asked.attributes) for case in cases for privacy in privacies]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
