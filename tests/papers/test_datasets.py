"""The facts that the papers state about their tables, and the ones that pin the order of the axes."""

import numpy as np
import pytest

from tabulary import datasets
from tabulary.core.workload import Workload


def nonzero(table):
    return np.count_nonzero(table.counts)


def test_fungus_has_70_offspring_in_22_of_64_cells():
    table = datasets.load("fungus")
    assert table.shape == (2,) * 6
    assert "".join(table.domain.attributes) == "ABCDEF"
    assert table.total == 70
    assert nonzero(table) == 22
    assert table["1", "2", "2", "2", "2", "2"] == 11


def test_autoworkers_are_1841_with_one_empty_cell():
    table = datasets.load("autoworkers")
    assert table.shape == (2,) * 6
    assert "".join(table.domain.attributes) == "ABCDEF"
    assert table.total == 1841
    assert nonzero(table) == 63
    # Printed in row F=2, E=2, D=2 and column C=1, B=1, A=2.
    assert table["2", "1", "1", "2", "2", "2"] == 0


def test_autoworkers_have_14_cells_of_1_to_5():
    counts = datasets.load("autoworkers").counts
    assert np.count_nonzero((counts >= 1) & (counts <= 5)) == 14


def test_rochdale_has_665_households_165_zeros_and_58_small_cells():
    table = datasets.load("rochdale")
    assert table.shape == (2,) * 8
    assert "".join(table.domain.attributes) == "ABCDEFGH"
    assert table.total == 665
    assert table.counts.size - nonzero(table) == 165
    assert np.count_nonzero((table.counts >= 1) & (table.counts <= 4)) == 58


def test_in_rochdale_most_husbands_work_and_few_families_are_of_asian_origin():
    table = datasets.load("rochdale")
    assert table.project("C")["yes"] == 79
    assert table.project("G")["yes"] == 54


def test_journey_to_work_has_2291_people_and_182_zeros():
    table = datasets.load("journey-to-work")
    assert table.shape == (4, 4, 16)
    assert "".join(table.domain.attributes) == "ABC"
    assert table.total == 2291
    assert table.counts.size - nonzero(table) == 182
    assert table["a", "c", "1"] == 243


def test_the_census_table_has_the_stated_total_chi_squared_and_cramers_v():
    table = datasets.load("uk-census")
    assert table.shape == (12, 11)
    assert table.domain.attributes == ("age", "occupation")
    assert table.total == 5784
    expected = np.outer(table.counts.sum(axis=1), table.counts.sum(axis=0)) / table.total
    chi_squared = ((table.counts - expected) ** 2 / expected).sum()
    assert chi_squared == pytest.approx(3839.05, abs=0.005)
    assert np.sqrt(chi_squared / (table.total * 10)) == pytest.approx(0.25763, abs=5e-6)
    assert table["70-74", "K"] == 307


def test_hair_eye_gene_has_the_printed_counts_and_margins():
    about = datasets.describe("hair-eye-gene")
    assert about.table.domain.attributes == ("eye", "hair")
    assert about.table.with_totals().tolist() == [
        [101, 23, 22, 146],
        [32, 95, 24, 151],
        [45, 38, 70, 153],
        [178, 156, 116, 450],
    ]
    assert about.table["blue", "blonde"] == 101
    assert about.table["brown", "black"] == 38


def test_hair_eye_gene_has_the_group_sizes_and_the_probability_of_each_hair_colour():
    about = datasets.describe("hair-eye-gene")
    assert about.people.domain == about.table.domain
    assert about.people.counts.tolist() == [[200, 80, 100], [80, 200, 100], [100, 100, 200]]
    assert about.probability.domain.attributes == ("hair",)
    assert about.probability["blonde"] == 0.5
    assert about.probability["black"] == 0.4
    assert about.probability["brown"] == 0.3
    assert (about.table.counts <= about.people.counts).all()
    # The counts are what such probabilities give: within four standard deviations in every cell.
    p = about.probability.counts
    deviation = (about.table.counts - about.people.counts * p) / np.sqrt(about.people.counts * p * (1 - p))
    assert abs(deviation).max() < 4


def fitted(counts, generators, *, tolerance=1e-8, rounds=20_000):
    """The maximum likelihood fit of a hierarchical log-linear model, by iterative proportional fitting."""
    fit = np.full(counts.shape, counts.sum() / counts.size)
    for _ in range(rounds):
        before = fit
        for generator in generators:
            summed = tuple(i for i in range(counts.ndim) if i not in generator)
            now, goal = fit.sum(axis=summed, keepdims=True), counts.sum(axis=summed, keepdims=True)
            fit = fit * np.divide(goal, now, out=np.zeros_like(now), where=now > 0)
        if abs(fit - before).max() < tolerance:
            break
    return fit


def goodness_of_fit(name, model):
    table = datasets.load(name)
    work = Workload.parse(model, table.domain)
    generators = [[table.domain.position(a) for a in margin] for margin in work]
    counts, seen = table.counts.astype(float), table.counts > 0
    fit = fitted(counts, generators)
    g2 = 2 * (counts[seen] * np.log(counts[seen] / fit[seen])).sum()
    parameters = sum(np.prod([table.shape[table.domain.position(a)] - 1 for a in m]) for m in work.closure())
    distance = abs(fit / counts.sum() - 1 / counts.size).sum()
    return g2, counts.size - parameters, distance


@pytest.mark.parametrize(
    ("name", "g2", "degrees_of_freedom", "distance"),
    [
        ("fungus", 17.26, 52, 1.34),
        ("autoworkers", 44.59, 42, 0.884),
        ("rochdale", 149.58, 226, 1.429),
        ("journey-to-work", 319.8, 135, 1.383),
    ],
)
def test_the_models_of_the_source_fit_as_recomputed(name, g2, degrees_of_freedom, distance):
    found = goodness_of_fit(name, datasets.describe(name).model)
    # The fit of journey-to-work lies on the boundary, where the iteration converges slowly.
    assert found[0] == pytest.approx(g2, abs=0.05 if name == "journey-to-work" else 0.005)
    assert found[1] == degrees_of_freedom
    assert found[2] == pytest.approx(distance, abs=0.005)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("fungus", "[AD][AB][BE][CE][CF]"),
        ("autoworkers", "[BF][ADE][ABCE]"),
        ("rochdale", "[ACE][ACG][ADG][BDH][BF][BE][CEF][CFG]"),
    ],
)
def test_the_fit_tells_the_right_order_of_the_axes_from_the_reverse(name, model):
    # The same model on the axes read backwards: a wrong order would not go unnoticed.
    letters = datasets.load(name).domain.attributes
    mirrored = model.translate(str.maketrans("".join(letters), "".join(reversed(letters))))
    right, wrong = goodness_of_fit(name, model), goodness_of_fit(name, mirrored)
    assert wrong[0] > right[0] + 10
