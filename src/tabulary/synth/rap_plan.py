r"""The measurements of Relaxed Adaptive Projection and the scale of their noise.

**Sensitivity.** Counts are measured; they are whole numbers, with exactly drawn noise, and are divided afterwards.
One record is in one cell of each margin, so one person of c records changes the count of a cell by at most c, and the
score |count - synthetic count| by no more; the synthetic count is public, and rounded to a whole number first. A
discrete Gaussian of σ² = c²/(2ρ) on a count is ρ-zCDP (Canonne, Kamath & Steinke 2020); for the choice see
`tabulary.synth.selection`.

**Differences from the paper.** The algorithm divides counts by the number of records, which is public where
neighbours replace a record and none is dropped. Otherwise it is not public: then a twentieth of ρ buys a noisy
number, and the queries share the rest. And the accounting is "tight" unless you choose "printed":

- ρ is the largest that implies (ε, δ) (`approx_to_zcdp`), not the root of ε = ρ + 2√(ρ·ln(1/δ)), which is smaller.
- With T = 1 the answers are calibrated together. A record is in only one cell of a margin: adding one person changes
  all m cells by √k in the L2 norm for k margins, not by √m. So σ² = k/(2ρ), smaller by a factor of the mean number of
  cells of a margin. This is why one round is the default: the answers of T rounds of K cells, of σ² = TK/ρ, have less
  noise only where 2TK < k.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ZCDP, ApproxDP, approx_to_zcdp, describe_privacy
from tabulary.core.sensitivity import margin_sensitivity
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, InvalidPrivacy, TooManyCells
from tabulary.noise import DiscreteGaussian
from tabulary.synth.asking import asked_workload, whole_person
from tabulary.synth.queries import Queries, columns_of
from tabulary.synth.rows import MEMORY

Accounting = Literal["tight", "printed"]

RELAXED_ROWS = 1_000
STEPS = 1_000

# The cost of the number of people where it is not public.
_TOTAL_SHARE = Fraction(1, 20)
_PER_ROUND = 10


@dataclass(frozen=True, eq=False)
class RapPlan:
    """The measurements of a run and the scale of their noise. Made without data; its digest identifies it.

    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid", "own"]})
    >>> plan = RapPlan.of(domain, "[sex job]", ZCDP(1), rounds=2, per_round=3, neighbours="replace")
    >>> plan.noise, plan.share
    (DiscreteGaussian(variance_parameter=Fraction(6, 1)), Fraction(1, 12))
    >>> RapPlan.of(domain, "[sex job]", ZCDP(1), neighbours="replace", accounting="printed").noise
    DiscreteGaussian(variance_parameter=Fraction(3, 1))
    """

    queries: Queries
    privacy: ApproxDP | ZCDP
    neighbours: Neighbours
    rounds: int
    per_round: int
    accounting: Accounting
    relaxed_rows: int
    steps: int

    @classmethod
    def of(
        cls,
        domain: Domain,
        work: Workload | str,
        privacy: ApproxDP | ZCDP,
        *,
        rounds: int = 1,
        per_round: int | None = None,
        neighbours: Relation | Neighbours = "add-remove",
        accounting: Accounting = "tight",
        relaxed_rows: int = RELAXED_ROWS,
        steps: int = STEPS,
    ) -> "RapPlan":
        """Return the plan, or raise an error before any data is read."""
        asked = asked_workload(domain, work)
        if not isinstance(privacy, ApproxDP | ZCDP):
            raise InvalidPrivacy(
                f"RAP answers with Gaussian noise, which promises ApproxDP(ε, δ) or ZCDP(ρ), not {privacy!r}. Nothing "
                "was measured. Choose a δ far smaller than one over the number of people."
            )
        near = whole_person(neighbours, "RAP")
        if accounting not in get_args(Accounting):
            raise InvalidArgument(
                f"accounting must be 'tight' or 'printed', not {accounting!r}. Nothing was measured."
            )
        for name, number in (("relaxed_rows", relaxed_rows), ("steps", steps)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise InvalidArgument(
                    f"{name} must be a whole number, 1 or more, not {number!r}. Nothing was measured."
                )
        queries = Queries.of(asked)
        # The free numbers, their two moments and gradient, and one table of shares in double precision.
        needed = relaxed_rows * (columns_of(queries.domain) + 1) * 32
        if needed > MEMORY:
            raise TooManyCells(
                f"{relaxed_rows:,} relaxed rows take about {needed / 2**30:,.1f} GiB and {MEMORY / 2**30:,.1f} may be "
                "used. Nothing was measured; ask for fewer."
            )
        each = per_round if per_round is not None else 1 if rounds == 1 else _PER_ROUND
        queries.check_rounds(rounds, each)
        return cls(queries, privacy, near, rounds, each, accounting, relaxed_rows, steps)

    @cached_property
    def rho(self) -> Fraction:
        """The whole cost, as zero-concentrated differential privacy."""
        if isinstance(self.privacy, ZCDP):
            return self.privacy.rho
        return printed_rho(self.privacy) if self.accounting == "printed" else approx_to_zcdp(self.privacy).rho

    @property
    def total_noise(self) -> DiscreteGaussian | None:
        """The noise of the number of people; None where the number is public."""
        if self.neighbours.total_is_public:
            return None
        return DiscreteGaussian(self.neighbours.records**2 / (2 * self.rho * _TOTAL_SHARE))

    @property
    def shared(self) -> Fraction:
        """The ρ that all queries share."""
        return self.rho if self.total_noise is None else self.rho * (1 - _TOTAL_SHARE)

    @property
    def share(self) -> Fraction:
        """The ρ of one choice, and also of one answer; in a single round as printed, of one answer alone."""
        return self.shared / (
            self.queries.asked.size if self.rounds == 1 else 2 * self.rounds * self.per_round
        )

    @cached_property
    def noise(self) -> DiscreteGaussian:
        """The noise of an answer."""
        if self.rounds == 1 and self.accounting == "tight":
            moved = margin_sensitivity(self.queries.domain, self.queries.margins, self.neighbours).l2_squared
            # If no two people can differ, there is nothing to hide; the noise of one count is used.
            return DiscreteGaussian(max(moved, Fraction(1)) / (2 * self.shared))
        return DiscreteGaussian(self.neighbours.records**2 / (2 * self.share))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the whole request."""
        told = {
            "domain": self.queries.domain.describe(),
            "margins": self.queries.margins,
            "privacy": describe_privacy(self.privacy),
            "neighbours": str(self.neighbours),
            "rounds": self.rounds,
            "per_round": self.per_round,
            "accounting": self.accounting,
            "relaxed_rows": self.relaxed_rows,
            "steps": self.steps,
        }
        canonical = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def printed_rho(privacy: ApproxDP) -> Fraction:
    """Return the ρ of Algorithm 2 as printed, the root of ε = ρ + 2√(ρ·ln(1/δ)), rounded down.

    Bun & Steinke (2016), Proposition 1.3. `approx_to_zcdp` allows more at the same (ε, δ).

    >>> f"{float(printed_rho(ApproxDP(1, 1e-9))):.6f}", f"{float(approx_to_zcdp(ApproxDP(1, 1e-9)).rho):.6f}"
    ('0.011781', '0.014973')
    """
    log = -math.log(float(privacy.delta))
    root = float(privacy.epsilon) / (math.sqrt(log + float(privacy.epsilon)) + math.sqrt(log))
    return Fraction(f"{root * root * (1 - 1e-8):.9e}")
