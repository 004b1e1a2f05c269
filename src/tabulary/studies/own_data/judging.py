"""How far the tables of one mechanism are from the counts they were made of, by the measures of the custodian.

Every number here is a distance between what would be published and what was counted. None is a count; all of them are
as confidential as the counts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, axes_outside, sum_onto
from tabulary.core.domain import Margin
from tabulary.core.table import CellCounts as Published
from tabulary.core.table import Table
from tabulary.core.workload import show_margin
from tabulary.errors import NotCertified
from tabulary.infer import LogLinearModel, cramers_v, independence, loglinear
from tabulary.infer.fitted_model import shares
from tabulary.planning import CellErrors, ErrorLaw, Plan
from tabulary.release import ReleasedTable
from tabulary.studies.own_data.counting import Counts, summed
from tabulary.studies.own_data.measures import Measures, holder, needed
from tabulary.studies.study import Value

Found = dict[str, Value]

LARGE = 0.01
"""A relative error is one of a cell with at least this share of the people; of smaller ones nobody quotes it."""

LEVEL = 0.05
"""The level of the tests."""

_SWEEPS = 200
_CLOSE = 1e-12


@dataclass(frozen=True)
class Judge:
    """What was counted, and how tables of a plan compare with it. One judge serves all repetitions of a plan."""

    plan: Plan
    measures: Measures
    counts: Counts = field(repr=False)

    def tables(self, published: Mapping[Margin, Published]) -> list[Found]:
        """Return the errors of each table that counts.

        `rmse` is the root mean squared error over the possible cells, `l1_share` Σ |error| over the number of people,
        `largest_relative_error` that of the cells with at least 1 % of the people, None where there is no such cell.
        """
        return [
            {"table": show_margin(m), **self._errors(m, self._published(published, m))}
            for m in self.measures.margins
        ]

    def together(self, tables: list[Found]) -> Found:
        """Return the errors of all tables that count, every cell alike, and those of the worst table."""
        squares = sum(float(row["rmse"] or 0) ** 2 * int(row["cells"] or 0) for row in tables)
        worst = max(tables, key=lambda row: float(row["rmse"] or 0))
        relative = [
            float(row["largest_relative_error"])
            for row in tables
            if row["largest_relative_error"] is not None
        ]
        return {
            "rmse": math.sqrt(squares / max(sum(int(row["cells"] or 0) for row in tables), 1)),
            "worst_rmse": worst["rmse"],
            "worst_table": worst["table"],
            "l1_share": sum(float(row["l1_share"] or 0) for row in tables) / len(tables),
            "largest_relative_error": max(relative, default=None),
        }

    def models(self, published: Mapping[Margin, Published]) -> list[Found]:
        """Return how far each model's fit to the published tables is from that to the counts.

        `g2_ratio_change` is the change of G² over its degrees of freedom, both as if counts were exact, None where no
        table holds all attributes of the model; `fit_l1` is Σ |p - q| between the fitted distributions.
        """
        rows: list[Found] = []
        for model in self.measures.models:
            ratio, fit = _fitted(
                model, {m: self._published(published, m) for m in needed(model, self.plan.workload)}
            )
            exact_ratio, exact_fit = self._exact_fits[model]
            change = None if ratio is None or exact_ratio is None else ratio - exact_ratio
            rows.append(
                {
                    "model": str(model),
                    "g2_ratio_change": change,
                    "fit_l1": float(np.abs(fit - exact_fit).sum()),
                }
            )
        return rows

    def tests(self, published: Mapping[Margin, Published]) -> list[Found]:
        """Return what each test of independence decides at 5 %, on the counts and on the published tables.

        `naive` takes the published counts as exact, `aware` knows their noise; None where its law is not known, which
        is so for tables that were reconstructed. A test that does not come to an end decides nothing, which is never
        what the counts decide. `v_error` is how far Cramér's V is from that of the counts.
        """
        rows: list[Found] = []
        for margin in self.measures.tests:
            table = Table(self.plan.domain.project(margin), self._published(published, margin))
            rejects, exact_v = self._exact_tests[margin]
            law = self._laws[margin]
            naive = Table(table.domain, np.maximum(table.counts, 0))
            row: Found = {
                "table": show_margin(margin),
                "counts_reject": rejects,
                "naive_agrees": independence(naive, "naive").rejects(LEVEL) == rejects,
                "aware_agrees": None,
                "naive_v_error": abs(cramers_v(naive) - exact_v),
                "aware_v_error": None,
            }
            if law is not None:
                released = ReleasedTable(table, law)
                row["aware_agrees"] = _decision(released) is rejects
                row["aware_v_error"] = abs(cramers_v(released).estimate - exact_v)
            rows.append(row)
        return rows

    def expected(self) -> list[Found]:
        """Return what the plan alone expects of each table that counts: the root mean squared error. Reads no count.

        Of linear estimates exactly, of shrunk tables by the planning model, of other reconstructions that of the
        linear estimate they begin with.
        """
        return [
            {"table": show_margin(m), "cells": self._cells(m), "rmse": self._expected(m)}
            for m in self.measures.margins
        ]

    def _errors(self, margin: Margin, table: Floats) -> Found:
        truth = self._truth[margin]
        error = np.abs(table - truth)
        people = max(int(truth.sum()), 1)
        large = truth >= max(LARGE * people, 1)
        return {
            "cells": self._cells(margin),
            "rmse": math.sqrt(float((error**2).sum()) / max(self._cells(margin), 1)),
            "l1_share": float(error.sum()) / people,
            "largest_relative_error": float((error[large] / truth[large]).max()) if large.any() else None,
        }

    def _cells(self, margin: Margin) -> int:
        return self.plan.domain.cells(margin) - int(self.plan.domain.impossible(margin).sum())

    def _published(self, published: Mapping[Margin, Published], margin: Margin) -> Floats:
        """Return a margin as a reader has it: a published table, or the sums of one."""
        source = holder(margin, self.plan.workload)
        assert source is not None
        return np.asarray(sum_onto(published[source], source, margin), dtype=np.float64)

    @cached_property
    def _truth(self) -> dict[Margin, NDArray[np.int64]]:
        return {margin: summed(self.counts, margin) for margin in self.measures.margins}

    @cached_property
    def _exact_fits(self) -> dict[LogLinearModel, tuple[float | None, Floats]]:
        return {
            model: _fitted(
                model, {m: summed(self.counts, m).astype(float) for m in needed(model, self.plan.workload)}
            )
            for model in self.measures.models
        }

    @cached_property
    def _exact_tests(self) -> dict[Margin, tuple[bool, float]]:
        found = {}
        for margin in self.measures.tests:
            table = Table(self.plan.domain.project(margin), summed(self.counts, margin))
            found[margin] = (independence(table, "naive").rejects(LEVEL), float(cramers_v(table)))
        return found

    @cached_property
    def _laws(self) -> dict[Margin, ErrorLaw | None]:
        linear = self.plan.reconstruct == "none"
        return {margin: self._law(margin) if linear else None for margin in self.measures.tests}

    def _law(self, margin: Margin) -> ErrorLaw:
        """Return the law of the errors of the linear estimate of a margin, as a reader has it."""
        source = holder(margin, self.plan.workload)
        assert source is not None
        law = self.plan.error_of(source)
        if source == margin or not isinstance(law, CellErrors) or self.plan.estimator.agree:
            # Of tables that agree, the sums of one are the table on fewer attributes.
            return law if source == margin else self.plan.error_of(margin)
        return CellErrors(law.noise, sum_onto(law.terms, source, margin))

    def _expected(self, margin: Margin) -> float | None:
        if self.plan.records is not None:
            return self._modelled.get(margin)
        if self.plan.estimator.agree:
            squares, _ = self.plan.estimator.squared_error(margin)
        else:
            squares = float((self._law(margin).standard_errors ** 2).sum())
        return math.sqrt(squares / max(self._cells(margin), 1))

    @cached_property
    def _modelled(self) -> dict[Margin, float]:
        return {row.margin: row.standard_error for row in self.plan.expected_error()}


def _decision(table: ReleasedTable) -> bool | None:
    try:
        return independence(table).rejects(LEVEL)
    except NotCertified:
        return None


def _fitted(model: LogLinearModel, tables: Mapping[Margin, Floats]) -> tuple[float | None, Floats]:
    """Return G² over its degrees of freedom where the whole table is given, and the fitted distribution."""
    whole = tables.get(model.domain.attributes)
    if whole is None:
        return None, fitted_from_margins(model, tables)
    fit = loglinear(Table(model.domain, np.maximum(whole, 0.0)), model, method="naive")
    return fit.g2 / max(fit.degrees_of_freedom, 1), np.asarray(shares(fit.fitted).counts)


def fitted_from_margins(model: LogLinearModel, tables: Mapping[Margin, Floats]) -> Floats:
    """Return the distribution of a model that has the given margins, by iterative proportional fitting.

    Negative counts are taken as zero. Margins that contradict each other are fitted in turn for 200 sweeps, as a reader
    might who knows of nothing better.

    >>> from tabulary import Domain
    >>> model = LogLinearModel.parse("[A][B]", Domain({"A": "xy", "B": "xy"}))
    >>> fitted_from_margins(model, {("A",): np.array([1.0, 3.0]), ("B",): np.array([2.0, 2.0])}).tolist()
    [[0.125, 0.125], [0.375, 0.375]]
    """
    domain = model.domain
    fitted = (~domain.impossible(domain.attributes)).astype(np.float64)
    fitted /= fitted.sum()
    wanted = {
        m: np.asarray(shares(Table(domain.project(m), np.maximum(t, 0.0))).counts) for m, t in tables.items()
    }
    for _ in range(_SWEEPS):
        before = fitted.copy()
        for margin, share in wanted.items():
            now = fitted.sum(axis=axes_outside(domain.attributes, margin), keepdims=True)
            aim = share.reshape(now.shape)
            fitted = fitted * np.divide(aim, now, out=np.zeros_like(aim), where=now > 0)
        if float(np.abs(fitted - before).sum()) < _CLOSE:
            break
    return fitted / max(float(fitted.sum()), 1e-300)
