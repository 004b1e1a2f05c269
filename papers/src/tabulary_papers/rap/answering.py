"""Every way to answer the same tables at the same promise, and how far off its answers are.

All of them promise (ε, δ) with δ = 1/n² to neighbours that replace a record: the number of people n is public. The
error is the paper's: the largest difference between a share that is answered and the true one, over all cells of all
tables that were asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tabulary import ApproxDP, Records, Release, Workload
from tabulary.core import Margin
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.planning import Plan, plan
from tabulary.studies import Lab, Row, Sheets
from tabulary.synth import SyntheticRecords, from_release, graphical, mwem, rap
from tabulary_papers.rap.people import AdultPeople, chosen_margins

Shares = Mapping[Margin, NDArray[np.float64]]


@dataclass(frozen=True)
class Fitting:
    """How hard relaxed rows are fitted: how many, and the steps of one round or of each of several."""

    relaxed_rows: int
    steps: int
    steps_a_round: int


@dataclass(frozen=True)
class RapQuestion:
    """Which tables, at which ε: `number` margins of `way` attributes, each of at most `largest` cells."""

    data: str
    way: int
    number: int
    epsilon: str
    largest: int


@dataclass(frozen=True)
class Job:
    """What one piece of work has at hand."""

    people: AdultPeople
    work: Workload
    privacy: ApproxDP
    lab: Lab
    fitting: Fitting
    rounds: int
    per_round: int
    repetition: int

    def records(self) -> Records:
        """Return the records, to be closed."""
        return Records.from_arrow(self.people.table, self.people.domain)

    def sampler(self, purpose: str) -> ExactSampler:
        """Return the exact sampler of this repetition, for noise or for rows."""
        return self.lab.sampler(purpose, str(self.repetition))


def answer(
    lab: Lab,
    question: RapQuestion,
    method: str,
    fitting: Fitting,
    rounds: int,
    per_round: int,
    repetitions: tuple[int, ...],
) -> Sheets:
    """Return how far off one way was on the tables of a question, in each of these repetitions."""
    people: AdultPeople = lab.material[question.data]
    work = chosen_margins(people.domain, question.way, question.number, largest=question.largest)
    privacy = ApproxDP(question.epsilon, Fraction(1, people.number**2))
    rows: list[Row] = []
    for repetition in repetitions:
        job = Job(people, work, privacy, lab, fitting, rounds, per_round, repetition)
        for series, shares in METHODS[method](job).items():
            largest_error, mean_l1 = _off_by(people, work, shares)
            rows.append(
                {
                    "data": question.data,
                    "way": question.way,
                    "margins": len(work),
                    "cells": sum(map(people.domain.cells, work.margins)),
                    "epsilon": float(privacy.epsilon),
                    "series": series,
                    "rounds": rounds,
                    "per_round": per_round,
                    "repetition": repetition,
                    "largest_error": largest_error,
                    "mean_l1": mean_l1,
                }
            )
    return {"errors": rows}


def _off_by(people: AdultPeople, work: Workload, shares: Shares) -> tuple[float, float]:
    truth = _true_shares(people, work)
    apart = [np.abs(shares[margin] - truth[margin]) for margin in work]
    return float(max(each.max() for each in apart)), float(np.mean([each.sum() for each in apart]))


@lru_cache(maxsize=8)
def _true_shares(people: AdultPeople, work: Workload) -> Shares:
    with Records.from_arrow(people.table, people.domain) as records:
        tally = records.tally(work.margins)
    return {margin: tally.exact(margin) / people.number for margin in work}


def _of_rows(rows: SyntheticRecords, work: Workload) -> Shares:
    return {margin: rows.table(*margin).counts / len(rows) for margin in work}


def _rap(job: Job, *, adaptive: bool, printed: bool = False) -> Shares:
    with job.records() as records:
        made = rap(
            records,
            job.work,
            job.privacy,
            rounds=job.rounds if adaptive else 1,
            per_round=job.per_round if adaptive else None,
            neighbours="replace",
            accounting="printed" if printed else "tight",
            relaxed_rows=job.fitting.relaxed_rows,
            steps=job.fitting.steps_a_round if adaptive else job.fitting.steps,
            sampler=job.sampler("noise"),
            entropy=job.sampler("rows").entropy,
        )
    return _of_rows(made, job.work)


@lru_cache(maxsize=2)
def _planned(work: Workload, privacy: ApproxDP, people: int) -> Plan:
    return plan(
        work.domain,
        work,
        privacy=privacy,
        neighbours="replace",
        mechanism="residual",
        reconstruct="shrink",
        rounding="none",
        records=people,
    )


def _released(job: Job) -> dict[str, Shares]:
    made = _planned(job.work, job.privacy, job.people.number)
    with job.records() as records:
        measurement = measure(records.tally(made.counted), made, job.sampler("noise"))
    entropy = job.sampler("rows").entropy
    release = Release(measurement)
    tables = {m: np.asarray(release.face.table(m), dtype=np.float64) for m in job.work}
    rows = from_release(release, job.people.number, entropy=entropy)
    return {
        TABLES: {margin: table / job.people.number for margin, table in tables.items()},
        ROWS: _of_rows(rows, job.work),
    }


def _synthesized(synthesizer: Callable[..., SyntheticRecords], job: Job) -> Shares:
    with job.records() as records:
        made = synthesizer(
            records,
            job.work,
            job.privacy,
            neighbours="replace",
            rows=job.people.number,
            sampler=job.sampler("noise"),
            entropy=job.sampler("rows").entropy,
        )
    return _of_rows(made, job.work)


def _nothing(job: Job) -> Shares:
    """Return even shares over all possible cells of the full table, which spend nothing."""
    found = {}
    for margin in job.work:
        possible = job.people.domain.multiplicity(margin).astype(np.float64)
        found[margin] = possible / possible.sum()
    return found


ONCE, ADAPTIVE, PRINTED = "RAP, one round", "RAP, adaptive", "RAP, one round, printed accounting"
TABLES, ROWS = "planned release, tables", "planned release, rows"
MWEM, GRAPHICAL, NOTHING = "MWEM", "graphical model", "even shares, nothing spent"

METHODS: Mapping[str, Callable[[Job], Mapping[str, Shares]]] = {
    "rap": lambda job: {ONCE: _rap(job, adaptive=False)},
    "rap-printed": lambda job: {PRINTED: _rap(job, adaptive=False, printed=True)},
    "rap-adaptive": lambda job: {ADAPTIVE: _rap(job, adaptive=True)},
    "release": _released,
    "mwem": lambda job: {MWEM: _synthesized(mwem, job)},
    "graphical": lambda job: {GRAPHICAL: _synthesized(graphical, job)},
    "nothing": lambda job: {NOTHING: _nothing(job)},
}
