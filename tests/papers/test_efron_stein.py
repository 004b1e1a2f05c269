"""Yang, Fienberg & Rinaldo, Table 2 and Theorem 2: the Efron–Stein terms, their examples and their noise."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tabulary as tb
from tabulary import datasets
from tabulary.core import basis
from tabulary.core.neighbours import Neighbours
from tabulary.noise import ExactSampler
from tabulary.planning import ContrastMap, MarginMap
from tabulary_papers.published import published_efron_stein, published_fourier, published_sensitivity
from tabulary_papers.redundant import RedundantMap, exact_redundant_sensitivity
from tests.entropy import SeededEntropy

JOURNEY = datasets.load("journey-to-work")
ALL_PAIRS = tb.Workload.parse("[AB][AC][BC]", JOURNEY.domain)


def conditional(shape, axes):
    """The vectors v of the paper, one a cell of the margin: the law of X given its coordinates on `axes`."""
    margins = MarginMap(shape, (axes,))
    others = math.prod(shape) // margins.size
    return [(margins.adjoint(unit) / others).reshape(-1).tolist() for unit in np.eye(margins.size)]


def components(shape, axes):
    """The vectors f^{S,x_S} of the paper, one a cell of the margin of S."""
    terms = RedundantMap(shape, (axes,))
    return [(terms.adjoint(unit) / math.prod(shape)).reshape(-1).tolist() for unit in np.eye(terms.size)]


def test_example_3_conditions_a_table_of_3_by_2_by_2_on_its_first_attribute():
    quarters = [0.25] * 4
    assert conditional((3, 2, 2), (0,)) == [
        [*quarters, *[0] * 8],
        [*[0] * 4, *quarters, *[0] * 4],
        [*[0] * 8, *quarters],
    ]


def test_example_3_conditions_a_cube_on_its_last_two_attributes():
    assert conditional((2, 2, 2), (1, 2)) == [
        [0.5, 0, 0, 0, 0.5, 0, 0, 0],
        [0, 0.5, 0, 0, 0, 0.5, 0, 0],
        [0, 0, 0.5, 0, 0, 0, 0.5, 0],
        [0, 0, 0, 0.5, 0, 0, 0, 0.5],
    ]


def test_example_3_takes_the_mean_out_of_the_last_attribute():
    assert conditional((2, 2, 2), ()) == [[1 / 8] * 8]
    assert conditional((2, 2, 2), (2,)) == [[0.25, 0] * 4, [0, 0.25] * 4]
    up, down = [1 / 8, -1 / 8] * 4, [-1 / 8, 1 / 8] * 4
    assert components((2, 2, 2), (2,)) == [up, down]


def test_on_another_attribute_a_component_has_expectation_zero():
    # The second condition of Definition 2, as Example 3 checks it.
    for vector in components((2, 2, 2), (2,)):
        cube = np.reshape(vector, (2, 2, 2))
        assert cube.mean(axis=(1, 2)).tolist() == [0, 0]


def test_example_4_on_binary_tables_the_terms_are_the_fourier_coefficients_with_signs():
    counts = np.random.default_rng(4).integers(0, 20, (2, 2, 2)).astype(float)
    coefficients = basis.contrasts(counts)
    for place in product((0, 1), repeat=3):
        axes = tuple(axis for axis, bit in enumerate(place) if bit)
        terms = RedundantMap(counts.shape, (axes,)).forward(counts).reshape((2,) * len(axes))
        for x in np.ndindex(terms.shape):
            # ⟨f, χ⟩χ(x), both sides times 2^3.
            assert terms[x] == coefficients[place] * (-1) ** sum(x)


def test_a_matching_entry_is_larger_than_the_proof_of_theorem_2_allows():
    entries = np.abs(components((4, 4, 16), (0, 2))[0]) * 256
    assert entries.max() == 3 * 15
    assert entries.min() == 1


def test_the_noise_as_published_has_the_scales_of_table_8():
    scales = [published_efron_stein(JOURNEY, ALL_PAIRS, e).published_scale for e in ("1/100", 1, 2)]
    assert [round(scale, 2) for scale in scales] == [132.03, 1.32, 0.66]


def test_the_sensitivity_of_journey_to_work_is_larger_than_published():
    assert published_sensitivity(ALL_PAIRS, "YFR Table 2") / 256 == Fraction("1.3203125")
    added = exact_redundant_sensitivity(ALL_PAIRS, Neighbours("add-remove")) / 256
    replaced = exact_redundant_sensitivity(ALL_PAIRS, Neighbours("replace")) / 256
    assert float(added) == pytest.approx(1.71484, abs=5e-6)
    assert replaced == Fraction("2.625")


@pytest.mark.parametrize(("relation", "factor"), [("add-remove", "1.30"), ("replace", "1.99")])
def test_noise_at_the_published_scale_is_not_what_its_label_says(relation, factor):
    found = published_efron_stein(JOURNEY, ALL_PAIRS, 1, neighbours=relation)
    assert found.statement == f"labelled ε = 1, really ε = {factor} for {relation} neighbours"
    exact = published_efron_stein(JOURNEY, ALL_PAIRS, 1, neighbours=relation, calibration="exact")
    assert exact.noise.scale == found.noise.scale * found.true_epsilon
    assert exact.true_epsilon == 1


@pytest.mark.parametrize("name", ["fungus", "autoworkers", "rochdale"])
def test_on_binary_tables_theorem_2_over_protects_as_table_1_does(name):
    found = datasets.describe(name)
    for relation in ("add-remove", "replace"):
        by_terms = published_efron_stein(found.table, found.model, 1, neighbours=relation)
        assert by_terms.true_epsilon <= 1
    added = published_efron_stein(found.table, found.model, 1)
    assert added.true_epsilon == published_fourier(found.table, found.model, 1).true_epsilon == Fraction(1, 2)


def test_journey_to_work_has_169_noisy_terms_of_rank_121_and_as_many_coefficients():
    terms = published_efron_stein(JOURNEY, ALL_PAIRS, 1).linear_map
    rows = np.array([terms.adjoint(unit).reshape(-1) for unit in np.eye(terms.size)])
    assert terms.size == 169
    assert np.linalg.matrix_rank(rows) == 121
    axes = tuple(tuple(JOURNEY.domain.position(a) for a in s) for s in ALL_PAIRS.closure())
    assert ContrastMap(JOURNEY.shape, axes).size == 121
    plan = tb.plan(
        JOURNEY.domain, ALL_PAIRS, privacy=tb.PureDP(1), mechanism="efron-stein", reconstruct="none"
    )
    assert sum(math.prod(plan.shape_of(part)) for part in plan.measured) == 121


@pytest.mark.parametrize("epsilon", [1, 1000])
def test_redundant_terms_contradict_each_other_whatever_the_noise(epsilon):
    sampler = ExactSampler(SeededEntropy(6))
    found = published_efron_stein(JOURNEY, ALL_PAIRS, epsilon, sampler=sampler).solve()
    assert not found.program.feasible
    assert found.program.lower_bound > 0
    assert found.b > 0
    # Even tables with negative cells cannot have these terms: they do not lie in the range of the map.
    terms = found.measurement.linear_map
    rows = np.array([terms.adjoint(unit).reshape(-1) for unit in np.eye(terms.size)])
    noisy = found.measurement.values.astype(float)
    nearest = rows @ np.linalg.lstsq(rows, noisy, rcond=None)[0]
    assert np.abs(nearest - noisy).max() > 0.1


def test_the_basis_without_redundancy_has_a_table_for_any_noise():
    axes = tuple(tuple(JOURNEY.domain.position(a) for a in s) for s in ALL_PAIRS.closure())
    contrasts = ContrastMap(JOURNEY.shape, axes)
    noisy = contrasts.forward(JOURNEY.counts.astype(float)) + np.arange(121) % 7 - 3
    rows = np.array([contrasts.adjoint(unit).reshape(-1) for unit in np.eye(121)])
    nearest = rows @ np.linalg.lstsq(rows, noisy, rcond=None)[0]
    assert nearest == pytest.approx(noisy, abs=1e-8)
