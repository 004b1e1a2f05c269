r"""The mechanisms exactly as two papers publish them, for studies, with the ε that their noise really has.

YFR is Yang, Fienberg & Rinaldo, "Differential privacy for protecting multi-dimensional contingency table data";
DMT is Dwork, McSherry & Talwar (2007). What is measured, with B the downward closure of the wanted margins:

| mechanism | terms | published L1 sensitivity, in whole units | one unit |
| --- | --- | --- | --- |
| YFR Table 1 | one Fourier coefficient a set | 2\|B\| | 2^{-k/2} |
| DMT Theorem 4 | the same | \|B\| | 2^{-k/2} |
| YFR Table 2 | every f^S(x_S), Π k a set | 2N = 2 Σ_S Π_{j∈S} k_j | 1/Π k |

Terms are whole numbers and so is the noise: discrete Laplace at the published scale, counted in these units.

Privacy. The published sensitivity is not always the true one: that of YFR Table 1 is too large, that of YFR
Table 2 too small on attributes of more than two levels, and DMT's is for add-remove neighbours only. The noise is
(claimed ε · exact Δ / published Δ)-DP and no better; `PublishedMeasurement.true_epsilon` is this number. Nothing here
is debited from a ledger or published: a release is made by `tabulary.release`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tabulary import Domain, Neighbours, PureDP, Table, Workload, plan
from tabulary.confidential import Tally
from tabulary.core import Margin, Relation, show_fraction
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.noise import DiscreteLaplace, ExactSampler, Sampler
from tabulary.planning import ContrastMap, LinearMap
from tabulary.reconstruct import ProgramSolution, round_table, solve_program
from tabulary_papers.redundant import (
    RedundantMap,
    centred,
    exact_redundant_sensitivity,
    refuse_impossible_cells,
)

Mechanism = Literal["YFR Table 1", "DMT Theorem 4", "YFR Table 2"]
Calibration = Literal["as-published", "exact"]

# Whole numbers below this are exact in 64 bits, with room for the noise.
_LARGEST_TERM = 1 << 62


@dataclass(frozen=True, eq=False)
class PublishedMeasurement:
    """The noisy terms of a published mechanism, and what they really promise.

    `values` are whole numbers in the order of `linear_map`: set after set of the downward closure, lowest order
    first. A term in the paper's unit is its value divided by `unit`.
    """

    mechanism: Mechanism
    workload: Workload
    neighbours: Neighbours
    calibration: Calibration
    claimed_epsilon: Fraction
    true_epsilon: Fraction
    noise: DiscreteLaplace
    values: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    @property
    def sets(self) -> tuple[Margin, ...]:
        """The downward closure of the wanted margins: B in the papers."""
        return self.workload.closure().margins

    @property
    def unit(self) -> float:
        """How many whole units make one of the paper's: 2^{k/2} for Fourier coefficients, Π k for f^S(x_S)."""
        return unit_of(self.workload.domain, self.mechanism)

    @property
    def published_scale(self) -> float:
        """The scale of the noise in the paper's unit, as its Table 8 prints it when calibrated as published."""
        return float(self.noise.scale) / self.unit

    @property
    def statement(self) -> str:
        """What the label says and what is true, in words. The true ε is rounded upwards, to three figures."""
        claimed = show_fraction(self.claimed_epsilon)
        return f"labelled ε = {claimed}, really ε = {_upwards(self.true_epsilon)} for {self.neighbours} neighbours"

    @property
    def linear_map(self) -> LinearMap:
        """From a full table to the terms without noise."""
        return _map(self.workload, self.mechanism)

    def solve(self) -> "PublishedTables":
        """Return the non-negative table nearest to the terms and its margins: steps 5 to 7 of the papers.

        Post-processing: reads no data, spends no budget. The table is a vertex of the linear program, rounded to
        the nearest whole numbers.
        """
        program = solve_program(self.linear_map, self.values)
        whole = Table(self.workload.domain, round_table(program.table, method="nearest"))
        margins = {margin: whole.project(margin) for margin in self.workload}
        return PublishedTables(self, program, whole, MappingProxyType(margins))

    def __repr__(self) -> str:
        return f"<{self.mechanism}, {self.values.size} terms, {self.statement}>"


@dataclass(frozen=True, eq=False)
class PublishedTables:
    """The outcome of the linear program: its solution, rounded, and the wanted margins of that.

    The terms of YFR Table 2 are redundant, and independent noise almost surely contradicts itself: then `b` is
    positive, however small the noise.
    """

    measurement: PublishedMeasurement
    program: ProgramSolution
    table: Table
    margins: Mapping[Margin, Table]

    @property
    def b(self) -> float:
        """The largest deviation from a noisy term, in the paper's unit."""
        return self.program.b / self.measurement.unit


def published_fourier(
    table: Table,
    workload: Workload | str,
    epsilon: object,
    *,
    neighbours: Neighbours | Relation = "add-remove",
    calibration: Calibration = "as-published",
    paper: Literal["YFR", "DMT"] = "YFR",
    sampler: Sampler | None = None,
) -> PublishedMeasurement:
    """Return the noisy Fourier coefficients of YFR Table 1, or of DMT Theorem 4. Binary attributes only.

    A record moves every coefficient by ±1, so the exact sensitivity for add-remove is |B|: as DMT have it, and half
    of what YFR have. For replace it is 2·max_d |{S ∈ B : ⟨S, d⟩ odd}|, between the two. For studies only.

    >>> from tabulary import datasets
    >>> found = published_fourier(datasets.load("fungus"), "[AD][AB][BE][CE][CF]", 1, neighbours="replace")
    >>> found.published_scale, found.statement
    (3.0, 'labelled ε = 1, really ε = 0.667 for replace neighbours')
    """
    if paper not in ("YFR", "DMT"):
        raise InvalidArgument(f"the paper is 'YFR' or 'DMT', not {paper!r}. Nothing was measured.")
    mechanism: Mechanism = "YFR Table 1" if paper == "YFR" else "DMT Theorem 4"
    return _measure(mechanism, table, workload, epsilon, neighbours, calibration, sampler)


def published_efron_stein(
    table: Table,
    workload: Workload | str,
    epsilon: object,
    *,
    neighbours: Neighbours | Relation = "add-remove",
    calibration: Calibration = "as-published",
    sampler: Sampler | None = None,
) -> PublishedMeasurement:
    """Return the noisy terms f^S(x_S) of YFR Table 2, each with a draw of its own, as its Theorem 2 has it.

    The theorem bounds what a record adds to a term by 1/Π k, which holds for binary attributes only: it is
    Π_{j∈S} (k_j - 1)/Π k where the record's levels match. With attributes of more levels the noise "as-published" is
    too small for its label (`exact_redundant_sensitivity`), and "exact" is what the label needs. For studies only.

    >>> from tabulary import datasets
    >>> found = published_efron_stein(datasets.load("journey-to-work"), "[AB][AC][BC]", 1)
    >>> round(found.published_scale, 2), found.statement
    (1.32, 'labelled ε = 1, really ε = 1.30 for add-remove neighbours')
    """
    return _measure("YFR Table 2", table, workload, epsilon, neighbours, calibration, sampler)


def published_sensitivity(workload: Workload, mechanism: Mechanism) -> Fraction:
    """Return the L1 sensitivity that the paper states, right or wrong, counted in whole units.

    >>> work = Workload.k_way(Domain({"A": range(4), "B": range(4), "C": range(16)}), 2)
    >>> float(published_sensitivity(work, "YFR Table 2") / 256)
    1.3203125
    """
    _check_mechanism(workload.domain, mechanism)
    sets = workload.closure().margins
    if mechanism == "YFR Table 2":
        return Fraction(2 * sum(map(workload.domain.cells, sets)))
    return Fraction(2 * len(sets) if mechanism == "YFR Table 1" else len(sets))


def exact_sensitivity(workload: Workload, mechanism: Mechanism, neighbours: Neighbours) -> Fraction:
    """Return the true L1 sensitivity of the terms of a published mechanism, counted in whole units.

    >>> work = Workload.k_way(Domain(dict.fromkeys("ABC", "01")), 2)
    >>> exact_sensitivity(work, "YFR Table 1", Neighbours("replace"))
    Fraction(8, 1)
    """
    _check_mechanism(workload.domain, mechanism)
    if mechanism == "YFR Table 2":
        return exact_redundant_sensitivity(workload, neighbours)
    if workload.closure().margins == ((),) and "add-remove" not in neighbours.steps:
        return Fraction(0)
    made = plan(workload.domain, workload, privacy=PureDP(1), neighbours=neighbours, mechanism="fourier")
    return Fraction(made.sensitivity)


def unit_of(domain: Domain, mechanism: Mechanism) -> float:
    """Return how many whole units make one of the paper's.

    >>> unit_of(Domain(dict.fromkeys("ABCDEF", "01")), "YFR Table 1")
    8.0
    """
    cells = float(math.prod(domain.shape))
    return cells if mechanism == "YFR Table 2" else math.sqrt(cells)


def _measure(
    mechanism: Mechanism,
    table: Table,
    workload: Workload | str,
    epsilon: object,
    neighbours: Neighbours | Relation,
    calibration: Calibration,
    sampler: Sampler | None,
) -> PublishedMeasurement:
    work = Workload.parse(workload, table.domain) if isinstance(workload, str) else workload
    who = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)
    claimed = PureDP(epsilon).epsilon
    if calibration not in get_args(Calibration):
        raise InvalidArgument(
            f"a calibration is 'as-published' or 'exact', not {calibration!r}. Nothing was measured."
        )
    exact = exact_sensitivity(work, mechanism, who)
    used = exact if calibration == "exact" else published_sensitivity(work, mechanism)
    if not used:
        raise InvalidArgument(
            "with 'replace' neighbours no person can change any of these tables, so the exact calibration adds no "
            "noise. Nothing was measured. Ask for a table with an attribute of two levels."
        )
    noise = DiscreteLaplace(used / claimed)
    terms = _terms(Tally.from_table(table, work.closure()), work, mechanism)
    return PublishedMeasurement(
        mechanism=mechanism,
        workload=work,
        neighbours=who,
        calibration=calibration,
        claimed_epsilon=claimed,
        true_epsilon=claimed * exact / used,
        noise=noise,
        values=np.asarray(terms + (sampler or ExactSampler()).draw(noise, terms.shape)),
    )


def _terms(tally: Tally, work: Workload, mechanism: Mechanism) -> NDArray[np.int64]:
    sets = work.closure().margins
    largest = int(tally.exact(()).sum()) * max(map(work.domain.cells, sets))
    if largest >= _LARGEST_TERM:
        raise InvalidTable(
            "the terms of this table would not fit 64 bits. Nothing was measured. Ask for smaller margins."
        )
    if mechanism == "YFR Table 2":
        return np.concatenate([centred(tally.exact(s)).reshape(-1) for s in sets])
    return np.array([_coefficient(tally.exact(s)) for s in sets], dtype=np.int64)


def _coefficient(margin: NDArray[np.int64]) -> np.int64:
    """Return the Fourier coefficient that varies on all attributes of a margin."""
    while margin.ndim:
        margin = margin[0] - margin[1]
    return np.int64(margin)


def _map(work: Workload, mechanism: Mechanism) -> LinearMap:
    domain = work.domain
    axes = tuple(tuple(domain.position(a) for a in s) for s in work.closure())
    if mechanism == "YFR Table 2":
        return RedundantMap(domain.shape, axes)
    return ContrastMap(domain.shape, axes)


def _check_mechanism(domain: Domain, mechanism: Mechanism) -> None:
    if mechanism not in get_args(Mechanism):
        raise InvalidArgument(
            f"there is no published mechanism {mechanism!r}. Known: {', '.join(get_args(Mechanism))}."
        )
    refuse_impossible_cells(domain)
    if mechanism != "YFR Table 2" and any(levels != 2 for levels in domain.shape):
        raise InvalidArgument(
            f"{mechanism} is for binary attributes, and this domain has others. Nothing was measured. "
            "Use published_efron_stein."
        )


def _upwards(number: Fraction) -> str:
    context = Context(prec=3, rounding=ROUND_CEILING)
    return f"{context.divide(Decimal(number.numerator), Decimal(number.denominator)):f}"
