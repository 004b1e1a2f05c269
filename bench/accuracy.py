"""The error of our tables beside that of other systems at the same privacy: `python -m bench.accuracy`.

Adult, 48,842 records of 14 attributes, three workloads, neighbours that add or remove one record. Every system
answers three times, and one that takes minutes once, unless `--slow-runs 3`; a line compares the means and tells
the runs of both. `ratio` above one says that ours is smaller, `met` whether the ratio reaches its target, and the
exit code is one if a line is not met. Our noise is drawn from the system's entropy; the peers get the seeds 0, 1,
2 where they take one, and run with their own default settings.

- error: the L1 distance over the number of records, averaged over the margins; the root mean square over all
  cells of all margins. The largest error of a cell over the number of records stands beside them.
- time: ours from records in memory to tables, planning included. Processor time is that of the tables alone,
  because no peer tells a standard error; the limit in seconds is for the release as a user gets it.
- peers: OpenDP's noise on every margin, with and without a projection to non-negative tables of one total, in
  this process; OpenDP's AIM and dpmm's MST, two systems built on `mbi`, in environments of their own. One that
  cannot be installed, has no such privacy or takes too long is told in a line and left out.

AIM takes some quarter of an hour for a run and MST some minutes; `--peer-seconds` stops them. A short run:
`--workload two-way --runs 1 --no-peers`.
"""

import argparse
import functools
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tabulary as tb
from bench.peers.environment import Synthesizer, answer_of
from bench.peers.question import Answer, CannotAnswer, Question, Table, timed
from bench.report import line
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler, Sampler
from tabulary.reconstruct import reconstruct
from tests.entropy import SeededEntropy

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
L1_UNIT = "L1 distance over n, mean over margins"
RMSE_UNIT = "root mean squared error of a cell"
CPU_UNIT = "s of processor time for the tables"
# The peers' own defaults.
AIM_MEGABYTES = 80.0
MST_ITERATIONS = 5_000

Margins = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Errors:
    """How far tables are from the exact ones; averages over several runs are of the same kind."""

    l1: float
    rmse: float
    worst: float


@dataclass(frozen=True)
class Result:
    """What one system's runs came to, on average."""

    errors: Errors
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Workload:
    """What is asked, and the most that our errors may be."""

    name: str
    margins: Callable[[dict[str, int]], Margins]
    epsilon: float
    delta: float
    l1: float
    rmse: float
    seconds: float | None = None

    @property
    def title(self) -> str:
        """The name of its lines."""
        privacy = f"({self.epsilon:g}, {self.delta:g})" if self.delta else f"ε = {self.epsilon:g}"
        return f"accuracy: {self.name} at {privacy}"

    @property
    def privacy(self) -> tb.PureDP | tb.ApproxDP:
        """What is promised."""
        return tb.ApproxDP(self.epsilon, self.delta) if self.delta else tb.PureDP(self.epsilon)


def up_to_two_way(levels: dict[str, int]) -> Margins:
    return tuple(m for order in (1, 2) for m in combinations(levels, order))


def small_three_way(levels: dict[str, int], *, cells: int = 20_000) -> list[tuple[str, ...]]:
    """Return the three-way margins of fewer cells, in the order of their attributes.

    >>> small_three_way({"a": 2, "b": 3, "c": 4, "d": 5}, cells=40)
    [('a', 'b', 'c'), ('a', 'b', 'd')]
    """
    return [m for m in combinations(levels, 3) if np.prod([levels[name] for name in m]) < cells]


def sampled_three_way(levels: dict[str, int]) -> Margins:
    return tuple(random.Random(0).sample(small_three_way(levels), 64))


WORKLOADS = (
    Workload("two-way", up_to_two_way, 1, 1e-9, l1=0.068, rmse=12.0, seconds=30.0),
    Workload("two-way-pure", up_to_two_way, 1, 0, l1=0.105, rmse=24.0),
    Workload("three-way", sampled_three_way, 1, 1e-9, l1=0.130, rmse=7.7),
)


def errors_of(exact: Sequence[Table], found: Sequence[Table]) -> Errors:
    """Return the errors of tables beside the exact ones of the same records.

    >>> errors_of([np.array([3, 1]), np.array([4])], [np.array([1, 1]), np.array([4])])
    Errors(l1=0.25, rmse=1.1547005383792515, worst=0.5)
    """
    people = exact[0].sum()
    apart = [np.abs(np.asarray(f, dtype=np.float64) - e) for e, f in zip(exact, found, strict=True)]
    cells = np.concatenate([a.reshape(-1) for a in apart])
    return Errors(
        l1=float(np.mean([a.sum() for a in apart]) / people),
        rmse=float(np.sqrt(np.mean(cells**2))),
        worst=float(cells.max() / people),
    )


def averaged(exact: Sequence[Table], answers: Sequence[Answer]) -> Result:
    errors = [errors_of(exact, answer.tables) for answer in answers]
    return Result(
        Errors(*(float(np.mean([getattr(e, name) for e in errors])) for name in ("l1", "rmse", "worst"))),
        float(np.mean([answer.seconds for answer in answers])),
        float(np.mean([answer.cpu_seconds for answer in answers])),
    )


@dataclass(frozen=True)
class Ours:
    """Our own system: how it plans, how it reconstructs, and whether its noise can be repeated."""

    mechanism: str
    reconstruct: str
    seeded: bool

    def release(self, question: Question, privacy: tb.PureDP | tb.ApproxDP) -> Answer:
        """Return the tables as a user gets them, standard errors included."""

        def make() -> list[Table]:
            records, plan = self._planned(question, privacy)
            released = tb.release(records, plan, sampler=self._sampler(question.seed))
            return [released[margin].counts for margin in question.margins]

        return timed(make)

    def tables(self, question: Question, privacy: tb.PureDP | tb.ApproxDP) -> Answer:
        """Return the tables alone, as the peers do."""

        def make() -> list[Table]:
            records, plan = self._planned(question, privacy)
            measured = measure(records.tally(plan.counted), plan, self._sampler(question.seed))
            made = reconstruct(measured)
            return [made.tables[margin] for margin in question.margins]

        return timed(make)

    def _planned(self, question: Question, privacy: tb.PureDP | tb.ApproxDP) -> tuple[tb.Records, tb.Plan]:
        domain = tb.Domain({name: range(count) for name, count in question.levels.items()})
        plan = tb.plan(
            domain,
            tb.Workload(domain, question.margins),
            privacy=privacy,
            mechanism=self.mechanism,
            reconstruct=self.reconstruct,
        )
        frame = pd.DataFrame(question.codes, columns=list(question.levels))
        return tb.Records.from_pandas(frame, domain), plan

    def _sampler(self, seed: int) -> Sampler:
        return ExactSampler(SeededEntropy(seed)) if self.seeded else ExactSampler()


@dataclass(frozen=True)
class Peer:
    """A system that answers the same question; `pure` says whether it can without δ.

    `cpu_target` is how many times less processor time ours shall take; noise alone plans and reconstructs nothing, so
    ours may take four times as long. A `slow` one runs fewer times.
    """

    name: str
    answer: Callable[[Question], Answer]
    pure: bool = True
    cpu_target: float = 0.25
    slow: bool = False

    def ask(self, question: Question) -> Answer:
        """Return its answer, or raise `CannotAnswer`."""
        if not question.delta and not self.pure:
            raise CannotAnswer("has no mechanism for pure ε")
        return self.answer(question)


def known_peers(aim_megabytes: float, seconds: float) -> Iterator[Peer]:
    try:
        from bench.peers.opendp_noise import noisy_margins, projected
    except ImportError:
        skipped(
            "accuracy", "OpenDP's noise on each margin", "is not installed: run `make bench NAME=accuracy`"
        )
    else:
        yield Peer("OpenDP's noise on each margin", noisy_margins)
        yield Peer("OpenDP's noise, projected", lambda question: projected(noisy_margins(question)))
    aim = functools.partial(answer_of, "opendp_model", aim_megabytes, seconds=seconds)
    yield Peer(f"OpenDP AIM, model of {aim_megabytes:g} MB at most", aim, cpu_target=100, slow=True)
    mst = Synthesizer("dpmm_model", MST_ITERATIONS, seconds)
    yield Peer(f"dpmm MST, {MST_ITERATIONS:,} iterations", mst, pure=False, cpu_target=50, slow=True)


def compared(
    bench: str, peer: str, ours: float, theirs: float, target: float, *, unit: str, **told: Any
) -> bool:
    """Print one comparison and return whether it reaches its target."""
    met = bool(theirs >= target * ours)
    line(bench, peer, ours, theirs, target, unit=unit, met=met, **told)
    return met


def skipped(bench: str, peer: str, why: str) -> None:
    print(json.dumps({"bench": bench, "peer": peer, "skipped": why}, ensure_ascii=False), flush=True)


def run(
    workload: Workload, questions: Sequence[Question], ours: Ours, peers: Sequence[Peer], *, slow_runs: int
) -> bool:
    """Print every line of one workload; return whether all its targets are met."""
    exact = [questions[0].counts(margin) for margin in questions[0].margins]
    # Compiled before the clock starts, as in every process after the first.
    ours.tables(questions[0], workload.privacy)
    whole = [ours.release(question, workload.privacy) for question in questions]
    bare = averaged(exact, [ours.tables(question, workload.privacy) for question in questions])
    mine = averaged(exact, whole)
    told: dict[str, Any] = {
        "margins": len(exact),
        "cells": sum(table.size for table in exact),
        "runs": len(questions),
        "largest_error_over_n": rounded(mine.errors.worst),
        "seconds": rounded(mine.seconds),
        "cpu_seconds": rounded(mine.cpu_seconds),
        "seconds_without_standard_errors": rounded(bare.seconds),
        "cpu_seconds_without_standard_errors": rounded(bare.cpu_seconds),
    }
    title = workload.title
    met = [
        compared(title, "the promise", mine.errors.l1, workload.l1, 1, unit=L1_UNIT, **told),
        compared(title, "the promise", mine.errors.rmse, workload.rmse, 1, unit=RMSE_UNIT, **told),
    ]
    if workload.seconds is not None:
        slowest = max(answer.seconds for answer in whole)
        unit = "s of the slowest release, standard errors included"
        met.append(compared(title, "the promise", slowest, workload.seconds, 1, unit=unit))
    for peer in peers:
        asked = questions[:slow_runs] if peer.slow else questions
        try:
            theirs = averaged(exact, [peer.ask(question) for question in asked])
        except CannotAnswer as refusal:
            skipped(title, peer.name, str(refusal))
            continue
        details = {
            "largest_error_over_n": rounded(mine.errors.worst),
            "peer_largest_error_over_n": rounded(theirs.errors.worst),
            "peer_seconds": rounded(theirs.seconds),
            "runs": len(questions),
            "peer_runs": len(asked),
        }
        pairs = (
            (mine.errors.l1, theirs.errors.l1, 1, L1_UNIT),
            (mine.errors.rmse, theirs.errors.rmse, 1, RMSE_UNIT),
            (bare.cpu_seconds, theirs.cpu_seconds, peer.cpu_target, CPU_UNIT),
        )
        met += [compared(title, peer.name, a, b, target, unit=u, **details) for a, b, target, u in pairs]
    return all(met)


def rounded(number: float) -> float:
    return float(f"{number:.4g}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--workload", choices=names, action="append", help="only this one; may be repeated")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="our own errors and their limits alone")
    parser.add_argument("--peer", action="append", help="only peers with this in their name; may be repeated")
    parser.add_argument("--peer-seconds", type=float, default=1800.0, help="for one run of one peer")
    parser.add_argument("--slow-runs", type=int, default=1, help="runs of a peer that takes minutes")
    parser.add_argument("--aim-megabytes", type=float, default=AIM_MEGABYTES, help="the size of AIM's model")
    parser.add_argument("--mechanism", default="residual")
    parser.add_argument("--reconstruct", default="shrink")
    parser.add_argument(
        "--seeded", action="store_true", help="repeatable noise of ours: for development only"
    )
    given = parser.parse_args()

    records, domain = DATA / "adult.csv", DATA / "adult-domain.json"
    if not (records.is_file() and domain.is_file()):
        where = "../shared/data/adult.csv and adult-domain.json"
        print(f"Skipped: bench.accuracy reads {where}, which are not there. Put them there and run it again.")
        return 0
    levels: dict[str, int] = json.loads(domain.read_text("utf-8"))
    codes = pd.read_csv(records)[list(levels)].to_numpy(np.int64)

    ours = Ours(given.mechanism, given.reconstruct, given.seeded)
    peers = [] if given.no_peers else list(known_peers(given.aim_megabytes, given.peer_seconds))
    peers = [peer for peer in peers if not given.peer or any(part in peer.name for part in given.peer)]
    met = True
    for workload in WORKLOADS:
        if given.workload and workload.name not in given.workload:
            continue
        margins = workload.margins(levels)
        ask = functools.partial(Question, levels, codes, margins, workload.epsilon, workload.delta)
        questions = [ask(seed=seed) for seed in range(given.runs)]
        met &= run(workload, questions, ours, peers, slow_runs=given.slow_runs)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
