"""The numbers that Rinott, O'Keefe, Shlomo & Skinner (2018) print of perturbed counts."""

import math

import numpy as np
import pytest

from tabulary.perturb import Laplace, MaxEntropy, Normal, match_delta
from tabulary_papers.perturbation import printed


@pytest.mark.parametrize(("law", "block"), printed.TABLE_2.items(), ids=map(str, printed.TABLE_2))
def test_table_2_is_what_the_rows_say_once_negatives_are_zero(law, block):
    for original, line in enumerate(np.array(block.split(), dtype=float).reshape(6, 5)):
        row = law.row(original).at_least(0)
        distance = np.abs(row.values - original)
        found = [row.probabilities[distance <= reach].sum() for reach in range(5)]
        assert [f"{p:.2f}" for p in found] == [f"{p:.2f}" for p in line]


def test_from_five_on_no_range_of_table_2_reaches_a_negative_value():
    for law in printed.TABLE_2:
        for original in (5, 6, 100):
            row = law.row(original).at_least(0)
            near = np.abs(row.values - original) <= 4
            assert row.probabilities[near].sum() == pytest.approx(law.pmf(range(-4, 5)).sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("law", "printed"),
    [
        # Section 5.1.
        (Laplace(1, bound=10), "0.00002"),
        # Section 5.2.
        (Normal(1, bound=10), "0.001"),
        (Normal(0.5, bound=10), "0.008"),
        # Section 5.5 and the heads of Table 2.
        (Laplace(1.5, bound=7), "0.00002"),
        (Normal(1.5, bound=12), "0.00002"),
        (Laplace(0.5, bound=7), "0.008"),
        # Table 3.
        (Laplace(0.1, bound=10), "0.0283"),
        (Laplace(0.1, bound=7), "0.0470"),
        (Laplace(0.5, bound=10), "0.0017"),
        (Laplace(0.5, bound=7), "0.0076"),
        # Section 6.2.
        (Laplace(0.5, bound=5), "0.02"),
        (Laplace(0.5, bound=10), "0.00166"),
    ],
    ids=str,
)
def test_printed_deltas_are_the_outermost_probabilities(law, printed):
    digits = len(printed.split(".")[1])
    assert f"{law.truncation_delta:.{digits}f}" == printed
    assert law.delta == pytest.approx(law.truncation_delta, rel=1e-12)


def test_one_printed_delta_is_cut_and_not_rounded():
    """Section 5.1 prints 0.0016 of what section 6.2 prints as 0.00166 and Table 3 as 0.0017."""
    assert math.floor(Laplace(0.5, bound=10).delta * 10**4) == 16


def test_the_six_bounds_of_normal_perturbation_at_the_delta_of_laplace():
    """Section 5.6.2: Laplace at ±7 for six ε."""
    printed = {0.1: 8, 0.5: 10, 1.0: 12, 1.5: 12, 2.0: 13, 3.0: 14}
    found = {epsilon: match_delta(Laplace(epsilon, bound=7), family=Normal).bound for epsilon in printed}
    assert found == printed


def test_delta_falls_as_the_bound_grows():
    """Section 5.1."""
    for family in (Laplace, Normal):
        deltas = [family(0.5, bound=m).delta for m in range(1, 30)]
        assert deltas == sorted(deltas, reverse=True)
        assert len(set(deltas)) == len(deltas)


def test_normal_perturbation_has_nearly_the_largest_entropy_of_its_range_and_variance():
    """Section 5.3: approximately for a discretised law. Truncated as in (5.3), it is exactly so."""
    for law in (Normal(1.5, bound=12), Normal(0.5, bound=10)):
        largest = MaxEntropy(law.variance(), law.bound)
        assert law.entropy(0) == pytest.approx(largest.entropy(0), rel=1e-10)
    laplace = Laplace(0.5, bound=7)
    assert laplace.entropy(0) < MaxEntropy(laplace.variance(), 7).entropy(0) - 0.03


def test_an_unbiased_law_without_negative_values_hides_no_zero():
    """Section 4.5: p(0, 0) = 1, so δ is at least P(M(1) = 1), and every other positive value adds to it."""
    law = MaxEntropy(2, bound=7, nonnegative=True)
    assert law.transition(0, 0) == 1
    assert law.delta_at(3) >= law.transition(1, 1) > 0.1
    assert law.delta_at(3) == pytest.approx(1 - law.transition(1, 0), rel=1e-9)


def test_replacing_negative_values_by_zero_improves_every_loss():
    """Section 5.6.1."""
    for law in (Laplace(0.5, bound=7), Normal(0.5, bound=10)):
        for original in range(law.bound):
            for loss in ("l1", "l2"):
                assert law.expected_loss(loss, original, minimum=0) < law.expected_loss(loss, original)


def test_laplace_loses_less_than_normal_at_the_same_delta_even_in_the_squared_loss():
    """Section 5.6.2, on the paper's Table 1, for all six ε and all three losses."""
    from tabulary import datasets

    table = datasets.load("uk-census")
    for epsilon in (0.1, 0.5, 1.0, 1.5, 2.0, 3.0):
        laplace = Laplace(epsilon, bound=7)
        normal = match_delta(laplace, family=Normal)
        for loss in ("l1", "l2", "l3"):
            lost = [law.expected_loss(loss, table, minimum=0) for law in (laplace, normal)]
            assert lost[0] < lost[1]
            assert math.isfinite(lost[1])


def test_every_delta_that_the_study_quotes_is_that_of_its_law():
    for law, delta in printed.PRINTED_DELTAS.items():
        assert f"{law.delta:.{len(delta) - 2}f}" == delta
