r"""The ways from a table to a perturbed one that the study compares, at the same label ε and for replaced records.

| name | measured | then |
| --- | --- | --- |
| as published | the paper's terms, noise as printed | linear program, nearest whole numbers |
| exact calibration | the same, noise as large as the label needs | the same |
| least squares | what the planner sees fit for the margins | nearest table, controlled rounding |
| shrinkage | what suits shrinkage, for a public n | shrunk tables, whole |
| noise-aware | every cell of the whole table | the model fitted with its noise known |

The paper is Yang, Fienberg & Rinaldo (YFR). Its terms are the Fourier coefficients of binary tables (their Table 1),
and of others all f^S(x_S) (their Table 2).

Every step is what `tb.plan`, `tb.release` and `tb.infer.loglinear` do, but for the simulated standard errors of a
release, which nobody reads here.

Replaced records leave their number as it was, so it is public. A plan that measures it by itself does so with a
thousandth of the noise and pays nothing; the published mechanisms draw noise for it like for every other term.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from tabulary import Domain, PureDP, Table, Workload
from tabulary.confidential import Tally
from tabulary.core import Floats
from tabulary.datasets import Dataset
from tabulary.errors import NotCertified
from tabulary.infer import FittedModel, loglinear
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.planning import MarginMap, Measurement, Plan, ResidualMap, plan
from tabulary.reconstruct import (
    FullTable,
    ProgramSolution,
    linear_estimates,
    measured_vector,
    reconstruct,
    round_table,
    solve_least_squares,
    solve_program,
    uniforms_from,
)
from tabulary.workflows import release
from tabulary_papers.published import (
    Calibration,
    Mechanism,
    PublishedMeasurement,
    published_efron_stein,
    published_fourier,
    unit_of,
)

Name = Literal[
    "as published",
    "exact calibration",
    "least squares",
    "shrinkage",
    "noise-aware",
]
NEIGHBOURS: Literal["replace"] = "replace"


@dataclass(frozen=True, eq=False)
class Perturbed:
    """One perturbed table.

    `table` has no negative cell; None where none was found. `infeasible` says that no such table has exactly what the
    mechanism says of the margins, and `b` by how much the nearest one misses it, in the paper's unit; None where no
    program was solved.
    `fit` is there where the model was fitted with the noise known; otherwise `table` is to be fitted as it stands.
    """

    table: Table | None
    infeasible: bool | None
    b: float | None
    fit: FittedModel | None = None


Perturb = Callable[[ExactSampler], Perturbed]


def prepared(method: Name, data: Dataset, epsilon: str) -> Perturb:
    """Return what perturbs the table of a dataset once each time it is called: the plan is made here, and once.

    Where noise is all there is, a program may have no solution and a likelihood no maximum that can be proved. Such a
    repetition has no table; the others go on.
    """
    perturb = METHODS[method](data, epsilon)

    def once(sampler: ExactSampler) -> Perturbed:
        try:
            return perturb(sampler)
        except NotCertified:
            return Perturbed(None, None, None)

    return once


def wanted(data: Dataset) -> Workload:
    """Return the margins of the log-linear model that the paper fits."""
    assert data.model is not None
    return Workload.parse(data.model, data.table.domain)


def mechanism_of(domain: Domain) -> Mechanism:
    """Return which of the paper's two mechanisms is for this domain."""
    return "YFR Table 1" if set(domain.shape) == {2} else "YFR Table 2"


def measured_as_published(
    data: Dataset, epsilon: object, calibration: Calibration, sampler: ExactSampler | None = None
) -> PublishedMeasurement:
    """Return the noisy terms of the paper's mechanism for this table."""
    mechanism = (
        published_fourier if mechanism_of(data.table.domain) == "YFR Table 1" else published_efron_stein
    )
    return mechanism(
        data.table, wanted(data), epsilon, neighbours=NEIGHBOURS, calibration=calibration, sampler=sampler
    )


def program_of_estimates(measurement: Measurement, work: Workload) -> ProgramSolution:
    """Return the paper's linear program for margins that agree: the linear estimates of a plan.

    Its terms are those of some table, so that only negative cells can stand in the way. On more than two levels they
    are all f^S(x_S), as published; on two, where these are one number with signs, one Fourier coefficient a set.
    """
    tables = linear_estimates(measurement)
    sets = work.closure().margins
    terms = []
    for s in sets:
        source = next(margin for margin in tables if set(s) <= set(margin))
        summed = tuple(i for i, a in enumerate(source) if a not in s)
        table = np.asarray(tables[source], dtype=np.float64).sum(axis=summed)
        whole = tuple(range(len(s)))
        terms.append(ResidualMap(table.shape, ((whole, whole),)).forward(table))
    axes = (tuple(work.domain.position(a) for a in s) for s in sets)
    linear_map = ResidualMap(work.domain.shape, tuple((own, own) for own in axes))
    return solve_program(linear_map, np.concatenate(terms))


def _published(calibration: Calibration, data: Dataset, epsilon: str) -> Perturb:
    def once(sampler: ExactSampler) -> Perturbed:
        found = measured_as_published(data, epsilon, calibration, sampler).solve()
        return Perturbed(found.table, *_deviation(found.program, found.measurement.unit))

    return once


def _least_squares(data: Dataset, epsilon: str) -> Perturb:
    made = plan_for(data, epsilon, reconstruct="least-squares")
    unknown = FullTable(made)

    def table(measurement: Measurement, sampler: ExactSampler) -> Table:
        full, _ = unknown.solve(measured_vector(measurement), sampler.entropy)
        return Table(data.table.domain, full)

    return partial(_planned, data, made, Tally.from_table(data.table, made.counted), table)


def _shrunk(data: Dataset, epsilon: str) -> Perturb:
    made = plan_for(data, epsilon, reconstruct="shrink")

    def table(measurement: Measurement, sampler: ExactSampler) -> Table:
        tables = reconstruct(measurement).tables
        return _with_margins(data.table.domain, tables, sampler)

    return partial(_planned, data, made, Tally.from_table(data.table, made.counted), table)


def plan_for(data: Dataset, epsilon: str, *, reconstruct: str) -> Plan:
    """Return the plan for the margins of the model, whole tables wanted.

    For shrunk tables it assumes the number of records, which is public where records are replaced.
    """
    return plan(
        data.table.domain,
        wanted(data),
        privacy=PureDP(epsilon),
        neighbours=NEIGHBOURS,
        mechanism="residual",
        reconstruct=reconstruct,
        rounding="controlled",
        records=int(data.table.total) if reconstruct == "shrink" else None,
    )


def _planned(
    data: Dataset,
    made: Plan,
    tally: Tally,
    table: Callable[[Measurement, ExactSampler], Table],
    sampler: ExactSampler,
) -> Perturbed:
    measurement = measure(tally, made, sampler)
    program = program_of_estimates(measurement, wanted(data))
    unit = unit_of(data.table.domain, mechanism_of(data.table.domain))
    return Perturbed(table(measurement, sampler), *_deviation(program, unit))


def _deviation(program: ProgramSolution, unit: float) -> tuple[bool, float]:
    """Return whether a program is infeasible, and its b in the paper's unit: nothing where b is rounding alone."""
    return not program.feasible, 0.0 if program.feasible else program.b / unit


def _with_margins(
    domain: Domain, tables: Mapping[tuple[str, ...], np.ndarray], sampler: ExactSampler
) -> Table:
    """Return a whole table whose margins are these, or as near to them as a table can come."""
    axes = tuple(tuple(domain.position(a) for a in margin) for margin in tables)
    values: Floats = np.concatenate([np.asarray(t, dtype=np.float64).reshape(-1) for t in tables.values()])
    full = solve_least_squares(MarginMap(domain.shape, axes), values).table
    whole = round_table(full, method="controlled", margins=axes, uniform=uniforms_from(sampler.entropy))
    return Table(domain, whole)


def _cells(data: Dataset, epsilon: str) -> Perturb:
    everything = data.table.domain.attributes
    made = plan(
        data.table.domain,
        Workload(data.table.domain, [everything]),
        privacy=PureDP(epsilon),
        neighbours=NEIGHBOURS,
        mechanism="cells",
        reconstruct="none",
    )

    def once(sampler: ExactSampler) -> Perturbed:
        released = release(data.table, made, sampler=sampler)[everything]
        fit = loglinear(released, wanted(data), method="noise-aware")
        return Perturbed(fit.fitted, None, None, fit)

    return once


METHODS: Mapping[Name, Callable[[Dataset, str], Perturb]] = {
    "as published": partial(_published, "as-published"),
    "exact calibration": partial(_published, "exact"),
    "least squares": _least_squares,
    "shrinkage": _shrunk,
    "noise-aware": _cells,
}
