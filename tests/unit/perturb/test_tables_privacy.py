"""What a list of overlapping tables promises, against brute force over all neighbours of small domains."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import PublicError
from tabulary.perturb import Laplace, Normal
from tabulary.perturb.overlap import changed_cells, largest_sum
from tabulary.perturb.tables import Tables
from tests.samplers import ConstantSampler
from tests.unit.core.small_domains import counted, domains, margins_of, possible_cells

relations = st.sampled_from(["add-remove", "replace"])
small = domains(max_attributes=3, max_levels=3).filter(lambda d: len(possible_cells(d)) <= 10)


def changes(domain, margins, relation, weights=(1,)):
    """What one person can change in each table, over all neighbours; a record has one of the weights."""
    brought = [
        [weight * counted(domain, m, [cell]).ravel() for m in margins]
        for cell in possible_cells(domain)
        for weight in weights
    ]
    if relation == "add-remove":
        return brought
    return [[x - y for x, y in zip(one, other, strict=True)] for one, other in product(brought, repeat=2)]


@settings(max_examples=100)
@given(small, relations, st.data())
def test_d_is_reached_by_some_neighbours_and_exceeded_by_none(domain, relation, data):
    margins = data.draw(st.lists(margins_of(domain), min_size=1, max_size=4, unique=True))
    moved = [
        sum(np.count_nonzero(table) for table in change) for change in changes(domain, margins, relation)
    ]
    assert changed_cells(domain, margins, tb.Neighbours(relation)) == max(moved)


@settings(max_examples=60)
@given(small, relations, st.integers(1, 3), st.data())
def test_d_of_weighted_counts_is_reached_and_never_exceeded(domain, relation, largest, data):
    margins = data.draw(st.lists(margins_of(domain), min_size=1, max_size=3, unique=True))
    weights = range(largest + 1)
    moved = [
        sum(np.count_nonzero(table) for table in change)
        for change in changes(domain, margins, relation, weights)
    ]
    assert changed_cells(domain, margins, tb.Neighbours(relation), largest_weight=largest) == max(moved)


@settings(max_examples=100)
@given(small, relations, st.data())
def test_the_budget_of_the_list_is_that_of_the_tables_which_change_together(domain, relation, data):
    margins = data.draw(st.lists(margins_of(domain), min_size=1, max_size=4, unique=True))
    amount = st.fractions(min_value=0, max_value=3, max_denominator=7)
    amounts = data.draw(st.lists(amount, min_size=len(margins), max_size=len(margins)))
    spent = [
        sum((a for a, table in zip(amounts, change, strict=True) if np.any(table)), Fraction(0))
        for change in changes(domain, margins, relation)
    ]
    assert largest_sum(domain, margins, amounts, tb.Neighbours(relation)) == max(spent)


@settings(max_examples=40)
@given(small, st.data())
def test_what_is_published_of_neighbours_differs_in_at_most_d_cells(domain, data):
    relation = data.draw(relations)
    margins = data.draw(st.lists(margins_of(domain), min_size=1, max_size=3, unique=True))
    try:
        tables = Tables(domain, tb.Workload(domain, margins), epsilon=1, neighbours=relation)
    except PublicError:
        # Nobody can change one of these tables.
        return
    cells = possible_cells(domain)
    counts = np.zeros(domain.shape, dtype=np.int64)
    counts[tuple(np.array(cells).T)] = 5

    def bare(table):
        published = tables.apply(tb.Table(domain, table), sampler=ConstantSampler())
        return np.concatenate([table.counts.ravel() for table in published])

    differing = []
    for come, go in product(cells, [None] if relation == "add-remove" else cells):
        near = counts.copy()
        near[come] += 1
        if go is not None:
            near[go] -= 1
        differing.append(np.count_nonzero(bare(near) != bare(counts)))
    assert max(differing) == tables.d


def joint(law, moves):
    """Pairs of probabilities of all published values of cells that move by these amounts, on either neighbour."""
    reach = law.bound + max(map(abs, moves))
    values = range(-reach, reach + 1)
    one = [[law.transition(reach, reach + v) for v in values] for _ in moves]
    other = [[law.transition(reach + move, reach + v) for v in values] for move in moves]
    return one, other


def exact_delta(tables, change, epsilon):
    """Σ max(0, p - e^ε q) over all values of all cells that change."""
    p, q = np.ones(1), np.ones(1)
    for law, table in zip(tables.laws, change, strict=True):
        moves = [int(move) for move in table if move]
        if moves:
            for here, there in zip(*joint(law, moves), strict=True):
                p, q = np.outer(p, here).ravel(), np.outer(q, there).ravel()
    excess = p - math.exp(epsilon) * q
    return math.fsum(excess[excess > 1e-14 * p])


SMALL = tb.Domain({"a": "xy", "b": "xyz"})
# No two people differ in all of A, B and C.
TIED = tb.Domain(dict.fromkeys("abc", "xy"), [{x: "y", z: "y"} for x, z in ("ab", "ac", "bc")])
LISTS = [
    (SMALL, "[a b][a]", "add-remove", {}),
    (SMALL, "[a b][a]", "add-remove", {"family": Normal}),
    (SMALL, "[a b][a][b]", "add-remove", {"bound": {("a", "b"): 2, "a": 3, "b": 2}}),
    (SMALL, "[a][b]", "replace", {}),
    (SMALL, "[a][b]", "replace", {"family": Normal}),
    (TIED, "[a][b][c]", "replace", {"bound": 2}),
]


@pytest.mark.parametrize(("domain", "work", "relation", "options"), LISTS)
def test_the_promised_delta_is_the_smallest_that_holds_at_the_promised_epsilon(
    domain, work, relation, options
):
    tables = Tables(domain, work, epsilon="3/2", neighbours=relation, **({"bound": 3} | options))
    pairs = changes(domain, tables.margins, relation)
    found = max(exact_delta(tables, change, 1.5) for change in pairs)
    assert tables.epsilon == Fraction(3, 2)
    assert tables.delta == pytest.approx(found, rel=1e-10)
    assert tables.delta >= found * (1 - 1e-13)
    assert tables.privacy().delta >= Fraction(found) * (1 - Fraction(1, 10**13))
    # A smaller ε needs a larger δ, so the promised ε is not given away.
    if relation == "add-remove" and options.get("family") is not Normal:
        assert max(exact_delta(tables, change, 1.4) for change in pairs) > found * (1 + 1e-6)


def test_people_who_never_differ_everywhere_pay_for_the_tables_in_which_they_do():
    tied, free = (
        Tables(domain, "[a][b][c]", epsilons=dict.fromkeys("abc", 1), neighbours="replace", bound=4)
        for domain in (TIED, tb.Domain(dict.fromkeys("abc", "xy")))
    )
    assert (tied.d, free.d) == (4, 6)
    assert (tied.epsilon, free.epsilon) == (2, 3)
    one = tied.laws[0].delta
    assert tied.delta == pytest.approx(1 - (1 - one) ** 4)
    assert free.delta == pytest.approx(1 - (1 - one) ** 6)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("family", [Laplace, Normal])
@settings(max_examples=15, deadline=None)
@given(epsilon=st.floats(0, 3))
def test_the_delta_at_any_epsilon_holds_and_wastes_little(family, relation, epsilon):
    epsilons = {("a", "b"): "1/2", "a": "7/10"}
    tables = Tables(SMALL, "[a b][a]", epsilons=epsilons, family=family, bound=3, neighbours=relation)
    # People who differ in every table are the worst, and all such pairs are alike.
    worst = max(changes(SMALL, tables.margins, relation), key=lambda c: sum(map(np.count_nonzero, c)))
    found = tables.delta_at(epsilon)
    assert found >= exact_delta(tables, worst, epsilon) * (1 - 1e-10)
    # Each of d losses was rounded up by a step of the grid at most.
    looser = epsilon - tables.d * 1.2 / 8_000
    assert found <= exact_delta(tables, worst, looser) * (1 + 1e-9) + 1e-12


def test_the_delta_of_many_laplace_tables_is_a_binomial_sum():
    domain = tb.Domain(dict.fromkeys("abcd", "xy"))
    tables = Tables(domain, tb.Workload.k_way(domain, 2), epsilon=1)
    share = 1 / (1 + math.exp(-1 / 6))
    for epsilon in (0.0, 0.3, 0.5, 0.9, 1.0):
        exact = sum(
            math.comb(6, k)
            * share**k
            * (1 - share) ** (6 - k)
            * max(0.0, 1 - math.exp(epsilon - (2 * k - 6) / 6))
            for k in range(7)
        )
        assert tables.delta_at(epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_a_smaller_move_of_a_weighted_record_is_hidden_at_least_as_well():
    tables = Tables(SMALL, "[a b][a]", epsilon=1, bound=5, sensitivity=3)
    found = {
        weight: max(
            exact_delta(tables, change, 1.0)
            for change in changes(SMALL, tables.margins, "add-remove", [weight])
        )
        for weight in (1, 2, 3)
    }
    assert found[1] <= found[2] <= found[3] == pytest.approx(tables.delta, rel=1e-10)


def test_a_replaced_weight_is_covered_by_the_promise_of_the_list():
    tables = Tables(SMALL, "[a][b]", epsilon=1, bound=4, sensitivity=2, neighbours="replace")
    found = max(exact_delta(tables, c, 1.0) for c in changes(SMALL, tables.margins, "replace", [0, 1, 2]))
    assert 0 < found <= tables.delta * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([Laplace, Normal]),
    relations,
    st.fractions(min_value=Fraction(1, 5), max_value=3, max_denominator=9),
    st.integers(3, 12),
)
def test_the_sum_of_theorem_7_1_is_never_smaller_than_the_exact_delta(family, relation, epsilon, bound):
    tables = Tables(SMALL, "[a b][a][b]", epsilon=epsilon, family=family, bound=bound, neighbours=relation)
    assert tables.delta <= tables.summed_delta * (1 + 1e-9)
    assert tables.summed_delta == pytest.approx(tables.moves * sum(law.delta for law in tables.laws))


def test_without_a_bound_the_promise_is_pure():
    tables = Tables(SMALL, "[a b][a]", epsilons={("a", "b"): "1/3", "a": "1/15"})
    assert tables.privacy() == tb.PureDP("2/5")
    assert tables.delta == tables.delta_at("2/5") == tables.delta_at(2) == 0
    # Both losses are rare together: log-ratios of 2/5 and, all others below the ε, of 4/15.
    both = 1 / (1 + math.exp(-1 / 3)) / (1 + math.exp(-1 / 15))
    assert tables.delta_at("1/3") == pytest.approx(both * -math.expm1(1 / 3 - 2 / 5), rel=1e-9)


@pytest.mark.parametrize(("relation", "laws"), [("add-remove", "1/2"), ("replace", "1/4")])
def test_an_equal_split_gives_every_cell_its_part_of_d(relation, laws):
    tables = Tables(SMALL, "[a b][a]", epsilon=1, neighbours=relation)
    assert [law.epsilon for law in tables.laws] == [Fraction(laws)] * 2
    assert tables.laws[0].epsilon == tables.epsilon / tables.d


def test_where_people_cannot_differ_everywhere_an_equal_split_saves():
    tables = Tables(TIED, "[a][b][c]", epsilon=1, neighbours="replace")
    assert tables.epsilon == 1
    assert [law.epsilon for law in tables.laws] == [Fraction(1, tables.d)] * 3 == [Fraction(1, 4)] * 3


@pytest.mark.parametrize("sensitivity", [1, 2, 7])
def test_the_delta_of_unbounded_noise_is_that_of_a_bound_which_is_hardly_reached(sensitivity):
    epsilons = {("a", "b"): "3/2", "a": "2"}
    wide, cut = (
        Tables(SMALL, "[a b][a]", epsilons=epsilons, sensitivity=sensitivity, bound=bound)
        for bound in (None, 150)
    )
    for epsilon in (0, 1, 2.7):
        assert wide.delta_at(epsilon) == pytest.approx(cut.delta_at(epsilon), rel=1e-8)


def test_the_delta_of_very_wide_noise_needs_no_list_of_its_values():
    fine, coarse = (
        Tables(SMALL, "[a b][a]", epsilon="1/20", sensitivity=s, unit=Fraction(50, s)) for s in (50, 50_000)
    )
    assert fine.delta_at("1/30") == pytest.approx(coarse.delta_at("1/30"), rel=0.05)
