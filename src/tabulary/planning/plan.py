"""The plan: what is measured, at what scale, with what expected error. Made without data."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Literal

from tabulary.core.bits import binary_domain, bits_of
from tabulary.core.contrast_sensitivity import contrast_sensitivity
from tabulary.core.domain import Domain, Margin
from tabulary.core.exact import show_fraction
from tabulary.core.privacy import (
    GaussianDP,
    Loss,
    Neighbours,
    Privacy,
    PureDP,
    describe_privacy,
    implies,
)
from tabulary.core.sensitivity import MarginSensitivity, margin_sensitivity
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidPlan, UnknownMargin
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise, RoundedGaussian
from tabulary.planning.accuracy import CellErrors, ErrorLaw, ExpectedErrors, expected_error
from tabulary.planning.contrast_errors import contrast_errors

Query = Literal["counts", "contrasts"]
QUERIES: Mapping[str, Query] = {
    "fourier": "contrasts",
    "efron-stein": "contrasts",
    "cells": "counts",
    "margins": "counts",
}
CONSTRAINED = ("least-squares", "lp")
"""The reconstructions that make one non-negative full table."""

Encoding = Literal["levels", "bits"]


@dataclass(frozen=True)
class MeasuredMargin:
    """What is measured on one set of attributes, each number with an independent draw of the same noise.

    `counts`: every possible cell of the margin. `contrasts`: the coefficients that vary on exactly these
    attributes (`core.basis`).
    """

    margin: Margin
    noise: IntegerNoise
    query: Query = "counts"


@dataclass(frozen=True)
class Plan:
    """What will be measured and what that promises; the unit that the ledger debits.

    `privacy` is what is promised. `loss` is what the noise itself satisfies, in its own currency: pure ε for
    Laplace noise, ρ for Gaussian noise, of zCDP or of the exact Gaussian curve. The plan checks on
    construction that the measurements cost no more than the loss, and that the loss implies the promise, so a
    plan that exists is a plan that holds.
    """

    domain: Domain
    workload: Workload
    privacy: Privacy
    loss: Loss
    neighbours: Neighbours
    mechanism: str
    measured: tuple[MeasuredMargin, ...]
    reconstruct: str = "none"
    rounding: str = "none"
    encoding: Encoding = "levels"
    exact: tuple[Margin, ...] = ()

    def __post_init__(self) -> None:
        self._check_parts()
        for margin in self.workload:
            self.check_measured(margin)
        if not implies(self.loss, self.privacy):
            raise InvalidPlan(f"a loss of {self.loss} does not imply the promised {self.privacy}.")
        if self._cost() > (self.loss.epsilon if isinstance(self.loss, PureDP) else self.loss.rho):
            raise InvalidPlan(f"the noise of this plan is too small for its loss of {self.loss}.")

    def _check_parts(self) -> None:
        """Refuse a combination of options that no mechanism and no reconstruction can keep."""
        queries = {part.query for part in self.measured}
        if queries != {QUERIES.get(self.mechanism)}:
            raise InvalidPlan(f"mechanism {self.mechanism!r} does not measure what this plan lists.")
        if self.encoding == "bits" and self.mechanism != "fourier":
            raise InvalidPlan("only the mechanism 'fourier' measures bits.")
        if self.rounding != "none" and self.reconstruct not in CONSTRAINED:
            raise InvalidPlan("rounding needs a reconstructed full table: 'least-squares' or 'lp'.")
        if self.mechanism == "cells" and self.reconstruct == "lp":
            raise InvalidPlan(
                "on cells alone the linear program bounds the worst cell and leaves all others free below it, so its "
                "sums are far too low. Use reconstruct = 'least-squares', or the mechanism 'margins'."
            )
        if self.reconstruct == "shift" and self.query != "contrasts":
            raise InvalidPlan(
                "reconstruct = 'shift' raises coefficients: it needs 'fourier' or 'efron-stein'."
            )
        linear = self.query == "contrasts" and self.reconstruct not in CONSTRAINED
        if linear and self.measured_domain.structural_zeros:
            why = "codes without a level" if self.encoding == "bits" else "impossible cells"
            raise InvalidPlan(
                f"mechanism {self.mechanism!r} would publish noise in {why}. Reconstruct with 'least-squares' or "
                "'lp', which keep them zero, or use the mechanism 'cells' or 'margins'."
            )
        sensitive = set(self._measured_neighbours.sensitive)
        if self.exact and (not sensitive or any(sensitive & set(s) for s in self.exact)):
            raise InvalidPlan("only sets without a sensitive attribute may be released exactly.")
        if sensitive and (self.query == "counts" or self.reconstruct != "none"):
            raise InvalidPlan("sensitive attributes need contrasts, and tables as they are measured.")

    @property
    def query(self) -> Query:
        """What is measured on each set of attributes."""
        return self.measured[0].query

    @property
    def whole(self) -> bool:
        """Whether the published numbers are whole: measured counts as they are, or rounded."""
        return self.rounding != "none" or (self.query == "counts" and self.reconstruct == "none")

    @cached_property
    def measured_domain(self) -> Domain:
        """The domain in which the measured sets are named: the plan's own, or that of its bits."""
        return self.domain if self.encoding == "levels" else binary_domain(self.domain)

    def measured_margin(self, margin: Margin) -> Margin:
        """Return a margin of the plan's domain in the names of the measured one."""
        return margin if self.encoding == "levels" else bits_of(self.domain, margin)

    @property
    def counted(self) -> tuple[Margin, ...]:
        """The margins whose exact counts the mechanism needs."""
        if self.query == "counts":
            return tuple(part.margin for part in self.measured)
        return self.workload.maximal().margins

    def shape_of(self, part: MeasuredMargin) -> tuple[int, ...]:
        """Return the shape of what one part measures."""
        shape = self.measured_domain.shape_of(part.margin)
        return shape if part.query == "counts" else tuple(levels - 1 for levels in shape)

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of all values: those measured with noise, then those released exactly."""
        exact = [tuple(levels - 1 for levels in self.measured_domain.shape_of(s)) for s in self.exact]
        return [self.shape_of(part) for part in self.measured] + exact

    def value_sets(self) -> list[Margin]:
        """Return the sets of attributes of all values, in the order of `shapes`."""
        return [part.margin for part in self.measured] + list(self.exact)

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

    def check_measured(self, margin: Margin) -> None:
        """Refuse a margin that the measurements do not determine."""
        if self.query == "counts":
            self.source_of(margin)
            return
        named = self.measured_margin(margin)
        known = set(self.value_sets())
        if any(s not in known for k in range(len(named) + 1) for s in combinations(named, k)):
            raise UnknownMargin(f"the plan does not measure every coefficient of {show_margin(margin)}.")

    def source_of(self, margin: Margin) -> MeasuredMargin:
        """Return the measured counts that give the table on `margin` with the smallest error."""
        covering = [m for m in self.measured if set(margin) <= set(m.margin)]
        if not covering:
            raise UnknownMargin(f"the plan measures nothing that contains {show_margin(margin)}.")
        # Ties go to the first, so that two readers of one plan agree.
        return min(covering, key=lambda m: m.noise.variance * self._mean_terms(m, margin))

    def error_of(self, margin: Margin) -> ErrorLaw:
        """Return the law of the error of each cell of the linear estimate of the table on `margin`."""
        if self.query == "counts":
            source = self.source_of(margin)
            return CellErrors(source.noise, self.domain.project(source.margin).multiplicity(margin))
        named = self.measured_margin(margin)
        subsets = [s for k in range(len(named) + 1) for s in combinations(named, k)]
        noises = {s: self._parts[s].noise if s in self._parts else None for s in subsets}
        law = contrast_errors(named, self.measured_domain.shape_of(named), noises)
        if self.encoding == "bits":
            sides = [2 ** len(bits_of(self.domain, (a,))) for a in margin]
            law = law.reshape(sides).at(tuple(slice(len(self.domain.levels_of(a))) for a in margin))
        return law.without(self.domain.impossible(margin))

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
            deviations = self.error_of(margin).standard_errors
            squared += float(weight) * float((deviations**2).sum())
            cells += float(weight) * int((deviations > 0).sum())
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
            "neighbours": {
                "relation": self.neighbours.relation,
                "records": self.neighbours.records,
                "sensitive": list(self.neighbours.sensitive),
            },
            "mechanism": self.mechanism,
            "reconstruct": self.reconstruct,
            "rounding": self.rounding,
            "encoding": self.encoding,
            "sensitivity": self._described_sensitivity(),
            "exact": [list(s) for s in self.exact],
            "measured": [
                {"attributes": list(m.margin), "query": m.query, "noise": dict(m.noise.describe())}
                for m in self.measured
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
        """The loss that the noise really has: Δ₁ of the scaled measurements, or half of their Δ₂²."""
        noises = [m.noise for m in self.measured]
        if isinstance(self.loss, PureDP):
            scales = [n.scale for n in noises if isinstance(n, DiscreteLaplace)]
            if len(scales) == len(noises):
                return self._sensitivity(scales=scales).l1
        else:
            # Rounding a continuous Gaussian keeps its exact curve, and zCDP with it; the discrete one has zCDP.
            earning = (
                (RoundedGaussian,)
                if isinstance(self.loss, GaussianDP)
                else (RoundedGaussian, DiscreteGaussian)
            )
            variances = [n.variance_parameter for n in noises if isinstance(n, earning)]
            if len(variances) == len(noises):
                return self._sensitivity(squared_scales=variances).l2_squared / 2
        raise InvalidPlan(f"the noise of this plan is not of the family that earns a loss of {self.loss}.")

    def _sensitivity(
        self, *, scales: list[Fraction] | None = None, squared_scales: list[Fraction] | None = None
    ) -> MarginSensitivity:
        of = margin_sensitivity if self.query == "counts" else contrast_sensitivity
        margins = [m.margin for m in self.measured]
        neighbours = self._measured_neighbours
        return of(self.measured_domain, margins, neighbours, scales=scales, squared_scales=squared_scales)

    @property
    def _measured_neighbours(self) -> Neighbours:
        """The neighbouring relation in the names of the measured domain."""
        return replace(self.neighbours, sensitive=self.measured_margin(self.neighbours.sensitive))

    @cached_property
    def _unscaled(self) -> MarginSensitivity:
        return self._sensitivity()

    @cached_property
    def _parts(self) -> dict[Margin, MeasuredMargin]:
        return {part.margin: part for part in self.measured}

    def _described_sensitivity(self) -> dict[str, str]:
        if self.norm == "L1":
            return {"norm": "L1", "value": str(self._unscaled.l1)}
        return {"norm": "L2", "squared_value": str(self._unscaled.l2_squared)}

    def _mean_terms(self, source: MeasuredMargin, margin: Margin) -> float:
        terms = self.domain.project(source.margin).multiplicity(margin)
        return float(terms.sum(dtype=float)) / max(int((terms > 0).sum()), 1)


def _shown(value: Fraction | float) -> str:
    return show_fraction(value) if isinstance(value, Fraction) else f"{value:.6g}"
