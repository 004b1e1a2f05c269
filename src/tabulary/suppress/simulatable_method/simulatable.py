"""Cell suppression whose suppressed cells disclose nothing."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.core.progress import Progress
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidArgument, InvalidTable, NotCertified, listed
from tabulary.suppress.simulatable_method.confidential_counts import ConfidentialCounts
from tabulary.suppress.simulatable_method.decisions import Decision
from tabulary.suppress.simulatable_method.inputs import read_people
from tabulary.suppress.simulatable_method.suppressor import (
    NO_SAFE_BINNING,
    TABLE,
    SuppressionRun,
    grouped_domain,
    run_suppressor,
)
from tabulary.suppress.simulatable_method.terms import (
    Index,
    SuppressionTerms,
    people_description,
    people_from,
)
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable
from tabulary.table_samplers.people import People, Range
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.sampler_choice import SamplerChooser

_KIND = "simulatable cell suppression"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SimulatableTable(SuppressedTable):
    """A table whose left-out cells give nothing away, with the record of how it came about. All of it is public.

    `outcome` is "table", or "no safe binning" where the sums themselves could not be released: then every cell is NaN,
    the domain is divided as far as that was safe, and `sums` hold the released sums. `decisions` are those
    of the suppressor in order. `deviations` are the largest |1 - posterior/prior| of anyone in each cell, given
    everything released; NaN where a simulation could not make sure of them. `people_by_kind` are the people and their
    priors before binning, `groups` the levels that each part of an attribute was made of, and `terms` what fixed the
    course: ε, δ, the rule, the sampler and the seed of the public random numbers.
    """

    people_by_kind: People
    terms: SuppressionTerms
    groups: tuple[tuple[Range, ...], ...]
    outcome: str
    decisions: tuple[Decision, ...]
    deviations: NDArray[np.float64]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deviations.shape != self.domain.shape:
            raise InvalidTable("the deviations of a table do not have its shape.")
        margins = [(), *((attribute,) for attribute in self.domain.attributes)]
        if list(self.sums) not in ([], margins):
            raise InvalidTable(
                "a simulatable table must have its total and the sums of each attribute, or no sum at all."
            )
        if any(np.isnan(sums).any() for sums in self.sums.values()):
            raise InvalidTable("a simulatable table has a suppressed sum: only cells may be suppressed.")
        if not self.suppressed.all() and (self.outcome != TABLE or not self.sums):
            raise InvalidTable("a cell is published but the sums are not.")
        self.deviations.setflags(write=False)
        known = self.known
        if known is not None and known.sums[0].sum() != self.sums[()]:
            raise InvalidTable("the sums of the table do not add up to its total.")

    @property
    def epsilon(self) -> Fraction:
        """How far anyone's probability may move, as a share of what it was."""
        return self.terms.epsilon

    @property
    def delta(self) -> Fraction:
        """The probability with which it may move further."""
        return self.terms.delta

    @property
    def rule(self) -> str:
        """How decisions were made: "computed" or "sampled"."""
        return self.terms.rule

    @property
    def sampler(self) -> str:
        """Which samplers were allowed; each decision names its own."""
        return self.terms.sampler

    @property
    def seed(self) -> str:
        """The seed of the public random numbers."""
        return self.terms.seed

    @property
    def promised_delta(self) -> float:
        """δ with the error of simulated decisions added, along the course that was taken.

        The error of a computed decision is counted against its share δ/T, and adds nothing.
        """
        simulated = (
            decision.error for decision in self.decisions if decision.released and decision.draws is not None
        )
        return float(self.delta) + math.fsum(simulated)

    @property
    def known(self) -> PartialTable | None:
        """What the published table says, as the state that a suppressor decides from; None where it says nothing."""
        if not self.sums:
            return None
        most = _in_groups(self.people_by_kind, self.groups)
        return PartialTable(
            self.people_by_kind,
            self.groups,
            tuple(self.sums[attribute,].astype(np.int64) for attribute in self.domain.attributes),
            np.where(self.suppressed, 0, np.nan_to_num(self.counts)).astype(np.int64),
            np.where(self.suppressed, most, np.nan_to_num(self.counts)).astype(np.int64),
        )

    def describe(self) -> dict[str, Any]:
        """Return the table and its record as plain data that JSON can hold, the inverse of `from_description`."""
        return {
            "kind": _KIND,
            "version": 1,
            "title": self.title,
            "people": people_description(self.people_by_kind),
            "terms": self.terms.describe(),
            "outcome": self.outcome,
            "groups": [[list(levels) for levels in of_axis] for of_axis in self.groups],
            "counts": _nested(self.counts),
            "sums": [
                {"attributes": list(margin), "sums": _nested(sums)} for margin, sums in self.sums.items()
            ],
            "decisions": [decision.describe() for decision in self.decisions],
            "deviations": _nested(self.deviations),
            "promised_delta": self.promised_delta,
        }

    @classmethod
    def from_description(cls, description: object) -> "SimulatableTable":
        """Return the table that `describe` wrote; refuse anything else.

        Whether the decisions were made as the terms say is for `replay` to find out.
        """
        match description:
            case {
                "kind": str(kind),
                "version": 1,
                "title": str(title),
                "people": people,
                "terms": terms,
                "outcome": str(outcome),
                "groups": list(groups),
                "counts": list(counts),
                "sums": list(sums),
                "decisions": list(decisions),
                "deviations": list(deviations),
                "promised_delta": float() | int() as promised,
                **rest,
            } if kind == _KIND and outcome in (TABLE, NO_SAFE_BINNING) and not rest:
                everyone = people_from(people)
                parts = _groups(groups, everyone)
                table = cls(
                    domain=grouped_domain(everyone.domain, parts),
                    counts=_array(counts),
                    sums=_sums(sums),
                    people=_in_groups(everyone, parts),
                    title=title,
                    people_by_kind=everyone,
                    terms=SuppressionTerms.from_description(terms),
                    groups=parts,
                    outcome=outcome,
                    decisions=tuple(map(Decision.from_description, decisions)),
                    deviations=_array(deviations),
                )
                if not math.isclose(promised, table.promised_delta, rel_tol=1e-12):
                    raise InvalidTable("the promised δ is not the one that follows from the decisions.")
                return table
        raise InvalidTable("the description of a simulatable table is not in the form that Tabulary writes.")

    def __repr__(self) -> str:
        shown = super().__repr__()
        return shown if self.outcome == TABLE else f"<{type(self).__name__}: {self.outcome}>"


def simulatable(
    people: Any,
    counts: Any,
    probability: Any = None,
    epsilon: object = 0.5,
    delta: object = 0.2,
    *,
    attributes: Iterable[str] | None = None,
    domain: Domain | None = None,
    bins: Mapping[str, int] | None = None,
    order: Iterable[Iterable[int | str]] | None = None,
    rule: str = "computed",
    sampler: str = "auto",
    seed: str | None = None,
    title: str = "",
    progress: Progress | None = None,
) -> SimulatableTable:
    r"""Return a table with cells left out such that neither what is released nor what is not gives anyone away.

    Nabar & Mishra (2010), section 5. With probability 1 - δ over the data, for every person k and v = 0 and 1,

        |1 - P(X_k = v | everything released) / P(X_k = v)| ≤ ε,

    up to a rounding of 1e-6. The prior is known to the adversary: each person has the attribute with his own public
    probability, independently of the others. The total, the sums of each attribute and the cells are questions,
    decided one by one: a question is answered where an unsafe answer is unlikely enough, whatever the true answer is.
    So what is left out says nothing, and anyone can make the decisions again (`replay`). A cell that follows from what
    is released is released, since a mark would protect nothing. Where a sum itself may not be released there is no
    table: "no safe binning". This is no differential privacy: who knows more than the prior may learn more.

    Args:
        people: the number of people in each cell, public: a `Table`, an array, an array with an axis of kinds, a
            `People`, or a frame (pandas, polars, Arrow) with one person per row. Arrays without labels, neither in
            `counts` nor in `domain`, have levels "1", "2", ...; an axis more than `counts`, or than `attributes`, is
            that of kinds.
        counts: how many of them have the private attribute, by cell or by cell and kind. Confidential. With a frame,
            the name of a true-or-false column, or one value per person.
        probability: the prior of having it: one number; one for each cell, in an array or in a `Table` on some of the
            attributes; one for each kind; one for each person, in an array or a named column of the frame. It must
            come from elsewhere: one that was fitted to these counts would make the decisions depend on them.
        epsilon: how far a probability may move, as a share of what it was. Below 1 nobody's value becomes certain.
        delta: the probability, over the data, with which somebody's moves further.
        attributes: the columns of the frame that the table is made of, or names for the axes of an array.
        domain: the attributes and their levels; those of a frame are otherwise its values in order.
        bins: the greatest number of parts of an ordered attribute, such as {"age": 4}. It is split at the median of
            the expected number of people with the private attribute, the heaviest part first, as long as that is safe.
            Attributes that are not named keep their levels.
        order: the cells in the order in which they are decided, by position or by labels; rows first by default.
        rule: "computed", the probability of an unsafe answer is compared with δ/T; or "sampled", Algorithms 2 and 3
            as printed. See `SuppressionTerms`. What the chain answers is always sampled.
        sampler: "exact", "chain", or "auto": exact wherever it is feasible.
        seed: that of the public random numbers; by default the SHA-256 of all the public inputs, which nobody chooses.
        title: what the table is called.
        progress: called with (what, done, total).

    The cost grows with the number of cells and with the people of a row: a second for 3 × 3 cells of 100 people,
    minutes for 10 × 10.

    >>> people = [[60, 50], [70, 80]]
    >>> table = simulatable(people, [[25, 20], [31, 40]], 0.45, attributes=["sex", "smokes"])
    >>> table
    <SimulatableTable 2 × 2, 0 of 4 cells suppressed>
    >>> table.decisions[0].asked, table.decisions[0].released, table.decisions[0].value
    ('the total', True, 116)
    """
    everyone, values = read_people(people, counts, probability, attributes=attributes, domain=domain)
    hidden = ConfidentialCounts(everyone, values)
    terms = SuppressionTerms(
        epsilon,  # type: ignore[arg-type]
        delta,  # type: ignore[arg-type]
        bins={} if bins is None else bins,
        order=None if order is None else _indices(order, everyone.domain),
        rule=rule,
        sampler=sampler,
        seed="" if seed is None else seed,
    )
    if seed is None:
        terms = terms.sealed(everyone)
    choose = terms.sampler_chooser()
    course = run_suppressor(everyone, hidden, terms, choose=choose, progress=progress)
    return published(everyone, terms, course, choose=choose, title=title)


def published(
    people: People,
    terms: SuppressionTerms,
    course: SuppressionRun,
    *,
    choose: SamplerChooser,
    title: str = "",
) -> SimulatableTable:
    """Return the table that the course end with."""
    known = course.known
    groups = tuple(((0, levels),) for levels in people.shape) if known is None else known.groups
    domain = grouped_domain(people.domain, groups)
    counts = np.full(domain.shape, np.nan)
    for decision in course.decisions:
        if isinstance(decision.question, CellQuestion) and decision.value is not None:
            counts[decision.question.index] = decision.value
    sums: dict[tuple[str, ...], NDArray[np.float64]] = {}
    if known is not None:
        sums[()] = known.sums[0].sum(dtype=np.float64)
        for attribute, values in zip(domain.attributes, known.sums, strict=True):
            sums[attribute,] = values.astype(np.float64)
    return SimulatableTable(
        domain=domain,
        counts=counts,
        sums=sums,
        people=_in_groups(people, groups),
        title=title,
        people_by_kind=people,
        terms=terms,
        groups=groups,
        outcome=course.outcome,
        decisions=course.decisions,
        deviations=np.zeros(domain.shape) if known is None else _deviations(known, terms, choose),
    )


def _deviations(known: PartialTable, terms: SuppressionTerms, choose: SamplerChooser) -> NDArray[np.float64]:
    """Return how far anyone's probability moved in each cell, as a share of what it was."""
    narrow = known.tightened()
    lower, upper = narrow.lower, narrow.upper
    known = replace(known, lower=lower, upper=upper)
    moved = np.zeros(known.shape)
    if (lower == upper).all():
        for cell in np.ndindex(known.shape):
            count_law = known.count_law(cell)
            value = int(lower[cell])
            moved[cell] = count_law.deviation(count_law.chances_between(value, value)[:, 0])
        return moved
    try:
        posterior = choose(known, None).posterior(known, seed=PublicSeed(f"{terms.seed}, posterior"))
    except NotCertified:
        return np.full(known.shape, np.nan)
    return posterior.deviations(known)


def _in_groups(people: People, groups: tuple[tuple[Range, ...], ...]) -> NDArray[np.int64]:
    number = people.in_cells
    for axis, of_axis in enumerate(groups):
        number = np.add.reduceat(number, [first for first, _ in of_axis], axis=axis)
    return number


def _indices(order: Iterable[Iterable[int | str]], domain: Domain) -> tuple[Index, ...]:
    cells = [tuple(cell) for cell in order]
    if any(len(cell) != len(domain.shape) for cell in cells):
        raise InvalidArgument(
            f"a cell of `order` must name one level of each of {listed(domain.attributes)}. Nothing was released."
        )
    try:
        return tuple(
            tuple(
                domain.code(attribute, level) if isinstance(level, str) else index(level)
                for attribute, level in zip(domain.attributes, cell, strict=True)
            )
            for cell in cells
        )
    except TypeError:
        raise InvalidArgument(
            "a cell of `order` must be given by positions or by labels. Nothing was released."
        ) from None


def _nested(values: NDArray[np.float64]) -> Any:
    """Return an array as lists, with None for NaN and whole numbers where they are."""
    if values.ndim:
        return [_nested(part) for part in values]
    value = float(values)
    return None if math.isnan(value) else int(value) if value.is_integer() else value


def _array(nested: Any) -> NDArray[np.float64]:
    try:
        return np.array(nested, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTable(
            "the description of a simulatable table holds an array that cannot be read."
        ) from None


def _groups(description: list[Any], people: People) -> tuple[tuple[Range, ...], ...]:
    """Return the groups of each attribute, which follow one another from its first level to its last."""
    groups: list[tuple[Range, ...]] = []
    for of_axis in description:
        match of_axis:
            case [*parts] if all(isinstance(part, list) and len(part) == 2 for part in parts):
                groups.append(tuple((part[0], part[1]) for part in parts))
    edges = [[0, *(last for _, last in of_axis)] for of_axis in groups]
    if [[first for first, _ in of_axis] for of_axis in groups] != [of_axis[:-1] for of_axis in edges] or [
        of_axis[-1] for of_axis in edges
    ] != list(people.shape):
        raise InvalidTable("the groups of levels do not follow one another from the first level to the last.")
    return tuple(groups)


def _sums(description: list[Any]) -> dict[tuple[str, ...], NDArray[np.float64]]:
    sums: dict[tuple[str, ...], NDArray[np.float64]] = {}
    for entry in description:
        match entry:
            case {"attributes": list(attributes), "sums": values, **rest} if not rest:
                sums[tuple(map(str, attributes))] = _array(values)
            case _:
                raise InvalidTable(
                    "the description of the sums of a table is not in the form that Tabulary writes."
                )
    return sums
