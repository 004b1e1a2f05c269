"""Perfect matchings: counted as going through every permutation counts them, and drawn as likely as they are."""

from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import TooManyCells
from tabulary.table_samplers.public_seed import PublicSeed
from tests.oracles import perfect_matchings
from tests.oracles.perfect_matchings import BipartiteGraph, PerfectMatchings


def graph_of(matrix):
    """The graph whose edge from left node i to right node j has weight matrix[i][j], and none where that is 0."""
    weights = {
        (("l", i), ("r", j)): Fraction(weight)
        for i, row in enumerate(matrix)
        for j, weight in enumerate(row)
        if weight
    }
    columns = len(matrix[0]) if matrix else 0
    return BipartiteGraph(
        tuple(("l", i) for i in range(len(matrix))), tuple(("r", j) for j in range(columns)), weights
    )


def every_matching(matrix):
    """The partner of each right node in every perfect matching, and the product of its weights."""
    size = len(matrix)
    found = {}
    for partners in permutations(range(size)):
        weight = Fraction(1)
        for right, left in enumerate(partners):
            weight *= matrix[left][right]
        if weight:
            found[partners] = weight
    return found


@st.composite
def matrices(draw):
    size = draw(st.integers(1, 5))
    rows = st.lists(
        st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 3), Fraction(5, 2)]),
        min_size=size,
        max_size=size,
    )
    matrix = [draw(rows) for _ in range(size)]
    # Twins are what the count lives on, so some rows are there twice.
    for row in range(1, size):
        if draw(st.booleans()):
            matrix[row] = matrix[draw(st.integers(0, row - 1))]
    return matrix


@given(matrices())
def test_weight_is_the_permanent(matrix):
    assert PerfectMatchings(graph_of(matrix)).weight == sum(every_matching(matrix).values())


@given(matrices())
def test_probability_of_an_edge_is_the_share_of_the_matchings_that_hold_it(matrix):
    found = every_matching(matrix)
    total = sum(found.values())
    if not total:
        return
    matchings = PerfectMatchings(graph_of(matrix))
    for left in range(len(matrix)):
        for right in range(len(matrix)):
            share = sum(weight for partners, weight in found.items() if partners[right] == left) / total
            assert matchings.probability(("l", left), ("r", right)) == pytest.approx(float(share), abs=1e-12)


def test_matchings_are_drawn_as_likely_as_they_are_and_the_same_again_with_the_same_seed():
    third = Fraction(1, 3)
    matrix = [[third, 1, 2], [third, 1, 2], [1, 5, third]]
    matchings = PerfectMatchings(graph_of(matrix))
    drawn = matchings.draw(40_000, PublicSeed("matchings").stream())
    assert (drawn == matchings.draw(40_000, PublicSeed("matchings").stream())).all()
    classes = [matchings.twins(("l", left)) for left in range(3)]
    assert classes[0] == classes[1] != classes[2]
    truth = Counter()
    for partners, weight in every_matching(matrix).items():
        truth[tuple(classes[left] for left in partners)] += float(weight)
    total = sum(truth.values())
    seen = Counter(map(tuple, drawn.tolist()))
    assert set(seen) == set(truth)
    assert sum(abs(seen[one] / 40_000 - truth[one] / total) for one in truth) / 2 < 0.01


def test_a_graph_with_more_nodes_on_one_side_has_no_perfect_matching():
    assert PerfectMatchings(graph_of([[1, 1], [1, 1], [1, 1]])).weight == 0
    assert PerfectMatchings(graph_of([[1, 1, 1], [1, 1, 1]])).weight == 0


def test_a_graph_without_nodes_has_one_matching():
    assert PerfectMatchings(graph_of([])).weight == 1


@settings(max_examples=20)
@given(st.integers(1, 60))
def test_twins_are_counted_without_overflow(size):
    number = 1
    for factor in range(2, size + 1):
        number *= factor
    matrix = [[Fraction(1, 1 << 30)] * size for _ in range(size)]
    assert PerfectMatchings(graph_of(matrix)).weight == Fraction(number, 1 << (30 * size))


def test_a_graph_with_too_many_states_is_refused(monkeypatch):
    monkeypatch.setattr(perfect_matchings, "STATES", 5)
    different = [[1 + (row == column) * (row + 1) for column in range(6)] for row in range(6)]
    with pytest.raises(TooManyCells, match="more than 5 states"):
        PerfectMatchings(graph_of(different))
    assert np.isfinite(float(PerfectMatchings(graph_of([[1] * 6] * 6)).weight))
