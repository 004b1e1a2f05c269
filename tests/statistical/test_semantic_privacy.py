"""Theorem 2 of Nabar & Mishra: a published table moves nobody's probability by more than ε, but for a share δ of runs.

Small tables are gone through one by one: every data set, what is published of it, and what whoever sees all of that,
suppressions included, believes by Bayes' rule. Larger ones are drawn from the prior.
"""

import numpy as np
import pytest
from scipy import stats

from tabulary.core.domain import Domain
from tabulary.suppress import simulatable
from tabulary.suppress.simulatable_method.confidential_counts import ConfidentialCounts
from tabulary.suppress.simulatable_method.suppressor import TABLE
from tabulary.suppress.simulatable_method.terms import SuppressionTerms
from tabulary.table_samplers.partial_table import CellQuestion
from tabulary.table_samplers.people import People
from tests.suppressed_tables import true_posteriors
from tests.suppressors import Enumeration, Peeking, decided, publications, seen

EYE_HAIR = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]})

# Of five people with ½ each, none and all are unsafe at ε = 0.9.
FIVES = People.of(EYE_HAIR, np.full((2, 2), 5), 0.5)
# Kinds of people: three with ½ and two with 0.3, or fewer.
KINDS = People.of(EYE_HAIR, [[[3, 2], [3, 1]], [[2, 2], [3, 2]]], [0.5, 0.3])
# Of two people with 0.3 each, one is safe at ε = 0.9, none and both are not.
PAIRS = People.of(EYE_HAIR, [[2, 8], [8, 2]], 0.3)

CASES = {
    "rows and cells": (FIVES, SuppressionTerms("0.9", "0.3", seed="1")),
    "cells suppressed": (KINDS, SuppressionTerms("0.9", "0.9", seed="1")),
    "kinds": (KINDS, SuppressionTerms("0.95", "0.5", seed="1")),
    "sampled": (KINDS, SuppressionTerms("0.9", "0.9", rule="sampled", seed="2")),
    "binned": (KINDS, SuppressionTerms("0.9", "0.9", bins={"eye": 2, "hair": 2}, seed="3")),
}


def honest(people, terms):
    sampler = Enumeration()
    return lambda counts: decided(people, counts, terms, sampler)


def peeking(people, terms):
    sampler = Enumeration()
    return lambda counts: decided(people, counts, terms, Peeking(ConfidentialCounts(people, counts), sampler))


def breaches(published, people, terms):
    """The probability that what is published moves somebody by more than ε."""
    return sum(
        each.probability
        for each in published.values()
        if each.deviation(people) > float(terms.epsilon) + 1e-9
    )


def of_released_numbers(known, people):
    """What follows for each person from the released numbers alone, in the cells of the full table."""
    if known is None:
        return {
            i: people.count_law(tuple((n, n + 1) for n in i)).probability for i in np.ndindex(people.shape)
        }
    found = {}
    for index, posteriors in true_posteriors(known).items():
        block = [known.groups[axis][group] for axis, group in enumerate(index)]
        kinds = dict(zip(known.count_law(index).probability, posteriors, strict=True))
        for cell in np.ndindex(people.shape):
            if all(first <= level < last for level, (first, last) in zip(cell, block, strict=True)):
                own = people.count_law(tuple((level, level + 1) for level in cell)).probability
                found[cell] = np.array([kinds[prior] for prior in own])
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_probability_of_a_breach_is_at_most_delta_and_suppressions_say_nothing(case):
    people, terms = CASES[case]
    published = publications(people, honest(people, terms))
    assert sum(each.probability for each in published.values()) == pytest.approx(1)
    assert breaches(published, people, terms) <= float(terms.delta)
    for each in published.values():
        alone = of_released_numbers(each.course.known, people)
        for cell, posteriors in each.posteriors.items():
            np.testing.assert_allclose(posteriors, alone[cell], atol=1e-9)
    # Something is at stake: tables are published, and something is withheld.
    assert any(each.course.outcome == TABLE for each in published.values())
    assert any(not d.released for each in published.values() for d in each.course.decisions)


def test_a_suppressor_that_peeks_is_caught():
    people, terms = PAIRS, SuppressionTerms("0.9", "0.06", seed="1")
    published = publications(people, peeking(people, terms))
    # What it withholds says something: whoever reckons with it believes other things than the numbers say.
    told = 0.0
    for each in published.values():
        alone = of_released_numbers(each.course.known, people)
        if not all(np.allclose(each.posteriors[cell], alone[cell]) for cell in alone):
            told += each.probability
    assert told > 0.25
    assert breaches(published, people, terms) > 2 * float(terms.delta)
    assert breaches(publications(people, honest(people, terms)), people, terms) <= float(terms.delta)


def drawn(people, number, seed):
    """Tables of people who have the attribute or not by their priors, one person after the other."""
    seed = np.random.default_rng(seed)
    for _ in range(number):
        yield seed.binomial(people.number, people.probability).sum(axis=-1)


def too_many(runs, delta, *, risk=1e-6):
    """The number of breaches that a true rate of δ reaches with a probability of at most `risk`."""
    return int(stats.binom.isf(risk, runs, float(delta))) + 1


def test_in_simulation_at_most_a_share_delta_of_runs_is_in_breach_and_of_the_peeking_ones_more():
    people, terms, runs = PAIRS, SuppressionTerms("0.9", "0.06", seed="1"), 1000
    rates: dict[str, int] = {}
    for name, suppress in (("honest", honest(people, terms)), ("peeking", peeking(people, terms))):
        beliefs = publications(people, suppress)
        rates[name] = sum(
            beliefs[seen(suppress(counts))].deviation(people) > float(terms.epsilon) + 1e-9
            for counts in drawn(people, runs, seed=7)
        )
    assert rates["honest"] < too_many(runs, terms.delta)
    assert rates["peeking"] >= too_many(runs, terms.delta)


@pytest.mark.parametrize("rule", ["computed", "sampled"])
def test_in_simulation_tables_of_hundreds_of_people_are_in_breach_at_most_in_a_share_delta_of_runs(rule):
    domain = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark", "red"]})
    people = People.of(domain, [[14, 40, 25], [30, 12, 60]], [[0.5, 0.4, 0.3]] * 2)
    delta, runs = 0.2, 60
    breaches, released = 0, []
    for run, counts in enumerate(drawn(people, runs, seed=11)):
        # PublicSeed are public but not chosen: another seed each run, so that the rate is over them as well.
        table = simulatable(people, counts, epsilon=0.5, delta=delta, rule=rule, seed=f"run {run}")
        breaches += bool((table.deviations > 0.5 + 1e-9).any())
        released += [d.released for d in table.decisions if isinstance(d.question, CellQuestion)]
    assert breaches < too_many(runs, delta)
    assert {*released} == {True, False}
