"""What a perturbation publishes: every possible cell perturbed, nothing exact left, intervals that hold."""

import gc
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import ExactSampler
from tabulary.perturb import Custom, Laplace, MaxEntropy, Normal, PerturbedTable, perturb
from tabulary.perturb.published import PerturbationErrors
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

DOMAIN = tb.Domain({"a": "xy", "b": "xyz"}, structural_zeros=[{"a": "x", "b": "z"}])
TABLE = tb.Table(DOMAIN, [[7, 0, 0], [12, 3, 1]])
UNEVEN = Custom([{0: "1/2", 5: "1/2"}, {-1: "1/3", 0: "1/3", 1: "1/3"}, {-2: "1/4", 1: "1/2", 0: "1/4"}])

LAWS = [
    Laplace("3/2", bound=7),
    Laplace("1/2"),
    Normal("1/2", bound=10),
    UNEVEN,
    MaxEntropy(2, bound=5, nonnegative=True),
    MaxEntropy(3, bound=5, nonnegative=True, js=2, mono=True),
]
every_law = pytest.mark.parametrize("law", LAWS, ids=str)
every_minimum = pytest.mark.parametrize("minimum", [None, 0, 3, 9])


def seeded(seed=1):
    return ExactSampler(SeededEntropy(seed))


def errors_of(law, values, minimum=None):
    return PerturbationErrors(law, np.asarray(values), np.ones(len(values), dtype=bool), minimum)


# What is perturbed


@every_law
@every_minimum
def test_an_impossible_cell_is_never_touched(law, minimum):
    published = perturb(TABLE, law, minimum=minimum, sampler=seeded())
    assert published["x", "z"] == 0
    assert published.standard_errors[0, 2] == 0
    assert published.half_widths()[0, 2] == 0
    # Whatever is drawn, so that no draw hides a touch.
    assert perturb(TABLE, Laplace(1), sampler=ConstantSampler(5))["x", "z"] == 0


def test_every_other_cell_is_perturbed_and_zeros_are_no_exception():
    published = perturb(TABLE, Laplace(1), sampler=ConstantSampler(5))
    assert published.counts.tolist() == [[12, 5, 0], [17, 8, 6]]
    zeros = tb.Table(tb.Domain({"cell": [str(i) for i in range(1000)]}), np.zeros(1000, dtype=int))
    moved = perturb(zeros, Laplace("1/2", bound=7), sampler=seeded()).counts
    assert 0.70 < (moved != 0).mean() < 0.80
    assert (moved < 0).any()


@every_law
def test_the_published_value_of_every_count_follows_its_row(law):
    """A chi-square test at level one in a million, for small counts and for a large one."""
    for original in (0, 1, 2, 5, 40):
        counts = tb.Table(tb.Domain({"cell": [str(i) for i in range(20_000)]}), np.full(20_000, original))
        seen, times = np.unique(perturb(counts, law, sampler=seeded(original)).counts, return_counts=True)
        expected = {int(b): 20_000 * law.transition(original, int(b)) for b in law.row(original).values}
        assert all(expected.get(int(b), 0) > 0 for b in seen)
        found = dict(zip(seen.tolist(), times.tolist(), strict=True))
        likely = [b for b, e in expected.items() if e >= 10]
        statistic = sum((found.get(b, 0) - expected[b]) ** 2 / expected[b] for b in likely)
        # The quantile by Wilson and Hilferty; 4.75 standard deviations.
        freedom = max(1, len(likely) - 1)
        spread = 2 / (9 * freedom)
        assert statistic <= freedom * (1 - spread + 4.75 * math.sqrt(spread)) ** 3 + 1e-6


@every_minimum
def test_smaller_values_are_published_as_the_minimum(minimum):
    bare = perturb(TABLE, Normal("1/2", bound=10), sampler=seeded(9)).counts
    published = perturb(TABLE, Normal("1/2", bound=10), minimum=minimum, sampler=seeded(9)).counts
    possible = ~DOMAIN.impossible(("a", "b"))
    expected = bare if minimum is None else np.where(possible, np.maximum(bare, minimum), 0)
    assert published.tolist() == expected.tolist()


def test_apply_is_perturb():
    law = Laplace(1, bound=4)
    assert law.apply(TABLE, minimum=0, sampler=seeded(2)).counts.tolist() == (
        perturb(TABLE, law, minimum=0, sampler=seeded(2)).counts.tolist()
    )


def test_without_a_sampler_every_table_is_drawn_afresh():
    wide = Laplace("1/1000")
    assert perturb(TABLE, wide).counts.tolist() != perturb(TABLE, wide).counts.tolist()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.sampled_from([None, 0, 2]))
def test_a_published_count_is_one_that_its_row_allows(counts, minimum):
    table = tb.Table(tb.Domain({"cell": [str(i) for i in range(len(counts))]}), counts)
    for law in (UNEVEN, LAWS[-1]):
        for original, b in zip(counts, perturb(table, law, minimum=minimum).counts, strict=True):
            assert law.row(original).at_least(minimum).probability(int(b)) > 0


# What it tells of its errors


@every_law
@every_minimum
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_an_interval_holds_every_original_count_at_least_as_often_as_stated(law, minimum, confidence):
    """Exactly: the probability of all published values whose interval holds the count."""
    for original in range(20):
        row = law.row(original).at_least(minimum)
        widths = errors_of(law, row.values, minimum).half_widths(confidence)
        holds = np.abs(row.values - original) <= widths
        assert row.probabilities[holds].sum() >= min(confidence, 1 - row.left_out) - 1e-12


@pytest.mark.parametrize("law", [Laplace("3/2", bound=7), Laplace("1/2"), Normal("1/2", bound=10)], ids=str)
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_no_narrower_interval_of_an_additive_law_would_do(law, confidence):
    width = int(errors_of(law, [10]).half_widths(confidence)[0])
    narrower = law.pmf(range(-width + 1, width)).sum() if width else 0.0
    assert narrower < confidence
    assert width == law.noise.half_width(confidence)


@every_law
@every_minimum
def test_intervals_cover_at_the_stated_rate_in_simulation(law, minimum):
    counts = np.resize([0, 1, 2, 3, 5, 8, 13, 200], 8_000)
    table = tb.Table(tb.Domain({"cell": [str(i) for i in range(counts.size)]}), counts)
    published = perturb(table, law, minimum=minimum, sampler=seeded(5))
    lower, upper = published.interval(0.9)
    covered = (lower <= counts) & (counts <= upper)
    for original in np.unique(counts):
        here = covered[counts == original]
        # Four standard errors below the stated rate.
        assert here.mean() > 0.9 - 4 * math.sqrt(0.09 / here.size)


def test_a_published_zero_is_not_taken_for_an_exact_one():
    """Nothing is ever added to a zero of this law, but a published zero may have been another count."""
    law = MaxEntropy(2, bound=5, nonnegative=True)
    told = errors_of(law, [0, 1, 3, 1000])
    assert told.standard_errors == pytest.approx([math.sqrt(2)] * 4)
    assert told.half_widths(0.95)[0] >= 2


@pytest.mark.parametrize("law", [Laplace("3/2", bound=7), Laplace("1/2"), Normal("1/2", bound=10)], ids=str)
def test_the_standard_error_of_an_additive_law_is_that_of_its_noise(law):
    published = perturb(TABLE, law, sampler=seeded())
    expected = np.where(DOMAIN.impossible(("a", "b")), 0.0, law.variance() ** 0.5)
    assert published.standard_errors == pytest.approx(expected)


def test_errors_follow_their_cells_when_a_table_is_turned_or_sliced():
    published = perturb(TABLE, UNEVEN, sampler=seeded(4))
    turned = published.transpose(("b", "a"))
    assert turned.counts.tolist() == published.counts.T.tolist()
    assert turned.half_widths().tolist() == published.half_widths().T.tolist()
    sliced = published.slice(b="y")
    assert sliced.standard_errors.tolist() == published.standard_errors[:, 1].tolist()
    assert sliced.half_widths(0.8).tolist() == published.half_widths(0.8)[:, 1].tolist()


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, float("nan")])
def test_a_confidence_lies_between_zero_and_one(confidence):
    with pytest.raises(InvalidNoise, match="confidence"):
        perturb(TABLE, Laplace(1), sampler=seeded()).interval(confidence)


# What it is


def test_a_published_table_tells_its_law_its_promise_and_its_bias():
    published = perturb(TABLE, Laplace("3/2", bound=7), minimum=0, sampler=seeded())
    assert isinstance(published, PerturbedTable)
    assert repr(published) == "<PerturbedTable a 2 × b 3>"
    assert published.privacy == Laplace("3/2", bound=7).privacy()
    assert published.minimum == 0
    assert published.bias(1) == Laplace("3/2", bound=7).bias(1, minimum=0)


def test_a_law_that_names_no_epsilon_promises_nothing():
    with pytest.raises(InvalidNoise, match="names no ε"):
        _ = perturb(TABLE, UNEVEN, sampler=seeded()).privacy


@every_law
def test_no_exact_count_can_be_reached_from_a_published_table(law):
    """Everything reachable is searched for the original table and for an array equal to its counts."""
    secret = tb.Table(DOMAIN, [[70_001, 70_002, 0], [70_003, 70_004, 70_005]])
    published = perturb(secret, law, sampler=ConstantSampler(1))
    seen, waiting = set(), [published]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type):
            continue
        seen.add(id(thing))
        assert thing is not secret
        assert thing is not secret.counts
        if isinstance(thing, np.ndarray) and thing.shape == secret.shape:
            assert not np.array_equal(thing, secret.counts)
        if isinstance(thing, np.ndarray):
            waiting.append(thing.base)
        elif type(thing).__module__.startswith("tabulary") or isinstance(thing, dict | list | tuple):
            waiting.extend(gc.get_referents(thing))
    assert len(seen) > 5


def test_the_original_table_is_left_as_it_was():
    before = TABLE.counts.tolist()
    perturb(TABLE, Laplace("1/100"), minimum=0, sampler=seeded())
    assert TABLE.counts.tolist() == before


# What cannot be


@every_law
def test_a_table_of_fractions_is_refused(law):
    with pytest.raises(InvalidTable, match="whole numbers"):
        perturb(tb.Table(tb.Domain({"a": "xy"}), [1.0, 2.0]), law)


@every_law
def test_a_table_with_a_negative_count_is_refused_without_naming_it(law):
    with pytest.raises(InvalidTable, match="that are not negative") as refused:
        perturb(tb.Table(tb.Domain({"a": "xy"}), [12345, -678]), law)
    assert "678" not in str(refused.value)
    assert "12345" not in str(refused.value)


@pytest.mark.parametrize("minimum", [-1, 0.0, 1.5, True, "0", float("nan")])
def test_a_minimum_that_cannot_be_is_refused(minimum):
    with pytest.raises(InvalidNoise, match="minimum"):
        perturb(TABLE, Laplace(1), minimum=minimum)
