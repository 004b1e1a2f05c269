"""Levels merged into one: the law of the noise of the sums, both faces, and what cannot be merged."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidDomain, InvalidNoise
from tabulary.infer import IndependentNoise, difference, independence, interval, merged, noise_of, odds_ratio
from tabulary.noise import DiscreteLaplace, ExactSampler
from tabulary.perturb import MaxEntropy, perturb
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"sex": ["F", "M"], "score": ["Low", "Medium", "High"]})
COUNTS = np.array([[310, 180, 110], [275, 149, 95]])
TOGETHER = {"score": ["Medium", "High"]}


def released(mechanism, **options):
    plan = tb.plan(DOMAIN, "[sex score]", privacy=tb.PureDP("1/4"), mechanism=mechanism, **options)
    return tb.release(tb.Table(DOMAIN, COUNTS), plan, sampler=ExactSampler(SeededEntropy(1)))["sex", "score"]


@pytest.mark.parametrize("mechanism", ["cells", "residual", "efron-stein"])
def test_the_noise_of_merged_levels_is_that_of_their_sums(mechanism):
    table = released(mechanism)
    two = merged(table, TOGETHER)
    assert two.domain.levels_of("score") == ("Low", "Medium+High")
    assert two.estimate[:, 1].tolist() == pytest.approx(table.estimate[:, 1:].sum(axis=1).tolist())
    sums = np.kron(np.eye(2), [[1, 0, 0], [0, 1, 1]])
    assert two.unbiased.covariance.dense() == pytest.approx(sums @ table.unbiased.covariance.dense() @ sums.T)
    assert interval(two, {"score": "Medium+High"}) == interval(table, TOGETHER)
    women, men = {"sex": "F", "score": "Medium+High"}, {"sex": "M", "score": "Medium+High"}
    listed = [{"sex": sex, **TOGETHER} for sex in "FM"]
    assert difference(two, women, men, per=["sex"]) == difference(table, *listed, per=["sex"])


def test_noise_that_each_cell_has_for_itself_keeps_its_exact_law():
    noise = noise_of(merged(released("cells"), TOGETHER))
    assert isinstance(noise, IndependentNoise)
    assert noise.terms.tolist() == [[1, 2], [1, 2]]


def test_tests_take_merged_levels_and_only_the_naive_one_the_published_counts():
    table = released("cells")
    two = merged(table, TOGETHER)
    sums = table.counts[:, 1:].sum(axis=1)
    assert two.counts.tolist() == np.stack([table.counts[:, 0], sums], axis=1).tolist()
    assert independence(two, "naive") == independence(two.table, "naive")
    assert independence(two) == independence(two.unbiased)
    assert independence(two).degrees_of_freedom == 1
    assert odds_ratio(two) == odds_ratio(two.unbiased)
    # What is stated of a published sum is a bound.
    assert np.all(two.standard_errors[:, 1] <= table.standard_errors[:, 1:].sum(axis=1) + 1e-9)
    assert np.all(two.half_widths()[:, 1] >= table.half_widths()[:, 1:].sum(axis=1))


def test_a_merged_cell_is_impossible_if_all_of_its_cells_are():
    zeros = [{"age": "0", "job": ["p", "q"]}, {"age": "1", "job": "q"}]
    holed = tb.Domain({"age": ["0", "1"], "job": ["n", "p", "q"]}, structural_zeros=zeros)
    two = merged(tb.Table(holed, [[5, 0, 0], [90, 40, 0]]), {"job": ["p", "q"]}, noise=DiscreteLaplace(2))
    assert two.domain.impossible(("age", "job")).tolist() == [[False, True], [False, False]]
    assert noise_of(two).terms.tolist() == [[1, 0], [1, 1]]


def test_several_attributes_and_levels_apart_are_merged_in_place_of_the_first():
    both = merged(released("residual"), {"score": ["High", "Low"], "sex": ["F", "M"]})
    assert both.domain.levels == (("F+M",), ("Low+High", "Medium"))
    assert both.shape == (1, 2)


@pytest.mark.parametrize(
    ("levels", "error", "reason"),
    [
        ({"score": ["High"]}, InvalidArgument, "at least two different levels of 'score'"),
        ({"score": "High"}, InvalidArgument, "at least two different levels of 'score'"),
        ({"score": ["High", "Top"]}, InvalidDomain, "no level 'Top'"),
        ({"height": ["a", "b"]}, InvalidDomain, "no attribute 'height'"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_the_reason(levels, error, reason):
    with pytest.raises(error, match=reason):
        merged(released("cells"), levels)


def test_sums_of_counts_whose_noise_depends_on_them_have_no_law():
    with pytest.raises(InvalidNoise, match="sums"):
        merged(perturb(tb.Table(DOMAIN, COUNTS), MaxEntropy(2, 5)), TOGETHER)
