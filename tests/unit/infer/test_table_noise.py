"""What is known of the noise of a table, and what happens where it is not."""

from fractions import Fraction

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.infer.table_noise import CorrelatedNoise, IndependentNoise, law_given, noise_of, whole_counts
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, Tabulated, Truncated
from tabulary.perturb import Custom, Laplace
from tabulary.planning import CellErrors, StatedErrors
from tabulary.release.totals import with_totals
from tests.entropy import SeededEntropy

TWO_WAY = tb.Domain({"sex": "FM", "job": ["none", "paid", "child"]})
HOLED = tb.Domain({"age": ["0", "1"], "job": "np"}, structural_zeros=[{"age": "0", "job": "p"}])


def released(domain, counts, mechanism, margins, **options):
    plan = tb.plan(domain, margins, privacy=tb.PureDP(1), mechanism=mechanism, **options)
    return tb.release(tb.Table(domain, counts), plan, sampler=ExactSampler(SeededEntropy(1)))


@pytest.fixture
def counts():
    return np.arange(6).reshape(2, 3) + 50


def test_a_table_measured_cell_by_cell_states_its_law_and_one_draw_a_cell(counts):
    noise = noise_of(released(TWO_WAY, counts, "cells", "[sex job]")["sex", "job"])
    assert isinstance(noise.law, DiscreteLaplace)
    assert (noise.terms == 1).all()


def test_a_margin_of_measured_cells_holds_as_many_draws_as_cells(counts):
    noise = noise_of(released(TWO_WAY, counts, "cells", "[sex job][sex]")["sex"])
    assert noise.terms.tolist() == [3, 3]
    assert noise.standard_deviations.tolist() == pytest.approx([(3 * noise.law.variance) ** 0.5] * 2)


def test_an_impossible_cell_is_exact():
    noise = noise_of(released(HOLED, [[3, 0], [5, 6]], "cells", "[age job]")["age", "job"])
    assert noise.terms.tolist() == [[1, 0], [1, 1]]
    assert noise_of(tb.Table(HOLED, [[3, 0], [5, 6]]), DiscreteLaplace(2)).terms.tolist() == [[1, 0], [1, 1]]


def test_a_turned_table_states_its_noise_turned():
    table = released(HOLED, [[3, 0], [5, 6]], "cells", "[age job]")["job", "age"]
    assert noise_of(table).terms.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize("mechanism", ["residual", "efron-stein"])
def test_a_table_of_a_linear_mechanism_states_a_covariance(counts, mechanism):
    table = released(TWO_WAY, counts, mechanism, "[sex job]", reconstruct="none")["sex", "job"]
    noise = noise_of(table)
    assert isinstance(noise, CorrelatedNoise)
    assert noise.standard_deviations == pytest.approx(table.standard_errors)
    assert np.abs(noise.covariance - np.diag(np.diag(noise.covariance))).max() > 0
    # What a redrawn table gets is the same noise, with the law of the draws.
    zeros, entropy = np.zeros((2, 3), dtype=np.int64), SeededEntropy(2)
    drawn = np.array([noise.released(zeros, entropy).reshape(-1) for _ in range(4_000)])
    assert np.cov(drawn.T) == pytest.approx(noise.covariance, abs=0.1 * noise.covariance.max())


def test_a_perturbed_table_states_the_noise_that_was_added():
    table = Laplace(0.5, bound=5).apply(tb.Table(TWO_WAY, np.full((2, 3), 9)))
    noise = noise_of(table)
    assert noise.law == Truncated(DiscreteLaplace(2), 5)
    assert noise.minimum is None
    assert noise_of(table.transpose(["job", "sex"])).law == noise.law


def test_a_perturbed_table_with_a_minimum_says_so():
    table = Laplace(0.5).apply(tb.Table(TWO_WAY, np.full((2, 3), 1)), minimum=0)
    assert noise_of(table).minimum == 0


def test_a_law_that_depends_on_the_count_is_kept_whole():
    law = Custom([{0: 1}, {-1: "1/4", 0: "1/2", 1: "1/4"}])
    noise = noise_of(law.apply(tb.Table(TWO_WAY, np.full((2, 3), 9))))
    assert noise.law is law
    assert noise.standard_deviations == pytest.approx(np.full((2, 3), 0.5**0.5))


def test_the_noise_of_a_table_is_that_of_its_unbiased_face_whatever_was_published(counts):
    linear = released(TWO_WAY, counts, "cells", "[sex job]", reconstruct="none")["sex", "job"]
    shrunk = StatedErrors(np.ones((2, 3)), np.ones((2, 3)))
    official = tb.ReleasedTable(tb.Table(TWO_WAY, np.maximum(linear.counts, 0)), shrunk, linear)
    assert noise_of(official).law == noise_of(linear).law
    assert noise_of(official).terms.tolist() == noise_of(linear).terms.tolist()


def test_a_published_face_alone_says_where_the_other_one_is():
    table = tb.Table(TWO_WAY, np.full((2, 3), 5.5))
    shaped = tb.ReleasedTable(table, StatedErrors(np.ones((2, 3)), np.ones((2, 3))))
    with pytest.raises(InvalidNoise, match="no unbiased face"):
        noise_of(shaped)


@pytest.mark.parametrize(
    "ask", [tb.infer.independence, tb.infer.search, lambda table: tb.infer.interval(table, {"sex": "F"})]
)
def test_a_table_with_totals_is_refused_because_it_counts_people_twice(ask):
    plan = tb.plan(TWO_WAY, "[sex job]", privacy=tb.PureDP(1), mechanism="cells")
    totalled = with_totals(tb.release(tb.Table(TWO_WAY, np.full((2, 3), 50)), plan), ("sex", "job"))
    with pytest.raises(InvalidTable, match=r"give its \.table"):
        ask(totalled)
    ask(totalled.table)


def test_shared_noise_that_nobody_described_is_refused():
    errors = CellErrors(DiscreteLaplace(3), np.full((2, 3), 4), 0.25)
    with pytest.raises(InvalidNoise, match="naive"):
        noise_of(tb.ReleasedTable(tb.Table(TWO_WAY, np.full((2, 3), 5.5)), errors))


def test_a_bare_table_needs_its_noise_said(counts):
    with pytest.raises(InvalidNoise, match="naive"):
        noise_of(tb.Table(TWO_WAY, counts))


def test_a_released_table_takes_no_other_noise(counts):
    table = released(TWO_WAY, counts, "cells", "[sex job]")["sex", "job"]
    with pytest.raises(InvalidNoise, match="states its own"):
        noise_of(table, DiscreteLaplace(1))


def test_a_law_may_be_given_as_a_law_a_perturbation_or_a_description():
    assert law_given(Laplace("1/2")) == law_given({"family": "discrete-laplace", "scale": "2"})
    assert law_given(DiscreteGaussian(4)) == DiscreteGaussian(4)
    with pytest.raises(InvalidNoise, match="a law on the integers, not str"):
        law_given("laplace")


def test_noise_of_another_shape_is_refused(counts):
    noise = IndependentNoise(DiscreteLaplace(1), np.ones((3, 2), dtype=np.int64))
    with pytest.raises(InvalidNoise, match="cells"):
        noise_of(tb.Table(TWO_WAY, counts), noise)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidNoise, match="negative"):
        IndependentNoise(DiscreteLaplace(1), np.array([-1]))
    with pytest.raises(InvalidNoise, match="once"):
        IndependentNoise(Custom({0: 1}), np.array([2]))
    with pytest.raises(InvalidNoise, match="minimum"):
        IndependentNoise(DiscreteLaplace(1), np.array([2]), 0)


@pytest.mark.parametrize(
    ("covariance", "reason"),
    [
        (np.eye(3), "a table of 2 × 2 finite numbers"),
        ([[1.0, 2.0], [0.0, 1.0]], "a covariance must be symmetric"),
        ([[-1.0, 0], [0, 1]], "its variances must not be negative"),
        ([[np.nan, 0], [0, 1]], "a table of 2 × 2 finite numbers"),
    ],
)
def test_what_is_no_covariance_of_two_cells_is_refused(covariance, reason):
    with pytest.raises(InvalidNoise, match=reason):
        CorrelatedNoise(np.array(covariance), (2,))


def test_counts_that_are_not_whole_were_changed_after_their_noise():
    assert whole_counts([1.0, 2.0]).dtype == np.int64
    with pytest.raises(InvalidTable, match="as it was released"):
        whole_counts([1.5])


def test_fresh_noise_has_the_variance_of_its_terms_and_leaves_exact_cells_alone():
    noise = IndependentNoise(DiscreteLaplace(4), np.array([0, 1, 5]))
    entropy = SeededEntropy(2)
    drawn = np.array([noise.released(np.array([7, 7, 7]), entropy) for _ in range(4_000)])
    assert (drawn[:, 0] == 7).all()
    # Six standard errors of a variance with excess kurtosis 3.
    assert drawn[:, 1:].var(axis=0) / noise.law.variance == pytest.approx([1, 5], rel=6 * (5 / 4_000) ** 0.5)
    assert drawn.mean(axis=0) == pytest.approx([7, 7, 7], abs=6 * (5 * noise.law.variance / 4_000) ** 0.5)


def test_fresh_noise_of_a_law_that_depends_on_the_count_is_drawn_by_its_row():
    law = Custom([{0: 1}, {1: 1}])
    noise = IndependentNoise(law, np.array([1, 1, 0]))
    assert noise.released(np.array([0, 5, 5]), SeededEntropy(1)).tolist() == [0, 6, 5]


def test_fresh_noise_is_raised_to_the_minimum():
    noise = IndependentNoise(Tabulated(-3, (1,)), np.array([1, 1, 0]), 0)
    assert noise.released(np.array([1, 5, 2]), SeededEntropy(1)).tolist() == [0, 2, 2]


def test_exact_counts_have_noise_without_draws():
    assert not IndependentNoise.none((2, 3)).standard_deviations.any()
    assert Fraction(IndependentNoise.none((1,)).law.variance) == 0
