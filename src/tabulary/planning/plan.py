"""The plan: what is measured, at what scale, with what expected error. Made without data."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from tabulary.core.bits import binary_domain, bits_of
from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Loss, Privacy, PureDP, describe_privacy, implies
from tabulary.core.residuals import residual_shape
from tabulary.core.sensitivity import MarginSensitivity
from tabulary.core.workload import MarginIndex, Workload, maximal_margins, show_margin
from tabulary.errors import InvalidPlan, UnknownMargin
from tabulary.planning.accuracy import (
    CellErrors,
    ErrorLaw,
    ExpectedError,
    ExpectedErrors,
    WeightedErrors,
    expected_error,
    normal_quantile,
)
from tabulary.planning.allocation import margin_variance, residual_variances
from tabulary.planning.contrast_errors import contrast_errors
from tabulary.planning.covariance import CellCovariance
from tabulary.planning.measured import QUERIES, MeasuredMargin, Query, sensitivity_of
from tabulary.planning.residual_draws import ResidualNoise
from tabulary.planning.residual_errors import SMALLEST_VARIANCE, Part, TailWeights, subsets
from tabulary.planning.shrink_weights import shrunk_variances

CONSTRAINED = ("least-squares", "lp")
"""The reconstructions that make one non-negative full table."""

Encoding = Literal["levels", "bits"]


@dataclass(frozen=True)
class Plan:
    """What will be measured and what that promises; the unit that the ledger debits.

    `privacy` is what is promised. `loss` is what the noise itself satisfies, in its own currency: pure ε for
    Laplace noise, ρ for Gaussian noise, of zCDP or of the exact Gaussian curve. The plan checks on
    construction that the measurements cost no more than the loss, and that the loss implies the promise, so a
    plan that exists is a plan that holds.

    `records`, about how many there are, is what a plan for shrunk tables reckons with; other plans have none.
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
    records: int | None = None

    def __post_init__(self) -> None:
        self._check_parts()
        for margin in self.workload:
            self.check_measured(margin)
        if not implies(self.loss, self.privacy):
            raise InvalidPlan(f"a loss of {self.loss} does not imply the promised {self.privacy}.")
        if self.cost() > (self.loss.epsilon if isinstance(self.loss, PureDP) else self.loss.rho):
            raise InvalidPlan(f"the noise of this plan is too small for its loss of {self.loss}.")

    def _check_parts(self) -> None:
        """Refuse a combination of options that no mechanism and no reconstruction can keep."""
        queries = {part.query for part in self.measured}
        if queries != {QUERIES.get(self.mechanism)}:
            raise InvalidPlan(f"mechanism {self.mechanism!r} does not measure what this plan lists.")
        if self.encoding == "bits" and self.mechanism != "fourier":
            raise InvalidPlan("only the mechanism 'fourier' measures bits.")
        self._check_centred()
        if (self.records is not None) != (self.reconstruct == "shrink") or (self.records or 1) < 1:
            raise InvalidPlan(
                "a plan for reconstruct = 'shrink', and no other, reckons with a number of records."
            )
        if self.rounding != "none" and self.reconstruct not in (*CONSTRAINED, "shrink"):
            raise InvalidPlan("rounding needs a reconstructed full table: 'least-squares' or 'lp'.")
        if self.reconstruct == "shrink" and self.mechanism != "residual":
            raise InvalidPlan("reconstruct = 'shrink' shrinks residuals: it needs the mechanism 'residual'.")
        if self.reconstruct == "shrink" and self.rounding == "nearest":
            raise InvalidPlan(
                "tables rounded to the nearest whole numbers one by one no longer agree with each other. With "
                "reconstruct = 'shrink' use rounding = 'controlled'."
            )
        if self.mechanism == "cells" and self.reconstruct == "lp":
            raise InvalidPlan(
                "on cells alone the linear program bounds the worst cell and leaves all others free below it, so its "
                "sums are far too low. Use reconstruct = 'least-squares', or the mechanism 'margins'."
            )
        if self.reconstruct == "shift" and self.query != "contrasts":
            raise InvalidPlan(
                "reconstruct = 'shift' raises coefficients: it needs 'fourier' or 'efron-stein'."
            )
        sensitive = set(self._measured_neighbours.sensitive)
        linear = self.query != "counts" and self.reconstruct in ("none", "shift")
        # With sensitive attributes nothing is reconstructed: the linear estimate sets impossible cells to zero.
        if linear and self.measured_domain.structural_zeros and (self.encoding == "bits" or not sensitive):
            why = "codes without a level" if self.encoding == "bits" else "impossible cells"
            remedy = (
                "Use the mechanism 'efron-stein', which takes attributes as they are."
                if sensitive
                else "Reconstruct with 'least-squares' or 'lp', which keep them zero, or use the mechanism 'cells' or "
                "'margins'."
            )
            raise InvalidPlan(f"mechanism {self.mechanism!r} would publish noise in {why}. {remedy}")
        if self.exact and (not sensitive or any(sensitive & set(s) for s in self.exact)):
            raise InvalidPlan("only sets without a sensitive attribute may be released exactly.")
        if sensitive and (self.query != "contrasts" or self.reconstruct != "none"):
            raise InvalidPlan("sensitive attributes need contrasts, and tables as they are measured.")

    def _check_centred(self) -> None:
        """Refuse parts that are centred where nothing can be, or named in more than one way."""
        if self.query != "residuals":
            if any(part.centred for part in self.measured):
                raise InvalidPlan(f"mechanism {self.mechanism!r} takes no average out of any attribute.")
            return
        for part in self.measured:
            if self.domain.margin(part.margin) != part.margin or part.centred != tuple(
                a for a in part.margin if a in part.centred
            ):
                raise InvalidPlan(
                    f"the part on {show_margin(part.margin)} does not name its attributes in the domain's order."
                )
        if len({(part.margin, part.centred) for part in self.measured}) < len(self.measured):
            raise InvalidPlan("the plan lists one part twice. Measure it once, with less noise.")

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

    @cached_property
    def counted(self) -> tuple[Margin, ...]:
        """The margins whose exact counts the mechanism needs."""
        if self.query == "counts":
            return tuple(part.margin for part in self.measured)
        if self.query == "residuals":
            return tuple(maximal_margins(part.margin for part in self.measured))
        return self.workload.maximal().margins

    def shape_of(self, part: MeasuredMargin) -> tuple[int, ...]:
        """Return the shape of what one part measures."""
        shape = self.measured_domain.shape_of(part.margin)
        if part.query == "residuals":
            return residual_shape(shape, [i for i, a in enumerate(part.margin) if a in part.centred])
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
        known = self.residual_variances if self.query == "residuals" else self._known
        if any(s not in known for s in subsets(named)):
            what = "residual" if self.query == "residuals" else "coefficient"
            raise UnknownMargin(f"the plan does not measure every {what} of {show_margin(margin)}.")

    def source_of(self, margin: Margin) -> MeasuredMargin:
        """Return the measured counts that give the table on `margin` with the smallest error."""
        return self.measured[self.source_position(margin)]

    def source_position(self, margin: Margin) -> int:
        """Return where the measured counts stand that give the table on `margin` with the smallest error."""
        covering = self._index.containing(margin)
        if not covering:
            raise UnknownMargin(f"the plan measures nothing that contains {show_margin(margin)}.")
        if len(covering) == 1:
            return covering[0]
        # Ties go to the first, so that two readers of one plan agree.
        return min(
            covering, key=lambda i: self.noise_variances[i] * self._mean_terms(self.measured[i], margin)
        )

    def error_of(self, margin: Margin) -> ErrorLaw:
        """Return the law of the error of each cell of the linear estimate of the table on `margin`."""
        if self.query == "counts":
            source = self.source_of(margin)
            return CellErrors(source.noise, self.domain.project(source.margin).multiplicity(margin))
        if self.query == "residuals":
            self.check_measured(margin)
            return self._residual_errors(margin)
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

        Of linear estimates that is known exactly. Of shrunk tables it is what a model expects, made without data
        (`planning.shrink_weights`): their errors depend on the data, and the release states them by simulation.

        >>> import tabulary as tb
        >>> domain = tb.Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
        >>> plan = tb.plan(domain, "[sex][sex job]", privacy=tb.PureDP(1), mechanism="margins")
        >>> print(plan.expected_error())
        margin         cells   std. error       ±95%
        [sex]              2          2.8          6
        [sex job]          4          2.8          6
        """
        if self.reconstruct == "shrink":
            return ExpectedErrors(tuple(self._expected_shrunk(confidence)), confidence)
        rows = tuple(expected_error(m, self.error_of(m), confidence) for m in self.workload)
        return ExpectedErrors(rows, confidence)

    @cached_property
    def expected_rmse(self) -> float:
        """The root mean squared error expected over all possible cells, each margin counted by its weight.

        Of shrunk tables, what the model expects.
        """
        squared = cells = 0.0
        for weight, total, possible in self._squared_errors:
            squared += weight * total
            cells += weight * possible
        return math.sqrt(squared / cells) if cells else 0.0

    @cached_property
    def expected_max(self) -> float:
        """The largest root mean squared error of any table over its possible cells, its square times the weight."""
        each = [weight * total / possible for weight, total, possible in self._squared_errors if possible]
        return math.sqrt(max(each, default=0.0))

    @cached_property
    def residual_variances(self) -> Mapping[Margin, float]:
        """σ² of the residual of every set of the workload's closure, by generalised least squares over all parts.

        The estimate of r_R has covariance σ²_R P_R, and those of different sets are uncorrelated
        (`core.residuals`). A set that no part tells about is not there.
        """
        if self.query != "residuals":
            raise InvalidPlan(f"mechanism {self.mechanism!r} does not measure residuals.")
        parts = {(m.margin, m.centred): v for m, v in zip(self.measured, self.noise_variances, strict=True)}
        known = residual_variances(self.domain, parts)
        levels = self._levels
        found: dict[Margin, float] = {}
        for r in dict.fromkeys(s for margin in self.workload for s in subsets(margin)):
            if any(levels[a] == 1 for a in r):
                # Nothing varies on one level: there is nothing to measure, and nothing to be wrong about.
                found[r] = 0.0
            elif r in known and math.isfinite(known[r]):
                found[r] = known[r]
        return found

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
            "neighbours": self.neighbours.describe(),
            "mechanism": self.mechanism,
            "reconstruct": self.reconstruct,
            "rounding": self.rounding,
            "encoding": self.encoding,
            "sensitivity": self._described_sensitivity(),
            "exact": [list(s) for s in self.exact],
            "measured": [m.describe() for m in self.measured],
            **({} if self.records is None else {"records": self.records}),
        }

    def digest(self) -> str:
        """Return the SHA-256 of the plan's canonical description: its name in the ledger."""
        return self._digest

    def __str__(self) -> str:
        tables = f"{len(self.workload)} table{'s' if len(self.workload) > 1 else ''}"
        return (
            f"{tables} by mechanism '{self.mechanism}' at {self.privacy} ({self.neighbours}), "
            f"{self.norm} sensitivity {_shown(self.sensitivity)}"
        )

    def cost(self) -> Fraction:
        """Return the loss that the noise really has: Δ₁ of the scaled measurements, or half of their Δ₂²."""
        currency = type(self.loss)
        # Thousands of parts share a few laws.
        costs = {law: law.unit_costs.get(currency) for law in {part.noise for part in self.measured}}
        spent = [cost for part in self.measured if (cost := costs[part.noise]) is not None]
        if len(spent) < len(self.measured):
            raise InvalidPlan(
                f"the noise of this plan is not of the family that earns a loss of {self.loss}."
            )
        if currency is PureDP:
            return self._sensitivity(scales=[1 / cost for cost in spent]).l1
        return self._sensitivity(squared_scales=[1 / (2 * cost) for cost in spent]).l2_squared / 2

    def _sensitivity(
        self, *, scales: list[Fraction] | None = None, squared_scales: list[Fraction] | None = None
    ) -> MarginSensitivity:
        return sensitivity_of(
            self.measured_domain,
            [(m.margin, m.centred) for m in self.measured],
            self._measured_neighbours,
            query=self.query,
            scales=scales,
            squared_scales=squared_scales,
        )

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

    @cached_property
    def _known(self) -> frozenset[Margin]:
        return frozenset(self.value_sets())

    @cached_property
    def _index(self) -> MarginIndex:
        return MarginIndex(part.margin for part in self.measured)

    @cached_property
    def noise_variances(self) -> list[float]:
        """The variance of the noise of each part, never zero."""
        # Thousands of parts share a few laws, and the variance of a discrete one is the sum of a series.
        laws = {law: max(law.variance, SMALLEST_VARIANCE) for law in {part.noise for part in self.measured}}
        return [laws[part.noise] for part in self.measured]

    @cached_property
    def _digest(self) -> str:
        # Every table of a table builder names its plan, and the plan of a universe is long.
        canonical = json.dumps(self.describe(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @cached_property
    def _levels(self) -> dict[str, int]:
        return dict(zip(self.domain.attributes, self.domain.shape, strict=True))

    @cached_property
    def _tails(self) -> TailWeights:
        return TailWeights(self.domain, self._residual_parts, self.residual_variances)

    @cached_property
    def _residual_parts(self) -> list[Part]:
        return [(m.margin, m.centred, m.noise) for m in self.measured]

    def _residual_errors(self, margin: Margin) -> WeightedErrors:
        variance = margin_variance(self.domain, self.residual_variances, margin)
        shape = self.domain.shape_of(margin)
        kurtosis = self._tails.kurtosis(margin, variance)
        shared = CellCovariance(
            ResidualNoise(margin, self._levels, self._residual_parts, self.residual_variances)
        )
        law = WeightedErrors(np.full(shape, math.sqrt(variance)), np.full(shape, kurtosis), shared)
        return law.without(self.domain.impossible(margin)) if self.domain.structural_zeros else law

    @cached_property
    def _squared_errors(self) -> list[tuple[float, float, int]]:
        """Each table's weight, the sum of its cells' expected squared errors, and how many cells are possible."""
        found = []
        for margin, weight in zip(self.workload.margins, self.workload.weights, strict=True):
            if self.query == "residuals":
                # The same in every cell, and nobody asks for its tails here.
                possible = self.domain.cells(margin) - int(self.domain.impossible(margin).sum())
                shrunk = self._shrunk_variances.get(margin)
                total = possible * (
                    margin_variance(self.domain, self.residual_variances, margin)
                    if shrunk is None
                    else shrunk
                )
            else:
                deviations = self.error_of(margin).standard_errors
                total, possible = float((deviations**2).sum()), int((deviations > 0).sum())
            found.append((float(weight), total, possible))
        return found

    @cached_property
    def _shrunk_variances(self) -> Mapping[Margin, float]:
        """What the model expects of every wanted table, if the tables will be shrunk."""
        if self.records is None:
            return {}
        return shrunk_variances(self.workload, self.residual_variances, records=self.records)

    def _expected_shrunk(self, confidence: float) -> Iterator[ExpectedError]:
        for margin, variance in self._shrunk_variances.items():
            possible = self.domain.cells(margin) - int(self.domain.impossible(margin).sum())
            deviation = math.sqrt(variance)
            yield ExpectedError(margin, possible, deviation, normal_quantile(confidence) * deviation)

    def _described_sensitivity(self) -> dict[str, str]:
        if self.norm == "L1":
            return {"norm": "L1", "value": str(self._unscaled.l1)}
        return {"norm": "L2", "squared_value": str(self._unscaled.l2_squared)}

    def _mean_terms(self, source: MeasuredMargin, margin: Margin) -> float:
        if not self.domain.structural_zeros:
            return math.prod(self._levels[a] for a in source.margin if a not in margin)
        terms = self.domain.project(source.margin).multiplicity(margin)
        return float(terms.sum(dtype=float)) / max(int((terms > 0).sum()), 1)


def _shown(value: Fraction | float) -> str:
    return show_fraction(value) if isinstance(value, Fraction) else f"{value:.6g}"
