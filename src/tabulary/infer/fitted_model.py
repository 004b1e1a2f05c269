"""What a fitted log-linear model is: expected counts, and how far the table is from them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.core.table import Table
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.hypothesis import LogLinearHypothesis
from tabulary.infer.models import LogLinearModel
from tabulary.infer.results import TestResult

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted log-linear model, and how far the table is from it.

    `g2` is twice the difference of log-likelihood to the saturated model, `x2` Pearson's statistic. Of exact counts
    that are not small both are χ² with `degrees_of_freedom` under the model. `nominal_degrees_of_freedom` are those
    before zero counts took cells and parameters away, as printed by software that does not look. `boundary` says
    which possible cells are zero in the fit; `assumed` says in words what the p-value, that of `g2`, rests on.
    """

    model: LogLinearModel
    method: str
    fitted: Table
    g2: float
    x2: float
    degrees_of_freedom: int
    nominal_degrees_of_freedom: int
    p_value: float
    log_likelihood: float
    parameters: int
    """How many parameters were estimated: the rank of the design on the cells that are not on the boundary."""
    boundary: Mask
    assumed: tuple[str, ...]
    behind: tuple[LogLinearHypothesis, Table] | None = None
    """Of a noise-aware fit: the model as a hypothesis about released values, and these values."""

    def __post_init__(self) -> None:
        self.boundary.flags.writeable = False

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2·parameters - 2·log-likelihood; the smaller the better."""
        return 2 * self.parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, log(people)·parameters - 2·log-likelihood, with as many people as are fitted."""
        return math.log(max(self.fitted.total, 1.0)) * self.parameters - 2 * self.log_likelihood

    @property
    def distribution(self) -> Table:
        """The fit as shares that add up to one; evenly over the possible cells of an empty table."""
        return shares(self.fitted)

    def against(self, larger: "FittedModel") -> TestResult:
        """Return the test of this model within a larger one that was fitted to the same table in the same way.

        Of counts taken as exact: twice the difference of log-likelihood, which is χ² with the degrees of freedom that
        the larger model loses, those of the cells that zeros leave to each. Behind noise: the score test, whose
        mean and variance are known where χ² does not hold (`infer.score`); for a perturbation that depends on the count
        χ² again. Against the saturated model it is the test of this model by itself.
        """
        name = f"{self.model} within {larger.model}"
        if larger.nominal_degrees_of_freedom == 0:
            return TestResult(name, self.g2, self.degrees_of_freedom, self.p_value, self.method, self.assumed)
        if self.behind is not None:
            hypothesis, released = self.behind
            larger_design = larger.model.design(np.arange(released.counts.size))
            found = hypothesis.test_within(name, released.counts, larger_design)
            if found is not None:
                return found
            freedom = self.nominal_degrees_of_freedom - larger.nominal_degrees_of_freedom
            statistic = 2 * (larger.log_likelihood - self.log_likelihood)
        else:
            freedom = self.degrees_of_freedom - larger.degrees_of_freedom
            statistic = self.g2 - larger.g2
        statistic = max(statistic, 0.0) if freedom else 0.0
        p_value = upper_tail(statistic, freedom)
        return TestResult(name, statistic, freedom, p_value, self.method, self.assumed)

    def __str__(self) -> str:
        freedom = f"{self.degrees_of_freedom} degrees of freedom"
        if self.degrees_of_freedom != self.nominal_degrees_of_freedom:
            freedom += f" ({self.nominal_degrees_of_freedom} before zeros)"
        on_boundary = int(self.boundary.sum())
        lines = [
            f"{self.model}, {self.method}: G² {self.g2:.2f}, X² {self.x2:.2f} on {freedom}, p = {self.p_value:.3g}",
            f"AIC {self.aic:.2f}, BIC {self.bic:.2f}, {self.parameters} parameters"
            + (f", {on_boundary} cells zero in the fit" if on_boundary else ""),
        ]
        return "\n".join([*lines, *self.assumed])


def shares(table: Table) -> Table:
    """Return a table of counts as shares that add up to one; evenly over the possible cells of an empty one."""
    counts = np.maximum(table.counts, 0).astype(np.float64)
    if not counts.any():
        counts = (~table.domain.impossible(table.domain.attributes)).astype(np.float64)
    return Table(table.domain, counts / counts.sum())
