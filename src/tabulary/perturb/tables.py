"""Lists of overlapping tables: interior cells with margins, or several tables of the same people."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self, TypeVar, get_args

from tabulary.core.domain import Domain, Margin, check_same_domain
from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ApproxDP, PureDP, describe_privacy
from tabulary.core.table import Table
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidArgument, InvalidNoise, InvalidTable, InvalidWorkload
from tabulary.noise import ExactSampler, Sampler
from tabulary.perturb.additive import Laplace, Normal
from tabulary.perturb.budget_split import split_budget
from tabulary.perturb.deviations import (
    Deviations,
    best_source,
    deviations_of,
    restored_deviation,
    summed_deviation,
)
from tabulary.perturb.exact_delta import checked_epsilon
from tabulary.perturb.overlap import Losses, changed_cells, joint_losses, largest_sum
from tabulary.perturb.perturbation import rounded_up
from tabulary.perturb.published import perturb
from tabulary.perturb.restoring import Fit, fit_of

if TYPE_CHECKING:
    from tabulary.perturb.alternatives import Alternatives
    from tabulary.perturb.published_tables import PerturbedTables

Margins = Literal["free", "restored"]
Family = type[Laplace] | type[Normal]
Given = TypeVar("Given")

# Logarithms and products of a few dozen δ are good to this share of them.
_SLACK = 1e-12


@dataclass(frozen=True, init=False)
class Tables:
    r"""A list of tables of the same people; each cell of each table is perturbed separately. Made without data.

    Rinott, O'Keefe, Shlomo & Skinner (2018), section 7. One person is in one cell of every table, so neighbouring
    lists differ in `d` cells. With `epsilon` every cell is perturbed with ε/d, and the list costs exactly ε. With
    `epsilons` each table i has its own budget ε_i: what its release by itself would cost.

    **Privacy.** Add-remove: the table i changes in one cell, perturbed with ε_i. Replace: in two cells or in none,
    each perturbed with ε_i/2. For a pair of neighbours let C be the changed cells. The noise of each is independent,
    and wherever both neighbours are possible no log-probability of a cell moves by more than its own ε, so the
    logarithms of all move by Σ_C ε_c at most. What is left is that a cell c takes a value that the other neighbour
    forbids, with probability δ_c: with a bound that is δ_c of its law, without one zero. Hence for any set S

        P(S) ≤ P(some forbidden value) + P(S, and none) ≤ 1 - Π_C (1 - δ_c) + e^ε P'(S),    ε = Σ_C ε_c,

    and S = "some forbidden value" reaches the δ. So the list is (ε, δ)-differentially private for the largest ε and
    the largest δ over all pairs, and for that ε no smaller δ holds. Theorem 7.1 of the paper has Σ δ_i instead
    (`summed_delta`), which is a little more. For add-remove ε = Σ ε_i. For replace a table in which the two people
    share a cell costs nothing: where structural zeros keep every pair together somewhere, ε is less than Σ ε_i.

    **Weights.** With `sensitivity` s above one, or a `unit`, the tables sum weights in whole units of which a record
    has at most s, and the noise is s times as wide (section 8). Published numbers are multiplied by the unit. A
    replaced record may have another weight, so every table is taken to change then: ε and δ are bounds.

    Args:
        domain: the attributes and levels.
        work: the tables, as text such as "[a b][a]" or as a `Workload`; its weights say how much each matters, which
            is what `allocated` and `compare` use.
        epsilon: the ε of the whole list, the same for every cell.
        epsilons: the ε of every table by itself, instead.
        family: `Laplace` or `Normal`.
        bound: the most that a count may change: one for all tables, or a mapping from tables; none without limit.
        neighbours: "add-remove" or "replace".
        sensitivity: the most units that one record adds to a cell.
        unit: what a unit of weight is worth; none for counts of people.

    >>> domain = Domain({"sex": ["F", "M"], "age": range(10), "job": range(5)})
    >>> tables = Tables(domain, "[sex age job][sex age][job]", epsilon=1)
    >>> tables.d, print(tables.privacy())
    ε = 1
    (3, None)
    >>> print(tables.standard_deviations())
    margin            cells        ε     direct     summed   restored
    [sex age job]       100      1/3       4.22          -       3.76
    [sex age]            20      1/3       4.22       9.44       3.78
    [job]                 5      1/3       4.22       18.9       4.04
    """

    workload: Workload
    laws: tuple[Laplace | Normal, ...]
    neighbours: Neighbours
    unit: Fraction | None

    def __init__(
        self,
        domain: Domain,
        work: Workload | str,
        *,
        epsilon: object = None,
        epsilons: Mapping[Iterable[str], object] | None = None,
        family: Family = Laplace,
        bound: int | Mapping[Iterable[str], int] | None = None,
        neighbours: Relation | Neighbours = "add-remove",
        sensitivity: int = 1,
        unit: object = None,
    ) -> None:
        if family not in (Laplace, Normal):
            raise InvalidNoise("The family of a list of tables must be Laplace or Normal. Nothing was drawn.")
        if (epsilon is None) == (epsilons is None):
            raise InvalidArgument(
                "give the budget either as epsilon, for the whole list, or as epsilons, one per table."
            )
        object.__setattr__(self, "workload", _workload(domain, work))
        object.__setattr__(self, "neighbours", _neighbours(neighbours))
        object.__setattr__(self, "unit", _unit(unit, sensitivity))
        self._check_tables()
        margins = self.workload.margins
        if epsilons is None:
            whole = PureDP(epsilon).epsilon
            budgets = dict.fromkeys(margins, whole / self._largest_sum([Fraction(1)] * len(margins)))
        else:
            given = _by_margin(self.workload, epsilons, "an ε")
            missing = next((m for m in margins if m not in given), None)
            if missing is not None:
                raise InvalidArgument(f"there is no ε for {show_margin(missing)}. Every table needs one.")
            budgets = {m: PureDP(given[m]).epsilon for m in margins}
        bounds: Mapping[Margin, int | None] = (
            _by_margin(self.workload, bound, "a bound")
            if isinstance(bound, Mapping)
            else dict.fromkeys(margins, bound)
        )
        laws = (family(budgets[m] / self.moves, bounds.get(m), sensitivity=sensitivity) for m in margins)
        object.__setattr__(self, "laws", tuple(laws))

    @classmethod
    def allocated(
        cls,
        domain: Domain,
        work: Workload | str,
        *,
        epsilon: object,
        importance: Mapping[Iterable[str], object] | None = None,
        neighbours: Relation | Neighbours = "add-remove",
        sensitivity: int = 1,
        unit: object = None,
    ) -> Self:
        r"""Return the list with the split of ε that minimises Σ importance · Σ over cells of the variance.

        The sum is over the possible cells of every table; importance is one unless given. Laplace noise without a
        bound has the variance 1 / (2 sinh²(ε_i/2)) ≈ 2/ε_i², so the split is nearly ε_i ∝ (importance·cells)^(1/3);
        it is computed from the exact variance (`split`), under Σ ε_i ≤ ε, and rounded down. Where replaced people
        cannot change all tables together, what that saves is spread in the same proportion, which is not known
        to be the best. With a bound the split decides about δ too; take the `epsilons` of this one as a start.

        >>> domain = Domain({"sex": ["F", "M"], "age": range(10), "job": range(5)})
        >>> tables = Tables.allocated(domain, "[sex age job][sex age][job]", epsilon=1, importance={"job": 10})
        >>> {show_margin(margin): round(float(e), 3) for margin, e in tables.epsilons.items()}
        {'[sex age job]': 0.42, '[sex age]': 0.246, '[job]': 0.334}
        """
        workload = _workload(domain, work).weighted(importance or {})
        # The same for every table: only the reach of one person matters.
        even = cls(
            domain, workload, epsilon=epsilon, neighbours=neighbours, sensitivity=sensitivity, unit=unit
        )
        whole = PureDP(epsilon).epsilon
        weights = [w * even.cells(m) for m, w in zip(workload.margins, workload.weights, strict=True)]
        shares = split_budget(weights, whole / even.moves / sensitivity)
        saved = max(Fraction(1), sum(shares, Fraction(0)) / even._largest_sum(shares))
        return cls(
            domain,
            workload,
            epsilons={m: whole * share * saved for m, share in zip(workload.margins, shares, strict=True)},
            neighbours=neighbours,
            sensitivity=sensitivity,
            unit=unit,
        )

    @property
    def domain(self) -> Domain:
        """The domain of the people."""
        return self.workload.domain

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The tables of the list, each by its attributes."""
        return self.workload.margins

    @property
    def sensitivity(self) -> int:
        """The largest amount that one record adds to one cell, in whole units."""
        return self.laws[0].sensitivity

    @property
    def weighted(self) -> bool:
        """Whether the tables sum weights; otherwise they count people."""
        return self.unit is not None

    @property
    def moves(self) -> int:
        """The largest number of cells of one table that a person changes: one, or two if replaced by another."""
        return self.neighbours.moved

    @property
    def worth(self) -> float:
        """The value of one unit of a published number: one if people are counted."""
        return float(self.unit or 1)

    @cached_property
    def d(self) -> int:
        """The most cells in which neighbouring lists differ; see `tabulary.perturb.overlap.changed_cells`."""
        weight = self.sensitivity if self.weighted else None
        return changed_cells(self.domain, self.margins, self.neighbours, largest_weight=weight)

    @property
    def epsilons(self) -> dict[Margin, Fraction]:
        """ε_i of every table: what its release by itself would cost."""
        return {m: self.moves * law.epsilon for m, law in zip(self.margins, self.laws, strict=True)}

    @cached_property
    def epsilon(self) -> Fraction:
        """The ε of the whole list, exact."""
        return self._largest_sum(list(self.epsilons.values()))

    @cached_property
    def delta(self) -> float:
        """The δ of the whole list at its `epsilon`: the largest 1 - Π (1 - δ_c) over neighbours, rounded up."""
        # As a sum of logarithms it is largest for the same tables.
        logs = [Fraction(-self.moves * math.log1p(-law.delta)) for law in self.laws]
        return min(1.0, -math.expm1(-float(self._largest_sum(logs))) * (1 + _SLACK))

    @property
    def summed_delta(self) -> float:
        """Σ δ over all changed cells, as in Theorem 7.1: a valid δ, and never smaller than `delta`."""
        return min(1.0, math.fsum(self.moves * law.delta for law in self.laws) * (1 + _SLACK))

    def privacy(self) -> PureDP | ApproxDP:
        """Return what is promised for the whole list: its ε, and its δ rounded up."""
        return PureDP(self.epsilon) if not self.delta else ApproxDP(self.epsilon, rounded_up(self.delta))

    def delta_at(self, epsilon: object) -> float:
        """Return a δ with which the whole list is (ε, δ)-differentially private, for any ε.

        The privacy losses of all cells that change are added up, each rounded up to a grid of thousands of points: the
        δ holds, and is the smallest up to that grid. For a smaller ε than `epsilon` a list of many tables has a
        small δ: what advanced composition bounds is computed here. For replace, all tables are taken to change.

        >>> tables = Tables(Domain(dict.fromkeys("abcd", "xy")), "[ab][ac][ad][bc][bd][cd]", epsilon=1)
        >>> [round(tables.delta_at(e), 4) for e in (0, 0.5, 1)]
        [0.1552, 0.0296, 0.0]
        """
        asked = checked_epsilon(epsilon)
        return self.delta if asked >= self.epsilon else self._losses.delta_at(asked)

    def law(self, margin: Iterable[str]) -> Laplace | Normal:
        """Return the law that perturbs the cells of one table."""
        return self._laws[self.margin(margin)]

    def margin(self, margin: Iterable[str]) -> Margin:
        """Return the attributes of one table of the list in the domain's order, or raise InvalidWorkload."""
        named = self.domain.margin(margin)
        if named not in self.margins:
            raise InvalidWorkload(f"the list {self.workload} has no table on {show_margin(named)}.")
        return named

    def cells(self, margin: Iterable[str]) -> int:
        """Return the number of possible, and so perturbed, cells of the table on `margin`."""
        return int((~self.domain.impossible(self.domain.margin(margin))).sum())

    def standard_deviation(self, margin: Iterable[str], *, source: Iterable[str] | None = None) -> float:
        """Return the standard deviation of a cell of the table on `margin`, added up from the table on `source`.

        The source is a table of the list that contains the margin: the table itself, or the one with the smallest
        deviation, unless named. Where structural zeros make some cells sums of fewer cells it is the root of the
        mean variance over the possible ones.

        >>> interior = Tables(Domain(dict.fromkeys("abcd", range(10))), "[abcd]", epsilon="1/10")
        >>> round(interior.standard_deviation(("a", "b")), 1)
        141.4
        """
        wanted = self.domain.margin(margin)
        if source is not None:
            return summed_deviation(self, wanted, self.margin(source))
        return summed_deviation(self, wanted, best_source(self, wanted))

    def standard_deviations(self) -> Deviations:
        """Return the expected errors of every table, before any budget is spent.

        `direct` is a cell of the table as it is perturbed, `summed` the same cell added up from another table of the
        list, the best for it, and `restored` the same cell after additive margins are restored.
        """
        return deviations_of(self)

    def expected_rmse(self, *, margins: Margins = "free") -> float:
        """Return the root mean squared error over all possible cells, each table counted by its weight."""
        if margins == "free":
            variances = [summed_deviation(self, margin, margin) ** 2 for margin in self.margins]
        else:
            variances = [restored_deviation(self, margin) ** 2 for margin in self.margins]
        counted = [float(w) * self.cells(m) for m, w in zip(self.margins, self.workload.weights, strict=True)]
        return math.sqrt(
            math.fsum(c * v for c, v in zip(counted, variances, strict=True)) / math.fsum(counted)
        )

    def compare(self) -> "Alternatives":
        """Return the results of the consistent mechanisms for the same list; see `tabulary.perturb.alternatives`."""
        from tabulary.perturb.alternatives import alternatives_to

        return alternatives_to(self)

    def apply(
        self,
        data: Table | Mapping[Margin, Table],
        *,
        minimum: object = None,
        margins: Margins = "free",
        sampler: Sampler | None = None,
    ) -> "PerturbedTables":
        """Return the perturbed tables of the list.

        `data` is the table of all people, or every table of the list by its margin; weighted counts are in whole
        units. Options are post-processing and cost no privacy:

        minimum: smaller numbers are published as this one, 0 for "negatives to zero". Biases small counts upward.
        margins: "restored" fits the tables to each other, so that margins are the sums of their cells: linear and
            unbiased (`restoring`). It goes with negative numbers only: a minimum would break the sums again, and
            is refused.

        >>> import numpy as np
        >>> from tabulary import datasets
        >>> table = datasets.load("rochdale")
        >>> published = Tables(table.domain, "[AB][A][B]", epsilon=1).apply(table, margins="restored")
        >>> bool(np.allclose(published["A", "B"].counts.sum(axis=1), published["A"].counts))
        True
        """
        from tabulary.perturb.published_tables import PerturbedTables

        smallest = self.checked_options(minimum=minimum, margins=margins)
        counted = self._counted(data)
        drawing = sampler or ExactSampler()
        found = {m: perturb(counted[m], self.law(m), minimum=smallest, sampler=drawing) for m in self.margins}
        return PerturbedTables.of(self, found, minimum=smallest, margins=margins)

    def checked_options(self, *, minimum: object = None, margins: Margins = "free") -> int | None:
        """Return the minimum in whole units, or refuse what `apply` would refuse. Reads no data."""
        if margins not in get_args(Margins):
            raise InvalidArgument(f"margins must be 'free' or 'restored', not {margins!r}.")
        if margins == "restored":
            if minimum is not None:
                raise InvalidArgument(
                    "margins = 'restored' and a minimum contradict each other: after small counts are "
                    "raised, tables no longer add up. Nothing was perturbed. Keep negative counts, or make "
                    "non-negative tables that agree with tb.plan(…, reconstruct='least-squares')."
                )
            # Refuses a list that is too large to restore.
            self.fit.errors(self.margins[0])
        if minimum is None:
            return None
        wanted = exact_fraction(minimum, name="the minimum published value", error=InvalidNoise)
        units = wanted / (self.unit or 1)
        if units.denominator != 1 or units < 0:
            whole = "number of units" if self.weighted else "number"
            raise InvalidNoise(
                f"The minimum published value must be a whole {whole}, 0 or more, not {minimum!r}."
            )
        return int(units)

    def describe(self) -> dict[str, object]:
        """Return the list as plain data, with exact fractions as text: all that an analyst needs."""
        described: dict[str, object] = {
            "domain": self.domain.describe(),
            "privacy": describe_privacy(self.privacy()),
            "neighbours": self.neighbours.describe(),
            "d": self.d,
            "tables": [
                {"attributes": list(m), "weight": str(weight), "epsilon": str(self.moves * law.epsilon)}
                | {"perturbation": law.describe()}
                for m, weight, law in zip(self.margins, self.workload.weights, self.laws, strict=True)
            ],
        }
        return described | ({"unit": str(self.unit)} if self.unit is not None else {})

    def digest(self) -> str:
        """Return the SHA-256 of the canonical description: the list's name in the ledger."""
        canonical = json.dumps(self.describe(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def statement(self) -> str:
        """Return what is promised, in plain words.

        >>> print(Tables(Domain({"sex": ["F", "M"], "age": range(3)}), "[sex age][sex]", epsilon=1).statement())
        These 2 tables together are ε-differentially private with ε = 1. The promise compares the data with and
        without one person's record, which is in one cell of each table.
        """
        many = len(self.margins)
        subject = f"These {many} tables together are" if many > 1 else "This table is"
        privacy = self.privacy()
        kind = "ε" if isinstance(privacy, PureDP) else "(ε, δ)"
        counted = (
            ""
            if self.unit is None
            else f" A record counts at most {show_fraction(self.sensitivity * self.unit)}."
        )
        compared = (
            "with and without one person's record, which is in one cell of each table"
            if self.neighbours.relation == "add-remove"
            else "with one person's record and with any other in its place"
        )
        return (
            f"{subject} {kind}-differentially private with {privacy}. The promise compares the data {compared}."
            f"{counted}"
        )

    def __str__(self) -> str:
        families = " and ".join(dict.fromkeys(law.family for law in self.laws))
        many = f"{len(self.margins)} table{'s' if len(self.margins) > 1 else ''}"
        return f"{many} with {families} perturbations at {self.privacy()} ({self.neighbours}), d = {self.d}"

    @cached_property
    def _laws(self) -> dict[Margin, Laplace | Normal]:
        return dict(zip(self.margins, self.laws, strict=True))

    @cached_property
    def _losses(self) -> Losses:
        return joint_losses([law for law in self.laws for _ in range(self.moves)])

    @cached_property
    def fit(self) -> Fit:
        """The least squares fit that restores additive margins, made from the noise alone."""
        return fit_of(self.domain, {m: law.noise for m, law in self._laws.items()})

    def _largest_sum(self, amounts: list[Fraction]) -> Fraction:
        return largest_sum(self.domain, self.margins, amounts, self.neighbours, weighted=self.weighted)

    def _check_tables(self) -> None:
        for margin in self.margins:
            self.domain.check_cells(margin)
            if self.neighbours.total_is_public and not self.weighted and self.cells(margin) == 1:
                raise InvalidArgument(
                    f"with 'replace' neighbours nobody can change the table on {show_margin(margin)}: it "
                    "contains only the number of records in the source. Leave it out of the list. If "
                    "records with an unknown value are dropped, that number is confidential: use "
                    "neighbours=Neighbours('replace', may_drop=True)."
                )

    def _counted(self, data: Table | Mapping[Margin, Table]) -> Mapping[Margin, Table]:
        if isinstance(data, Table):
            check_same_domain(
                data.domain, self.domain, things="the table and the list", state="Nothing was perturbed."
            )
            return {margin: data.project(margin) for margin in self.margins}
        for margin in self.margins:
            if margin not in data or data[margin].domain != self.domain.project(margin):
                raise InvalidTable(
                    f"the data have no table on {show_margin(margin)} with the domain of the list. Nothing "
                    "was perturbed."
                )
        return data


def _workload(domain: Domain, work: Workload | str) -> Workload:
    found = Workload.parse(work, domain) if isinstance(work, str) else work
    if not isinstance(found, Workload) or found.domain != domain:
        raise InvalidWorkload(
            "the tables must be text such as '[sex age][sex]', or a Workload of the same domain."
        )
    return found


def _neighbours(neighbours: Relation | Neighbours) -> Neighbours:
    found = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)
    if found.records > 1 or found.sensitive:
        raise InvalidArgument(
            "a list of perturbed tables needs one record per person, with all attributes protected. For "
            "more records, or for sensitive attributes only, use tb.plan."
        )
    return found


def _unit(unit: object, sensitivity: int) -> Fraction | None:
    if unit is None:
        return Fraction(1) if sensitivity != 1 else None
    found = exact_fraction(unit, name="the unit of the weights", error=InvalidArgument)
    if found <= 0:
        raise InvalidArgument(f"the unit of the weights must be above zero, not {show_fraction(found)}.")
    return found


def _by_margin(workload: Workload, given: Mapping[Iterable[str], Given], what: str) -> dict[Margin, Given]:
    named = {workload.domain.margin(margin): value for margin, value in given.items()}
    for margin in named:
        if margin not in workload.margins:
            raise InvalidArgument(f"there is {what} for {show_margin(margin)}, which is not in the list.")
    return named
