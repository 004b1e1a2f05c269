r"""Multiplicative weights with the exponential mechanism: a full table that learns from its worst margins.

Hardt, Ligett & McSherry (2012). The table A starts even over all possible cells. Each of T rounds chooses a margin on
which A is far from the records, measures it, and moves A towards all measurements so far: the weight of a cell is
multiplied by exp(η) with η = (measured - A's count) / (2n) for the margin's cell that contains it, margin after
margin, several times.

**What is chosen, and its sensitivity.** The score of a margin is the L1 distance Σ|count - A's count| over its cells. A
record adds one to one cell, so one person of c records moves a score by at most c, or 2c where neighbours replace a
record. A's counts are public, and rounded to whole numbers first, so scores are whole. The paper chooses
single queries; cells of a margin are disjoint, so measuring all of them costs what one costs, and the choice is
among margins.

**Accounting.** Half of each round chooses, half measures. Pure: ε/(2T) each, P(i) ∝ exp(ε' score/(2Δ)) and discrete
Laplace noise of scale Δ₁/ε'. Zero-concentrated: ρ/(2T) each, rate √(2ρ')/Δ (`selection`) and discrete Gaussian noise
of variance Δ₂²/(2ρ'). Where n is not public a twentieth buys a noisy one first. By composition the whole costs the
requested privacy.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.records import Records
from tabulary.core.arrays import Floats, sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP, approx_to_zcdp, describe_privacy
from tabulary.core.progress import Progress
from tabulary.core.sensitivity import margin_sensitivity
from tabulary.core.table import Table
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, InvalidPrivacy, TooManyCells
from tabulary.ledger import Account
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, Entropy, ExactSampler, Sampler, SystemEntropy
from tabulary.synth.asking import asked_workload, named_domain, whole_person
from tabulary.synth.counting import neighbours_of, paid_tally
from tabulary.synth.particles import Particles
from tabulary.synth.rows import SyntheticRecords, check_rows
from tabulary.synth.selection import choice_rate
from tabulary.toolbox.choice_laws import ExponentialChoice

# A table of doubles, a second one of weights, and the codes of its cells: below one GiB.
LARGEST_TABLE = 8_000_000
_TOTAL_SHARE = Fraction(1, 20)
_ROUNDS = 10
_PASSES = 40


@dataclass(frozen=True)
class Measured:
    """The result of one round: a margin and its noisy counts. Public."""

    margin: Margin
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MwemPlan:
    """The candidates of a run and the scale of its noise. Made without data.

    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> plan = MwemPlan.of(domain, "[sex][sex job]", PureDP(1), rounds=2, neighbours="replace")
    >>> plan.share, plan.noise(("sex",))
    (Fraction(1, 4), DiscreteLaplace(scale=Fraction(8, 1)))
    """

    domain: Domain
    margins: tuple[Margin, ...]
    privacy: Privacy
    neighbours: Neighbours
    rounds: int
    passes: int

    @classmethod
    def of(
        cls,
        domain: Domain,
        work: Workload | str,
        privacy: Privacy,
        *,
        rounds: int = _ROUNDS,
        passes: int = _PASSES,
        neighbours: Relation | Neighbours = "add-remove",
    ) -> "MwemPlan":
        """Return the plan, or raise an error before any data is read."""
        asked = asked_workload(domain, work)
        small = named_domain(asked)
        margins = tuple(margin for margin in asked.margins if margin)
        if small.size > LARGEST_TABLE:
            raise TooManyCells(
                f"MWEM needs the table of all attributes, here {small.size:,} cells, but the limit is "
                f"{LARGEST_TABLE:,}. Nothing was measured. Choose tables on fewer attributes, or use "
                "tb.synth.graphical or tb.synth.from_release, which need no such table."
            )
        if not isinstance(privacy, PureDP | ApproxDP | ZCDP):
            raise InvalidPrivacy(
                f"privacy must be PureDP, ApproxDP or ZCDP, not {privacy!r}. Nothing was measured."
            )
        near = whole_person(neighbours, "MWEM")
        for name, number in (("rounds", rounds), ("passes", passes)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise InvalidArgument(
                    f"{name} must be a whole number, 1 or more, not {number!r}. Nothing was measured."
                )
        return cls(small, margins, privacy, near, rounds, passes)

    @cached_property
    def budget(self) -> Fraction:
        """The whole cost: ε for a pure promise, ρ for any other."""
        if isinstance(self.privacy, PureDP):
            return self.privacy.epsilon
        return self.privacy.rho if isinstance(self.privacy, ZCDP) else approx_to_zcdp(self.privacy).rho

    @property
    def total_is_public(self) -> bool:
        """Whether neighbours have the same number of counted records."""
        return self.neighbours.total_is_public

    @property
    def share(self) -> Fraction:
        """The ε or ρ of one choice and, again, of one measurement."""
        left = self.budget if self.total_is_public else self.budget * (1 - _TOTAL_SHARE)
        return left / (2 * self.rounds)

    @property
    def score_sensitivity(self) -> int:
        """The largest change of a score by one person."""
        return self.neighbours.records * self.neighbours.moved

    def noise(self, margin: Margin) -> DiscreteLaplace | DiscreteGaussian:
        """Return the noise of each cell of a margin."""
        moved = margin_sensitivity(self.domain, [margin], self.neighbours)
        # If no two people can differ, there is nothing to hide; the noise of one count is used.
        if isinstance(self.privacy, PureDP):
            return DiscreteLaplace(max(moved.l1, Fraction(1)) / self.share)
        return DiscreteGaussian(max(moved.l2_squared, Fraction(1)) / (2 * self.share))

    @property
    def total_noise(self) -> DiscreteLaplace | DiscreteGaussian | None:
        """The noise of the number of records; None where the number is public."""
        if self.total_is_public:
            return None
        paid, records = self.budget * _TOTAL_SHARE, self.neighbours.records
        if isinstance(self.privacy, PureDP):
            return DiscreteLaplace(Fraction(records) / paid)
        return DiscreteGaussian(Fraction(records**2) / (2 * paid))

    @property
    def rate(self) -> Fraction:
        """The r of a choice: margin i with probability ∝ exp(r · score)."""
        if isinstance(self.privacy, PureDP):
            return self.share / (2 * self.score_sensitivity)
        return choice_rate(self.share, self.score_sensitivity)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the whole request."""
        told = {
            "synthesizer": "mwem",
            "domain": self.domain.describe(),
            "margins": self.margins,
            "privacy": describe_privacy(self.privacy),
            "neighbours": str(self.neighbours),
            "rounds": self.rounds,
        }
        canonical = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def mwem(
    records: Records | Table,
    work: Workload | str,
    privacy: Privacy,
    *,
    rounds: int = _ROUNDS,
    rows: int | None = None,
    neighbours: Relation | Neighbours = "add-remove",
    passes: int = _PASSES,
    ledger: Account | None = None,
    purpose: str = "mwem",
    sampler: Sampler | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> SyntheticRecords:
    """Return synthetic records by MWEM, for domains whose table of all attributes fits. Spends `privacy` once.

    Args:
        records: `Records`, or a `Table` of exact counts that is still to be protected.
        work: the margins to choose from; attributes in none of them are left out.
        privacy: `PureDP(1)`, `ApproxDP(1, 1e-9)` or `ZCDP("1/8")`.
        rounds: T, the number of measurements; a margin may be measured again.
        rows: the number of rows; by default the number of people, as far as it is public.
        neighbours: what one person can change.
        passes: how often a round goes through all measurements so far.
        ledger: the account that pays, from `Ledger.open(path).account(name)`; None keeps no books.
        purpose: a public word for the ledger's entry.
        sampler: draws the noise; the exact sampler by default.
        entropy: the source of all randomness; the operating system by default.
        progress: called with (what, done, total).

    >>> import tabulary as tb
    >>> table = tb.datasets.load("rochdale")
    >>> mwem(table, "[AB][AC][BD]", tb.PureDP(1), rounds=4, rows=500)
    <SyntheticRecords: 500 rows of 4 attributes>
    """
    plan = MwemPlan.of(
        records.domain,
        work,
        privacy,
        rounds=rounds,
        passes=passes,
        neighbours=neighbours_of(records, neighbours),
    )
    if rows is not None:
        check_rows(rows, len(plan.domain.shape))
    source = entropy or SystemEntropy()
    tally = paid_tally(
        records,
        plan.margins,
        privacy,
        plan.neighbours,
        ledger=ledger,
        purpose=purpose,
        digest=plan.digest,
        progress=progress,
    )
    exact = {margin: tally.exact(margin) for margin in plan.margins}
    table, people = learned(plan, exact, sampler or ExactSampler(source), progress)
    wanted = people if rows is None else rows
    check_rows(wanted, len(plan.domain.shape))
    cells = np.flatnonzero(table.ravel() > 0)
    codes = np.stack(np.unravel_index(cells, plan.domain.shape), axis=1).astype(np.int32)
    whole = Particles(codes, table.ravel()[cells], 0.0).whole(wanted, source)
    return SyntheticRecords(
        plan.domain,
        whole,
        guarantee=f"{privacy} ({plan.neighbours})",
        origin=f"by MWEM in {plan.rounds} rounds over {len(plan.margins):,} tables",
    )


def learned(
    plan: MwemPlan,
    exact: Mapping[Margin, NDArray[np.int64]],
    sampler: Sampler,
    progress: Progress | None = None,
) -> tuple[Floats, int]:
    """Return the table after all rounds and the number of people, both public. Spends the plan's privacy."""
    people = int(next(iter(exact.values())).sum())
    if plan.total_noise is not None:
        people += int(sampler.draw(plan.total_noise, 1)[0])
    people = max(1, people)
    table = even_table(plan.domain, people)
    measured: list[Measured] = []
    for done in range(plan.rounds):
        scores = margin_scores(plan, exact, table)
        best = int(scores.max())
        choice = ExponentialChoice(plan.rate, tuple(best - int(s) for s in scores), (1,) * scores.size)
        margin = plan.margins[int(sampler.draw(choice, 1)[0])]
        noise = sampler.draw(plan.noise(margin), exact[margin].shape)
        measured.append(Measured(margin, exact[margin] + noise))
        table = updated(plan.domain, table, measured, passes=plan.passes)
        if progress:
            progress("learning from margins", done + 1, plan.rounds)
    return table, people


def even_table(domain: Domain, people: int) -> Floats:
    """Return the table that spreads the people over all possible cells."""
    possible = np.ones(domain.shape)
    possible[domain.impossible(domain.attributes)] = 0.0
    return np.asarray(possible * (people / possible.sum()))


def margin_scores(
    plan: MwemPlan, exact: Mapping[Margin, NDArray[np.int64]], table: Floats
) -> NDArray[np.int64]:
    """Return how far the table is from the records on each margin. Confidential."""
    return np.array(
        [
            np.abs(exact[m] - np.rint(sum_onto(table, plan.domain.attributes, m)).astype(np.int64)).sum()
            for m in plan.margins
        ]
    )


def updated(domain: Domain, table: Floats, measured: list[Measured], *, passes: int) -> Floats:
    """Return the table moved towards all measurements, one after another, `passes` times. Spends nothing."""
    people = table.sum()
    for _ in range(passes):
        for learned_margin in measured:
            margin = learned_margin.margin
            step = (learned_margin.counts - sum_onto(table, domain.attributes, margin)) / (2 * people)
            shape = [
                levels if name in margin else 1
                for name, levels in zip(domain.attributes, domain.shape, strict=True)
            ]
            table = table * np.exp(step).reshape(shape)
            table *= people / table.sum()
    return table
