"""The plan: what is measured, at what scale, with what expected error. Made without data."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Loss, Privacy, PureDP, describe_privacy, implies
from tabulary.core.sensitivity import Sensitivity
from tabulary.core.workload import Workload
from tabulary.errors import InvalidPlan
from tabulary.planning.accuracy import ErrorLaw, ExpectedErrors
from tabulary.planning.encoding import ENCODINGS, Levels
from tabulary.planning.expectation import Expectation, ShrunkExpectation
from tabulary.planning.face import Face
from tabulary.planning.measurement import Part
from tabulary.planning.mechanism import MECHANISMS, does_not_measure
from tabulary.planning.queries.query import Estimator, Query
from tabulary.planning.shrink_weights import shrunk_variances


@dataclass(frozen=True)
class Plan:
    """What will be measured and what that promises; the unit that the ledger debits.

    `privacy` is what is promised. `loss` is what the noise itself satisfies, in its own currency: pure ε for
    Laplace noise, ρ for Gaussian noise, of zCDP or of the exact Gaussian curve. The plan checks on
    construction that the measurements cost no more than the loss, and that the loss implies the promise, so a
    plan that exists is a plan that holds.

    `measured` are queries of one type with their noise, and `exact` the sets of attributes whose queries are released
    without noise. `reconstruct` and `rounding` name the published face. `records` is the approximate number of records
    for which the budget was divided, if it was divided for shrunk tables; otherwise None.
    """

    domain: Domain
    workload: Workload
    privacy: Privacy
    loss: Loss
    neighbours: Neighbours
    mechanism: str
    measured: tuple[Part[Query], ...]
    reconstruct: str = "none"
    rounding: str = "none"
    encoding: str = "levels"
    exact: tuple[Margin, ...] = ()
    records: int | None = None

    def __post_init__(self) -> None:
        self._check_parts()
        self._check_options()
        for margin in self.workload:
            self.check_measured(margin)
        if not implies(self.loss, self.privacy):
            raise InvalidPlan(f"a loss of {self.loss} does not imply the promised {self.privacy}.")
        if self.cost() > (self.loss.epsilon if isinstance(self.loss, PureDP) else self.loss.rho):
            raise InvalidPlan(f"the noise of this plan is too small for its loss of {self.loss}.")

    def _check_parts(self) -> None:
        """Refuse parts that the mechanism does not measure, or that are named in more than one way."""
        mechanism = MECHANISMS[self.mechanism]
        if not self.measured or any(type(part.query) is not mechanism.query for part in self.measured):
            raise does_not_measure(self.mechanism)
        if self.encoding not in mechanism.encodings:
            raise InvalidPlan(f"mechanism {self.mechanism!r} does not measure {self.encoding}.")
        for part in self.measured:
            part.query.check(self.measured_domain)
        if len({part.query for part in self.measured}) < len(self.measured):
            raise InvalidPlan("the plan lists one part twice. Measure it once, with less noise.")

    def _check_options(self) -> None:
        """Refuse options that contradict each other, or that this mechanism cannot have."""
        if self.records is not None and self.records < 1:
            raise InvalidPlan("the approximate number of records that a plan states must be positive.")
        sensitive = set(self._near.sensitive)
        if self.exact and (not sensitive or any(sensitive & set(s) for s in self.exact)):
            raise InvalidPlan("only sets without a sensitive attribute may be released exactly.")
        if sensitive and not self.query.protects_some:
            raise InvalidPlan(
                "with sensitive attributes the mechanism must measure contrasts ('fourier' or 'efron-stein')."
            )
        if sensitive and self.encoded.pads and self.measured_domain.structural_zeros:
            raise InvalidPlan(
                f"with sensitive attributes mechanism {self.mechanism!r} does not write attributes as bits. Use the "
                "mechanism 'efron-stein', which takes attributes as they are."
            )
        self.face.check(self)

    @property
    def query(self) -> type[Query]:
        """The type of the queries that are measured."""
        return type(self.measured[0].query)

    @property
    def face(self) -> Face:
        """The face that is published, unless another is asked for."""
        return Face(self.reconstruct, self.rounding)

    @cached_property
    def encoded(self) -> Levels:
        """How attributes are named where they are measured."""
        return ENCODINGS[self.encoding](self.domain)

    @property
    def measured_domain(self) -> Domain:
        """The domain in which the measured sets are named: the plan's own, or that of its bits."""
        return self.encoded.measured_domain

    def measured_margin(self, margin: Margin) -> Margin:
        """Return a margin of the plan's domain in the names of the measured one."""
        return self.encoded.margin(margin)

    @cached_property
    def estimator(self) -> Estimator:
        """What makes tables of the measurements, and knows the law of their errors."""
        return self.query.estimator(self.encoded, self.workload, self.measured, self.exact)

    @property
    def counted(self) -> tuple[Margin, ...]:
        """The margins whose exact counts the mechanism needs."""
        return self.estimator.counted

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """All queries: those measured with noise, then those released exactly."""
        return (*(part.query for part in self.measured), *map(self.query, self.exact))

    def shape_of(self, part: Part[Query]) -> tuple[int, ...]:
        """Return the shape of what one part measures."""
        return part.query.shape(self.measured_domain)

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the values of all queries."""
        return [query.shape(self.measured_domain) for query in self.queries]

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
        """Raise UnknownMargin if the measurements do not determine the table on `margin`."""
        self.estimator.check(margin)

    def error_of(self, margin: Margin) -> ErrorLaw:
        """Return the law of the error of each cell of the linear estimate of the table on `margin`."""
        return self.estimator.error_of(margin)

    def expected_error(self, confidence: float = 0.95) -> ExpectedErrors:
        """Return what to expect of every table: cells, standard error and half-width. Reads no data.

        It is known exactly of the linear estimates, the unbiased face of the release; the published face is more
        accurate where cells are small. For a plan that states its `records`, it is what a model expects of shrunk
        tables, made without data (`planning.shrink_weights`). The release states the errors of its published face.

        >>> import tabulary as tb
        >>> domain = tb.Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
        >>> plan = tb.plan(domain, "[sex][sex job]", privacy=tb.PureDP(1), mechanism="margins")
        >>> print(plan.expected_error())
        margin         cells   std. error       ±95%
        [sex]              2          2.8          6
        [sex job]          4          2.8          6
        """
        return self._expectation.errors(confidence)

    @property
    def expected_rmse(self) -> float:
        """The root mean squared error expected over all possible cells, each margin counted by its weight.

        Of shrunk tables, what the model expects.
        """
        return self._expectation.rmse

    @property
    def expected_max(self) -> float:
        """The largest root mean squared error of any table over its possible cells, its square times the weight."""
        return self._expectation.largest

    @property
    def residual_variances(self) -> Mapping[Margin, float]:
        """σ² of the estimated residual of every set below the tables that can be published."""
        return self.estimator.variances

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
    ) -> Sensitivity:
        return self.query.sensitivity(
            self.measured_domain,
            [part.query for part in self.measured],
            self._near,
            scales=scales,
            squared_scales=squared_scales,
        )

    @property
    def _near(self) -> Neighbours:
        """The neighbouring relation in the names of the measured domain."""
        return self.encoded.neighbours(self.neighbours)

    @cached_property
    def _unscaled(self) -> Sensitivity:
        return self._sensitivity()

    @cached_property
    def _digest(self) -> str:
        # Every table of a table builder names its plan, and the plan of all allowed tables is long.
        canonical = json.dumps(self.describe(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @cached_property
    def _expectation(self) -> Expectation:
        if self.records is None:
            return Expectation(self.workload, self.estimator)
        variances = shrunk_variances(self.workload, self.residual_variances, records=self.records)
        return ShrunkExpectation(self.workload, self.estimator, variances)

    def _described_sensitivity(self) -> dict[str, str]:
        if self.norm == "L1":
            return {"norm": "L1", "value": str(self._unscaled.l1)}
        return {"norm": "L2", "squared_value": str(self._unscaled.l2_squared)}


def _shown(value: Fraction | float) -> str:
    return show_fraction(value) if isinstance(value, Fraction) else f"{value:.6g}"
