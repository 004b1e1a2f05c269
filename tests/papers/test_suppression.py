"""Nabar & Mishra, "Releasing Private Contingency Tables": the tables of section 6 and the refusal of section 5.1."""

import numpy as np
import pytest
from scipy import stats

import tabulary as tb
from tabulary.suppress.simulatable_method.decisions import FOLLOWS
from tabulary.suppress.simulatable_method.suppressor import NO_SAFE_BINNING
from tabulary_papers.datasets.carriers import carriers

GENE = tb.datasets.describe("hair-eye-gene")
LARGEST_FIRST = sorted(np.ndindex(3, 3), key=lambda cell: -GENE.people.counts[cell])


def figure_3(**options):
    return tb.suppress.simulatable(GENE.people, GENE.table, GENE.probability, 0.5, 0.2, **options)


@pytest.fixture(scope="module")
def computed():
    return figure_3()


def test_nothing_is_suppressed_in_figure_3(computed):
    assert not computed.suppressed.any()
    assert computed.counts.tolist() == [[101, 23, 22], [32, 95, 24], [45, 38, 70]]
    assert computed.sums["eye",].tolist() == [146, 151, 153]
    assert computed.sums["hair",].tolist() == [178, 156, 116]
    assert computed.sums[()] == 450
    assert (computed.deviations <= 0.5).all()
    assert tb.suppress.replay(computed).ok


def test_it_is_the_total_four_splits_and_four_cells_that_are_decided_the_rest_follows(computed):
    asked = [decision.asked for decision in computed.decisions if decision.reason != FOLLOWS]
    assert asked == [
        "the total",
        "eye: blue apart from black to brown",
        "eye: black apart from brown",
        "hair: blonde apart from black to brown",
        "hair: black apart from brown",
        "blue, blonde",
        "blue, black",
        "black, blonde",
        "black, black",
    ]
    assert {decision.limit for decision in computed.decisions} == {0.2 / 16}


def test_one_cell_of_figure_3_is_released_by_a_narrow_margin(computed):
    """Blue-eyed, black-haired: 0.0093 of all answers are unsafe, and δ/T is 0.0125.

    45 of the 180 people who are left in the row have the gene. 30 black-haired ones would leave 15 of 100 brown-haired
    ones, half of what was expected: that is ε, and safe. Were it not, 0.0257 would be unsafe.
    """
    [decision] = [d for d in computed.decisions if d.asked == "blue, black"]
    assert decision.released
    assert decision.unsafe == pytest.approx(unsafe_by_hand(0.5), rel=1e-6)
    assert decision.unsafe == pytest.approx(0.00934, abs=5e-6)
    assert unsafe_by_hand(0.4999) == pytest.approx(0.02572, abs=5e-6)


def test_a_little_less_and_that_cell_is_refused_until_it_follows_from_the_others():
    stricter = tb.suppress.simulatable(GENE.people, GENE.table, GENE.probability, "0.4999", 0.2)
    first, last = (d for d in stricter.decisions if d.asked == "blue, black")
    assert (first.released, first.unsafe) == (False, pytest.approx(0.02572, abs=5e-6))
    # The rest of its column is released, each cell safely: then a mark would hide nothing.
    assert (last.released, last.reason) == (True, FOLLOWS)
    assert not stricter.suppressed.any()


def unsafe_by_hand(epsilon):
    """How likely an unsafe number of blue-eyed black-haired carriers is, the sums and the 101 before it known.

    By adding up every table that agrees, with the binomial law of each cell. Of a cell with one prior, everyone's
    posterior is the mean count over the number of people.
    """
    people, prior = GENE.people.counts, GENE.probability.counts
    law = [
        [stats.binom.pmf(np.arange(n + 1), n, p) for n, p in zip(row, prior, strict=True)] for row in people
    ]
    weights, unsafe = [], []
    for black in range(46):
        brown = 45 - black
        total, means = 0.0, np.zeros((2, 3))
        for first in range(20, 58):
            a = np.arange(max(0, 56 - black), min(156 - black, 200) + 1)
            below = np.array(
                [
                    [np.full(a.size, first), a, 151 - first - a],
                    [np.full(a.size, 77 - first), 156 - black - a, 116 - brown - (151 - first - a)],
                ]
            )
            below = below[:, :, ((below >= 0) & (below <= people[1:, :, None])).all(axis=(0, 1))]
            weight = np.prod([[law[i + 1][j][below[i, j]] for j in range(3)] for i in range(2)], axis=(0, 1))
            total += weight.sum()
            means += below @ weight
        posterior = np.vstack([[101, black, brown], means / total]) / people
        weights.append(law[0][1][black] * law[0][2][brown] * total)
        unsafe.append((np.abs(posterior / prior - 1) > epsilon + 1e-9).any())
    return np.array(weights)[unsafe].sum() / sum(weights)


def test_with_the_sampling_counts_of_the_algorithms_nothing_is_suppressed_either():
    sampled = figure_3(rule="sampled", order=LARGEST_FIRST)
    assert not sampled.suppressed.any()
    drawn = [decision for decision in sampled.decisions if decision.reason != FOLLOWS]
    # (T/δ) ln(T/δ) and ½ ln(T/δ) with T/δ = 80.
    assert {(decision.draws, round(decision.limit, 3)) for decision in drawn} == {(351, 2.191)}


def test_in_the_order_of_rows_sampling_leaves_one_cell_to_chance(computed):
    """2 unsafe draws of 351 may be; with a probability of 0.0093 each there are no more in a third of the cases."""
    unsafe = next(d.unsafe for d in computed.decisions if d.asked == "blue, black")
    assert stats.binom.cdf(2, 351, unsafe) == pytest.approx(0.363, abs=0.001)
    tables = {seed: figure_3(rule="sampled", seed=seed) for seed in ("1", "2")}
    first = {
        seed: next(d.released for d in table.decisions if d.asked == "blue, black")
        for seed, table in tables.items()
    }
    assert first == {"1": False, "2": True}
    # Refused or not, it follows from the cells that are released after it.
    assert not any(table.suppressed.any() for table in tables.values())


def test_a_skewed_table_is_refused_and_not_even_its_total_released():
    """One person with ½ and nobody else with any probability to speak of: the total is his value."""
    people = np.array([[[0, 25], [0, 25]], [[0, 25], [1, 24]]])
    for value in (0, 1):
        refused = tb.suppress.simulatable(people, [[0, 0], [0, value]], [0.5, 1e-6], 0.5, 0.2)
        assert refused.outcome == NO_SAFE_BINNING
        assert refused.sums == {}
        assert [(d.asked, d.released) for d in refused.decisions] == [("the total", False)]
        assert refused.decisions[0].unsafe == pytest.approx(1)


def test_the_brown_haired_of_section_3_would_never_be_told_apart():
    """Who has brown hair and blue eyes has the attribute almost surely, who has not almost never: no such bins."""
    people = np.array([[[0, 50], [0, 50]], [[0, 50], [50, 0]]])
    refused = tb.suppress.simulatable(people, [[0, 0], [0, 50]], [0.999, 0.001], 0.5, 0.2)
    assert refused.outcome == NO_SAFE_BINNING


@pytest.mark.audit
def test_nothing_is_suppressed_in_a_table_drawn_as_that_of_section_6():
    """Figure 5 in small: 6 × 6 cells, not 10 × 10, which `make bench NAME=suppress` has; priors of 0.3 to 0.5."""
    made = carriers(6, 6)
    table = tb.suppress.simulatable(made.people, made.table, made.probability, 0.5, 0.2)
    assert {decision.sampler for decision in table.decisions} >= {"exact", "chain"}
    assert table.promised_delta < 0.201
    assert table.counts.tolist() == made.table.counts.tolist()
