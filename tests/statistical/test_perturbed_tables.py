"""Lists of perturbed tables: the promise holds and a smaller scale breaks it; stated errors are those that occur."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import tabulary as tb
from tabulary.noise import ExactSampler
from tabulary.perturb.tables import Tables
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

ALPHA = 1e-6
DOMAIN = tb.Domain({"a": "xy", "b": "xyz"})
COUNTS = np.full(DOMAIN.shape, 10)


class Seeded:
    """The exact sampler, or one that draws at a wrong scale, from entropy that can be replayed."""

    def __init__(self, seed, *, factor=1):
        self.sampler, self.factor = ExactSampler(SeededEntropy(seed)), factor

    def draw(self, noise, size):
        law = noise if self.factor == 1 else type(noise)(noise.scale * self.factor)
        return self.sampler.draw(law, size)


def flat(made):
    return np.concatenate([table.counts.ravel() for table in made])


def published(tables, counts, sampler, times):
    """What is published of the same counts, many times over: a list like it, with a copy of the people a level."""
    levels = {"copy": range(times)} | dict(zip(DOMAIN.attributes, DOMAIN.levels, strict=True))
    many = Tables(
        tb.Domain(levels),
        "".join(f"[copy {' '.join(margin)}]" for margin in tables.margins),
        epsilons={("copy", *margin): epsilon for margin, epsilon in tables.epsilons.items()},
        neighbours=tables.neighbours,
    )
    assert many.laws == tables.laws
    people = tb.Table(many.domain, np.broadcast_to(counts, (times, *DOMAIN.shape)))
    made = many.apply(people, sampler=sampler)
    return np.concatenate([table.counts.reshape(times, -1) for table in made], axis=1)


def lower_bound(tables, relation, factor):
    """A lower bound of ε at confidence 1 - ALPHA, from the event of the largest loss on either neighbour."""
    near = COUNTS.copy()
    near[0, 0] += 1
    if relation == "replace":
        near[1, 2] -= 1
    times = 60_000
    centres = [published(tables, counts, ConstantSampler(), 1) for counts in (COUNTS, near)]
    rates = [
        float(law.epsilon)
        for m, law in zip(tables.margins, tables.laws, strict=True)
        for _ in range(DOMAIN.cells(m))
    ]
    seen = []
    for seed, counts in enumerate((COUNTS, near)):
        drawn = published(tables, counts, Seeded(seed + 11, factor=factor), times)
        # The claimed noise: an observer reads it in the description.
        losses = (np.abs(drawn - centres[0]) - np.abs(drawn - centres[1])) @ rates
        seen.append(int((losses >= float(tables.epsilon) - 1e-9).sum()))
    low = beta.ppf(ALPHA / 2, seen[1], times - seen[1] + 1) if seen[1] else 0.0
    high = beta.ppf(1 - ALPHA / 2, seen[0] + 1, times - seen[0])
    return math.log(low / high) if low else 0.0


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_promise_of_a_list_holds_and_noise_at_seven_tenths_of_the_scale_breaks_it(relation):
    epsilons = {("a", "b"): "1/2", "a": 1, "b": "1/2"}
    tables = Tables(DOMAIN, "[a b][a][b]", epsilons=epsilons, neighbours=relation)
    assert tables.epsilon == 2
    assert lower_bound(tables, relation, 1) <= 2
    assert lower_bound(tables, relation, Fraction(7, 10)) > 2


def test_a_budget_for_each_table_that_forgot_the_overlap_is_found_out():
    # Every table with the whole budget, as if nobody were in two of them.
    forgetful = Tables(DOMAIN, "[a b][a][b]", epsilons={("a", "b"): 1, "a": 1, "b": 1})
    assert forgetful.epsilon == 3
    assert 1 < lower_bound(forgetful, "add-remove", 1) <= 3


@pytest.mark.parametrize(
    ("margins", "zeros"), [("free", []), ("restored", []), ("restored", [{"a": "x", "b": "z"}])]
)
def test_stated_errors_and_intervals_are_those_that_occur(margins, zeros):
    domain = tb.Domain({"a": "xy", "b": "xyz"}, zeros)
    tables = Tables(domain, "[a b][a][b]", epsilons={("a", "b"): "1/5", "a": "1/3", "b": "1/10"}, bound=60)
    counts = np.where(domain.impossible(domain.attributes), 0, 100)
    truth = flat(tables.apply(tb.Table(domain, counts), sampler=ConstantSampler()))
    sampler = Seeded(7)
    times = 1_200
    made = [tables.apply(tb.Table(domain, counts), margins=margins, sampler=sampler) for _ in range(times)]
    errors = np.array([flat(m) for m in made]) - truth
    stated = np.concatenate([table.standard_errors.ravel() for table in made[0]])
    possible = stated > 0
    assert not errors[:, ~possible].any()
    # A mean of n squares deviates by √((κ + 2)/n) of itself, κ at most 3, and its root by half: four of these are 13 %.
    assert errors[:, possible].std(axis=0) == pytest.approx(stated[possible], rel=0.13)
    assert np.abs(errors.mean(axis=0)).max() < 5 * stated.max() / math.sqrt(times)
    widths = np.concatenate([np.ravel(table.half_widths(0.95)) for table in made[0]])
    held = (np.abs(errors) <= widths).mean(axis=0)[possible]
    # Whole half-widths hold 95 % or a little more, corrected normal ones about that. Four deviations are 2.5 %.
    assert held.min() > 0.925
    assert held.max() < 0.98


def test_restoring_with_the_wrong_variances_would_be_seen():
    # A fit that took all tables to be as noisy as each other has other errors than those that are stated.
    domain = tb.Domain({"a": "xy", "b": "xyz"})
    stated = Tables(domain, "[a b][a]", epsilons={("a", "b"): "1/20", "a": 1})
    equal = Tables(domain, "[a b][a]", epsilons={("a", "b"): "1/2", "a": "1/2"})
    sampler = Seeded(9)
    zero = tb.Table(domain, np.zeros(domain.shape, dtype=int))
    errors = []
    for _ in range(400):
        made = stated.apply(zero, sampler=sampler)
        errors.append(equal.fit.tables({m: made[m].counts for m in stated.margins})["a",])
    assert np.std(errors) > 2 * stated.standard_deviations()["a",].restored


@pytest.mark.parametrize("minimum", [0, 4])
def test_the_stated_bias_of_a_minimum_is_the_one_that_occurs(minimum):
    tables = Tables(DOMAIN, "[a b][b]", epsilon="1/2")
    sampler = Seeded(3)
    counts = np.array([[0, 1, 3], [8, 20, 0]])
    made = [tables.apply(tb.Table(DOMAIN, counts), minimum=minimum, sampler=sampler) for _ in range(1_200)]
    found = np.mean([m["a", "b"].counts for m in made], axis=0) - counts
    stated = np.vectorize(lambda original: made[0].bias(("a", "b"), int(original)))(counts)
    assert np.abs(found - stated).max() < 5 * tables.standard_deviation(("a", "b")) / math.sqrt(1_200)
    assert stated.max() > 10 * tables.standard_deviation(("a", "b")) / math.sqrt(1_200)
