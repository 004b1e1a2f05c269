"""What a tally on a cluster costs, as a sum of steps with rates that can be measured; see `bench.scale`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Self

import numpy as np
from scipy.optimize import nnls

from bench.tabulate import DOMAIN, LEVELS, margins
from tabulary.confidential.cover import cover
from tabulary.core.domain import Domain, Margin

# What Spark reads in one task by default, and in how many tasks the engine counts at most.
TASK_BYTES = 128 << 20
TASKS, TASKS_A_CORE = 200, 4

SENT_BYTES = 4
"""The most bytes of a counter on its way, below 2^32 records a task: it is sent in as few as its block allows."""

WIDE = Domain({f"a{i:02}": range(n) for i, n in enumerate(LEVELS + LEVELS)})
"""Forty attributes: those of `bench.tabulate`, and as many again with the same numbers of levels."""

FACTOR = 1.5
"""How far a prediction may be off, either way."""


@dataclass(frozen=True)
class Job:
    """A tally: records of so many attributes, in so many tasks; how many margins cover the wanted, and their cells."""

    records: int
    attributes: int
    margins: int
    super_margins: int
    cells: int
    tasks: int

    @classmethod
    def of(cls, domain: Domain, wanted: Sequence[Margin], records: int, tasks: int) -> Self:
        """Return the tally of some margins, covered as the engine covers them."""
        found, cells = _covered(domain, tuple(wanted))
        return cls(records, len(domain.attributes), len(wanted), found, cells, tasks)


@cache
def _covered(domain: Domain, wanted: tuple[Margin, ...]) -> tuple[int, int]:
    found = cover(domain, wanted)
    return len(found), sum(domain.cells(each.margin) for each in found)


@dataclass(frozen=True)
class Run:
    """A job that has run: the best of its rounds, what it moved, and the peak of the driver's Python and its Java."""

    job: Job
    seconds: float
    shuffled: int
    collected: int
    driver_bytes: float


@dataclass(frozen=True)
class ScaleModel:
    """What a tally on a cluster costs, from rates that can be measured: a sum of steps, each a rate times its uses.

    Tasks come in waves, one task a core, and the last wave may leave cores idle. What a task does gets faster with more
    cores; what the driver does, does not. The driver's memory does not depend on the number of records.

    >>> model = ScaleModel(1, 0.1, 20e-9, 1e-9, 5e-9, 50e-9, 600e6, 30)
    >>> job = Job(records=10**9, attributes=20, margins=254, super_margins=29, cells=300_000, tasks=64)
    >>> f"{model.seconds(job, cores=16):.0f} s, {model.records_a_second(job):,.0f} records a second and core"
    '28 s, 2,331,002 records a second and core'
    """

    start: float
    """Seconds of a job without tasks: planned by the driver, announced to the cluster, answered."""

    task: float
    """Seconds of a task without records."""

    value: float
    """Seconds a value of a record: read, recoded and packed by Spark, sent to Python, unpacked, admitted."""

    count: float
    """Seconds a record and covering margin."""

    counter: float
    """Seconds a counter and task: zeroed, sent, shuffled, added to those of other tasks."""

    answer: float
    """Seconds a counter on the driver: received, and summed to the wanted margins."""

    driver: float
    """Bytes of a driver in any case, Python and Java."""

    driver_counter: float
    """Bytes of a driver a counter."""

    def seconds(self, job: Job, *, cores: int) -> float:
        """Return the seconds on the wall of a job on so many cores."""
        rates = (self.start, self.task, self.value, self.count, self.counter, self.answer)
        return float(np.dot(rates, uses(job, cores=cores)))

    def records_a_second(self, job: Job) -> float:
        """Return how many records a core takes in a second, what starts and ends a job left aside."""
        seconds = self.value * job.attributes + self.count * job.super_margins
        return 1 / seconds if seconds else math.inf

    def driver_bytes(self, job: Job) -> float:
        """Return the peak memory of the driver."""
        return self.driver + self.driver_counter * job.cells

    @classmethod
    def fitted(cls, runs: Sequence[Run], *, cores: int) -> Self:
        """Return the rates that miss the runs by least, each as a share of its seconds; none is below zero."""
        seconds = np.array([run.seconds for run in runs])
        used = np.array([uses(run.job, cores=cores) for run in runs])
        rates, _ = nnls(used / seconds[:, None], np.ones(len(runs)))
        memory = np.array([run.driver_bytes for run in runs])
        held = np.array([(1, run.job.cells) for run in runs])
        resident, _ = nnls(held / memory[:, None], np.ones(len(runs)))
        return cls(*rates.tolist(), *resident.tolist())


def uses(job: Job, *, cores: int) -> tuple[float, ...]:
    """Return how often a job pays each rate of seconds, one after the other, where most is to be done.

    >>> uses(Job(records=900, attributes=2, margins=5, super_margins=3, cells=10, tasks=3), cores=2)
    (1, 2, 1200.0, 1800.0, 20, 10)
    """
    waves = math.ceil(job.tasks / cores)
    records = waves * job.records / job.tasks
    return (1, waves, records * job.attributes, records * job.super_margins, waves * job.cells, job.cells)


def shuffled_bytes(job: Job) -> int:
    """Return the most bytes that the tasks of a job send to each other."""
    return SENT_BYTES * job.cells * job.tasks


def tasks_of(records: int, bytes_a_record: float, cores: int) -> int:
    """Return in how many tasks Spark and the engine count the records of large files on so many cores.

    >>> tasks_of(10**9, 8, 16), tasks_of(10**9, 8, 256), tasks_of(10**10, 16, 64)
    (60, 256, 256)
    """
    parts = max(cores, math.ceil(records * bytes_a_record / TASK_BYTES))
    return min(parts, max(TASKS, TASKS_A_CORE * cores))


def within(measured: float, predicted: float) -> bool:
    """Return whether a prediction is off by no more than the factor that is allowed, either way.

    >>> within(10, 14), within(14, 10), within(10, 16), within(16, 10)
    (True, True, False, False)
    """
    return max(measured, predicted) <= FACTOR * min(measured, predicted)


def wanted_of(domain: Domain) -> list[Margin]:
    """Return the margins that are counted of a domain: 254, or 9,880."""
    return margins() if domain is DOMAIN else list(combinations(domain.attributes, 3))
