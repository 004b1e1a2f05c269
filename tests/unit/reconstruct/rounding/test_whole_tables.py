"""What whole tables promise: whole, possible, and of one mind on everything they share."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.errors import InvalidDomain, InvalidTable
from tabulary.reconstruct.rounding import population
from tabulary.reconstruct.rounding.full_table import uniforms_from
from tabulary.reconstruct.rounding.whole_tables import whole_tables
from tests.entropy import SeededEntropy


def tabulated(domain, records, weights, margins):
    """The weighted tables of records: real numbers that agree with each other."""
    found = {}
    for margin in margins:
        cells = np.zeros(len(records), dtype=np.int64)
        for a in margin:
            cells = cells * len(domain.levels_of(a)) + records[:, domain.position(a)]
        table = np.bincount(cells, weights, minlength=domain.cells(margin))
        found[margin] = table.reshape(domain.shape_of(margin))
    return found


def possible_records(domain, generator, count):
    """Records over the domain, levels unevenly spread, none of them impossible."""
    grid = np.argwhere(~domain.impossible(domain.attributes))
    chances = generator.dirichlet(np.full(len(grid), 0.3))
    return grid[generator.choice(len(grid), count, p=chances)]


@st.composite
def consistent_tables(draw, orders):
    sizes = draw(st.lists(st.integers(1, 4), min_size=max(orders), max_size=5))
    names = "abcde"[: len(sizes)]
    levels = {a: range(size) for a, size in zip(names, sizes, strict=True)}
    zeros = []
    for _ in range(draw(st.integers(0, 4))):
        of = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        zeros.append({a: draw(st.integers(0, len(levels[a]) - 1)) for a in of})
    try:
        domain = Domain(levels, zeros)
    except InvalidDomain:
        domain = Domain(levels)
    every = [m for k in orders for m in itertools.combinations(names, k)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    maximal = [m for m in chosen if not any(set(m) < set(other) for other in chosen)]
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    records = possible_records(domain, generator, draw(st.integers(0, 60)))
    kind = draw(st.sampled_from(["whole", "half", "exponential"]))
    weights = {
        "whole": np.ones,
        "half": lambda n: np.full(n, 0.5),
        "exponential": generator.standard_exponential,
    }
    return domain, tabulated(domain, records, weights[kind](len(records)), maximal)


def rounded(domain, tables, seed=0):
    return whole_tables(domain, tables, uniform=uniforms_from(SeededEntropy(seed)))


def onto(table, margin, kept):
    return table.sum(axis=tuple(i for i, a in enumerate(margin) if a not in kept))


def check_promises(domain, tables, found):
    assert list(found) == list(tables)
    for margin, table in found.items():
        assert table.dtype == np.int64
        assert table.shape == domain.shape_of(margin)
        assert (table >= 0).all()
        assert not table[domain.impossible(margin)].any()
    for one, other in itertools.combinations(found, 2):
        shared = [a for a in one if a in other]
        assert (onto(found[one], one, shared) == onto(found[other], other, shared)).all()


@settings(max_examples=300, deadline=None)
@given(consistent_tables(orders=(0, 1, 2)), st.integers(0, 2**32))
def test_tables_of_two_attributes_agree_exactly_and_their_margins_move_by_less_than_one(given_tables, seed):
    domain, tables = given_tables
    found, facts = rounded(domain, tables, seed)
    check_promises(domain, tables, found)
    if facts["method"] == "margins":
        for margin, table in tables.items():
            for a in margin:
                assert np.abs(onto(found[margin] - table, margin, [a])).max() < 1 + 1e-5
            assert abs(found[margin].sum() - table.sum()) < 1 + 1e-5


@settings(max_examples=150, deadline=None)
@given(consistent_tables(orders=(1, 2, 3, 4)), st.integers(0, 2**32))
def test_tables_of_any_order_agree_exactly(given_tables, seed):
    domain, tables = given_tables
    check_promises(domain, tables, rounded(domain, tables, seed)[0])


def test_zeros_that_rule_out_every_rounding_of_the_margins_are_met_by_a_population():
    # Half a person in each level of a; b, c and d tell which two levels it is of. Each pair must hold one person, and
    # three pairs of three people's halves cannot.
    pairs = {"b": (0, 1), "c": (1, 2), "d": (0, 2)}
    zeros = [{"a": level, name: int(level not in pair)} for name, pair in pairs.items() for level in range(3)]
    domain = Domain({"a": range(3), "b": range(2), "c": range(2), "d": range(2)}, zeros)
    records = np.argwhere(~domain.impossible(domain.attributes))
    tables = tabulated(domain, records, np.full(3, 0.5), [("a", "b"), ("a", "c"), ("a", "d")])
    for seed in range(10):
        found, facts = rounded(domain, tables, seed)
        assert facts["method"] == "population"
        check_promises(domain, tables, found)


def counties(count=12, states=4, regions=2):
    """Counties of states of regions: nobody lives in a county of another state."""
    of_state = np.arange(count) * states // count
    of_region = np.arange(states) * regions // states
    zeros = [{"county": i, "state": j} for i in range(count) for j in range(states) if of_state[i] != j]
    zeros += [{"state": i, "region": j} for i in range(states) for j in range(regions) if of_region[i] != j]
    return Domain(
        {"county": range(count), "region": range(regions), "state": range(states), "age": range(5)}, zeros
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_people_of_a_state_are_the_people_of_its_counties(seed):
    domain = counties()
    generator = np.random.default_rng(seed)
    records = possible_records(domain, generator, 300)
    margins = list(itertools.combinations(domain.attributes, 2))
    tables = tabulated(domain, records, generator.exponential(size=300), margins)
    found, facts = rounded(domain, tables, seed)
    assert facts["method"] == "margins"
    check_promises(domain, tables, found)
    for margin, table in tables.items():
        for a in margin:
            assert np.abs(onto(found[margin] - table, margin, [a])).max() < 1


@pytest.mark.parametrize("seed", range(3))
def test_records_move_to_another_state_although_no_attribute_can_change_alone(seed):
    domain = counties()
    generator = np.random.default_rng(seed)
    records = possible_records(domain, generator, 2000)
    tables = tabulated(
        domain,
        records,
        generator.exponential(size=2000),
        [("county", "state", "age"), ("county", "region", "age")],
    )
    found, facts = rounded(domain, tables, seed)
    assert facts["method"] == "population"
    check_promises(domain, tables, found)
    # These tables are one and the same, so nothing stands in the way of the best rounding.
    assert facts["largest_move"] < 1.5
    assert facts["rms_move"] < 0.5


def test_hundreds_of_two_way_tables_hardly_move():
    generator = np.random.default_rng(1)
    domain = Domain({f"x{i}": range(10) for i in range(30)})
    records = np.minimum(generator.exponential(2.5, (1000, 30)), 9).astype(int)
    weights = generator.exponential(size=1000)
    tables = tabulated(domain, records, weights, list(itertools.combinations(domain.attributes, 2)))
    found, facts = rounded(domain, tables)
    check_promises(domain, tables, found)
    assert facts["method"] == "margins"
    assert facts["rms_move"] < 0.42
    assert facts["largest_move"] < 3


def many_threes(seed=2):
    """Twenty-four tables of three from nine attributes of 2 to 14 levels, of 4,000 records in four latent classes."""
    generator = np.random.default_rng(seed)
    sizes = [2, 3, 4, 5, 6, 8, 10, 12, 14]
    domain = Domain({f"x{i}": range(size) for i, size in enumerate(sizes)}, [{"x0": 1, "x3": [0, 1]}])
    classes = generator.integers(0, 4, 4000)
    chances = [generator.dirichlet(np.full(size, 0.5), 4) for size in sizes]
    records = np.stack(
        [(p[classes].cumsum(axis=1) < generator.random((4000, 1))).sum(axis=1) for p in chances], axis=1
    )
    records = np.minimum(records, np.array(sizes) - 1)
    records[(records[:, 0] == 1) & (records[:, 3] < 2), 0] = 0
    every = list(itertools.combinations(domain.attributes, 3))
    margins = [every[i] for i in sorted(generator.choice(len(every), 24, replace=False))]
    return domain, tabulated(domain, records, generator.exponential(size=4000), margins)


def test_two_dozen_three_way_tables_are_met_by_one_population(monkeypatch):
    domain, tables = many_threes()
    found, facts = rounded(domain, tables)
    check_promises(domain, tables, found)
    assert facts["method"] == "population"
    assert facts["settled"] == "yes"
    assert facts["rms_move"] < 0.6
    assert facts["largest_move"] < 6
    # A twin that never moves a record is consistent too, and far away.
    monkeypatch.setattr(population, "MOST_VISITS", 0)
    start, stood = rounded(domain, tables)
    check_promises(domain, tables, start)
    assert stood["settled"] == "no"
    assert stood["rms_move"] > 3 * facts["rms_move"]


def test_a_large_population_comes_as_near_as_a_small_one():
    generator = np.random.default_rng(3)
    domain = Domain({a: range(5) for a in "abcd"}, [{"a": 0, "b": 0}, {"c": 1, "d": [0, 4]}])
    records = possible_records(domain, generator, 1000)
    weights = 220 * generator.exponential(size=1000)
    tables = tabulated(domain, records, weights, list(itertools.combinations(domain.attributes, 3)))
    found, facts = rounded(domain, tables)
    check_promises(domain, tables, found)
    assert facts["total"] > 200_000
    assert facts["settled"] == "yes"
    assert facts["rms_move"] < 1


def test_the_same_words_give_the_same_tables():
    domain, tables = many_threes()
    one, _ = rounded(domain, tables, 5)
    other, _ = rounded(domain, tables, 5)
    assert all((one[margin] == other[margin]).all() for margin in tables)


def test_facts_tell_how_far_the_cells_moved():
    domain = Domain({"a": "xy", "b": "xy"})
    tables = {("a",): np.array([1.25, 1.75]), ("b",): np.array([0.0, 3.0])}
    found, facts = rounded(domain, tables)
    moves = np.concatenate([found[m] - tables[m] for m in tables])
    assert facts == {
        "method": "margins",
        "total": 3,
        "largest_move": np.abs(moves).max(),
        "rms_move": pytest.approx(np.sqrt((moves**2).mean())),
    }


def test_margins_are_rounded_without_bias_and_a_twin_whose_coins_are_all_alike_is_caught():
    domain = Domain({"a": range(3), "b": range(4)})
    generator = np.random.default_rng(7)
    table = generator.random((3, 4)) * 2
    draws = 2000
    # A normal quantile at α = 1e-6, shared among the levels; a rounded number has at most variance 1/4.
    limit = 5.4 * 0.5 / np.sqrt(draws)
    found = sum(rounded(domain, {("a", "b"): table}, seed)[0]["a", "b"] for seed in range(draws)) / draws
    twin = whole_tables(domain, {("a", "b"): table}, uniform=np.zeros)[0]["a", "b"]
    for axis in range(2):
        assert np.abs((found - table).sum(axis=axis)).max() < limit
        assert np.abs((twin - table).sum(axis=axis)).max() > limit


def test_whole_margins_stay_what_they_are():
    latin = {("a", "b"): np.full((4, 4), 0.25), ("b", "c"): np.full((4, 4), 0.25)}
    found, _ = rounded(Domain({"a": range(4), "b": range(4), "c": range(4)}), latin)
    for table in found.values():
        assert table.sum(axis=0).tolist() == table.sum(axis=1).tolist() == [1, 1, 1, 1]


def test_small_disagreements_of_a_solver_are_overlooked_and_large_ones_refused():
    domain = Domain({"a": "xy", "b": "xy", "c": "xy"})
    tables = {("a", "b"): np.full((2, 2), 1.5), ("b", "c"): np.full((2, 2), 1.5 + 1e-7)}
    check_promises(domain, tables, rounded(domain, tables)[0])
    tables["b", "c"] = np.array([[1.6, 1.5], [1.5, 1.4]])
    with pytest.raises(InvalidTable, match="disagree"):
        rounded(domain, tables)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, "no table"),
        ({("a", "b"): np.zeros((2, 3))}, "shape"),
        ({("b", "a"): np.zeros((2, 2))}, "shape"),
        ({("a",): np.array([-0.5, 1])}, "non-negative"),
        ({("a",): np.array([np.nan, 1])}, "non-negative"),
        ({("a", "b"): np.ones((2, 2))}, "impossible"),
    ],
)
def test_tables_that_cannot_be_are_refused(tables, message):
    with pytest.raises(InvalidTable, match=message):
        rounded(Domain({"a": "xy", "b": "xy"}, [{"a": "x", "b": "x"}]), tables)


def latent_tables(total, sizes=(2, 3, 5, 9, 14), order=3, seed=4):
    """The exact tables of four latent classes: every cell has a fraction, and all tables agree."""
    generator = np.random.default_rng(seed)
    domain = Domain({f"x{i}": range(size) for i, size in enumerate(sizes)})
    shares = total * generator.dirichlet(np.full(4, 2.0))
    chances = {
        a: generator.dirichlet(np.full(k, 0.5), 4) for a, k in zip(domain.attributes, sizes, strict=True)
    }
    letters = "abcdefgh"[:order]
    formula = ",".join(["z", *(f"z{x}" for x in letters)]) + "->" + letters
    margins = itertools.combinations(domain.attributes, order)
    return domain, {m: np.einsum(formula, shares, *(chances[a] for a in m)) for m in margins}


@pytest.mark.parametrize("total", [2e5, 3.3e8, 1e15])
def test_a_nation_of_any_size_is_rounded_to_about_one_person_per_cell(total):
    domain, tables = latent_tables(total)
    found, facts = rounded(domain, tables)
    check_promises(domain, tables, found)
    assert facts["method"] == "population"
    assert facts["settled"] == "yes"
    assert facts["total"] == total
    assert facts["rms_move"] < 1
    assert facts["largest_move"] < 30


@pytest.mark.parametrize("total", [3.3e8])
def test_a_nation_with_tied_attributes_is_rounded_too(total):
    domain = counties()
    generator = np.random.default_rng(6)
    records = possible_records(domain, generator, 2000)
    weights = generator.dirichlet(np.ones(2000)) * total
    tables = tabulated(domain, records, weights, list(itertools.combinations(domain.attributes, 3)))
    found, facts = rounded(domain, tables)
    check_promises(domain, tables, found)
    assert facts["rms_move"] < 1
    pairs = tabulated(domain, records, weights, list(itertools.combinations(domain.attributes, 2)))
    found, facts = rounded(domain, pairs)
    check_promises(domain, pairs, found)
    assert facts["rms_move"] < 1


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("total", [0.0, 0.4, 1.0, 1e12])
def test_tables_that_agree_only_up_to_the_accuracy_of_a_solver_are_rounded(order, total):
    domain, tables = latent_tables(total, order=order)
    generator = np.random.default_rng(8)
    tables = {m: table * (1 + 1e-8 * generator.uniform(-1, 1)) for m, table in tables.items()}
    found, facts = rounded(domain, tables)
    check_promises(domain, tables, found)
    assert abs(facts["total"] - total) <= 1e-8 * total + 1
    # The mean of tables that disagree is as far away as they are.
    assert facts["rms_move"] < 1 + 1e-8 * total


@pytest.mark.parametrize("total", [60_000, 5_000_000])
@pytest.mark.parametrize("order", [2, 3])
def test_the_margins_of_single_attributes_move_by_less_than_one_and_known_ones_stay(total, order):
    domain, full = latent_tables(total, order=5)
    joint = full[domain.attributes]
    known = np.rint(onto(joint, domain.attributes, ["x4"]))
    known[0] += total - known.sum()
    joint = joint * (known / onto(joint, domain.attributes, ["x4"]))
    margins = itertools.combinations(domain.attributes, order)
    tables = {m: onto(joint, domain.attributes, m) for m in margins}
    found, _ = rounded(domain, tables)
    check_promises(domain, tables, found)
    for margin, table in tables.items():
        for a in margin:
            assert np.abs(onto(found[margin] - table, margin, [a])).max() < 1 + 1e-5
        if "x4" in margin:
            assert (onto(found[margin], margin, ["x4"]) == known).all()


@pytest.mark.parametrize("margin", [(), ("a",), ("a", "b"), ("a", "b", "c")])
@pytest.mark.parametrize("total", [0.0, 0.3, 1.0, 7.5])
def test_one_table_alone_and_hardly_any_people_are_rounded(margin, total):
    domain = Domain({"a": range(2), "b": range(3), "c": range(1)}, [{"a": 0, "b": 1}])
    possible = ~domain.impossible(margin)
    table = np.where(possible, total / possible.sum(), 0.0)
    found, facts = rounded(domain, {margin: table})
    check_promises(domain, {margin: table}, found)
    assert abs(found[margin].sum() - total) < 1
    assert facts["total"] == found[margin].sum()


def test_no_clock_is_read(monkeypatch):
    domain, tables = many_threes()
    one, _ = rounded(domain, tables, 5)

    def no_time():
        raise AssertionError("a published face must not depend on the time it takes")

    for name in ("time", "monotonic", "perf_counter", "process_time"):
        monkeypatch.setattr(f"time.{name}", no_time)
    other, _ = rounded(domain, tables, 5)
    assert all((one[margin] == other[margin]).all() for margin in tables)


def test_the_search_ends_after_a_counted_number_of_visits_at_the_same_tables(monkeypatch):
    domain, tables = latent_tables(3e6)
    monkeypatch.setattr(population, "MOST_VISITS", 3_000_000)
    one, facts = rounded(domain, tables, 5)
    other, _ = rounded(domain, tables, 5)
    assert facts["settled"] == "no"
    check_promises(domain, tables, one)
    assert all((one[margin] == other[margin]).all() for margin in tables)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 3)), min_size=1), st.data())
def test_counts_are_moved_into_their_bounds_and_to_their_total(rows, data):
    counts, low, spare = (np.array(column) for column in zip(*rows, strict=True))
    high = low + spare
    total = data.draw(st.integers(int(low.sum()), int(high.sum())))
    found = population.nearest_within(counts, low, high, total)
    assert ((low <= found) & (found <= high)).all()
    assert found.sum() == total


def test_a_count_too_small_to_divide_does_no_harm():
    domain = Domain({"a": "xy", "b": "xy", "c": "xy"})
    table = np.full(domain.shape, 40.0)
    table[0, 0, 0] = 5e-324
    whole, _ = whole_tables(domain, {("a", "b", "c"): table}, uniform=uniforms_from(SeededEntropy(1)))
    assert whole["a", "b", "c"][0, 0, 0] <= 1
    assert abs(int(whole["a", "b", "c"].sum()) - 280) <= 1
