"""Shrinkage: the posterior it claims, what it becomes without noise and with nothing but noise, and hard cases."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.residuals import centre
from tabulary.reconstruct import shrink
from tabulary.reconstruct.independence import Independence
from tabulary.reconstruct.shrink import AGREEMENT, Shrinkage, simplex


def onto(table, margin, kept):
    return np.asarray(table.sum(axis=tuple(i for i, a in enumerate(margin) if a not in kept)))


def closure(margins):
    return sorted({s for m in margins for k in range(len(m) + 1) for s in itertools.combinations(m, k)})


def measured(domain, truth, margins, deviation, seed=0):
    """Variances and noisy residuals of a full table, as a plan with equal noise on every residual would give."""
    generator = np.random.default_rng(seed)
    variances, residuals = {}, {}
    for s in closure(margins):
        exact = onto(truth, domain.attributes, s).astype(float)
        variances[s] = 0.0 if 1 in exact.shape else deviation**2
        residuals[s] = centre(exact + math.sqrt(variances[s]) * generator.standard_normal(exact.shape))
    return variances, residuals


def shrunk(domain, truth, margins, deviation, seed=0):
    variances, residuals = measured(domain, truth, margins, deviation, seed)
    return Shrinkage(domain, margins, variances).tables(residuals)


def check(domain, found, total):
    """The promises of every result."""
    for margin, table in found.tables.items():
        assert np.isfinite(table).all()
        assert (table >= 0).all()
        assert not table[domain.impossible(margin)].any()
        assert table.sum() == pytest.approx(max(total, 0), rel=1e-9, abs=1e-9)
    for one, other in itertools.combinations(found.tables, 2):
        here, there = onto(found.tables[one], one, other), onto(found.tables[other], other, one)
        assert np.abs(here - there).max() <= 1e-7 * (1 + max(total, 0))


ABCD = Domain({"a": range(3), "b": range(4), "c": range(2), "d": range(5)})
PAIRS = list(itertools.combinations("abcd", 2))
TRIPLES = list(itertools.combinations("abcd", 3))


def people(domain, records=20_000, seed=0):
    """A full table with interactions of every order and no empty cell."""
    generator = np.random.default_rng(seed)
    shares = generator.gamma(2.0, 1.0, domain.shape) + 0.2
    shares[domain.impossible(domain.attributes)] = 0
    return generator.multinomial(records, (shares / shares.sum()).ravel()).reshape(domain.shape)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.floats(0, 1e6),
)
def test_the_simplex_is_reached_at_the_nearest_point(values, total):
    values = np.array(values)
    found = simplex(values, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, abs=1e-6)
    # All positive values moved by the same, and no other moved further down than that.
    moves = (values - found)[found > 1e-6]
    if moves.size:
        assert np.ptp(moves) <= 1e-6
        assert (values[found == 0] <= moves.max() + 1e-6).all()


# Limits.


@pytest.mark.parametrize(
    "margins", [PAIRS, TRIPLES, [tuple("abcd")], [("a", "b", "c"), ("b", "d"), ("c", "d")]]
)
def test_without_noise_the_shrunk_tables_are_the_true_ones(margins):
    truth = people(ABCD)
    found = shrunk(ABCD, truth, margins, 1e-4)
    for margin, table in found.tables.items():
        assert table == pytest.approx(onto(truth, ABCD.attributes, margin), abs=0.05)
    assert found.blended == 0


def test_without_noise_an_empty_cell_comes_out_empty():
    domain = Domain({"a": range(3), "b": range(3)})
    truth = np.array([[500, 0, 20], [0, 300, 0], [70, 80, 0]])
    found = shrunk(domain, truth, [("a", "b")], 1e-4)
    assert found.tables["a", "b"] == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize("margins", [PAIRS, TRIPLES])
def test_with_nothing_but_noise_in_the_interactions_the_tables_are_their_base(margins):
    truth = people(ABCD)
    variances, residuals = measured(ABCD, truth, margins, 1e-3)
    generator = np.random.default_rng(5)
    for s in variances:
        if len(s) > 1:
            variances[s] = 1e16
            residuals[s] = centre(1e8 * generator.standard_normal(residuals[s].shape))
    found = Shrinkage(ABCD, margins, variances).tables(residuals)
    ones = {a: onto(truth, ABCD.attributes, (a,)).astype(float) for a in "abcd"}
    independent = Independence(ABCD, ones, 20_000.0)
    for margin, table in found.tables.items():
        # Of 10⁸ of noise, what is left in the mean is a share of a base of hundreds.
        assert table == pytest.approx(independent.table(margin), rel=0.02, abs=0.5)


def test_more_noise_leaves_less_of_the_interaction():
    truth = people(ABCD)
    exact = centre(onto(truth, ABCD.attributes, ("a", "d")).astype(float))
    kept = []
    for deviation in (1.0, 30.0, 300.0):
        variances, residuals = measured(ABCD, truth, [("a", "d")], 1e-3)
        variances["a", "d"] = deviation**2
        residuals["a", "d"] = exact
        table = Shrinkage(ABCD, [("a", "d")], variances).tables(residuals).tables["a", "d"]
        kept.append(float((centre(table) * exact).sum() / (exact**2).sum()))
    assert 0.95 < kept[0] <= 1.01
    assert kept[0] > kept[1] > kept[2] > 0


# Workloads of every kind.


@pytest.mark.parametrize(
    "margins",
    [
        [("a",), ("b",)],
        [("a", "b")],
        [("a", "b"), ("c", "d")],
        [("a",), ("b", "c")],
        PAIRS,
        TRIPLES,
        [tuple("abcd")],
        [("a", "b"), ("a", "b", "c"), ("b",)],
        [()],
    ],
    ids=str,
)
@pytest.mark.parametrize("deviation", [1e-3, 20.0, 1e6])
def test_any_tables_agree_and_keep_the_total(margins, deviation):
    truth = people(ABCD)
    variances, residuals = measured(ABCD, truth, margins, deviation)
    found = Shrinkage(ABCD, margins, variances).tables(residuals)
    check(ABCD, found, float(residuals[()]))
    for margin in margins:
        assert found.table(margin).shape == ABCD.shape_of(margin)


def test_tables_are_those_of_the_largest_margins_and_hold_the_others():
    shrinkage = Shrinkage(ABCD, [("a",), ("a", "b"), ("b", "d")], dict.fromkeys(closure(PAIRS), 1.0))
    assert shrinkage.maximal == (("a", "b"), ("b", "d"))
    assert shrinkage.sets == [(), ("a",), ("b",), ("d",), ("a", "b"), ("b", "d")]
    tables = {("a", "b"): np.ones((3, 4)), ("b", "d"): 2 * np.ones((4, 5))}
    assert shrinkage.held(tables, ("a", "b")) is tables["a", "b"]
    assert shrinkage.held(tables, ("d",)).tolist() == [8.0] * 5
    assert shrinkage.held(tables, ()) == 12


@pytest.mark.parametrize("total", [0.0, -50.0])
def test_no_people_or_fewer_give_empty_tables(total):
    variances, residuals = measured(ABCD, people(ABCD), TRIPLES, 10.0)
    residuals[()] = np.array(total)
    found = Shrinkage(ABCD, TRIPLES, variances).tables(residuals)
    for table in found.tables.values():
        assert not table.any()
    assert found.blended == 0


def test_attributes_of_one_level_change_nothing():
    plain = Domain({"a": range(3), "b": range(4)})
    domain = Domain({"a": range(3), "one": range(1), "b": range(4), "two": range(1)})
    truth = people(plain, 2_000)
    variances, residuals = measured(plain, truth, [("a", "b")], 10.0)
    alone = Shrinkage(plain, [("a", "b")], variances).tables(residuals).tables["a", "b"]
    every = closure([domain.attributes])
    wide = {s: variances.get(s, 0.0) for s in every}
    more = {s: residuals[s] if s in residuals else np.zeros(domain.shape_of(s)) for s in every}
    found = Shrinkage(domain, [domain.attributes], wide).tables(more)
    assert found.tables[domain.attributes].reshape(3, 4) == pytest.approx(alone, rel=1e-6)


TIED = Domain(
    {"a": range(3), "b": range(4), "c": range(2), "d": range(3)},
    [{"a": 0, "b": [1, 2]}, {"a": 2, "c": 1}, {"d": 2}],
)


@pytest.mark.parametrize("margins", [PAIRS, TRIPLES, [tuple("abcd")]])
@pytest.mark.parametrize("deviation", [1e-3, 20.0, 1e5])
def test_structural_zeros_are_kept(margins, deviation):
    variances, residuals = measured(TIED, people(TIED), margins, deviation)
    check(TIED, Shrinkage(TIED, margins, variances).tables(residuals), float(residuals[()]))


def test_structural_zeros_without_noise_give_the_true_tables():
    truth = people(TIED)
    for margin, table in shrunk(TIED, truth, PAIRS, 1e-4).tables.items():
        assert table == pytest.approx(onto(truth, TIED.attributes, margin), abs=0.1)


# Nearly deterministic tables, tiny totals, huge ones.


@st.composite
def hard_cases(draw):
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=2, max_size=5))
    names = "abcde"[: len(sizes)]
    domain = Domain({a: range(k) for a, k in zip(names, sizes, strict=True)})
    every = [m for k in range(1, 5) for m in itertools.combinations(names, k)]
    margins = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    truth = np.zeros(domain.shape)
    if draw(st.booleans()):
        # Three kinds of people.
        for _ in range(3):
            truth[tuple(generator.integers(0, sizes))] += generator.random()
    else:
        truth += generator.dirichlet(np.full(truth.size, 0.05)).reshape(truth.shape)
    truth *= draw(st.sampled_from([0.5, 100, 1e5, 1e9])) / truth.sum()
    return domain, margins, truth, draw(st.sampled_from([1e-3, 1.0, 100.0, 1e5])), draw(st.integers(0, 2**32))


@given(hard_cases())
@settings(max_examples=150)
def test_hard_cases_end_soon_and_agree(drawn):
    domain, margins, truth, deviation, seed = drawn
    variances, residuals = measured(domain, truth, margins, deviation, seed)
    check(domain, Shrinkage(domain, margins, variances).tables(residuals), float(residuals[()]))


def test_tables_that_nearly_fall_apart_agree_with_the_help_of_independence(monkeypatch):
    # Three kinds of people who have little in common, and hardly any noise: what is left to move between them
    # is so little that scaling alone would take many thousand sweeps.
    domain = Domain(dict.fromkeys("abcd", range(4)))
    generator = np.random.default_rng(20)
    truth = np.zeros(domain.shape)
    for _ in range(3):
        truth[tuple(generator.integers(0, 4, 4))] += generator.integers(1_000, 30_000)
    variances, residuals = measured(domain, truth, PAIRS, 1.0, seed=20)
    shrinkage = Shrinkage(domain, PAIRS, variances)
    swept = []
    reached = shrinkage.agreement.reached

    def counted(tables, **options):
        swept.append(options["sweeps"])
        return reached(tables, **options)

    monkeypatch.setattr(shrinkage.agreement, "reached", counted)
    found = shrinkage.tables(residuals)
    assert 0 < found.blended < 0.1
    assert len(swept) > 1
    assert sum(swept) <= len(shrink.MIXED) * shrink.MOST_SWEEPS
    check(domain, found, float(residuals[()]))


def test_if_nothing_else_helps_the_tables_are_independent(monkeypatch):
    # No difference is small enough, so that more and more is mixed in.
    monkeypatch.setattr(shrink, "ENOUGH", -1.0)
    variances, residuals = measured(TIED, people(TIED), PAIRS, 30.0)
    found = Shrinkage(TIED, PAIRS, variances).tables(residuals)
    assert found.blended == 1
    check(TIED, found, float(residuals[()]))
    free = Domain({"a": range(3), "b": range(4)})
    variances, residuals = measured(free, people(free), [("a", "b")], 30.0)
    table = Shrinkage(free, [("a", "b")], variances).tables(residuals).tables["a", "b"]
    apart = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    assert table == pytest.approx(apart, rel=1e-6)


def test_agreement_is_above_what_adding_up_rounds_off():
    # A thousand million people in a hundred thousand cells.
    domain = Domain({"a": range(400), "b": range(250), "c": range(3)})
    generator = np.random.default_rng(0)
    margins = [("a", "b"), ("a", "c"), ("b", "c")]
    shares = generator.gamma(0.3, 1, domain.shape)
    found = shrunk(domain, shares * 1e9 / shares.sum(), margins, 20.0)
    check(domain, found, float(found.table(())))
    assert found.difference <= AGREEMENT * (1 + 1e9)
    assert found.blended == 0


# Dependence through a third attribute.


def test_two_attributes_that_depend_through_a_third_are_found_through_it():
    domain = Domain({"a": range(8), "b": range(8), "c": range(8)})
    generator = np.random.default_rng(0)
    a = generator.integers(0, 8, 40_000)
    b, c = (np.where(generator.random(a.size) < 0.1, generator.integers(0, 8, a.size), a) for _ in range(2))
    truth = np.zeros(domain.shape)
    np.add.at(truth, (a, b, c), 1)
    margins = list(itertools.combinations("abc", 2))
    variances, residuals = measured(domain, truth, margins, 5.0)
    # The third pair was measured so badly that by itself it would be little better than noise.
    variances["b", "c"] = 800.0**2
    residuals["b", "c"] = centre(truth.sum(axis=0) + 800 * generator.standard_normal((8, 8)))
    alone = Shrinkage(domain, [("b", "c")], variances).tables(residuals).tables["b", "c"]
    found = Shrinkage(domain, margins, variances).tables(residuals).tables["b", "c"]
    exact = truth.sum(axis=0)
    assert np.abs(found - exact).sum() < 0.2 * np.abs(alone - exact).sum()


# Draws of what might be the truth.


@pytest.mark.parametrize("domain", [ABCD, TIED], ids=["free", "tied"])
def test_what_might_be_the_truth_is_possible_and_about_as_far_as_is_open(domain):
    variances, residuals = measured(domain, people(domain), PAIRS, 30.0)
    shrinkage = Shrinkage(domain, PAIRS, variances)
    found = shrinkage.tables(residuals)
    generator = np.random.default_rng(0)
    moves = dict.fromkeys(found.tables, 0.0)
    for _ in range(50):
        drawn = shrinkage.drawn(found, generator.standard_normal)
        for margin, table in drawn.items():
            assert (table >= 0).all()
            assert not table[domain.impossible(margin)].any()
            assert table.sum() == pytest.approx(float(found.table(())))
            moves[margin] = moves[margin] + (table - found.tables[margin]) ** 2 / 50
    for margin, squared in moves.items():
        ratio = math.sqrt(squared.mean() / (found.spreads[margin] ** 2).mean())
        assert 0.4 < ratio < 1.2


def test_the_same_residuals_give_the_same_tables_in_whatever_order_the_margins_come():
    variances, residuals = measured(ABCD, people(ABCD), TRIPLES, 30.0)
    one = Shrinkage(ABCD, TRIPLES, variances).tables(residuals)
    two = Shrinkage(ABCD, TRIPLES[::-1], variances).tables(residuals)
    assert list(one.tables) == list(two.tables)
    for margin, table in one.tables.items():
        assert (table == two.tables[margin]).all()


def test_a_table_of_many_attributes_keeps_the_tables_of_few():
    domain = Domain({f"x{i}": range(2) for i in range(9)})
    generator = np.random.default_rng(0)
    # A few large cells and many empty ones: no table of nine attributes fits all noisy tables of eight.
    truth = np.round(10_000 * generator.dirichlet(np.full(2**9, 0.2))).reshape(domain.shape)
    pairs = list(itertools.combinations(domain.attributes, 2))
    noisy = truth + 3 * generator.standard_normal(truth.shape)
    sets = closure([domain.attributes])
    variances = {s: 9.0 * 2 ** (9 - len(s)) for s in sets}
    residuals = {s: centre(onto(noisy, domain.attributes, s)) for s in sets}
    alone = Shrinkage(domain, pairs, variances).tables(residuals)
    together = Shrinkage(domain, [domain.attributes], variances).tables(residuals)
    for pair in pairs:
        assert np.abs(together.table(pair) - alone.table(pair)).max() < 1
