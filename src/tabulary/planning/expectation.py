"""What to expect of the tables of a plan, before any budget is spent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tabulary.core.domain import Margin
from tabulary.core.workload import Workload
from tabulary.planning.accuracy import ExpectedError, ExpectedErrors, expected_error, normal_quantile
from tabulary.planning.queries.query import Estimator


@dataclass(frozen=True, eq=False)
class Expectation:
    """The expected errors of the linear estimates, which are known exactly."""

    workload: Workload
    estimator: Estimator

    def errors(self, confidence: float) -> ExpectedErrors:
        """Return the cells, the standard error and the half-width of every table."""
        law = self.estimator.error_of
        rows = tuple(expected_error(margin, law(margin), confidence) for margin in self.workload)
        return ExpectedErrors(rows, confidence)

    @cached_property
    def rmse(self) -> float:
        """The root mean squared error over all possible cells, each margin counted by its weight."""
        squared = cells = 0.0
        for weight, total, possible in self._squared:
            squared += weight * total
            cells += weight * possible
        return math.sqrt(squared / cells) if cells else 0.0

    @cached_property
    def largest(self) -> float:
        """The largest root mean squared error of any table over its possible cells, its square times the weight."""
        each = [weight * total / possible for weight, total, possible in self._squared if possible]
        return math.sqrt(max(each, default=0.0))

    def squared_error(self, margin: Margin) -> tuple[float, int]:
        """Return the sum of the expected squared errors of the cells of a table, and how many can be wrong."""
        return self.estimator.squared_error(margin)

    @cached_property
    def _squared(self) -> list[tuple[float, float, int]]:
        return [
            (float(weight), *self.squared_error(margin))
            for margin, weight in zip(self.workload.margins, self.workload.weights, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class ShrunkExpectation(Expectation):
    """The errors that a model expects of shrunk tables, made without data (`planning.shrink_weights`).

    `variances` is what the model expects of a cell of each wanted table.
    """

    variances: Mapping[Margin, float]

    def errors(self, confidence: float) -> ExpectedErrors:
        """Return the cells, the standard error and the half-width of every table, as the model expects them."""
        rows = []
        for margin, variance in self.variances.items():
            _, possible = self.estimator.squared_error(margin)
            deviation = math.sqrt(variance)
            rows.append(ExpectedError(margin, possible, deviation, normal_quantile(confidence) * deviation))
        return ExpectedErrors(tuple(rows), confidence)

    def squared_error(self, margin: Margin) -> tuple[float, int]:
        """Return what the model expects of all cells of a table together, and how many can be wrong."""
        _, possible = self.estimator.squared_error(margin)
        return possible * self.variances[margin], possible
