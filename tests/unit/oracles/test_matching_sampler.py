"""The flow-to-matching construction of Nabar & Mishra, section 5.2.2, part by part, and the sampler made of it."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tabulary.errors import InvalidTable, TooManyCells
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion
from tabulary.table_samplers.public_seed import PublicSeed
from tests.oracles.matching_sampler import Flows, Matching, Network, matching_graph, network
from tests.oracles.perfect_matchings import BipartiteGraph, PerfectMatchings
from tests.suppressed_tables import (
    chi_square,
    consistent_tables,
    frequencies,
    known_table,
    posteriors_by_data_sets,
    questions,
    small_tables,
    total_variation,
    true_answers,
    true_marginals,
    weighted_tables,
)

COINS = PublicSeed("matching")


def figure_2(priors=0.5):
    """The table of Figure 2: all sums 2, the first cell known to be 2. Its people are in the drawing only."""
    released = [[True, False], [False, False]]
    return known_table([[3, 1], [2, 3]], priors, [[2, 0], [0, 2]], released=released)


@st.composite
def tables(draw, **limits):
    """A small table, of which each cell is known or not known at all."""
    known = draw(small_tables(released=False, **limits))
    consistent = consistent_tables(known)[0]
    counts = consistent[draw(st.integers(0, len(consistent) - 1))]
    for index in np.ndindex(known.shape):
        if draw(st.booleans()):
            known = known.answered(CellQuestion(index), int(counts[index]))
    return known


def permanent(graph: BipartiteGraph) -> float:
    """The permanent by Ryser's formula, which knows nothing of twins."""
    size = len(graph.right)
    place = {node: number for number, node in enumerate(graph.right)}
    matrix = np.zeros((len(graph.left), size))
    for row, node in enumerate(graph.left):
        for (left, right), weight in graph.weights.items():
            if left == node:
                matrix[row, place[right]] = float(weight)
    subsets = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1
    signs = np.where((size - subsets.sum(axis=1)) % 2, -1.0, 1.0)
    return float(signs @ (subsets @ matrix.T).prod(axis=1))


# ---- G --------------------------------------------------------------------------------------------------------------


def test_network_of_figure_2_is_as_the_text_says():
    graph = network(figure_2())
    kinds = Counter((arc.tail[0], arc.head[0]) for arc in graph.arcs)
    assert kinds == {
        ("t", "s"): 4,  # as many as the row sums together
        ("s", "u"): 4,  # r_i to each row
        ("u", "x"): 9,  # one to each person
        ("x", "w"): 6,  # each person of a cell that is not known
        ("x", "y"): 3,  # each person of the known cell
        ("y", "w"): 2,  # its value
        ("w", "t"): 4,  # c_j from each column
    }
    assert Counter(arc.head for arc in graph.arcs if arc.tail == ("s",)) == {("u", 0): 2, ("u", 1): 2}
    assert {arc.head for arc in graph.arcs if arc.tail == ("y", 0, 0)} == {("w", 0)}
    assert graph.full == {("s",), ("y", 0, 0)}


def test_every_person_is_reached_from_his_row_by_the_arc_that_has_his_prior():
    graph = network(figure_2([[0.1, 0.2], [0.3, 0.4]]))
    rows = {index: 0.1 + 0.2 * index[0] + 0.1 * index[1] for index in np.ndindex(2, 2)}
    for person, cell in enumerate(graph.cells):
        (arc,) = [arc for arc in graph.arcs if arc.head == ("x", person)]
        assert arc.tail == ("u", cell[0])
        assert arc.prior == pytest.approx(rows[cell])


def test_without_the_arcs_that_the_text_leaves_out_nothing_flows_through_a_known_cell():
    # As printed, u_i → x_k is drawn only for people of cells that are not known.
    graph = network(figure_2())
    printed = replace(
        graph,
        arcs=tuple(arc for arc in graph.arcs if arc.prior is None or graph.cells[arc.head[1]] != (0, 0)),
    )
    assert PerfectMatchings(matching_graph(graph)).weight > 0
    assert PerfectMatchings(matching_graph(printed)).weight == 0


# ---- Ĝ --------------------------------------------------------------------------------------------------------------


def test_matching_graph_has_the_nodes_and_edges_of_the_construction():
    graph = network(figure_2())
    made = matching_graph(graph)
    arcs = len(graph.arcs)
    assert Counter(node[0] for node in made.left) == {"a": arcs, "m": arcs}
    assert Counter(node[0] for node in made.right) == {"h": arcs, "t'": arcs}
    kinds = Counter((left[0], right[0]) for left, right in made.weights)
    assert (kinds["m", "h"], kinds["m", "t'"]) == (arcs, arcs)
    degrees = graph.out_degrees
    # All a of a node meet all h of the arcs out of it, but for the source and known cells, and all t' of those into it.
    assert kinds["a", "h"] == sum(d**2 for node, d in degrees.items() if node not in graph.full)
    assert kinds["a", "t'"] == sum(degrees[arc.head] for arc in graph.arcs)


def test_weights_are_the_priors_on_the_arcs_to_persons_and_one_elsewhere():
    graph = network(figure_2(0.25))
    weights = matching_graph(graph).weights
    people = {("u", "x")}
    for (left, right), weight in weights.items():
        if left[0] == "m" and (left[1], left[3]) in people:
            assert weight == (Fraction(1, 4) if right[0] == "h" else Fraction(3, 4))
        else:
            assert weight == 1


@pytest.mark.parametrize(
    ("people", "counts", "released"),
    [
        ([[1]], [[1]], [[False]]),
        ([[2]], [[1]], [[False]]),
        ([[2]], [[1]], [[True]]),
        ([[1, 1]], [[1, 0]], [[False, False]]),
        ([[1], [1]], [[0], [1]], [[True, False]]),
        ([[3]], [[0]], [[True]]),
    ],
)
def test_count_of_matchings_is_ryser_s_permanent_on_tiny_graphs(people, counts, released):
    known = known_table(people, 0.3, counts, released=np.reshape(released, np.shape(people)))
    graph = matching_graph(network(known))
    assert float(PerfectMatchings(graph).weight) == pytest.approx(permanent(graph), rel=1e-9)


@settings(max_examples=60)
@given(tables(people=3, cells=6))
def test_each_flow_stands_for_the_product_of_the_factorials_of_the_out_degrees(known):
    graph = network(known)
    assume(len(graph.cells) <= 12)
    # With all priors at one half the permanent counts matchings, and tables count their data sets.
    halves = replace(
        graph, arcs=tuple(arc if arc.prior is None else replace(arc, prior=0.5) for arc in graph.arcs)
    )
    matchings = PerfectMatchings(matching_graph(halves)).weight * 2 ** len(graph.cells)
    assert matchings == graph.matchings_per_flow * number_of_data_sets(known)


def number_of_data_sets(known: PartialTable) -> int:
    even = PartialTable.table(
        replace(known.people, probability=np.full_like(known.people.probability, 0.5), _count_laws={}),
        known.sums,
    )
    even = replace(even, lower=known.lower, upper=known.upper)
    return round(weighted_tables(even)[1].sum() * 2 ** int(known.people.in_cells.sum()))


@settings(max_examples=60)
@given(tables(people=4, kinds=3, cells=6))
def test_weight_of_all_flows_is_the_prior_probability_of_what_is_known(known):
    assert float(Flows(known).weight) == pytest.approx(weighted_tables(known)[1].sum(), rel=1e-9)


def law_of(graph: Network) -> Fraction:
    return PerfectMatchings(matching_graph(graph)).weight / graph.matchings_per_flow


def test_edges_that_are_left_out_make_flows_maximum_and_known_cells_exact():
    known = known_table([[2, 2], [2, 2]], 0.5, [[1, 1], [1, 1]], released=[[True, False], [False, False]])
    graph = network(known)
    assert law_of(graph) * 2**8 == 2 * 2 * 2 * 2
    # Without the known cell in `full` less than its value may flow: one data set more, nobody in it and in the last.
    assert law_of(replace(graph, full=graph.full - {("y", 0, 0)})) * 2**8 == 2 * 2 * 2 * 2 + 1
    # Without the source, less than the sums.
    assert law_of(replace(graph, full=graph.full - {("s",)})) > law_of(graph)


# ---- the sampler ----------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(tables(people=3, kinds=3, cells=6))
def test_posterior_of_every_person_is_that_of_all_data_sets(known):
    flows = Flows(known)
    assume(0 < len(network(known).cells) <= 12)
    truth = posteriors_by_data_sets(known)
    for arc, cell, found in zip(network(known).people, network(known).cells, flows.posterior, strict=True):
        kind = known.count_law(cell).probability.tolist().index(arc.prior)
        assert found == pytest.approx(truth[cell][kind], abs=1e-10)


@settings(max_examples=30)
@given(tables(people=4, kinds=2, cells=6))
def test_law_of_each_cell_is_that_of_all_tables(known):
    found = Matching().posterior(known, seed=COINS).marginals
    truth = true_marginals(known)
    for index in np.ndindex(known.shape):
        assert found[index] == pytest.approx(truth[index], abs=1e-10)


@settings(max_examples=40)
@given(st.data())
def test_answers_are_those_of_all_tables(data):
    known = data.draw(small_tables(people=4, cells=6, released=False, grouped=data.draw(st.booleans())))
    question = data.draw(questions(known))
    found = Matching().answers(known, question, draws=0, seed=COINS)
    truth = true_answers(known, question)
    assert found.values.tolist() == truth.values.tolist()
    assert found.probability == pytest.approx(truth.probability, abs=1e-10)
    assert found.deviation == pytest.approx(truth.deviation, abs=1e-8)
    assert found.draws is None


def test_a_known_cell_has_one_answer():
    answers = Matching().answers(figure_2(), CellQuestion((0, 0)), draws=0, seed=COINS)
    assert (answers.values.tolist(), answers.probability.tolist()) == ([2], [1.0])


MIXED = known_table(
    [[[2, 1], [1, 1], [1, 2]], [[1, 2], [2, 1], [1, 1]]],
    [0.2, 0.7],
    [[1, 1, 2], [2, 1, 1]],
    released=[[False, False, False], [False, False, True]],
)
FREE = replace(MIXED, lower=np.zeros_like(MIXED.lower), upper=MIXED.people.in_cells)


def test_draws_agree_with_enumeration_and_those_with_swapped_weights_do_not():
    for known in (MIXED, FREE):
        outcomes, probability = consistent_tables(known)
        assert len(outcomes) > 2
        drawn = frequencies(Matching().draw(known, 40_000, seed=COINS), outcomes)
        assert chi_square(drawn, probability) > 0.001
        assert total_variation(drawn, probability) < 0.01
        # The same graph with 1 - p where p belongs is another law, and the same test sees it.
        people = replace(known.people, probability=1 - known.people.probability, _count_laws={})
        other = frequencies(Matching().draw(replace(known, people=people), 40_000, seed=COINS), outcomes)
        assert chi_square(other, probability) < 1e-6
        assert total_variation(other, probability) > 0.01


def test_the_same_seed_draws_the_same_tables():
    first = Matching().draw(MIXED, 50, seed=COINS)
    assert (first == Matching().draw(MIXED, 50, seed=COINS)).all()
    assert (first != Matching().draw(MIXED, 50, seed=PublicSeed("others"))).any()


@pytest.mark.parametrize("shape", [(1,), (4,), (1, 4), (4, 1), (2, 1, 3), (1, 1)])
def test_tables_of_fewer_axes_are_two_way_tables_too(shape):
    counts = np.arange(np.prod(shape)).reshape(shape) % 3
    known = known_table(np.full(shape, 2), 0.4, counts)
    drawn = Matching().draw(known, 20, seed=COINS)
    assert drawn.shape == (20, *shape)
    for axis, sums in enumerate(known.sums):
        others = tuple(other + 1 for other in range(len(shape)) if other != axis)
        assert (drawn.sum(axis=others) == sums).all()


def test_a_table_without_people_has_one_table():
    known = known_table([[0, 0], [0, 0]], 0.4, [[0, 0], [0, 0]])
    assert Matching().draw(known, 3, seed=COINS).sum() == 0
    assert Matching().answers(known, CellQuestion((1, 1)), draws=0, seed=COINS).values.tolist() == [0]


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_bounds_that_are_neither_known_nor_unknown_are_refused():
    known = known_table([[3, 3], [3, 3]], 0.5, [[1, 2], [2, 1]]).bounded((0, 0), 1, 2)
    for refused in (
        lambda: Matching().draw(known, 1, seed=COINS),
        lambda: Matching().posterior(known, seed=COINS),
        lambda: Matching().answers(known, CellQuestion((1, 1)), draws=0, seed=COINS),
    ):
        with pytest.raises(InvalidTable, match="bounded without being known"):
            refused()


def test_three_way_tables_are_refused_and_the_chain_is_named():
    known = known_table(np.full((2, 2, 2), 1), 0.5, np.ones((2, 2, 2), dtype=int))
    with pytest.raises(InvalidTable, match="Use the chain"):
        network(known)


def test_more_people_than_the_cap_are_refused():
    known = known_table([[16, 15], [15, 15]], 0.5, [[8, 8], [8, 8]])
    with pytest.raises(TooManyCells, match="at most 60 people"):
        network(known)


def test_what_contradicts_itself_has_no_table():
    # Each sum is possible by itself; the first row has to have two in cells that hold one each, and one of them is 0.
    known = known_table([[1, 1, 1], [1, 1, 1], [1, 1, 1]], 0.5, np.eye(3, dtype=int))
    known = known.answered(CellQuestion((0, 0)), 0).answered(CellQuestion((0, 1)), 0)
    known = known.answered(CellQuestion((1, 0)), 0).answered(CellQuestion((1, 1)), 0)
    # Rows one and two both need the only person left in column three.
    with pytest.raises(InvalidTable, match="no table agrees"):
        Matching().draw(known, 1, seed=COINS)
    with pytest.raises(InvalidTable, match="no table agrees"):
        Matching().posterior(known, seed=COINS)


def test_a_split_after_cells_were_released_is_refused_for_that_reason():
    known = known_table([[2, 2, 2], [2, 2, 2]], 0.5, [[1, 1, 1], [1, 1, 1]], groups=((1,), (1,)))
    known = known.answered(CellQuestion((0, 0)), 1)
    with pytest.raises(InvalidTable, match="split after a cell was released"):
        Matching().answers(known, SplitQuestion(axis=1, group=1, cut=2), draws=0, seed=COINS)
