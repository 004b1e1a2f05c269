"""The test of independence: its statistics against peers, its degrees of freedom, and what it does with odd tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidNoise, InvalidTable
from tabulary.infer import CorrelatedNoise, IndependentNoise, TestResult, independence
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.independence import two_way_design
from tabulary.infer.likelihood import NoisyCells, fit_log_linear
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, Truncated
from tabulary.perturb import Hellinger, Laplace, MaxEntropy, Normal
from tests.entropy import SeededEntropy


def table_of(counts, structural_zeros=()):
    counts = np.asarray(counts)
    levels = {name: [str(i) for i in range(side)] for name, side in zip("ab", counts.shape, strict=True)}
    return tb.Table(tb.Domain(levels, structural_zeros), counts)


positive_tables = st.integers(2, 5).flatmap(
    lambda rows: st.lists(st.lists(st.integers(1, 90), min_size=3, max_size=3), min_size=rows, max_size=rows)
)


@given(positive_tables)
def test_the_naive_statistics_are_those_of_scipy(counts):
    for statistic, name in (("x2", None), ("g2", "log-likelihood")):
        found = independence(table_of(counts), "naive", statistic=statistic)
        peer = stats.chi2_contingency(counts, correction=False, lambda_=name)
        assert found.statistic == pytest.approx(peer.statistic, rel=1e-9, abs=1e-9)
        assert found.degrees_of_freedom == peer.dof
        assert found.p_value == pytest.approx(peer.pvalue, rel=1e-9)


@settings(max_examples=30)
@given(positive_tables)
def test_without_noise_the_aware_statistic_is_g2(counts):
    table = table_of(counts)
    exact = independence(table, noise=IndependentNoise.none(table.shape))
    assert exact.statistic == pytest.approx(independence(table, "naive").statistic, abs=1e-7)


def test_with_noise_of_no_width_the_aware_statistic_is_g2():
    table = table_of([[12, 30, 41], [25, 18, 33]])
    quiet = independence(table, noise=DiscreteLaplace("1/50"))
    assert quiet.statistic == pytest.approx(independence(table, "naive").statistic, abs=1e-6)


def test_with_large_counts_the_reference_law_is_chi_squared():
    table = table_of([[1_000_300, 1_000_000], [999_100, 1_001_500]])
    found = independence(table, noise=DiscreteLaplace(3))
    assert found.p_value == pytest.approx(upper_tail(found.statistic, 1), rel=0.01)


def test_the_aware_statistic_is_the_ratio_of_two_maximised_likelihoods():
    counts = np.array([[61, 40, 75], [52, 66, 20], [33, 38, 47]])
    law = Truncated(DiscreteLaplace(10), 10)
    cells = NoisyCells(counts.reshape(-1), IndependentNoise(law, np.ones(9, dtype=np.int64)))
    null = fit_log_linear(cells, two_way_design((3, 3))).log_likelihood
    found = independence(table_of(counts), noise=Laplace("1/10", bound=10))
    assert found.statistic == pytest.approx(2 * (cells.saturated()[1].sum() - null), abs=1e-8)
    assert found.degrees_of_freedom == 4


def test_noise_that_looks_like_association_fools_the_naive_test_and_not_the_aware_one():
    """Independent counts behind Laplace noise without a bound, which is wider than their own spread."""
    means = np.exp(4 + np.linspace(-0.5, 0.5, 8)[:, None] + np.linspace(-0.5, 0.5, 8))
    law = DiscreteLaplace(10)
    counts = np.random.default_rng(3).poisson(means) + law.sample((8, 8), SeededEntropy(3))
    naive, aware = independence(table_of(counts), "naive"), independence(table_of(counts), noise=law)
    assert naive.rejects(0.001)
    assert not aware.rejects(0.05)


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteLaplace(10),
        DiscreteGaussian(100),
        Truncated(DiscreteLaplace(10), 10),
        Normal("1/10", bound=10),
        {"family": "rounded-gaussian", "variance_parameter": "100"},
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_a_strong_association_is_found_behind_every_noise(noise):
    table = table_of([[240, 35, 20], [30, 260, 25], [15, 40, 230]])
    found = independence(table, noise=noise)
    assert found.p_value < 1e-6
    assert found.method == "noise-aware"


def test_a_perturbation_whose_law_never_settles_is_tested_against_chi_squared_and_says_so():
    found = independence(table_of([[15, 3], [2, 11]]), noise=Hellinger(8))
    assert found.p_value == pytest.approx(upper_tail(found.statistic, 1))
    assert any("χ²" in sentence for sentence in found.assumed)


@pytest.mark.parametrize(
    "law",
    [MaxEntropy(2, bound=5, nonnegative=True), MaxEntropy(2, bound=5, nonnegative=True, js=2), Laplace(1)],
    ids=["never negative", "no ones and twos", "raised to zero"],
)
def test_perturbed_tables_that_publish_no_negative_value_are_tested_by_their_own_law(law):
    counts = np.array([[0, 3, 14], [9, 0, 21], [30, 12, 1]])
    minimum = 0 if isinstance(law, Laplace) else None
    published = law.apply(table_of(counts), minimum=minimum, sampler=ExactSampler(SeededEntropy(8)))
    found = independence(published)
    assert found.degrees_of_freedom == 4
    assert found.p_value < 0.001


def test_fifty_by_fifty_cells_behind_unbounded_laplace_noise_have_an_answer():
    generator = np.random.default_rng(9)
    means = np.exp(4 + generator.uniform(-0.5, 0.5, (50, 1)) + generator.uniform(-0.5, 0.5, 50))
    counts = generator.poisson(means) + DiscreteLaplace(10).sample((50, 50), SeededEntropy(9))
    found = independence(table_of(counts), noise=DiscreteLaplace(10))
    assert found.degrees_of_freedom == 49 * 49
    assert 0.001 < found.p_value <= 1


# Structural zeros and empty levels.


def test_impossible_cells_take_their_degrees_of_freedom_along():
    counts = [[0, 40, 31], [25, 0, 18], [44, 37, 0]]
    zeros = [{"a": str(i), "b": str(i)} for i in range(3)]
    table = table_of(counts, zeros)
    # Six cells, five parameters: the incidence of rows and columns hangs together.
    assert independence(table, "naive").degrees_of_freedom == 1
    assert independence(table, noise=DiscreteLaplace(2)).degrees_of_freedom == 1


def test_impossible_cells_that_cut_a_table_in_two_leave_each_block_its_own_freedom():
    counts = np.zeros((4, 4), dtype=np.int64)
    counts[:2, :2] = [[30, 20], [25, 41]]
    counts[2:, 2:] = [[18, 33], [29, 24]]
    zeros = [{"a": ["0", "1"], "b": ["2", "3"]}, {"a": ["2", "3"], "b": ["0", "1"]}]
    table = table_of(counts, zeros)
    naive, aware = independence(table, "naive"), independence(table, noise=DiscreteLaplace("1/50"))
    blocks = sum(
        independence(table_of(block), "naive").statistic for block in (counts[:2, :2], counts[2:, 2:])
    )
    assert naive.degrees_of_freedom == aware.degrees_of_freedom == 2
    assert naive.statistic == pytest.approx(blocks, rel=1e-9)
    assert aware.statistic == pytest.approx(blocks, abs=1e-6)


def test_quasi_independence_of_exact_counts_is_the_same_by_both_ways():
    counts = [[0, 40, 31, 9], [25, 12, 18, 22], [44, 37, 0, 16]]
    table = table_of(counts, [{"a": "0", "b": "0"}, {"a": "2", "b": "2"}])
    naive = independence(table, "naive")
    aware = independence(table, noise=IndependentNoise.none(table.shape))
    assert naive.degrees_of_freedom == aware.degrees_of_freedom == 4
    assert aware.statistic == pytest.approx(naive.statistic, abs=1e-7)


def test_a_level_that_is_impossible_altogether_is_left_out():
    counts = [[20, 30, 0], [40, 25, 0]]
    table = table_of(counts, [{"b": "2"}])
    smaller = table_of([[20, 30], [40, 25]])
    for options in ({"method": "naive"}, {"noise": DiscreteLaplace(3)}):
        found, peer = independence(table, **options), independence(smaller, **options)
        assert found.degrees_of_freedom == peer.degrees_of_freedom == 1
        assert found.statistic == pytest.approx(peer.statistic, abs=1e-9)
        assert found.p_value == pytest.approx(peer.p_value, abs=1e-9)


def test_a_naive_row_of_zeros_is_left_out():
    found = independence(table_of([[20, 30], [0, 0], [40, 25]]), "naive")
    peer = independence(table_of([[20, 30], [40, 25]]), "naive")
    assert found.degrees_of_freedom == 1
    assert found.statistic == pytest.approx(peer.statistic)


def test_a_row_that_is_estimated_as_empty_is_left_out_and_said():
    noise = DiscreteLaplace(2)
    found = independence(table_of([[120, 130], [-9, -7], [140, 125]]), noise=noise)
    peer = independence(table_of([[120, 130], [140, 125]]), noise=noise)
    assert found.degrees_of_freedom == 1
    assert found.statistic == pytest.approx(peer.statistic, abs=1e-5)
    assert any("empty" in sentence for sentence in found.assumed)


def test_a_released_row_of_zeros_is_data_and_not_absence():
    found = independence(table_of([[20, 30, 25], [0, 0, 0], [40, 25, 33]]), noise=DiscreteLaplace(3))
    assert 0 < found.p_value <= 1


@pytest.mark.parametrize(
    "options", [{"method": "naive"}, {"noise": DiscreteLaplace(3)}], ids=["naive", "aware"]
)
@pytest.mark.parametrize("counts", [[[4, 7, 2]], [[4], [9]], [[3]], [[0, 0], [0, 0]]])
def test_what_cannot_depend_on_anything_has_no_freedom_and_a_p_value_of_one(counts, options):
    found = independence(table_of(counts), **options)
    if found.degrees_of_freedom == 0:
        assert (found.statistic, found.p_value) == (0.0, 1.0)
    else:
        assert counts == [[0, 0], [0, 0]]
    assert 0 <= found.p_value <= 1


def test_negative_counts_are_zero_to_the_naive_test_which_says_so():
    table = table_of([[20, -3], [14, 9]])
    found = independence(table, "naive")
    assert found.statistic == independence(table_of([[20, 0], [14, 9]]), "naive").statistic
    assert any("negative" in sentence for sentence in found.assumed)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(-40, 60), min_size=3, max_size=3), min_size=2, max_size=4))
def test_no_table_gives_a_statistic_that_is_not_a_number(counts):
    for options in ({"method": "naive"}, {"noise": DiscreteLaplace(10)}, {"noise": DiscreteGaussian(25)}):
        found = independence(table_of(counts), **options)
        assert np.isfinite(found.statistic)
        assert found.statistic >= 0
        assert 0 <= found.p_value <= 1


@settings(max_examples=20)
@given(positive_tables, st.randoms(use_true_random=False))
def test_the_order_of_the_levels_and_of_the_attributes_does_not_matter(counts, random):
    array = np.array(counts)
    rows, columns = list(range(array.shape[0])), list(range(3))
    random.shuffle(rows)
    random.shuffle(columns)
    first = independence(table_of(array), noise=DiscreteLaplace(4))
    for other in (array[rows][:, columns], array.T):
        second = independence(table_of(other), noise=DiscreteLaplace(4))
        assert second.statistic == pytest.approx(first.statistic, abs=1e-6)
        assert second.p_value == pytest.approx(first.p_value, abs=1e-6)


# Shared noise.


def test_a_diagonal_covariance_is_weighed_as_independent_gaussian_noise():
    counts = np.array([[610, 402, 755], [523, 660, 204], [335, 388, 470]])
    noise = CorrelatedNoise(100 * np.eye(9), (3, 3))
    shared = independence(table_of(counts), noise=noise)
    own = independence(table_of(counts), noise=DiscreteGaussian(100))
    assert shared.degrees_of_freedom == own.degrees_of_freedom == 4
    # Two approximations of one deviance: Pearson's and the likelihood's.
    assert shared.statistic == pytest.approx(own.statistic, rel=0.15)


def test_noise_that_all_cells_share_is_no_association():
    """The same draw in every cell: an error of 40 that independent noise would count nine times."""
    means = np.full((3, 3), 400.0)
    noise = CorrelatedNoise(np.full((9, 9), 1600.0), (3, 3))
    found = independence(table_of(np.rint(means + 40).astype(np.int64)), noise=noise)
    assert found.statistic == pytest.approx(0, abs=1e-6)
    assert any("share" in sentence for sentence in found.assumed)


def test_a_linear_release_is_tested_with_its_own_covariance():
    domain = tb.Domain({"a": range(4), "b": range(3)})
    plan = tb.plan(domain, "[a b]", privacy=tb.PureDP(1), mechanism="residual", reconstruct="none")
    counts = np.outer([400, 300, 200, 100], [0.5, 0.3, 0.2]).astype(np.int64)
    released = tb.release(tb.Table(domain, counts), plan, sampler=ExactSampler(SeededEntropy(4)))
    found = independence(released["a", "b"])
    assert found.degrees_of_freedom == 6
    assert found.p_value > 0.001
    turned = independence(released["b", "a"])
    assert turned.statistic == pytest.approx(found.statistic, abs=1e-6)


# What is refused.


def test_a_table_of_three_attributes_is_refused():
    with pytest.raises(InvalidTable, match="two attributes"):
        independence(
            tb.Table(tb.Domain({"a": "xy", "b": "xy", "c": "xy"}), np.ones((2, 2, 2), dtype=np.int64))
        )


def test_a_table_without_a_word_on_its_noise_is_refused():
    with pytest.raises(InvalidNoise, match="naive"):
        independence(table_of([[1, 2], [3, 4]]))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "exact"}, "the methods of a test are .* not 'exact'"),
        ({"statistic": "x3"}, "the statistic must be 'g2', or 'x2' with"),
        ({"statistic": "x2"}, "the statistic must be 'g2', or 'x2' with"),
    ],
)
def test_an_unknown_option_is_refused(options, reason):
    with pytest.raises(InvalidArgument, match=reason):
        independence(table_of([[1, 2], [3, 4]]), noise=DiscreteLaplace(1), **options)


def test_a_result_is_never_without_a_number():
    with pytest.raises(InvalidTable, match="finite"):
        TestResult("independence", float("nan"), 3, 0.5, "naive")
    with pytest.raises(InvalidTable, match="finite"):
        TestResult("independence", float("inf"), 3, 0.0, "naive")
    with pytest.raises(InvalidTable, match="freedom"):
        TestResult("independence", 0.0, -1, 1.0, "naive")


def test_a_result_reads_as_a_sentence():
    found = TestResult("independence", 12.5, 6, 0.0517, "naive")
    assert str(found) == "independence, naive: statistic 12.50 on 6 degrees of freedom, p = 0.0517"
    assert not found.rejects()
