"""Suppression beside noise, on one table: the comparison of Nabar & Mishra (2010), Figures 4 and 5.

Both publish the same table of people whose number in each cell is public. A suppressed cell says nothing; a published
one is exact. A perturbed table says something about every cell, and some of it is far off. The two ε have nothing but
the letter in common: that of semantic privacy bounds what somebody *who knows the prior and nobody's value* learns of a
person, that of differential privacy what somebody learns who knows everybody else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.privacy import PureDP
from tabulary.core.table import Table
from tabulary.datasets import Dataset
from tabulary.errors import InvalidPlan
from tabulary.noise import ExactSampler, Sampler
from tabulary.planning import plan
from tabulary.studies.differencing import Proportion
from tabulary.suppress import simulatable
from tabulary.workflows import release

Progress = Callable[[str, int, int], None]

SUPPRESSION = "suppression"
_FAR = 0.25


@dataclass(frozen=True)
class Distortion:
    """What one way of publishing a table leaves of it.

    `distorted` counts the published cells that are off by more than a quarter of their true value, over all
    repetitions; `root_mean_square` is their error.
    """

    method: str
    suppressed: int
    released: int
    distorted: Proportion
    root_mean_square: float
    table: Table | None = None


def against_noise(
    data: Dataset,
    *,
    epsilon: float | str = "1/2",
    delta: float = 0.2,
    mechanisms: Iterable[str] = ("fourier", "cells"),
    repetitions: int = 20,
    sampler: Sampler | None = None,
    progress: Progress | None = None,
) -> tuple[Distortion, ...]:
    """Return how a table fares under simulatable suppression and under each mechanism with noise.

    `data` carries `people` and `probability`, as `hair-eye-gene` and `carriers()` do. `fourier` is the mechanism that
    the paper compares with, reconstructed by the linear program and rounded to the nearest whole number; `cells` adds
    noise to each count. The last perturbed table is kept to be looked at. Runs on published or made-up tables only: it
    compares with the truth, so nothing of it may be published.
    """
    if data.people is None or data.probability is None:
        raise InvalidPlan(
            f"dataset {data.name!r} does not say how many people its cells hold and how likely each is to be counted. "
            "Use 'hair-eye-gene', or tb.datasets.carriers()."
        )
    if repetitions < 1:
        raise InvalidPlan(f"{repetitions} repetitions show nothing; ask for 1 or more.")
    privacy = PureDP(epsilon)
    shown = simulatable(
        data.people, data.table, data.probability, float(privacy.epsilon), delta, progress=progress
    )
    found = [_suppressed(data.table, shown.counts)]
    draw = sampler or ExactSampler()
    for name in mechanisms:
        found.append(_perturbed(data.table, privacy, name, repetitions, draw, progress))
    return tuple(found)


def _suppressed(truth: Table, shown: NDArray[np.float64]) -> Distortion:
    published = ~np.isnan(shown)
    errors = (shown - truth.counts)[published]
    return Distortion(
        SUPPRESSION,
        suppressed=int((~published).sum()),
        released=int(published.sum()),
        distorted=_far_off(errors, truth.counts[published]),
        root_mean_square=float(np.sqrt(np.mean(errors**2))) if errors.size else 0.0,
    )


def _perturbed(
    truth: Table, privacy: PureDP, name: str, repetitions: int, sampler: Sampler, progress: Progress | None
) -> Distortion:
    attributes = truth.domain.attributes
    # The linear program keeps the codes that stand for no level at zero; plain cells need no program.
    coded = name == "fourier"
    made = plan(
        truth.domain,
        f"[{' '.join(attributes)}]",
        privacy=privacy,
        mechanism=name,
        reconstruct="lp" if coded else "none",
        rounding="nearest" if coded else "none",
    )
    errors = np.empty((repetitions, truth.domain.size))
    for repetition in range(repetitions):
        table = release(truth, made, sampler=sampler)[attributes]
        errors[repetition] = (table.counts - truth.counts).ravel()
        if progress:
            progress(f"perturbing ({name})", repetition + 1, repetitions)
    return Distortion(
        name,
        suppressed=0,
        released=truth.domain.size,
        distorted=_far_off(errors, truth.counts.ravel()),
        root_mean_square=float(np.sqrt(np.mean(errors**2))),
        table=Table(truth.domain, table.counts),
    )


def _far_off(errors: NDArray[np.float64], truth: NDArray[Any]) -> Proportion:
    far = np.abs(errors) > _FAR * truth
    return Proportion(int(far.sum()), max(1, far.size))
