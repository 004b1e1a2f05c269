"""The adaptive choice of margins beside its definition. No model is fitted here: any public model will do."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidPrivacy, InvalidWorkload
from tabulary.noise import DiscreteGaussian, ExactSampler
from tabulary.synth.adaptive import AdaptivePlan, chosen, learned, margin_scores, measured, people_of
from tabulary.toolbox.choice_laws import ExponentialChoice
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"a": range(2), "b": range(3), "c": range(2)})
WORK = "[a b][b c]"
MEMORY = 2**20


def a_plan(privacy=None, **options):
    return AdaptivePlan.of(DOMAIN, WORK, privacy or tb.ZCDP(1), **({"memory": MEMORY} | options))


def counts_of(plan, table):
    return {margin: tb.Table(plan.domain, table).project(margin).counts for margin in plan.candidates}


def a_table(seed=0, people=3_000):
    draw = np.random.default_rng(seed)
    return draw.multinomial(people, draw.dirichlet(np.full(12, 0.5))).reshape(2, 3, 2)


class Fixed:
    """A model that believes in one table."""

    def __init__(self, table, domain=DOMAIN):
        self.domain, self.full = domain, table

    def table(self, margin):
        others = tuple(i for i, name in enumerate(self.domain.attributes) if name not in margin)
        return self.full.sum(axis=others)


class Learner:
    """Learns nothing, or flips between two tables so that every measurement seems to teach a lot."""

    def __init__(self, tables):
        self.tables, self.fits, self.parts = tables, 0, []

    def eligible(self, candidates, measured, part):
        self.parts.append(part)
        return list(candidates)

    def fit(self, observed, people, *, last):
        self.fits += 1
        self.last = last
        return Fixed(self.tables[self.fits % len(self.tables)])


class Spending:
    """A sampler that adds up the ρ of all that is drawn, from the laws alone."""

    def __init__(self, plan):
        self.plan, self.spent, self.variances = plan, 0.0, []

    def draw(self, law, size):
        if isinstance(law, ExponentialChoice):
            self.spent += float(law.rate * self.plan.score_sensitivity(self.plan.candidates)) ** 2 / 2
        else:
            moved = self.plan.neighbours.records**2 * (2 if self.plan.total_is_public else 1)
            self.spent += moved / (2 * float(law.variance_parameter))
            self.variances.append(law.variance_parameter)
        return ExactSampler(SeededEntropy(0)).draw(law, size)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize("teaches", [False, True])
def test_what_is_drawn_adds_up_to_what_was_asked_for_whatever_is_learned(relation, records, teaches):
    plan = a_plan(tb.ZCDP("1/8"), rounds=20, neighbours=tb.Neighbours(relation, records=records))
    far = np.zeros((2, 3, 2))
    far[0, 0, 0] = 1e9
    learner = Learner([far, far[::-1, ::-1, ::-1]] if teaches else [far])
    sampler = Spending(plan)
    learned(plan, counts_of(plan, a_table()), learner, sampler)
    assert sampler.spent == pytest.approx(1 / 8, rel=1e-5)
    assert sampler.spent <= 1 / 8 * (1 + 1e-12)
    assert learner.last
    assert learner.parts[-1] == 1
    assert all(earlier < later for earlier, later in pairwise(learner.parts))


def test_noise_is_halved_where_a_measurement_taught_nothing_and_kept_where_it_did():
    far = np.zeros((2, 3, 2))
    far[0, 0, 0] = 1e9
    for tables, factor in (([far], 4), ([far, far[::-1, ::-1, ::-1]], 1)):
        plan = a_plan(rounds=100)
        sampler = Spending(plan)
        learned(plan, counts_of(plan, a_table()), Learner(tables), sampler)
        first, second = sampler.variances[3:5]
        assert first == sampler.variances[0] == plan.noise(plan.share).variance_parameter
        assert first / second == factor


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("weights", [None, [1, 5]])
def test_one_person_moves_scores_and_margins_by_exactly_what_is_stated(relation, weights):
    """All neighbours of a small table, against models on both sides of it."""
    work = tb.Workload(DOMAIN, [("a", "b"), ("b", "c")], weights)
    plan = AdaptivePlan.of(DOMAIN, work, tb.ZCDP(1), memory=MEMORY, neighbours=relation)
    table = a_table(2, 40)
    before = counts_of(plan, table)
    model = Fixed(np.random.default_rng(5).uniform(0, 9, (2, 3, 2)))
    scores = margin_scores(plan, before, model, plan.candidates, plan.share)
    worst, worst_square = 0, 0
    for taken in [None, *np.ndindex(2, 3, 2)]:
        for put in [None, *np.ndindex(2, 3, 2)]:
            one_each = taken is not None and put is not None
            if (relation == "replace") != one_each or taken == put or (taken and not table[taken]):
                continue
            near = table.copy()
            if taken is not None:
                near[taken] -= 1
            if put is not None:
                near[put] += 1
            after = counts_of(plan, near)
            moved = margin_scores(plan, after, model, plan.candidates, plan.share) - scores
            worst = max(worst, int(np.abs(moved).max()))
            squares = (((after[m] - before[m]) ** 2).sum() for m in plan.candidates)
            worst_square = max(worst_square, *map(int, squares))
    assert worst == plan.score_sensitivity(plan.candidates)
    assert plan.noise(plan.share) == DiscreteGaussian(worst_square / (2 * Fraction(9, 10) * plan.share))


def test_the_score_is_that_of_the_definition():
    plan = a_plan(rounds=30)
    exact, model = counts_of(plan, a_table()), Fixed(np.full((2, 3, 2), 250.0))
    found = margin_scores(plan, exact, model, plan.candidates, plan.share)
    touched = {m: sum(len(set(m) & set(s)) for s in (("a", "b"), ("b", "c"))) for m in plan.candidates}
    assert touched["a", "b"] == 3
    deviation = math.sqrt(plan.noise(plan.share).variance_parameter)
    for margin, score in zip(plan.candidates, found, strict=True):
        wrong = np.abs(exact[margin] - model.table(margin)).sum()
        noise = round(math.sqrt(2 / math.pi) * deviation * exact[margin].size)
        assert score == math.ceil(2**16 * touched[margin] / 3) * (wrong - noise)


def test_the_choice_follows_the_law_of_its_share():
    """Frequencies against exp(√(2ρ')·score/Δ), and not against that of the whole share."""
    plan = a_plan(rounds=30)
    exact, model, share = counts_of(plan, a_table(3, 60)), Fixed(np.full((2, 3, 2), 5.0)), Fraction(1, 40)
    scores = margin_scores(plan, exact, model, plan.candidates, share)
    sampler = ExactSampler(SeededEntropy(4))
    drawn = [chosen(plan, exact, model, plan.candidates, share, sampler) for _ in range(4_000)]
    found = np.array([drawn.count(margin) for margin in plan.candidates]) / len(drawn)

    def law(rho):
        rate = math.sqrt(2 * rho) / plan.score_sensitivity(plan.candidates)
        weights = np.exp(rate * (scores - scores.max()))
        return weights / weights.sum()

    assert np.abs(found - law(share / 10)).max() < 0.035
    assert np.abs(found - law(share)).max() > 0.07


def test_candidates_are_the_closure_of_the_workload_as_far_as_memory_reaches():
    assert set(a_plan().candidates) == {("a",), ("b",), ("c",), ("a", "b"), ("b", "c")}
    assert set(a_plan(memory=8 * 5).candidates) == {("a",), ("b",), ("c",)}


def test_impossible_cells_are_not_measured_and_not_counted_as_noise():
    domain = tb.Domain({"a": range(2), "b": range(3)}, structural_zeros=[{"a": 1, "b": 2}])
    plan = AdaptivePlan.of(domain, "[a b]", tb.ZCDP("1/100"), memory=MEMORY)
    exact = counts_of(plan, np.array([[30, 40, 50], [20, 10, 0]]))
    seen = measured(plan, exact, ("a", "b"), plan.share, ExactSampler(SeededEntropy(0)))
    assert seen.counts[1, 2] == 0
    assert (seen.counts != exact["a", "b"]).sum() == 5
    assert plan.noise_expected(("a", "b"), plan.share) == pytest.approx(
        5 * math.sqrt(2 / math.pi * plan.noise(plan.share).variance_parameter)
    )


def test_the_number_of_people_is_measured_unless_it_is_public():
    for relation in ("add-remove", "replace"):
        plan = a_plan(tb.ZCDP("1/10"), neighbours=relation)
        exact = counts_of(plan, a_table())
        seen = [measured(plan, exact, (n,), plan.share, ExactSampler(SeededEntropy(1))) for n in "abc"]
        found = people_of(plan, exact, seen)
        assert (found == 3_000) == (relation == "replace")
        assert found == pytest.approx(3_000, abs=200)


@given(weights=st.lists(st.fractions("1/1000", 10**9), min_size=2, max_size=2))
def test_weights_of_any_size_become_whole_numbers_of_their_proportions(weights):
    work = tb.Workload(DOMAIN, [("a", "b"), ("b", "c")], weights)
    plan = AdaptivePlan.of(DOMAIN, work, tb.ZCDP(1), memory=MEMORY)
    assert max(plan.weights.values()) == 2**16
    assert min(plan.weights.values()) >= 1
    assert plan.weights["a", "b"] == math.ceil(
        2**16 * (2 * weights[0] + weights[1]) / max(2 * weights[0] + weights[1], weights[0] + 2 * weights[1])
    )


def test_bad_input_is_refused_without_data():
    with pytest.raises(InvalidPrivacy, match="Gaussian"):
        a_plan(tb.PureDP(1))
    with pytest.raises(InvalidPrivacy, match="sensitive"):
        a_plan(neighbours=tb.Neighbours("replace", sensitive=("a",)))
    for rounds in (2, True, 7.0):
        with pytest.raises(InvalidArgument, match="rounds"):
            a_plan(rounds=rounds)
    with pytest.raises(InvalidWorkload, match="no attribute 'z'"):
        AdaptivePlan.of(DOMAIN, "[a z]", tb.ZCDP(1), memory=MEMORY)
    with pytest.raises(InvalidWorkload, match="no table"):
        AdaptivePlan.of(DOMAIN, "[]", tb.ZCDP(1), memory=MEMORY)
    with pytest.raises(InvalidWorkload, match="records' domain"):
        AdaptivePlan.of(DOMAIN, tb.Workload.parse("[x]", tb.Domain({"x": "yz"})), tb.ZCDP(1), memory=MEMORY)


def test_another_question_has_another_digest():
    digests = {
        a_plan().digest,
        a_plan(rounds=9).digest,
        a_plan(memory=2**21).digest,
        a_plan(tb.ZCDP(2)).digest,
        a_plan(neighbours="replace").digest,
    }
    assert len(digests) == 5
    assert a_plan().digest == a_plan().digest
