"""The suppressor: it decides from public things, and only then asks for the answer.

Nabar & Mishra (2010), section 5.1. A reader learns nothing from the decisions, since anyone can make them: they follow
from the people, the priors, the terms and the answers released before. The structure guarantees this: the suppressor
gets a `CountOracle`, and asks it only after a decision to release. In a replay the published table is the oracle.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tabulary.core.domain import Domain
from tabulary.core.progress import Progress
from tabulary.errors import NotCertified
from tabulary.suppress.simulatable_method.binning import joined_label, next_split
from tabulary.suppress.simulatable_method.decisions import (
    FOLLOWS,
    NOT_CERTIFIED,
    SAFE,
    UNSAFE,
    Decision,
    TotalQuestion,
)
from tabulary.suppress.simulatable_method.terms import ROUNDING, SuppressionTerms
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion, TableQuestion
from tabulary.table_samplers.people import People, Range
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.sampler_choice import SamplerChooser
from tabulary.table_samplers.table_sampler import PossibleAnswers

Block = tuple[Range, ...]
Record = Callable[[Decision], None]

TABLE = "table"
NO_SAFE_BINNING = "no safe binning"


# A total of this probability is not looked at: of 10,000 persons with a prior each, all totals would fill the memory.
_UNLIKELY = 1e-18


class CountOracle(Protocol):
    """What knows the private values: the confidential counts or, in a replay, the published table."""

    def answer(self, block: Block) -> int:
        """Return how many people of a block of cells have the private attribute."""
        ...


@dataclass(frozen=True, eq=False)
class SuppressionRun:
    """The course of a suppression: its decisions in order, what is known after them, and how it ended.

    `known` is None where not even the total was released.
    """

    decisions: tuple[Decision, ...]
    known: PartialTable | None
    outcome: str


def run_suppressor(
    people: People,
    oracle: CountOracle,
    terms: SuppressionTerms,
    *,
    choose: SamplerChooser,
    record: Record | None = None,
    progress: Progress | None = None,
) -> SuppressionRun:
    """Return the course of a suppression: the total, the splits of each attribute, then the cells.

    `record` is handed each decision when it is made, before the oracle is asked. `progress` is called with (what,
    done, total).
    """
    terms.check(people.domain)
    return _Suppressor(people, oracle, terms, choose, record, progress).run()


class _Suppressor:
    def __init__(
        self,
        people: People,
        oracle: CountOracle,
        terms: SuppressionTerms,
        choose: SamplerChooser,
        record: Record | None,
        progress: Progress | None,
    ) -> None:
        self._people = people
        self._oracle = oracle
        self._terms = terms
        self._choose = choose
        self._record = record
        self._progress = progress
        self._parts = terms.parts(people.domain)
        self._decisions: list[Decision] = []

    def run(self) -> SuppressionRun:
        known = self._ask(TotalQuestion(), None)
        if known is None:
            return SuppressionRun(tuple(self._decisions), None, NO_SAFE_BINNING)
        for axis, attribute in enumerate(self._people.domain.attributes):
            limit = self._terms.bins.get(attribute)
            known, split_up = (
                self._all_levels(known, axis) if limit is None else self._binned(known, axis, limit)
            )
            if not split_up:
                return SuppressionRun(tuple(self._decisions), known, NO_SAFE_BINNING)
        for index in self._terms.order or itertools.product(*map(range, known.shape)):
            known = self._ask(CellQuestion(index), known) or known
        # A cell that was left out may follow from those released after it: a mark in its place would protect nothing.
        for left_out in [
            d.question for d in self._decisions if isinstance(d.question, CellQuestion) and not d.released
        ]:
            if implied_answer(known, left_out) is not None:
                known = self._ask(left_out, known) or known
        return SuppressionRun(tuple(self._decisions), known, TABLE)

    def _all_levels(self, known: PartialTable, axis: int) -> tuple[PartialTable, bool]:
        """Part every level of an attribute from the next; where one cannot be, there is no table."""
        for level in range(1, self._people.shape[axis]):
            split_up = self._ask(SplitQuestion(axis, level - 1, level), known)
            if split_up is None:
                return known, False
            known = split_up
        return known, True

    def _binned(self, known: PartialTable, axis: int, limit: int) -> tuple[PartialTable, bool]:
        """Part the heaviest group at its median, again and again; a group that cannot be split safely stays whole."""
        whole: set[Range] = set()
        while known.shape[axis] < limit and (split := next_split(known, axis, whole)) is not None:
            split_up = self._ask(split, known)
            if split_up is None:
                whole.add(known.groups[axis][split.group])
            else:
                known = split_up
        return known, known.shape[axis] > 1 or not whole

    def _ask(
        self, question: TotalQuestion | TableQuestion, known: PartialTable | None
    ) -> PartialTable | None:
        """Decide whether a question is answered. Return what is known with the answer, or None without one."""
        decision = self._decision(question, known)
        # Recorded before anyone is asked: from here on it cannot be another.
        self._decisions.append(decision)
        if self._record is not None:
            self._record(decision)
        if self._progress is not None:
            most = self._terms.questions(self._people.domain)
            self._progress("deciding", min(len(self._decisions), most), most)
        if not decision.released:
            return None
        value = decision.value
        if value is None:
            value = self._oracle.answer(asked_block(self._people, question, known))
            self._decisions[-1] = replace(decision, value=value)
        if known is None or isinstance(question, TotalQuestion):
            return PartialTable.total(self._people, value)
        return known.answered(question, value)

    def _decision(self, question: TotalQuestion | TableQuestion, known: PartialTable | None) -> Decision:
        labels = _labels(self._people.domain, question, known)
        share = self._terms.share(self._parts)
        if known is None or isinstance(question, TotalQuestion):
            return self._weighed(
                Decision(question, labels, False, UNSAFE, None, share, "exact"), total_answers(self._people)
            )
        implied = implied_answer(known, question)
        if implied is not None:
            return Decision(question, labels, True, FOLLOWS, 0.0, share, "none", value=implied)
        sampler = self._choose(known, question)
        undecided = Decision(question, labels, False, UNSAFE, None, share, sampler.name)
        draws = self._terms.draws(self._parts)
        try:
            answers = sampler.answers(known, question, draws=draws, seed=self._seed())
        except NotCertified as refusal:
            return replace(undecided, reason=f"{NOT_CERTIFIED}: {refusal}")
        return self._weighed(undecided, answers)

    def _weighed(self, undecided: Decision, answers: PossibleAnswers) -> Decision:
        """Return the decision that the answers lead to. SafeToSplit and the cell suppressor are the same here."""
        most = float(self._terms.epsilon) + ROUNDING
        draws = answers.draws
        if draws is None and self._terms.rule == "sampled":
            draws = self._terms.draws(self._parts)
            unsafe: float = _unsafe_draws(answers, most, draws, self._seed())
        else:
            unsafe = answers.unsafe(most) if draws is None else round(answers.unsafe(most) * draws)
        if draws is None:
            limit = undecided.limit
            # What the computation leaves out may all be unsafe.
            safe = unsafe + answers.error <= limit
        else:
            limit = self._terms.allowed(self._parts)
            safe = unsafe <= limit
        return replace(
            undecided,
            released=safe,
            reason=SAFE if safe else UNSAFE,
            unsafe=unsafe,
            limit=limit,
            draws=draws,
            error=answers.error,
            diagnostics=answers.diagnostics,
        )

    def _seed(self) -> PublicSeed:
        return PublicSeed(f"{self._terms.seed}, decision {len(self._decisions)}")


def total_answers(people: People) -> PossibleAnswers:
    """Return the answers that the question for the total may get, before anything is known.

    Totals that are too unlikely to matter are left out, and their probability is the `error`.
    """
    count_law = people.count_law(tuple((0, levels) for levels in people.shape))
    weights = np.exp(count_law.log_weights)
    low, high = np.flatnonzero(weights >= _UNLIKELY)[[0, -1]].tolist()
    return PossibleAnswers(
        np.arange(low, high + 1),
        weights[low : high + 1],
        count_law.deviation(count_law.chances_between(low, high)),
        error=float(weights[:low].sum() + weights[high + 1 :].sum()),
    )


def implied_answer(known: PartialTable, question: TableQuestion) -> int | None:
    """Return the only answer that agrees with what is known, where bounds show it, or None.

    Such an answer is no news: giving it changes nobody's probability.

    >>> people = People.of(Domain({"eye": "ab", "hair": "ab"}), [[5, 5], [5, 5]], 0.5)
    >>> cells = np.array([[1, np.nan], [np.nan, np.nan]])
    >>> known = PartialTable.table(people, (np.array([3, 6]), np.array([4, 5])), cells)
    >>> implied_answer(known, CellQuestion((1, 1)))
    3
    """
    if isinstance(question, CellQuestion):
        narrow = known.tightened()
        least, most = int(narrow.lower[question.index]), int(narrow.upper[question.index])
    else:
        least, most = known.split_bounds(question)
    return least if least == most else None


def asked_block(people: People, question: TotalQuestion | TableQuestion, known: PartialTable | None) -> Block:
    """Return the block of cells that a question is about; of a split, its first part."""
    if known is None or isinstance(question, TotalQuestion):
        return tuple((0, levels) for levels in people.shape)
    if isinstance(question, CellQuestion):
        return tuple(groups[i] for groups, i in zip(known.groups, question.index, strict=True))
    first, _ = known.groups[question.axis][question.group]
    return _slab(people, question.axis, (first, question.cut))


def grouped_domain(domain: Domain, groups: tuple[tuple[Range, ...], ...]) -> Domain:
    """Return the domain whose levels are groups of levels."""
    return Domain(
        {
            attribute: [joined_label(levels[slice(*group)]) for group in of_axis]
            for attribute, levels, of_axis in zip(domain.attributes, domain.levels, groups, strict=True)
        }
    )


def _slab(people: People, axis: int, levels: Range) -> Block:
    return tuple(levels if other == axis else (0, number) for other, number in enumerate(people.shape))


def _unsafe_draws(answers: PossibleAnswers, epsilon: float, draws: int, seed: PublicSeed) -> int:
    """Return how many of some answers, drawn from their law with a public seed, would be unsafe."""
    steps = np.cumsum(answers.probability)
    drawn = np.searchsorted(steps, seed.stream("answers").random(draws) * steps[-1], side="right")
    return int((answers.deviation[np.minimum(drawn, steps.size - 1)] > epsilon).sum())


def _labels(
    domain: Domain, question: TotalQuestion | TableQuestion, known: PartialTable | None
) -> tuple[str, ...]:
    if known is None or isinstance(question, TotalQuestion):
        return ()
    if isinstance(question, CellQuestion):
        levels = zip(domain.levels, known.groups, question.index, strict=True)
        return tuple(joined_label(of_axis[slice(*groups[i])]) for of_axis, groups, i in levels)
    first, last = known.groups[question.axis][question.group]
    names = domain.levels[question.axis]
    return (
        domain.attributes[question.axis],
        joined_label(names[first : question.cut]),
        joined_label(names[question.cut : last]),
    )
