"""What each approach was off by on made-up people, and whether its tables agree with each other."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations

import numpy as np

from tabulary import PureDP, Table, Workload
from tabulary.confidential import Tally
from tabulary.core import Floats, Margin, Privacy
from tabulary.mechanisms import measure
from tabulary.planning import Plan, plan
from tabulary.reconstruct import reconstruct
from tabulary.studies import Lab, Row, Sheets, Value
from tabulary_papers.bounds import dmt_theorem_5_bound, quantile_bound
from tabulary_papers.datasets.yes_no import yes_no, yes_no_domain
from tabulary_papers.three_approaches.expected import APPROACHES

PROGRAM = "fourier, program"
"""The algorithm of the paper as a whole: coefficients, the linear program, rounding to the nearest whole numbers."""


def measured_errors(
    lab: Lab, attributes: int, people: int, way: int, privacy: Privacy, first: int, last: int
) -> Sheets:
    """Return the errors of repetitions `first` to `last` - 1, each on people of its own."""
    rows: list[Row] = []
    for repetition in range(first, last):
        table = yes_no(attributes, people, seed=lab.number("people", str(repetition)))
        for approach in approaches(privacy):
            made = plan_of(approach, attributes, way, privacy)
            tables = released(lab, made, table, approach, str(repetition))
            told: dict[str, Value] = {
                "attributes": attributes,
                "way": way,
                "privacy": str(privacy),
                "approach": approach,
                "repetition": repetition,
            }
            rows.append({**told, **_off_by(tables, table)})
    return {"measured": rows}


def approaches(privacy: Privacy) -> tuple[str, ...]:
    """Return what is compared: the paper's own algorithm has Laplace noise only."""
    return (*APPROACHES, PROGRAM) if isinstance(privacy, PureDP) else APPROACHES


@lru_cache(maxsize=64)
def plan_of(approach: str, attributes: int, way: int, privacy: Privacy) -> Plan:
    """Return the plan of an approach for all tables of `way` attributes."""
    domain = yes_no_domain(attributes)
    work = Workload.k_way(domain, way)
    if approach == PROGRAM:
        return plan(domain, work, privacy=privacy, mechanism="fourier", reconstruct="lp", rounding="nearest")
    return plan(domain, work, privacy=privacy, mechanism=approach, reconstruct="none")


def released(lab: Lab, made: Plan, table: Table, *context: str) -> Mapping[Margin, Floats]:
    """Return the tables that a release of this plan would hold."""
    tally = Tally.from_table(table, made.counted)
    measurement = measure(tally, made, lab.sampler("noise", *context))
    found = reconstruct(measurement)
    return {margin: np.asarray(counts, dtype=np.float64) for margin, counts in found.tables.items()}


def inconsistency(tables: Mapping[Margin, Floats]) -> float:
    """Return the largest difference between what two tables say of the same people: of a common margin, or of all.

    >>> from tabulary.core.domain import Domain
    >>> inconsistency({("a", "b"): np.array([[1.0, 2.0], [3.0, 4.0]]), ("a", "c"): np.array([[2.0, 2.0], [3.0, 4.0]])})
    1.0
    """
    said: dict[Margin, tuple[Floats, Floats]] = {}
    for margin, counts in tables.items():
        for order in range(len(margin)):
            for places in combinations(range(len(margin)), order):
                common = tuple(margin[place] for place in places)
                summed = counts.sum(axis=tuple(p for p in range(len(margin)) if p not in places))
                low, high = said.get(common, (summed, summed))
                said[common] = (np.minimum(low, summed), np.maximum(high, summed))
    return max((float(np.max(high - low)) for low, high in said.values()), default=0.0)


def _off_by(tables: Mapping[Margin, Floats], truth: Table) -> Row:
    apart = {margin: counts - truth.project(margin).counts for margin, counts in tables.items()}
    l1 = [float(np.abs(difference).sum()) for difference in apart.values()]
    every = np.concatenate([counts.ravel() for counts in tables.values()])
    squares = np.concatenate([difference.ravel() ** 2 for difference in apart.values()])
    return {
        "mean_l1": float(np.mean(l1)),
        "largest_l1": max(l1),
        "first_l1": l1[0],
        "rmse": float(np.sqrt(squares.mean())),
        "inconsistency": inconsistency(tables),
        "negative_share": float(np.mean(every < 0)),
    }


def bounds(lab: Lab, attributes: int, way: int, epsilon: str, failure: float) -> Sheets:
    """Return how far a table may be from the truth, by the paper's Theorem 5 and by the law of the noise itself."""
    domain = yes_no_domain(attributes)
    work = Workload.k_way(domain, way)
    margin, privacy = work.margins[0], PureDP(epsilon)
    told = {"attributes": attributes, "way": way, "failure": failure}
    found = (
        ("Theorem 5", PROGRAM, "all", dmt_theorem_5_bound(work, margin, epsilon, failure=failure)),
        (
            "quantile",
            PROGRAM,
            "all",
            quantile_bound(plan_of(PROGRAM, attributes, way, privacy), margin, failure=failure),
        ),
        (
            "quantile",
            "fourier",
            "one",
            quantile_bound(plan_of("fourier", attributes, way, privacy), margin, failure=failure),
        ),
    )
    return {
        "bounds": [
            {**told, "bound": bound, "approach": approach, "tables": tables, "l1": float(value)}
            for bound, approach, tables, value in found
        ]
    }
