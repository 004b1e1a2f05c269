"""Maximum-entropy tables: what each parameter promises, and that no law has more entropy."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, lsq_linear, minimize

from tabulary.errors import InvalidNoise
from tabulary.noise import ExactSampler
from tabulary.perturb import MaxEntropy
from tabulary.perturb.entropy_program import EntropyProgram
from tests.entropy import SeededEntropy
from tests.unit.perturb import brute_force

TABLES = [
    MaxEntropy(2, bound=5),
    MaxEntropy(10, bound=5),
    MaxEntropy(20, bound=5),
    MaxEntropy(2, bound=5, pstay="1/2"),
    MaxEntropy(2, bound=5, pstay="1/4", mono=True),
    MaxEntropy(2, bound=5, nonnegative=True),
    MaxEntropy(1, bound=4, nonnegative=True, pstay=["1/2", "1/2", "7/10", "4/5"]),
    MaxEntropy("9/10", bound=2, nonnegative=True, mono=True),
    MaxEntropy(3, bound=5, nonnegative=True, js=2),
    MaxEntropy(3, bound=5, nonnegative=True, js=2, mono=True),
    MaxEntropy("27/25", bound=2, nonnegative=True, js=1, mono=[True, True, False, True]),
    MaxEntropy(2, bound=4, nonnegative=True, js=1, pstay="3/10"),
    MaxEntropy(4, bound=6, nonnegative=True, pstay="1/2", mono=True, at_most=True),
]
every_table = pytest.mark.parametrize("table", TABLES, ids=repr)


def rows_of(table):
    """The counts with a row of their own; nothing is ever added to zero where negatives are excluded."""
    return range(1, table.settled + 1) if table.nonnegative else [0]


def allowed(table, original):
    """Which offsets the parameters leave to one count, by their definition."""
    offsets = range(-table.bound, table.bound + 1)
    if not table.nonnegative:
        return list(offsets)
    return [k for k in offsets if original + k == 0 or original + k > table.js]


def promised(value, original):
    return value[original - 1] if isinstance(value, tuple) else value


def probabilities(table, original, offsets):
    return np.array([table.transition(original, original + k) for k in offsets])


def order(offsets):
    """Places (nearer, farther) of neighbouring offsets on the same side of zero, zero being on both."""
    found = []
    for i, (k, after) in enumerate(pairwise(offsets)):
        if k >= 0:
            found.append((i, i + 1))
        if after <= 0:
            found.append((i + 1, i))
    return found


def equations(offsets, variance, stay):
    """The rows A and right-hand sides of A p = b."""
    k = np.array(offsets, dtype=float)
    rows, right = [np.ones(k.size), k], [1.0, 0.0]
    if variance is not None:
        rows.append(k * k)
        right.append(float(variance))
    if stay is not None and 0 in offsets:
        rows.append((k == 0).astype(float))
        right.append(float(stay))
    return np.array(rows), np.array(right)


def feasible_variances(offsets, stay, mono):
    """The least and largest variance, by another program and another interface than the package's own."""
    matrix, right = equations(offsets, None, stay)
    cone = np.zeros((len(order(offsets)) if mono else 0, len(offsets)))
    for line, (near, far) in zip(cone, order(offsets), strict=False):
        line[near], line[far] = -1.0, 1.0
    squares = np.array(offsets, dtype=float) ** 2
    ends = [
        linprog(sign * squares, A_ub=cone, b_ub=np.zeros(len(cone)), A_eq=matrix, b_eq=right)
        for sign in (1, -1)
    ]
    return None if any(end.status for end in ends) else (ends[0].fun, -ends[1].fun)


def entropy_of(p):
    positive = p[p > 0]
    return -float((positive * np.log(positive)).sum())


def assert_optimal(p, offsets, variance, stay, mono):
    """The conditions of Karush, Kuhn and Tucker, which for a concave program prove that p is its solution.

    log p = Σ multiplier · equation + Σ (multiplier ≥ 0) · (nearer - farther), the latter only where both are equal.
    """
    matrix, _ = equations(offsets, variance, stay)
    columns = [*matrix]
    free = len(columns)
    for near, far in order(offsets) if mono else []:
        if p[near] <= p[far] * (1 + 1e-9):
            column = np.zeros(p.size)
            # Held up, the farther would be larger still: the order lowers it and raises the nearer.
            column[near], column[far] = 1.0, -1.0
            columns.append(column)
    # What is too unlikely to be written in 62 bits has no logarithm to compare.
    seen = p > 1e-9
    weights = np.sqrt(p[seen])
    system = np.array(columns).T[seen] * weights[:, None]
    scales = np.abs(system).max(axis=0)
    scales[scales == 0] = 1.0
    lower = np.full(len(columns), -np.inf)
    lower[free:] = 0.0
    found = lsq_linear(system / scales, np.log(p[seen]) * weights, bounds=(lower, np.inf), tol=1e-14)
    assert np.abs(found.fun).max() < 1e-6


# What every row promises


@every_table
def test_every_row_has_mean_zero(table):
    for original in range(table.settled + 3):
        assert abs(table.drawn(original).mean) <= 1e-12
        assert abs(table.bias(original)) <= 1e-12


@every_table
def test_every_row_has_the_variance_asked_for(table):
    for original in rows_of(table):
        wanted = float(table.variance_parameter)
        found = table.drawn(original).variance
        assert found <= wanted * (1 + 1e-12)
        assert table.at_most or found == pytest.approx(wanted, rel=1e-12)


@every_table
def test_nothing_is_published_outside_the_range_or_among_the_blocked_values(table):
    for original in range(table.settled + 3):
        values = table.row(original).values[table.row(original).probabilities > 0]
        assert {int(v) - original for v in values} <= set(allowed(table, original))


@every_table
def test_pstay_is_the_probability_of_no_change(table):
    for original in rows_of(table):
        stay = promised(table.pstay, original)
        if original <= table.js and table.js:
            assert table.transition(original, original) == 0
        elif stay is not None:
            assert table.transition(original, original) == pytest.approx(float(stay), abs=1e-12)


@every_table
def test_mono_rows_do_not_rise_outward(table):
    for original in rows_of(table):
        if promised(table.mono, original):
            offsets = allowed(table, original)
            weights = table.drawn(original)
            exact = [weights.weights[k - weights.lowest] if k >= weights.lowest else 0 for k in offsets]
            assert all(exact[near] >= exact[far] for near, far in order(offsets))


@every_table
def test_rows_satisfy_the_conditions_of_the_largest_entropy(table):
    for original in rows_of(table):
        offsets = allowed(table, original)
        p = probabilities(table, original, offsets)
        bound_by = (
            None
            if p @ np.square(offsets) < float(table.variance_parameter) * (1 - 1e-9)
            else table.variance_parameter
        )
        assert_optimal(p, offsets, bound_by, promised(table.pstay, original), promised(table.mono, original))


@every_table
def test_another_solver_finds_no_more_entropy(table):
    for original in rows_of(table):
        offsets = allowed(table, original)
        matrix, right = equations(offsets, None, promised(table.pstay, original))
        squares = np.square(offsets).astype(float)
        limit = float(table.variance_parameter)
        constraints = [
            {"type": "eq", "fun": lambda p, m=matrix, r=right: m @ p - r, "jac": lambda p, m=matrix: m},
            {
                "type": "ineq" if table.at_most else "eq",
                "fun": lambda p, s=squares, v=limit: v - s @ p,
                "jac": lambda p, s=squares: -s,
            },
        ]
        if promised(table.mono, original):
            near, far = (np.array(places) for places in zip(*order(offsets), strict=True))
            falls = np.zeros((near.size, len(offsets)))
            falls[np.arange(near.size), near], falls[np.arange(near.size), far] = 1.0, -1.0
            constraints.append({"type": "ineq", "fun": lambda p, f=falls: f @ p, "jac": lambda p, f=falls: f})
        found = minimize(
            lambda p: float((p * np.log(p)).sum()),
            np.full(len(offsets), 1 / len(offsets)),
            jac=lambda p: np.log(p) + 1,
            bounds=[(1e-12, 1)] * len(offsets),
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-14},
        )
        # Status 8: no direction leads up any more, to within rounding.
        assert found.success or found.status == 8, found.message
        assert np.abs(matrix @ found.x - right).max() < 1e-9
        assert table.entropy(original) == pytest.approx(-found.fun, abs=1e-6)
        assert np.abs(probabilities(table, original, offsets) - found.x).max() < 1e-4


# For all parameters


@st.composite
def programs(draw):
    """A row with a variance that it can have, not at the very end of them."""
    lowest, highest = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    hole = draw(st.integers(0, 4))
    offsets = [k for k in range(-lowest, highest + 1) if not 0 < k + lowest <= hole or k > 0]
    stay = draw(st.none() | st.floats(0.02, 0.9))
    stay = stay if 0 in offsets else None
    mono = draw(st.booleans())
    between = feasible_variances(offsets, stay, mono)
    assume(between is not None)
    assume(between[1] - between[0] > 1e-3)
    share = draw(st.floats(0.01, 0.99))
    return offsets, between[0] + share * (between[1] - between[0]), stay, mono


@settings(max_examples=300)
@given(programs())
def test_every_feasible_row_is_solved_and_optimal(program):
    offsets, variance, stay, mono = program
    p = EntropyProgram(np.array(offsets), variance, stay, mono).solve()
    matrix, right = equations(offsets, variance, stay)
    assert np.abs(matrix @ p - right).max() <= 1e-12 * max(1, variance)
    assert (p >= 0).all()
    if mono:
        assert all(p[near] >= p[far] for near, far in order(offsets))
    assert_optimal(p, offsets, variance, stay, mono)


@settings(max_examples=60)
@given(
    st.integers(2, 7),
    st.integers(0, 3),
    st.floats(0.05, 4),
    st.none() | st.floats(0.05, 0.8),
    st.booleans(),
    st.booleans(),
)
def test_a_table_keeps_its_promises_or_names_a_count_and_what_it_could_have(
    bound, js, variance, pstay, mono, at_most
):
    js = min(js, bound - 1)
    possible = {}
    for original in range(1, (bound + js + 1 if js else bound) + 1):
        offsets = [k for k in range(-bound, bound + 1) if original + k == 0 or original + k > js]
        possible[original] = feasible_variances(offsets, pstay, mono)
    kinds = {"nonnegative": True, "js": js, "pstay": pstay, "mono": mono, "at_most": at_most}
    bad = [
        a
        for a, between in possible.items()
        if between is None or variance < between[0] - 1e-9 or (variance > between[1] + 1e-9 and not at_most)
    ]
    near = [e for b in possible.values() if b is not None for e in b if abs(e - variance) < 1e-6]
    assume(not near)
    if bad:
        with pytest.raises(InvalidNoise, match=f"of the count {bad[0]} "):
            MaxEntropy(variance, bound, **kinds)
        return
    table = MaxEntropy(variance, bound, **kinds)
    for original in possible:
        law = table.drawn(original)
        assert abs(law.mean) <= 1e-12
        assert law.variance <= variance * (1 + 1e-12)
        assert at_most or law.variance == pytest.approx(variance, rel=1e-12)
        assert all(table.transition(original, blocked) == 0 for blocked in range(1, js + 1))


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), st.none() | st.floats(0.01, 0.9))
def test_without_mono_the_variances_are_those_of_two_points(lowest, highest, stay):
    """The nearest and the farthest pair of points, by the chord of k² over them."""
    program = EntropyProgram(np.arange(-lowest, highest + 1), None, stay, False)
    moved = 1 - (stay or 0.0)
    least = 0.0 if stay is None else moved
    assert program.variances() == pytest.approx((least, moved * lowest * highest), abs=1e-9)


@pytest.mark.parametrize("bound", [1, 2, 5, 12])
@pytest.mark.parametrize("share", ["1/25", "1/4", "1/3", "9/10"])
def test_the_additive_row_is_an_exponential_of_the_square(bound, share):
    table = MaxEntropy(Fraction(share) * bound**2, bound)
    k = table.drawn(0).support
    logs = np.log(probabilities(table, 0, k))
    slope, intercept = np.polyfit(k**2, logs, 1)
    # Of an unlikely offset, 62 bits keep a few digits.
    assert logs == pytest.approx(slope * k**2 + intercept, abs=1e-2)
    likely = logs > -20
    assert logs[likely] == pytest.approx((slope * k**2 + intercept)[likely], abs=1e-6)
    uniform = Fraction(bound * (bound + 1), 3)
    assert (slope < 0) == (table.variance_parameter < uniform) or bound == 1


@pytest.mark.parametrize("bound", [1, 2, 5, 30])
def test_at_the_variance_of_the_uniform_law_the_row_is_uniform(bound):
    table = MaxEntropy(Fraction(bound * (bound + 1), 3), bound)
    assert table.entropy(0) == pytest.approx(math.log(2 * bound + 1), rel=1e-14)
    weights = table.drawn(0).weights
    # The last bits of a solved program differ from one processor to another.
    assert max(weights) - min(weights) <= 1e-14 * max(weights)


def test_the_additive_row_is_symmetric_to_the_last_bit():
    for table in (MaxEntropy(2, 5), MaxEntropy(2, 5, pstay=0.3), MaxEntropy(7, 9, mono=True)):
        weights = table.drawn(0).weights
        assert weights == weights[::-1]
        assert table.drawn(0).mean == 0


def test_the_largest_variance_is_that_of_the_two_ends():
    assert MaxEntropy(25, 5).drawn(0).pmf([-5, 0, 5]) == pytest.approx([0.5, 0, 0.5])
    assert MaxEntropy(2, 2, nonnegative=True).drawn(1).pmf([-1, 0, 1, 2]) == pytest.approx(
        [2 / 3, 0, 0, 1 / 3]
    )


def test_at_most_takes_the_freest_law_where_the_variance_allows_it():
    bounded = MaxEntropy(7, 5, nonnegative=True, at_most=True)
    assert [bounded.variance(a) < 7 - 1e-3 for a in range(1, 6)] == [True, True, True, False, False]
    # Without a variance to keep, log p is a straight line.
    steps = np.diff(np.log(probabilities(bounded, 1, range(-1, 6))))
    assert steps == pytest.approx(np.full(6, steps[0]))
    assert bounded.entropy(1) > MaxEntropy(4, 5, nonnegative=True).entropy(1)


def test_rows_settle_where_nothing_is_blocked_any_more():
    assert MaxEntropy(2, 5).settled == 0
    assert MaxEntropy(2, 5, nonnegative=True).settled == 5
    assert MaxEntropy(3, 5, nonnegative=True, js=2).settled == 8
    settled = MaxEntropy(3, 5, nonnegative=True, js=2)
    assert settled.drawn(8) == settled.drawn(1000) == MaxEntropy(3, 5).drawn(0)
    assert settled.drawn(7) != settled.drawn(8)


def test_the_example_of_the_r_package_has_its_variance_once_it_is_small_enough():
    """The vignette of ptable: D = 2 and V = 1 fail for the count 1 when V is kept as an upper bound; 0.9 does not."""
    kinds = {"nonnegative": True, "mono": True, "at_most": True}
    assert MaxEntropy(1, 2, **kinds).variance(1) < 0.95
    assert MaxEntropy(0.9, 2, **kinds).variance(1) == pytest.approx(0.9, rel=1e-12)


# Privacy


def test_a_zero_that_stays_zero_betrays_every_other_count():
    table = MaxEntropy(2, bound=5, nonnegative=True)
    assert table.transition(0, 0) == 1
    for epsilon in (0, 1, 10, 1000):
        assert table.delta_at(epsilon) >= 1 - table.transition(1, 0)
    assert table.delta_at(10) == pytest.approx(1 - table.transition(1, 0), rel=1e-12)
    assert table.delta_at(10) > 0.47
    assert table.epsilon_at(0.4) == math.inf
    assert table.delta_at(1) == pytest.approx(brute_force.delta(table, 1.0, largest=6), rel=1e-9)


def test_the_additive_table_is_a_truncated_normal_law_and_as_private_as_one():
    table = MaxEntropy(2, bound=5)
    outermost = table.transition(9, 14)
    assert table.truncation_delta == outermost
    assert table.delta_at(20) == pytest.approx(outermost, rel=1e-9)


def test_no_epsilon_is_named_so_none_is_promised():
    table = MaxEntropy(2, bound=5)
    assert table.epsilon is None
    with pytest.raises(InvalidNoise, match="names no ε"):
        table.privacy()
    with pytest.raises(InvalidNoise, match=r"delta_at\(1\)"):
        _ = table.delta


# Draws


@pytest.mark.parametrize("original", [1, 2, 4, 9])
def test_draws_have_the_mean_and_the_variance(original):
    table = MaxEntropy(3, bound=5, nonnegative=True, js=2)
    drawn = ExactSampler(SeededEntropy(original)).draw(table.drawn(original), 200_000)
    assert abs(drawn.mean()) < 5 * math.sqrt(3 / drawn.size)
    spread = math.sqrt(
        sum(k**4 * p for k, p in zip(range(-5, 6), table.drawn(original).pmf(range(-5, 6)), strict=True))
    )
    assert abs((drawn**2).mean() - 3) < 5 * spread / math.sqrt(drawn.size)
    assert set(original + drawn).isdisjoint({1, 2})
    assert (original + drawn).min() >= 0


# What it says of itself


def test_a_table_describes_its_parameters_exactly():
    table = MaxEntropy(
        1.08,
        2,
        nonnegative=True,
        js=1,
        pstay=[None, 0.5, "1/3", None],
        mono=[True, False, True, True],
        at_most=True,
    )
    assert table.describe() == {
        "family": "max-entropy",
        "variance": "27/25",
        "bound": "2",
        "nonnegative": "true",
        "js": "1",
        "pstay": "none 1/2 1/3 none",
        "mono": "true false true true",
        "at_most": "true",
    }
    assert MaxEntropy(2, 5).describe() == {"family": "max-entropy", "variance": "2", "bound": "5"}


def test_a_table_is_shown_by_its_parameters_and_not_by_its_weights():
    table = MaxEntropy("3/2", 20, nonnegative=True)
    assert repr(table) == "<MaxEntropy variance=3/2, bound=20, nonnegative=true>"
    assert str(table) == "maximum-entropy perturbation, variance 1.5, at most ±20, never negative"
    assert (
        str(MaxEntropy(2, 5, at_most=True)) == "maximum-entropy perturbation, variance at most 2, at most ±5"
    )


def test_the_same_parameters_are_the_same_table():
    assert MaxEntropy(0.5, 3) == MaxEntropy("1/2", 3)
    assert hash(MaxEntropy(0.5, 3)) == hash(MaxEntropy("1/2", 3))
    assert MaxEntropy(0.5, 3) != MaxEntropy(0.5, 4)
    assert MaxEntropy(0.5, 3).drawn(0) == MaxEntropy("1/2", 3).drawn(0)


def test_the_range_is_the_one_asked_for_even_where_its_ends_are_never_reached():
    table = MaxEntropy("1/2", 100)
    assert table.bound == 100
    assert table.describe()["bound"] == "100"


# What cannot be


@pytest.mark.parametrize(
    ("arguments", "kinds", "words"),
    [
        ((0, 5), {}, "exact counts would be published"),
        ((-1, 5), {}, "positive"),
        ((float("nan"), 5), {}, "the variance must be"),
        ((float("inf"), 5), {}, "the variance must be"),
        (("two", 5), {}, "the variance must be"),
        ((None, 5), {}, "the variance must be"),
        ((True, 5), {}, "the variance must be"),
        ((2, 0), {}, "bound must be a whole number from 1"),
        ((2, -3), {}, "bound must be a whole number from 1"),
        ((2, 5.0), {}, "bound must be a whole number from 1"),
        ((2, True), {}, "bound must be a whole number from 1"),
        ((2, 10**6), {}, "bound must be a whole number from 1"),
        ((2, 5), {"js": -1}, "js must be a whole number from 0"),
        ((2, 5), {"js": 1.5}, "js must be a whole number from 0"),
        ((2, 5), {"js": 1}, "nonnegative=True"),
        ((2, 2), {"js": 2, "nonnegative": True}, "larger than 2"),
        ((2, 5), {"nonnegative": "yes"}, "nonnegative must be True or False"),
        ((2, 5), {"at_most": 1}, "at_most must be True or False"),
        ((2, 5), {"mono": 1}, "mono must be True or False"),
        ((2, 5), {"mono": [True, True]}, "mono has 2 values, but there are 1 rows"),
        ((2, 5), {"pstay": 1}, "between 0 and 1"),
        ((2, 5), {"pstay": 0}, "between 0 and 1, .* Leave it out"),
        ((2, 5), {"pstay": -0.1}, "between 0 and 1"),
        ((2, 5), {"pstay": float("nan")}, "pstay must be"),
        ((2, 5), {"pstay": [0.5], "nonnegative": True}, "pstay has 1 values, but there are 5 rows"),
        ((26, 5), {}, "between 0 and 25"),
        ((7, 5), {"nonnegative": True}, "of the count 1 has mean 0 and variance 7.* between 0 and 5"),
        ((1, 5), {"nonnegative": True, "js": 2}, "of the count 1 has .* between 2 and 5"),
        ((11, 5), {"mono": True}, "falls towards both sides and variance 11.* between 0 and 10"),
        ((2, 5), {"pstay": "1/10", "mono": True}, "pstay 0.1.* between 8.5 and 9.9"),
        ((2, 5), {"pstay": "1/20", "mono": True}, "has mean 0, pstay 0.05, falls .* leave out pstay or mono"),
        ((2, 5), {"pstay": "1/20", "mono": True, "at_most": True}, "leave out pstay or mono"),
        ((1, 5), {"nonnegative": True, "js": 2, "at_most": True}, "between 2 and 5"),
        (("1e-30", 5), {}, "further inside"),
    ],
)
def test_what_cannot_be_is_refused_and_the_message_says_what_could(arguments, kinds, words):
    with pytest.raises(InvalidNoise, match=words):
        MaxEntropy(*arguments, **kinds)
