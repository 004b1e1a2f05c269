"""Risk against utility of perturbed tables: the experiment of Rinott et al. (2018), section 5.6.2 and Figure 1."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument
from tabulary.infer.association import cramers_v
from tabulary.noise import ExactSampler, Sampler
from tabulary.perturb import Laplace, Normal, match_delta

Measure = Literal["cramers_v", "l1", "l2", "l3"]
MEASURES: tuple[Measure, ...] = ("cramers_v", "l1", "l2", "l3")

EPSILONS = ("0.1", "0.5", "1", "1.5", "2", "3")
BOUND = 7


@dataclass(frozen=True)
class Trial:
    """What one perturbation did to a table: Cramér's V of the result, and its losses a possible cell on average."""

    law: Laplace | Normal
    repetition: int
    cramers_v: float
    l1: float
    l2: float
    l3: float

    @property
    def family(self) -> str:
        """The name of the law's family."""
        return self.law.family

    @property
    def epsilon(self) -> Fraction:
        """The ε that the law names."""
        return self.law.epsilon


@dataclass(frozen=True)
class RiskUtility:
    """Many perturbations of one table by two families, at equal ε and as nearly as can be at equal δ.

    `truth` is Cramér's V of the table itself. The table is not in here, yet everything is computed from it:
    this is a study of a table that is public, and no release.
    """

    truth: float
    trials: tuple[Trial, ...]

    @property
    def laws(self) -> tuple[Laplace | Normal, ...]:
        """The laws compared, each once, in the order in which they were tried."""
        return tuple(dict.fromkeys(trial.law for trial in self.trials))

    def values(self, measure: Measure, law: Laplace | Normal) -> list[float]:
        """Return what one law made of one measure, a value for each repetition."""
        return [getattr(trial, measure) for trial in self.trials if trial.law == law]


def compared_laws(
    epsilons: Sequence[object] = EPSILONS, *, bound: int = BOUND
) -> tuple[Laplace | Normal, ...]:
    """Return for every ε the truncated Laplace law, then the Normal law whose bound has most nearly its δ.

    >>> [law.bound for law in compared_laws() if law.family == "normal"]
    [8, 10, 12, 12, 13, 14]
    """
    laplaces = [Laplace(epsilon, bound) for epsilon in epsilons]
    return tuple(law for one in laplaces for law in (one, match_delta(one, family=Normal)))


def risk_utility(
    table: Table,
    *,
    epsilons: Sequence[object] = EPSILONS,
    bound: int = BOUND,
    repetitions: int = 100,
    sampler: Sampler | None = None,
    progress: Progress | None = None,
) -> RiskUtility:
    """Return Cramér's V and the losses of many perturbations of a two-way table, negatives published as zero.

    A study of a public table: the exact counts enter every number, so nothing here is private. `progress` is
    called with (what, done, total) after every perturbation.

    >>> from tabulary import datasets
    >>> found = risk_utility(datasets.load("uk-census"), epsilons=["1/2"], repetitions=3)
    >>> round(found.truth, 5), [(law.family, law.bound) for law in found.laws]
    (0.25763, [('laplace', 7), ('normal', 10)])
    """
    if isinstance(repetitions, bool) or not isinstance(repetitions, int) or repetitions < 1:
        raise InvalidArgument(f"the number of repetitions is a positive whole number, not {repetitions!r}.")
    truth = cramers_v(table)
    laws = compared_laws(epsilons, bound=bound)
    trials = _trials(table, laws, repetitions, sampler or ExactSampler())
    total = len(laws) * repetitions
    kept = []
    for done, trial in enumerate(trials, start=1):
        kept.append(trial)
        if progress is not None:
            progress("perturbing", done, total)
    return RiskUtility(truth, tuple(kept))


def _trials(
    table: Table, laws: Sequence[Laplace | Normal], repetitions: int, sampler: Sampler
) -> Iterator[Trial]:
    for law in laws:
        for repetition in range(repetitions):
            published = law.apply(table, minimum=0, sampler=sampler).table
            yield Trial(law, repetition, **measured(table, published))


def measured(table: Table, published: Table) -> dict[Measure, float]:
    """Return Cramér's V of a published table, and its mean losses per possible cell.

    >>> from tabulary import datasets
    >>> census = datasets.load("uk-census")
    >>> measured(census, census)["l1"]
    0.0
    """
    # An impossible cell is not perturbed and loses nothing; it would flatter the average.
    possible = ~table.domain.impossible(table.domain.attributes)
    original, counts = table.counts[possible], published.counts[possible]
    change = np.abs(counts - original)
    roots = np.abs(np.sqrt(counts) - np.sqrt(original))
    return {
        "cramers_v": cramers_v(published),
        "l1": float(change.mean()),
        "l2": float((change**2).mean()),
        "l3": float(roots.mean()),
    }
