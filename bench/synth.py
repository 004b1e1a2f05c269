"""Synthetic rows of Adult beside those of another system at the same privacy: `python -m bench.synth`.

Adult, 48,842 records of 14 attributes, (1, 1e-9)-DP for neighbours that add or remove one record. Ours measures all
margins of up to two attributes (`residual`, reconstructed by `shrink`) and makes as many rows as it counts people
(`tb.synth.from_release`). Judged are the rows: the L1 distance of their shares from those of the records, averaged
over all margins of up to two attributes and over 64 random ones of three, of fewer than 20,000 cells each.

- the promise: what ours may be off by, the best that was measured of any system (google/dpsynth SWIFT).
- peers: MST of dpmm, built on `mbi`, in an environment of its own; ours shall be nearer and take a tenth of its
  processor time, from records in memory to rows in memory.

Ours runs three times with fresh noise and MST, which takes minutes, once unless `--slow-runs 3`. Exit code one if a
line misses its target.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

import tabulary as tb
from bench.accuracy import (
    CPU_UNIT,
    DATA,
    L1_UNIT,
    MST_ITERATIONS,
    Margins,
    compared,
    rounded,
    sampled_three_way,
    skipped,
    up_to_two_way,
)
from bench.peers.environment import answer_of
from bench.peers.question import Answer, CannotAnswer, Question, Table, timed
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.release import Release

EPSILON, DELTA = 1.0, 1e-9
TITLE = "synth: rows of Adult at (1, 1e-9)"
TENTH = 10


@dataclass(frozen=True)
class Promise:
    """Margins that rows are judged by, and the most that ours may be off by."""

    name: str
    margins: Margins
    l1: float


def our_rows(question: Question) -> Answer:
    """Return our synthetic rows, from records in memory: planning, measuring, reconstructing and drawing."""

    def make() -> list[Table]:
        domain = tb.Domain({name: range(count) for name, count in question.levels.items()})
        plan = tb.plan(
            domain,
            tb.Workload(domain, question.margins),
            privacy=tb.ApproxDP(question.epsilon, question.delta),
            mechanism="residual",
            reconstruct="shrink",
            rounding="none",
        )
        records = tb.Records.from_pandas(pd.DataFrame(question.codes, columns=list(question.levels)), domain)
        # Standard errors are left out, as in every system that it is compared with.
        release = Release(measure(records.tally(plan.counted), plan, ExactSampler()))
        return [tb.synth.from_release(release).codes.astype(np.int64)]

    return timed(make)


def off_by(question: Question, rows: Table, margins: Margins) -> float:
    """Return the L1 distance between the shares of rows and of records, averaged over margins."""
    people = question.codes.shape[0]
    apart = [
        np.abs(question.counts(m, rows) / rows.shape[0] - question.counts(m) / people).sum() for m in margins
    ]
    return float(np.mean(apart))


def mean_off(question: Question, answers: Sequence[Answer], margins: Margins) -> float:
    """Return the mean distance of several runs."""
    return float(np.mean([off_by(question, answer.tables[0], margins) for answer in answers]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--slow-runs", type=int, default=1, help="runs of a peer that takes minutes")
    parser.add_argument("--no-peers", action="store_true", help="our own errors and their limits alone")
    parser.add_argument("--peer-seconds", type=float, default=1800.0, help="for one run of one peer")
    given = parser.parse_args()

    records, domain = DATA / "adult.csv", DATA / "adult-domain.json"
    if not (records.is_file() and domain.is_file()):
        where = "../shared/data/adult.csv and adult-domain.json"
        print(f"Skipped: bench.synth reads {where}, which are not there. Put them there and run it again.")
        return 0
    levels: dict[str, int] = json.loads(domain.read_text("utf-8"))
    codes = pd.read_csv(records)[list(levels)].to_numpy(np.int64)
    asked = partial(Question, levels, codes, up_to_two_way(levels), EPSILON, DELTA)
    promises = (
        Promise("up to two-way", up_to_two_way(levels), 0.075),
        Promise("64 three-way", sampled_three_way(levels), 0.143),
    )

    # Compiled before the clock starts, as in every process after the first.
    our_rows(asked(seed=0))
    ours = [our_rows(asked(seed=seed)) for seed in range(given.runs)]
    cpu = float(np.mean([answer.cpu_seconds for answer in ours]))
    told = {"runs": given.runs, "rows": ours[0].tables[0].shape[0], "cpu_seconds": rounded(cpu)}
    question = asked(seed=0)
    errors = {promise.name: mean_off(question, ours, promise.margins) for promise in promises}
    met = [
        compared(f"{TITLE}, {p.name}", "the promise", errors[p.name], p.l1, 1, unit=L1_UNIT, **told)
        for p in promises
    ]
    if not given.no_peers:
        peer = f"dpmm MST, {MST_ITERATIONS:,} iterations"
        try:
            theirs = [
                answer_of("dpmm_model", MST_ITERATIONS, asked(seed=seed), seconds=given.peer_seconds)
                for seed in range(given.slow_runs)
            ]
        except CannotAnswer as refusal:
            skipped(TITLE, peer, str(refusal))
        else:
            for promise in promises:
                distance = mean_off(question, theirs, promise.margins)
                met.append(
                    compared(
                        f"{TITLE}, {promise.name}", peer, errors[promise.name], distance, 1, unit=L1_UNIT
                    )
                )
            time = float(np.mean([answer.cpu_seconds for answer in theirs]))
            met.append(compared(TITLE, peer, cpu, time, TENTH, unit=CPU_UNIT.replace("tables", "rows")))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
