"""The plan: what is measured, at what scale, with what expected error. Made without data."""

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from tabulary.core.domain import Domain, Margin
from tabulary.core.exact import show_fraction
from tabulary.core.privacy import (
    ZCDP,
    Neighbours,
    Privacy,
    PureDP,
    describe_privacy,
    implies,
)
from tabulary.core.sensitivity import MarginSensitivity, margin_sensitivity
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidPlan, UnknownMargin
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise
from tabulary.planning.accuracy import CellErrors, ExpectedErrors, expected_error


@dataclass(frozen=True)
class MeasuredMargin:
    """One margin whose every possible cell gets an independent draw of the same noise."""

    margin: Margin
    noise: IntegerNoise


@dataclass(frozen=True)
class Plan:
    """What will be measured and what that promises; the unit that the ledger debits.

    `privacy` is what is promised. `loss` is what the noise itself satisfies, in its own currency: pure ε for
    Laplace noise, ρ for Gaussian noise. The plan checks on construction that the measurements cost no more
    than the loss, and that the loss implies the promise, so a plan that exists is a plan that holds.
    """

    domain: Domain
    workload: Workload
    privacy: Privacy
    loss: PureDP | ZCDP
    neighbours: Neighbours
    mechanism: str
    measured: tuple[MeasuredMargin, ...]
    reconstruct: str = "none"
    rounding: str = "none"

    def __post_init__(self) -> None:
        for margin in self.workload:
            self.source_of(margin)
        if not implies(self.loss, self.privacy):
            raise InvalidPlan(f"a loss of {self.loss} does not imply the promised {self.privacy}.")
        if self._cost() > (self.loss.epsilon if isinstance(self.loss, PureDP) else self.loss.rho):
            raise InvalidPlan(f"the noise of this plan is too small for its loss of {self.loss}.")

    @property
    def norm(self) -> Literal["L1", "L2"]:
        """The norm in which the noise is calibrated."""
        return "L1" if isinstance(self.loss, PureDP) else "L2"

    @property
    def sensitivity(self) -> Fraction | float:
        """The most that one person can change all the integer measurements together, in the plan's norm.

        Exact: a `Fraction`, or in L2 the square root of one where that is irrational.
        """
        if self.norm == "L1":
            return self._unscaled.l1
        squared = self._unscaled.l2_squared
        root = Fraction(math.isqrt(squared.numerator), math.isqrt(squared.denominator))
        return root if root**2 == squared else math.sqrt(squared)

    def source_of(self, margin: Margin) -> MeasuredMargin:
        """Return the measurement that gives the table on `margin` with the smallest error."""
        covering = [m for m in self.measured if set(margin) <= set(m.margin)]
        if not covering:
            raise UnknownMargin(f"the plan measures nothing that contains {show_margin(margin)}.")
        # Ties go to the first, so that two readers of one plan agree.
        return min(covering, key=lambda m: m.noise.variance * self._mean_terms(m, margin))

    def error_of(self, margin: Margin) -> CellErrors:
        """Return the law of the error of each cell of the table on `margin`."""
        source = self.source_of(margin)
        return CellErrors(source.noise, self.domain.project(source.margin).multiplicity(margin))

    def expected_error(self, confidence: float = 0.95) -> ExpectedErrors:
        """Return what to expect of every table: cells, standard error and half-width. Reads no data.

        >>> import tabulary as tb
        >>> domain = tb.Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
        >>> plan = tb.plan(domain, "[sex][sex job]", privacy=tb.PureDP(1), mechanism="margins")
        >>> print(plan.expected_error())
        margin         cells   std. error       ±95%
        [sex]              2          2.8          6
        [sex job]          4          2.8          6
        """
        rows = tuple(expected_error(m, self.error_of(m), confidence) for m in self.workload)
        return ExpectedErrors(rows, confidence)

    @cached_property
    def expected_rmse(self) -> float:
        """The root mean squared error expected over all possible cells, each margin counted by its weight."""
        squared = cells = 0.0
        for margin, weight in zip(self.workload.margins, self.workload.weights, strict=True):
            errors = self.error_of(margin)
            squared += float(weight) * float(errors.terms.sum(dtype=float)) * errors.noise.variance
            cells += float(weight) * int((errors.terms > 0).sum())
        return math.sqrt(squared / cells) if cells else 0.0

    def describe(self) -> dict[str, object]:
        """Return the plan as plain data with exact fractions as text; `plan_from_description` reads it."""
        return {
            "domain": self.domain.describe(),
            "workload": [
                {"attributes": list(m), "weight": str(w)}
                for m, w in zip(self.workload.margins, self.workload.weights, strict=True)
            ],
            "privacy": describe_privacy(self.privacy),
            "loss": describe_privacy(self.loss),
            "neighbours": {"relation": self.neighbours.relation, "records": self.neighbours.records},
            "mechanism": self.mechanism,
            "reconstruct": self.reconstruct,
            "rounding": self.rounding,
            "sensitivity": self._described_sensitivity(),
            "measured": [
                {"attributes": list(m.margin), "noise": dict(m.noise.describe())} for m in self.measured
            ],
        }

    def digest(self) -> str:
        """Return the SHA-256 of the plan's canonical description: its name in the ledger."""
        canonical = json.dumps(self.describe(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def __str__(self) -> str:
        tables = f"{len(self.workload)} table{'s' if len(self.workload) > 1 else ''}"
        return (
            f"{tables} by mechanism '{self.mechanism}' at {self.privacy} ({self.neighbours}), "
            f"{self.norm} sensitivity {_shown(self.sensitivity)}"
        )

    def _cost(self) -> Fraction:
        """The loss that the noise really has: Δ₁ of the scaled margins, or half of their Δ₂²."""
        margins = [m.margin for m in self.measured]
        noises = [m.noise for m in self.measured]
        if isinstance(self.loss, PureDP):
            scales = [n.scale for n in noises if isinstance(n, DiscreteLaplace)]
            if len(scales) == len(noises):
                return margin_sensitivity(self.domain, margins, self.neighbours, scales=scales).l1
        else:
            variances = [n.variance_parameter for n in noises if isinstance(n, DiscreteGaussian)]
            if len(variances) == len(noises):
                found = margin_sensitivity(self.domain, margins, self.neighbours, squared_scales=variances)
                return found.l2_squared / 2
        raise InvalidPlan("Laplace noise answers to a pure loss and Gaussian noise to a zCDP loss.")

    @cached_property
    def _unscaled(self) -> MarginSensitivity:
        return margin_sensitivity(self.domain, [m.margin for m in self.measured], self.neighbours)

    def _described_sensitivity(self) -> dict[str, str]:
        if self.norm == "L1":
            return {"norm": "L1", "value": str(self._unscaled.l1)}
        return {"norm": "L2", "squared_value": str(self._unscaled.l2_squared)}

    def _mean_terms(self, source: MeasuredMargin, margin: Margin) -> float:
        terms = self.domain.project(source.margin).multiplicity(margin)
        return float(terms.sum(dtype=float)) / max(int((terms > 0).sum()), 1)


def _shown(value: Fraction | float) -> str:
    return show_fraction(value) if isinstance(value, Fraction) else f"{value:.6g}"
