"""The audit of a plan, from the first pair of records to the verdict."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from tabulary.core.privacy import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Loss,
    PureDP,
    describe_privacy,
    gaussian_delta,
    zcdp_to_approx,
)
from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument
from tabulary.noise import Entropy, ExactSampler, Sampler, SystemEntropy
from tabulary.planning import Plan
from tabulary.workflows.auditing.cost import CostCheck, change_between, check_cost, laws_of
from tabulary.workflows.auditing.curve import LossLaw, Moved, privacy_curve, statistic_law
from tabulary.workflows.auditing.evidence import (
    SABOTAGED,
    Evidence,
    Inputs,
    NarrowedSampler,
    clopper_pearson,
    gather,
)
from tabulary.workflows.auditing.records import InventedRecord, numbers_of

CONFIDENCE = 0.999999
"""The audit calls a sound mechanism broken at most once in a million runs."""

FEWEST_DRAWS = 1_000
MOST_DRAWS = 1_000_000
"""The audit goes no further by itself; whoever asks for more draws gets them."""

# Small plans get more draws than the twin needs: they cost seconds and show the loss more closely.
_CHEAP_DRAWS = 2_000
_CHEAP_NUMBERS = 1_000
# So many persons change at once that the inputs lie this many standard deviations of the noise apart. The promise to
# one person fixes the promise to several, and a small ε is not seen in few draws otherwise.
_DISTANCES = (1.5, 2.5, 4.0)
# A number may move by this much and still fit 64 bits with its noise.
_FURTHEST = 2**40
_EVENTS = 10
# The twin is planned to be caught even if every count lies this many deviations on the wrong side.
_DEVIATIONS = 4.0

AuditVerdict = Literal["holds", "broken", "inconclusive"]


@dataclass(frozen=True)
class AuditReport:
    """What an audit of a plan found.

    `cost` is the plan's cost, computed again. `drawn` is what draws from the mechanism show, `twin` what draws from a
    mechanism show whose noise has 0.7 times the scale that the plan says.
    """

    plan: Plan
    cost: CostCheck
    drawn: Evidence
    twin: Evidence
    confidence: float

    @property
    def twin_caught(self) -> bool:
        """Whether the audit finds noise that is too small by the factor 0.7."""
        return self.twin.broken

    @property
    def verdict(self) -> AuditVerdict:
        """Return `broken` if anything does not hold, `inconclusive` if the audit could not have found it."""
        if self.problems:
            return "broken"
        return "holds" if self.twin_caught else "inconclusive"

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not hold, in sentences."""
        found = list(self.cost.problems)
        loss, shown = self.plan.loss, self.loss_shown(self.drawn)
        if self.drawn.broken:
            found.append("the draws tell neighbouring inputs apart better than the noise of the plan allows")
        if shown is not None and _amount(shown) > _amount(loss):
            found.append(f"the draws show a loss of at least {_about(shown)}, above the plan's {loss}")
        if isinstance(loss, PureDP) and self.drawn.epsilon > loss.epsilon:
            found.append(f"an event alone shows ε ≥ {self.drawn.epsilon:.4g}, above the plan's {loss}")
        return tuple(found)

    def loss_shown(self, evidence: Evidence) -> Loss | None:
        """Return the least loss of one person that explains the draws, by noise of the plan's shape; None if any does.

        The scale of the noise is what remains open: a loss f times as large has noise of 1/f times the scale.
        """
        factor = Fraction(evidence.factor)
        if not factor:
            return None
        cost = self.cost.found
        match self.plan.loss:
            case PureDP():
                return PureDP(factor * cost)
            case ZCDP():
                return ZCDP(factor**2 * cost)
            case GaussianDP():
                return GaussianDP(factor**2 * cost)

    def epsilon_shown(self, evidence: Evidence) -> float | None:
        """Return `loss_shown` as ε at the δ of the promise; None where the promise is of zCDP."""
        shown = self.loss_shown(evidence)
        if isinstance(self.plan.privacy, ZCDP):
            return None
        if shown is None:
            return 0.0
        if isinstance(shown, PureDP):
            return float(shown.epsilon)
        assert isinstance(self.plan.privacy, ApproxDP)
        delta = self.plan.privacy.delta
        if isinstance(shown, ZCDP):
            return float(zcdp_to_approx(shown, delta).epsilon)
        low, high = 0.0, 1.0
        while gaussian_delta(high, shown.rho) > delta:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(middle, shown.rho) > delta else (low, middle)
        return low

    def describe(self) -> dict[str, object]:
        """Return the report as plain data."""
        cost = self.cost
        return {
            "verdict": self.verdict,
            "problems": list(self.problems),
            "plan_digest": self.plan.digest(),
            "mechanism": self.plan.mechanism,
            "promise": describe_privacy(self.plan.privacy),
            "loss": describe_privacy(self.plan.loss),
            "neighbours": str(self.plan.neighbours),
            "confidence": self.confidence,
            "cost": {
                "method": "every pair" if cost.every_pair else "certificate",
                "records": cost.records,
                "pairs": cost.pairs,
                "largest_found": str(cost.found),
                "certificate": str(cost.certificate),
                "worst_pair": [None if r is None else self._named(r) for r in cost.worst],
            },
            "draws": self._described(self.drawn),
            "twin": {"scale": str(SABOTAGED), "caught": self.twin_caught, **self._described(self.twin)},
        }

    def _named(self, record: InventedRecord) -> dict[str, str]:
        return {
            a: self.plan.domain.levels_of(a)[i]
            for a, i in zip(self.plan.domain.attributes, record, strict=True)
        }

    def _described(self, evidence: Evidence) -> dict[str, object]:
        shown = self.loss_shown(evidence)
        return {
            "draws_of_each_input": evidence.draws,
            "people": evidence.people,
            "loss_at_least": None if shown is None else _amount(shown),
            "epsilon_at_least": self.epsilon_shown(evidence),
            "epsilon_of_one_event_at_least": evidence.epsilon,
            "events": [
                {
                    "epsilon": event.threshold,
                    "direction": "with against without" if event.forward else "without against with",
                    "seen": [event.likely, event.unlikely],
                    "delta_at_least": max(event.delta, 0.0),
                    "delta_allowed": event.allowed,
                }
                for event in evidence.events
            ],
        }


def audit(
    plan: Plan,
    *,
    draws: int | None = None,
    confidence: float = CONFIDENCE,
    entropy: Entropy | None = None,
    sampler: Sampler | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Return what an audit of the plan's mechanism finds. Reads no records and spends nothing.

    `draws` is how often each of the two inputs is measured; without it, as often as it takes to catch the twin. The
    draws are the exact sampler's, made from `entropy`; `sampler` is for whoever wants to audit another one.

    >>> import tabulary as tb
    >>> domain = tb.Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> report = audit(tb.plan(domain, "[sex job]", privacy=tb.PureDP(1)))
    >>> report.verdict, report.twin_caught
    ('holds', True)
    >>> print(report.cost.cost, report.cost.pairs)
    1 4
    """
    if draws is not None and draws < FEWEST_DRAWS:
        raise InvalidArgument(
            f"an audit needs at least {FEWEST_DRAWS:,} draws, not {draws:,}. Nothing was drawn. Leave the number "
            "out: then the audit makes as many draws as it needs to catch noise that is too small."
        )
    if not 0.5 <= confidence < 1:
        raise InvalidArgument(
            f"the confidence of an audit must lie between 0.5 and 1, such as {CONFIDENCE}, not {confidence}. Nothing "
            "was drawn."
        )
    source = entropy or SystemEntropy()
    drawing = sampler or ExactSampler(source)
    shown = progress or (lambda *_: None)
    cost = check_cost(plan, source, shown)
    # A second round, if the twin escaped in the first, is paid from the same confidence.
    error = (1 - confidence) / 2
    trial = _planned(plan, cost, error)
    wanted = draws or max(trial.needed, min(_CHEAP_DRAWS, _CHEAP_DRAWS * _CHEAP_NUMBERS // numbers_of(plan)))
    report = trial.run(drawing, wanted, error, confidence, shown)
    if report.verdict == "inconclusive" and draws is None and wanted < MOST_DRAWS:
        report = trial.run(drawing, min(4 * wanted, MOST_DRAWS), error, confidence, shown)
    return report


@dataclass(frozen=True, eq=False)
class _Trial:
    """The two inputs, the events that are counted, and the number of draws that will catch the twin."""

    plan: Plan
    cost: CostCheck
    moved: tuple[Moved, ...]
    people: int
    thresholds: tuple[float, ...]
    needed: int

    def run(
        self, sampler: Sampler, draws: int, error: float, confidence: float, progress: Progress
    ) -> AuditReport:
        inputs = _inputs(self.plan, self.cost, self.people)

        @lru_cache
        def curve(factor: Fraction) -> LossLaw:
            return privacy_curve([Moved(m.law.narrowed(factor), m.size, m.numbers) for m in self.moved])

        def gathered(drawing: Sampler, what: str) -> Evidence:
            return gather(
                inputs,
                drawing,
                draws=draws,
                thresholds=self.thresholds,
                curve=curve,
                error=error,
                progress=progress,
                what=what,
            )

        return AuditReport(
            plan=self.plan,
            cost=self.cost,
            drawn=gathered(sampler, "drawing"),
            twin=gathered(NarrowedSampler(sampler), "drawing the sabotaged twin"),
            confidence=confidence,
        )


def _planned(plan: Plan, cost: CostCheck, error: float) -> _Trial:
    """Return the trial that catches the twin with the fewest draws."""
    laws, group = laws_of(plan)
    change = np.abs(change_between(plan, cost.worst)) * plan.neighbours.records
    sizes = Counter(zip(group[change > 0].tolist(), change[change > 0].tolist(), strict=True))
    if not sizes:
        raise InvalidArgument("no two records differ in what the plan measures. There is nothing to audit.")
    alone = [Moved(laws[i], size, count) for (i, size), count in sizes.items()]
    apart = math.sqrt(sum(m.numbers * m.size**2 / m.law.variance for m in alone))
    furthest = max(1, _FURTHEST // max(m.size for m in alone))
    trials = []
    for people in dict.fromkeys(min(furthest, max(1, round(far / apart))) for far in _DISTANCES):
        moved = tuple(Moved(m.law, m.size * people, m.numbers) for m in alone)
        thresholds = _thresholds(moved)
        trials.append(_Trial(plan, cost, moved, people, thresholds, _needed(moved, thresholds, error)))
    return min(trials, key=lambda trial: trial.needed)


def _thresholds(moved: Sequence[Moved]) -> tuple[float, ...]:
    """Return the losses at which events are looked at: from none to what one draw in a hundred shows, if any can."""
    top = privacy_curve(moved).quantile(0.99)
    if all(m.pure for m in moved):
        # The largest loss of pure ε is one that many draws have: the event is to hold them.
        top = min(top, sum(m.numbers * m.spread for m in moved))
    return tuple(float(t) for t in np.linspace(0, top * (1 - 1e-6), _EVENTS))


def _needed(moved: Sequence[Moved], thresholds: Sequence[float], error: float) -> int:
    """Return how many draws show that the twin's noise is too small, in the power of the exact laws."""
    allowed, drawn = privacy_curve(moved), statistic_law(moved, SABOTAGED)
    each = error / (4 * len(thresholds))
    odds = [(t, drawn.above(t), drawn.below(-t), allowed.delta(t)) for t in thresholds]
    draws = FEWEST_DRAWS
    while draws < MOST_DRAWS:
        for threshold, likely, unlikely, most in odds:
            # On the other input the law of L is that of -L: the noise is symmetric.
            few = likely * draws - _DEVIATIONS * math.sqrt(likely * max(1 - likely, 0) * draws)
            many = unlikely * draws + _DEVIATIONS * (1 + math.sqrt(unlikely * max(1 - unlikely, 0) * draws))
            low = clopper_pearson(max(0, math.floor(few)), draws, each)[0]
            high = clopper_pearson(min(draws, math.ceil(many)), draws, each)[1]
            if low - math.exp(threshold) * high > most:
                return draws
        draws = draws * 5 // 4
    return MOST_DRAWS


def _inputs(plan: Plan, cost: CostCheck, people: int) -> Inputs:
    """Return two tables of one record each and of those that the worst pair changes, `people` persons apart."""
    here, there = cost.worst
    moved = people * plan.neighbours.records
    without: Counter[InventedRecord] = Counter({here: 1})
    within = Counter({here: 1 + moved})
    if there is not None:
        without[there] += moved
    return Inputs(plan, dict(without), dict(within), people)


def _amount(loss: Loss) -> float:
    return float(loss.epsilon if isinstance(loss, PureDP) else loss.rho)


def _about(loss: Loss) -> str:
    return f"{'ε' if isinstance(loss, PureDP) else 'ρ'} = {_amount(loss):.4g}"
