"""The error bars of a release: what they cost, how often they hold, how steady they are: `python -m bench.release`.

- cost: processor time of the curves of 64 three-way Adult tables, beside the shrunk tables themselves and beside the
  same release with `reconstruct="none"`. The limit is a fifth of what fifty repetitions cell by cell took.
- size: the total and all 28 tables of one and two attributes of five million generated people, from a Parquet file to
  a release, in a process of its own: seconds and peak megabytes, beside `reconstruct="none"`.
- bars: all tables of one and two attributes of Adult, of the ACS extract and of generated people, at several budgets:
  the share of 95 % intervals that hold the true count, by the size of the true count, and how much the half-width of
  a cell varies between releases. `ours` is the share in per cent, or the variation in per cent; the exit code is
  one if a line is not met.

`--part cost | size | bars` runs one of them, `--releases N` asks for other than 20 releases. Noise can be replayed.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import tabulary as tb
from bench.accuracy import DATA, compared, sampled_three_way, skipped
from bench.lp import peak_megabytes
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.planning import Face
from tabulary.reconstruct import reconstruct
from tests.entropy import SeededEntropy
from tests.populations import Population, true_table

BEFORE = 49.5
"""Processor seconds of the errors of 64 three-way Adult tables when each cell was simulated by itself: fifty
repetitions, once, on one of two shared cores."""
PEOPLE = 5_000_000
MOST_SECONDS, MOST_MEGABYTES = 15.0, 500.0
CLASSES = ((0, 0), (1, 4), (5, 50), (51, np.inf))
LEAST_HELD, MOST_HELD, MOST_VARIATION = 93.0, 97.0, 5.0
BUDGETS = ("1/4", "1", "4")
FACES = (Face("shrink", "controlled"), Face("shrink", "none"), Face("none", "none"))
LEAST_SQUARES = Face("least-squares", "controlled")
# Least squares holds the full table, so it has few attributes.
FEW = {"Adult": ("workclass", "education-num", "sex"), "ACS": ("SEX", "MSP", "EDU")}
FEW_OF_PEOPLE = ("sex", "age", "education")


@dataclass(frozen=True)
class Bars:
    """True counts, and the distances and half-widths of several releases, one row per release."""

    truth: NDArray[np.int64]
    distances: NDArray[np.float64]
    widths: NDArray[np.float64]

    def held(self, low: float, high: float = np.inf) -> float:
        """Return the share of intervals that hold a true count in this class, in per cent; NaN if there is none."""
        within = (self.truth >= low) & (self.truth <= high)
        return 100 * float((self.distances <= self.widths)[:, within].mean()) if within.any() else np.nan

    def variation(self) -> NDArray[np.float64]:
        """Return the standard deviation of each half-width between releases, in per cent of its mean."""
        means = self.widths.mean(axis=0)
        found: NDArray[np.float64] = 100 * self.widths.std(axis=0, ddof=1)[means > 0] / means[means > 0]
        return found


def stored(name: str) -> Population | None:
    """Return a data set that is not part of the project, or None if it is not there."""
    records, domain = DATA / f"{name}.csv", DATA / f"{name}-domain.json"
    if not (records.is_file() and domain.is_file()):
        skipped("release", name, f"../shared/data/{records.name} and {domain.name} are not there")
        return None
    levels: dict[str, int] = json.loads(domain.read_text("utf-8"))
    return (
        tb.Domain({a: range(k) for a, k in levels.items()}),
        pd.read_csv(records)[list(levels)].to_numpy(np.int64),
    )


def generated(records: int) -> Population:
    """Return generated people."""
    domain = tb.datasets.people_domain()
    frame = tb.datasets.people(records, seed=2026).to_pandas()
    places = {a: {level: i for i, level in enumerate(domain.levels_of(a))} for a in domain.attributes}
    codes = [frame[a].astype(str).map(place).to_numpy(np.int64) for a, place in places.items()]
    return domain, np.stack(codes, axis=1)


def by_few(population: Population, attributes: tuple[str, ...]) -> Population:
    """Return the same people by some of their attributes."""
    domain, codes = population
    kept = domain.project(attributes)
    return kept, codes[:, [domain.position(a) for a in kept.attributes]]


def bars(population: Population, face: Face, epsilon: str, releases: int) -> Bars:
    """Return the bars of all tables of one and two attributes, over several releases of one plan."""
    domain, _ = population
    work = [m for order in (1, 2) for m in combinations(domain.attributes, order)]
    plan = tb.plan(
        domain,
        tb.Workload(domain, work),
        privacy=tb.ApproxDP(epsilon, "1e-9"),
        mechanism="residual",
        reconstruct=face.reconstruct,
        rounding=face.rounding,
    )
    truth = {m: true_table(population, m) for m in {*plan.counted, *work}}
    tally = Tally(domain, {m: truth[m] for m in plan.counted})
    possible = np.concatenate([~domain.impossible(m).ravel() for m in work])
    distances, widths = [], []
    for seed in range(releases):
        made = reconstruct(measure(tally, plan, ExactSampler(SeededEntropy(seed))))
        distances.append(np.concatenate([np.abs(made.table(m) - truth[m]).ravel() for m in work])[possible])
        widths.append(np.concatenate([made.errors(m).half_widths(0.95).ravel() for m in work])[possible])
    exact = np.concatenate([truth[m].ravel() for m in work])[possible]
    return Bars(exact, np.array(distances, dtype=np.float64), np.array(widths, dtype=np.float64))


def tell_bars(name: str, face: Face, epsilon: str, found: Bars, releases: int) -> Iterator[bool]:
    """Print the lines of one data set and yield whether each is met."""
    title = f"release: bars of {name}, {face.reconstruct}, {face.rounding}, ε = {epsilon}"
    details = {"releases": releases, "cells": int(found.truth.size)}
    for low, high in CLASSES:
        share, cells = found.held(low, high), int(((found.truth >= low) & (found.truth <= high)).sum())
        if cells:
            shown = f"true counts {low}" if low == high else f"true counts {low} to {high:g}"
            unit = "% of intervals held, at least"
            yield compared(title, shown, LEAST_HELD, share, 1, unit=unit, cells_in_class=cells, **details)
    share = found.held(1)
    yield compared(title, "not empty, at least", 94.0, share, 1, unit="% of intervals held", **details)
    yield compared(title, "not empty, at most", share, MOST_HELD, 1, unit="% of intervals held", **details)
    varied = found.variation()
    for what, value in (("95 of 100 cells", np.quantile(varied, 0.95)), ("every cell", varied.max())):
        above = float((varied > MOST_VARIATION).mean())
        unit = "% by which a half-width varies"
        more = {**details, "share_of_cells_above": float(f"{above:.3g}")}
        yield compared(title, what, max(float(value), 1e-3), MOST_VARIATION, 1, unit=unit, **more)


def all_bars(releases: int) -> Iterator[bool]:
    """Print every line about bars and yield whether it is met."""
    people = {"200,000 generated people": generated(200_000), "20,000 generated people": generated(20_000)}
    real = {name: stored(file) for name, file in (("Adult", "adult"), ("ACS", "acs2019-coded"))}
    for name, population in (people | real).items():
        if population is not None:
            for face in FACES:
                for epsilon in BUDGETS if face == FACES[0] else ("1",):
                    found = bars(population, face, epsilon, releases)
                    yield from tell_bars(name, face, epsilon, found, releases)
            few = by_few(population, FEW.get(name, FEW_OF_PEOPLE))
            found = bars(few, LEAST_SQUARES, "1", releases)
            yield from tell_bars(
                f"{name} by {', '.join(few[0].attributes)}", LEAST_SQUARES, "1", found, releases
            )


def cost() -> Iterator[bool]:
    """Print what the errors of 64 three-way Adult tables cost and yield whether the targets are met."""
    adult = stored("adult")
    if adult is None:
        return
    domain, _ = adult
    margins = sampled_three_way({a: len(domain.levels_of(a)) for a in domain.attributes})
    plan = tb.plan(
        domain,
        tb.Workload(domain, margins),
        privacy=tb.ApproxDP(1, "1e-9"),
        mechanism="residual",
        rounding="none",
    )
    tally = Tally(domain, {m: true_table(adult, m) for m in plan.counted})
    measurement = measure(tally, plan, ExactSampler(SeededEntropy(0)))
    seconds: dict[str, float] = {}
    for _ in range(2):
        # The first round compiles.
        begin = time.process_time()
        linear = reconstruct(measurement, Face("none", "none"))
        for margin in margins:
            linear.table(margin)
            linear.errors(margin).half_widths(0.95)
        seconds["the same release with reconstruct = none"] = time.process_time() - begin
        begin = time.process_time()
        shrunk = reconstruct(measurement)
        seconds["the shrunk tables themselves"] = time.process_time() - begin
        begin = time.process_time()
        for margin in margins:
            shrunk.errors(margin).half_widths(0.95)
        ours = time.process_time() - begin
    title, unit = "release: error bars of 64 three-way Adult tables", "s of processor time"
    yield compared(title, "cell by cell, before", ours, BEFORE, 5, unit=unit)
    for peer, theirs in seconds.items():
        compared(title, peer, ours, theirs, 0, unit=unit)


def released(file: Path, reconstruct_as: str, answer: "multiprocessing.Queue[tuple[float, float]]") -> None:
    """Release 29 tables of the people in a file; answer with seconds and peak megabytes."""
    begin = time.perf_counter()
    domain = tb.datasets.people_domain()
    work = tb.Workload(domain, [m for n in range(3) for m in combinations(domain.attributes, n)])
    plan = tb.plan(domain, work, privacy=tb.PureDP(1), mechanism="residual", reconstruct=reconstruct_as)
    with tb.Records.from_parquet(file, domain) as records:
        made = tb.release(records, plan)
    for margin in work:
        made[margin].interval()
    answer.put((time.perf_counter() - begin, peak_megabytes()))


def size(people: int) -> Iterator[bool]:
    """Print what 29 tables of many people cost and yield whether the targets are met."""
    started = multiprocessing.get_context("spawn")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        tb.datasets.people(people, seed=2026, path=file)
        for face in ("auto", "none"):
            answer: multiprocessing.Queue[tuple[float, float]] = started.Queue()
            process = started.Process(target=released, args=(file, face, answer))
            process.start()
            found[face] = answer.get(timeout=1800)
            process.join()
    title = f"release: 29 tables from {people:,} rows"
    for i, (most, unit) in enumerate(((MOST_SECONDS, "s"), (MOST_MEGABYTES, "MB"))):
        yield compared(title, "the promise", found["auto"][i], most, 1, unit=unit)
        compared(title, "reconstruct = none", found["auto"][i], found["none"][i], 0, unit=unit)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("cost", "size", "bars"), action="append", help="only this one")
    parser.add_argument("--releases", type=int, default=20, help="releases of each plan")
    parser.add_argument("--people", type=int, default=PEOPLE, help="rows of generated people")
    given = parser.parse_args()
    parts = {"cost": cost, "size": lambda: size(given.people), "bars": lambda: all_bars(given.releases)}
    met = [each for name, part in parts.items() if not given.part or name in given.part for each in part()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
