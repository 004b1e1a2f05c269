r"""Margins chosen one after another, each where the error of a model is larger than noise explains.

The mechanism AIM of McKenna, Mullins, Sheldon & Miklau (2022), drawn exactly. All tables by one attribute are measured
first. Then each round chooses a margin from the downward closure of the workload, measures it, and fits the model to
all measurements so far. The kind of model does not matter here: it is made of noisy counts, so it is public.

**What is chosen.** The score of margin r with n_r possible cells, where noise of variance σ² would be added, is

    w_r · (Σ|count - model's count| - √(2/π) σ n_r),    w_r = Σ_s c_s |r ∩ s| over the asked margins s of weight c_s:

the error of the model, less the error of a measurement (the mean of |N(0, σ²)| is √(2/π) σ), times the part of the
workload that the margin touches. All scores are whole numbers: the model's counts and the subtracted term are public
and rounded, and w_r is counted in parts of the largest.

**Sensitivity.** A record is in one cell of r and moves one |count - model's count| by one, or two of them where
neighbours replace it. So a person of c records moves the score by at most c·w_r, or 2c·w_r, and Δ is that of the
largest w_r among the candidates of the round, which are public.

**Accounting.** ρ is cut into T parts. A table by one attribute takes nine tenths of a part, a round a whole one: nine
tenths measure with variance Δ₂²/(2ρ'), a tenth chooses at rate √(2ρ')/Δ (`selection`). If a measurement moved the
model by no more than its noise would, later rounds take four times as much, and so have half the noise. A round that
would leave less than its own share takes all that is left, so the shares always add up to ρ. The shares depend on
earlier draws. This costs nothing: Rényi divergences compose fully adaptively (Feldman & Zrnic 2021).
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ZCDP, ApproxDP, approx_to_zcdp, describe_privacy
from tabulary.core.progress import Progress
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, InvalidPrivacy
from tabulary.noise import DiscreteGaussian, Sampler
from tabulary.synth.asking import asked_workload, named_domain, whole_person
from tabulary.synth.selection import noisy_largest

Counts = NDArray[np.int64]

# As in the paper.
_MEASURING = Fraction(9, 10)
_PARTS_PER_ATTRIBUTE = 16
# A margin's weight is counted in parts of the largest: weights may have any size, and scores fit easily into 64 bits.
_WEIGHT_PARTS = 1 << 16


@dataclass(frozen=True, eq=False)
class Observed:
    """The noisy counts of a margin and their noise. Public. Impossible cells hold zero."""

    margin: Margin
    counts: Counts
    noise: DiscreteGaussian


class Model(Protocol):
    """The model after some measurements. Public."""

    def table(self, margin: Margin) -> Floats:
        """Return the model's counts of a margin."""
        ...


_Model = TypeVar("_Model", bound=Model, covariant=True)


class Learner(Protocol[_Model]):
    """Makes models of measurements, and says which margins fit its memory. It sees only public data."""

    def eligible(
        self, candidates: Sequence[Margin], measured: Sequence[Margin], part: Fraction
    ) -> list[Margin]:
        """Return the candidates that fit a model together with the measured margins, in `part` of its memory."""
        ...

    def fit(self, observed: Sequence[Observed], people: float, *, last: bool) -> _Model:
        """Return the model of all measurements."""
        ...


@dataclass(frozen=True, eq=False)
class AdaptivePlan:
    """The candidates of a run, and the noise that a part of its budget buys. Made without data.

    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> plan = AdaptivePlan.of(domain, "[sex job]", ZCDP(1), rounds=9, memory=2**20)
    >>> plan.candidates
    (('sex',), ('job',), ('sex', 'job'))
    >>> plan.share, plan.noise(plan.share)
    (Fraction(1, 9), DiscreteGaussian(variance_parameter=Fraction(5, 1)))
    """

    domain: Domain
    asked: Workload
    privacy: ApproxDP | ZCDP
    neighbours: Neighbours
    rounds: int
    memory: int

    @classmethod
    def of(
        cls,
        domain: Domain,
        work: Workload | str,
        privacy: ApproxDP | ZCDP,
        *,
        memory: int,
        rounds: int | None = None,
        neighbours: Relation | Neighbours = "add-remove",
    ) -> "AdaptivePlan":
        """Return the plan, or raise an error before any data is read."""
        asked = asked_workload(domain, work)
        small = named_domain(asked)
        if not isinstance(privacy, ApproxDP | ZCDP):
            raise InvalidPrivacy(
                f"margins are measured with Gaussian noise, which promises ApproxDP(ε, δ) or ZCDP(ρ), not {privacy!r}. "
                "Nothing was measured. Choose a δ far smaller than one over the number of people."
            )
        near = whole_person(neighbours, "a graphical model")
        parts = _PARTS_PER_ATTRIBUTE * len(small.attributes) if rounds is None else rounds
        if isinstance(parts, bool) or not isinstance(parts, int) or parts < len(small.attributes):
            raise InvalidArgument(
                "rounds must be a whole number, at least the number of attributes, here "
                f"{len(small.attributes)}, because these are measured first; not {parts!r}. Nothing was "
                "measured."
            )
        return cls(small, Workload(small, asked.margins, asked.weights), privacy, near, parts, memory)

    @cached_property
    def rho(self) -> Fraction:
        """The whole cost, as zero-concentrated differential privacy."""
        return self.privacy.rho if isinstance(self.privacy, ZCDP) else approx_to_zcdp(self.privacy).rho

    @property
    def share(self) -> Fraction:
        """The ρ of a part."""
        return self.rho / self.rounds

    @property
    def total_is_public(self) -> bool:
        """Whether neighbours have the same number of counted records."""
        return self.neighbours.total_is_public

    @cached_property
    def candidates(self) -> tuple[Margin, ...]:
        """The tables by one attribute, and all margins of requested margins that would fit the memory alone."""
        return tuple(
            margin
            for margin in self.asked.closure().margins
            if len(margin) == 1 or (margin and 8 * self.domain.cells(margin) <= self.memory)
        )

    @cached_property
    def weights(self) -> dict[Margin, int]:
        """The part of the workload that a margin touches, in parts of the largest."""
        touched = {
            margin: sum(
                weight * len(set(margin) & set(asked))
                for asked, weight in zip(self.asked.margins, self.asked.weights, strict=True)
            )
            for margin in self.candidates
        }
        most = max(touched.values())
        return {margin: math.ceil(_WEIGHT_PARTS * weight / most) for margin, weight in touched.items()}

    def score_sensitivity(self, candidates: Sequence[Margin]) -> int:
        """Return the largest change of a score of these candidates by one person."""
        moved = self.neighbours.records * self.neighbours.moved
        return moved * max(self.weights[margin] for margin in candidates)

    def noise(self, share: Fraction) -> DiscreteGaussian:
        """Return the noise of each cell of a margin in a round of this share."""
        # One person moves one cell by c, or two of them: the L2 norm, squared.
        moved = self.neighbours.records**2 * self.neighbours.moved
        return DiscreteGaussian(moved / (2 * _MEASURING * share))

    def possible(self, margin: Margin) -> NDArray[np.bool_]:
        """Return which cells of a margin are possible."""
        return ~self.domain.impossible(margin)

    def noise_expected(self, margin: Margin, share: Fraction) -> float:
        """Return the mean L1 norm of the noise of a margin."""
        spread = float(self.noise(share).variance_parameter)
        return math.sqrt(2 / math.pi * spread) * int(self.possible(margin).sum())

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the whole request."""
        told = {
            "synthesizer": "graphical",
            "domain": self.domain.describe(),
            "margins": self.asked.margins,
            "weights": [show_fraction(weight) for weight in self.asked.weights],
            "privacy": describe_privacy(self.privacy),
            "neighbours": str(self.neighbours),
            "rounds": self.rounds,
            "memory": self.memory,
        }
        canonical = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def learned(
    plan: AdaptivePlan,
    exact: Mapping[Margin, Counts],
    learner: Learner[_Model],
    sampler: Sampler,
    progress: Progress | None = None,
) -> tuple[_Model, list[Observed]]:
    """Return the model after all rounds, and all measurements; both are public. Spends the plan's privacy."""
    share = plan.share
    observed = [measured(plan, exact, (name,), share, sampler) for name in plan.domain.attributes]
    left = plan.rho - len(observed) * _MEASURING * share
    model = learner.fit(observed, people_of(plan, exact, observed), last=False)
    while left:
        if left < 2 * share:
            share = left
        left -= share
        seen = [each.margin for each in observed]
        candidates = learner.eligible(plan.candidates, seen, 1 - left / plan.rho)
        margin = chosen(plan, exact, model, candidates, share, sampler)
        observed.append(measured(plan, exact, margin, share, sampler))
        before, model = model, learner.fit(observed, people_of(plan, exact, observed), last=not left)
        moved = float(np.abs(model.table(margin) - before.table(margin)).sum())
        if moved <= plan.noise_expected(margin, share):
            share *= 4
        if progress:
            progress("learning from margins", int(100 * (1 - left / plan.rho)), 100)
    return model, observed


def margin_scores(
    plan: AdaptivePlan,
    exact: Mapping[Margin, Counts],
    model: Model,
    candidates: Sequence[Margin],
    share: Fraction,
) -> Counts:
    """Return by how much the model's error on each candidate exceeds that of a measurement. Confidential."""
    return np.array(
        [
            plan.weights[m]
            * (
                int(np.abs(exact[m] - np.rint(model.table(m)).astype(np.int64)).sum())
                - round(plan.noise_expected(m, share))
            )
            for m in candidates
        ],
        dtype=np.int64,
    )


def chosen(
    plan: AdaptivePlan,
    exact: Mapping[Margin, Counts],
    model: Model,
    candidates: Sequence[Margin],
    share: Fraction,
    sampler: Sampler,
) -> Margin:
    """Return the margin of a round, by the exponential mechanism. Spends a tenth of the share."""
    scores = margin_scores(plan, exact, model, candidates, share)
    place = noisy_largest(
        scores,
        1,
        rho=(1 - _MEASURING) * share,
        sensitivity=plan.score_sensitivity(candidates),
        sampler=sampler,
    )
    return candidates[int(place[0])]


def measured(
    plan: AdaptivePlan, exact: Mapping[Margin, Counts], margin: Margin, share: Fraction, sampler: Sampler
) -> Observed:
    """Return the noisy counts of a margin. Spends nine tenths of the share."""
    noise = plan.noise(share)
    counts = exact[margin] + sampler.draw(noise, exact[margin].shape)
    return Observed(margin, np.where(plan.possible(margin), counts, 0), noise)


def people_of(plan: AdaptivePlan, exact: Mapping[Margin, Counts], observed: Sequence[Observed]) -> float:
    """Return the number of people: the exact one where it is public, else the least noisy mean of measured totals."""
    if plan.total_is_public:
        return max(1.0, float(next(iter(exact.values())).sum()))
    precision = np.array(
        [1 / (float(o.noise.variance_parameter) * plan.possible(o.margin).sum()) for o in observed]
    )
    totals = np.array([float(o.counts.sum()) for o in observed])
    return max(1.0, float(precision @ totals / precision.sum()))
