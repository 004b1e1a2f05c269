"""Suppressors to try: one that goes through every table, and one that peeks at the values it decides about."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tabulary.suppress.simulatable_method.confidential_counts import ConfidentialCounts
from tabulary.suppress.simulatable_method.suppressor import SuppressionRun, asked_block, run_suppressor
from tabulary.suppress.simulatable_method.terms import SuppressionTerms
from tabulary.table_samplers.partial_table import PartialTable
from tabulary.table_samplers.people import People
from tabulary.table_samplers.poisson_binomial import PoissonBinomial
from tabulary.table_samplers.table_sampler import CellPosteriors, PossibleAnswers
from tests.suppressed_tables import law, priors, true_answers, true_marginals


class Enumeration:
    """A sampler that goes through every table; what it found it remembers, since the same states come again."""

    name = "enumeration"

    def __init__(self) -> None:
        self._found = {}

    def answers(self, known, question, *, draws, seed):
        key = (_key(known), question)
        if key not in self._found:
            self._found[key] = true_answers(known, question)
        return self._found[key]

    def posterior(self, known, *, seed):
        return CellPosteriors(true_marginals(known))


class Peeking(Enumeration):
    """The sabotaged twin: it looks the answer up, and weighs that one alone. What it withholds, it gives away."""

    name = "peeking"

    def __init__(self, custodian: ConfidentialCounts, honest: Enumeration) -> None:
        self._custodian, self._honest = custodian, honest

    def answers(self, known, question, *, draws, seed):
        all_of_them = self._honest.answers(known, question, draws=draws, seed=seed)
        true = all_of_them.values == self._custodian.answer(asked_block(known.people, question, known))
        return PossibleAnswers(all_of_them.values[true], np.ones(1), all_of_them.deviation[true])


def decided(people: People, counts, terms: SuppressionTerms, sampler=None) -> SuppressionRun:
    """The course of a suppression with one sampler for everything."""
    sampler = Enumeration() if sampler is None else sampler
    return run_suppressor(
        people, ConfidentialCounts(people, np.asarray(counts)), terms, choose=lambda known, question: sampler
    )


def _key(known: PartialTable):
    return (
        id(known.people),
        known.groups,
        tuple(sums.tobytes() for sums in known.sums),
        known.lower.tobytes(),
        known.upper.tobytes(),
    )


# ---- everything that may be published -------------------------------------------------------------------------------


@dataclass
class Publication:
    """One thing that may be published, how likely it is, and what whoever sees all of it believes then."""

    course: SuppressionRun
    probability: float
    posteriors: dict[tuple[int, ...], NDArray[np.float64]]
    """Of each kind of person in each cell, given the released numbers *and* which ones were released."""

    def deviation(self, people: People) -> float:
        """The largest |1 - posterior/prior| of anyone."""
        worst = 0.0
        for index, posteriors in self.posteriors.items():
            for prior, posterior in zip(_crowd(people, index).probability, posteriors, strict=True):
                worst = max(worst, abs(1 - posterior / prior), abs(1 - (1 - posterior) / (1 - prior)))
        return worst


def publications(
    people: People, suppress: Callable[[NDArray[np.int64]], SuppressionRun]
) -> dict[bytes, Publication]:
    """Everything that a suppressor may publish, by running it on every table there can be.

    Bayes' rule over tables, each with its prior probability: nothing is assumed of how the suppressor decides.
    """
    cells = list(np.ndindex(people.shape))
    laws = {index: law(priors(_crowd(people, index))) for index in cells}
    found: dict[bytes, Publication] = {}
    for values in product(*(range(laws[index].size) for index in cells)):
        course = suppress(np.reshape(values, people.shape))
        weight = float(np.prod([laws[index][value] for index, value in zip(cells, values, strict=True)]))
        entry = found.setdefault(
            seen(course), Publication(course, 0.0, {index: np.zeros(1) for index in cells})
        )
        entry.probability += weight
        for index, value in zip(cells, values, strict=True):
            entry.posteriors[index] = (
                entry.posteriors[index] + weight * _crowd(people, index).chances[:, value]
            )
    for entry in found.values():
        entry.posteriors = {index: sums / entry.probability for index, sums in entry.posteriors.items()}
    return found


def seen(course: SuppressionRun) -> bytes:
    """All that is published of a course, as bytes."""
    return json.dumps([course.outcome, *(decision.describe() for decision in course.decisions)]).encode()


def _crowd(people: People, index: tuple[int, ...]) -> PoissonBinomial:
    return people.count_law(tuple((level, level + 1) for level in index))
