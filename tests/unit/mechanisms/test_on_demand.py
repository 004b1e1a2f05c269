"""Residuals on demand: the mechanism `residual`, part by part, with noise that is a function of a key."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import Weights
from tabulary.core.cache import Cache
from tabulary.errors import DifferentDomains, InvalidPlan, InvalidTable, WeightedRecords
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.mechanisms.on_demand import MeasuredOnDemand, noise_check, part_name
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, RoundedGaussian
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning.allowed_tables import AllowedTables
from tests.samplers import ConstantSampler

KEY = bytes(range(32))
PRIVACIES = [tb.PureDP(1), tb.ZCDP(1), tb.ApproxDP(1, "1/100")]
DOMAIN = tb.Domain({"a": "xyz", "b": "xy", "c": "pqrs"})


@dataclass
class TableTallies:
    """The counts of a table, as a TallyCache gives those of records."""

    table: tb.Table
    weights: Weights | None = None
    drops: tuple[str, ...] = ()

    @property
    def domain(self):
        return self.table.domain

    def exact(self, margin):
        return self.table.project(margin).counts


@st.composite
def rules(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    domain = tb.Domain({f"x{i}": range(k) for i, k in enumerate(sizes)})
    return AllowedTables(domain, order=draw(st.integers(1, len(sizes))))


def planned(allowed, privacy=PRIVACIES[0], neighbours="add-remove"):
    return tb.plan(
        allowed.domain, allowed.workload(), privacy=privacy, neighbours=neighbours, mechanism="residual"
    )


def on_demand(plan, counts, *, key=KEY, **options):
    return MeasuredOnDemand(TableTallies(tb.Table(plan.domain, counts)), plan, key, **options)


PLAN = planned(AllowedTables(DOMAIN, order=2), tb.ZCDP(1))
COUNTS = np.arange(24).reshape(DOMAIN.shape)


def bare(plan, counts):
    return on_demand(plan, counts, sampler=lambda entropy: ConstantSampler()).measurement().values


@given(rules(), st.sampled_from(PRIVACIES), st.sampled_from(["add-remove", "replace"]), st.integers(0, 99))
@settings(max_examples=15)
def test_it_measures_what_the_mechanism_residual_measures(allowed, privacy, neighbours, seed):
    try:
        plan = planned(allowed, privacy, neighbours)
    except InvalidPlan:
        assume(False)  # Nothing that one person could change.
    counts = np.random.default_rng(seed).integers(0, 50, allowed.domain.shape)
    tally = Tally.from_table(tb.Table(plan.domain, counts), plan.counted)
    whole = measure(tally, plan, ConstantSampler()).values
    assert all((lazy == known).all() for lazy, known in zip(bare(plan, counts), whole, strict=True))


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_it_measures_what_any_mechanism_measures(mechanism):
    plan = tb.plan(DOMAIN, "[a b][c]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="least-squares")
    tally = Tally.from_table(tb.Table(plan.domain, COUNTS), plan.counted)
    whole = measure(tally, plan, ConstantSampler()).values
    assert all((lazy == known).all() for lazy, known in zip(bare(plan, COUNTS), whole, strict=True))


@given(rules(), st.sampled_from(PRIVACIES[:2]), st.sampled_from(["add-remove", "replace"]))
@settings(max_examples=15)
def test_over_all_parts_the_worst_of_all_neighbouring_tables_costs_exactly_the_loss(
    allowed, privacy, neighbours
):
    try:
        plan = planned(allowed, privacy, neighbours)
    except InvalidPlan:
        assume(False)
    counts = np.full(plan.domain.shape, 3)
    before = bare(plan, counts)
    single = [np.array(cell) for cell in np.ndindex(*plan.domain.shape)]
    moves = []
    for here, there in product(single, single if neighbours == "replace" else [None]):
        near = counts.copy()
        near[tuple(here)] += 1
        if there is not None:
            near[tuple(there)] -= 1
        moves.append(near)
    costs = []
    for near in moves:
        cost = 0.0
        for part, old, new in zip(plan.measured, before, bare(plan, near), strict=True):
            moved = (new - old).astype(float)
            if plan.norm == "L1":
                cost += np.abs(moved).sum() / float(part.noise.scale)
            else:
                cost += (moved**2).sum() / (2 * float(part.noise.variance_parameter))
        costs.append(cost)
    allowed = plan.loss.epsilon if plan.norm == "L1" else plan.loss.rho
    assert max(costs) == pytest.approx(float(allowed))


@pytest.mark.parametrize(
    ("privacy", "law"),
    [*zip(PRIVACIES, [DiscreteLaplace, DiscreteGaussian, RoundedGaussian], strict=True)],
)
def test_the_noise_of_a_part_is_the_exact_draw_from_the_key_and_the_name_of_the_part(privacy, law):
    plan = planned(AllowedTables(DOMAIN, order=2), privacy)
    noisy = on_demand(plan, COUNTS).measurement().values
    for part, with_noise, exact in zip(plan.measured, noisy, bare(plan, COUNTS), strict=True):
        assert isinstance(part.noise, law)
        words = KeyedEntropy(KEY, "part", ",".join(part.margin), ",".join(part.query.centred))
        drawn = ExactSampler(words).draw(part.noise, plan.shape_of(part))
        assert (with_noise - exact == drawn).all()


# Names as a domain allows them: not empty, and without a comma.
names = st.lists(st.text("ab |", min_size=1, max_size=2), max_size=3, unique=True).map(tuple)


@given(*(st.tuples(names, names) for _ in range(2)))
def test_no_two_parts_draw_from_the_same_words(one, other):
    first, second = (
        part_name(tb.planning.Part(tb.planning.Residuals(margin, centred), DiscreteLaplace(Fraction(1))))
        for margin, centred in (one, other)
    )
    assert (first == second) == (one == other)


@given(
    st.lists(st.integers(0, len(PLAN.measured) - 1), min_size=1, max_size=20),
    st.sampled_from([0, 1000, 1 << 20]),
)
@settings(max_examples=20)
def test_neither_the_order_of_asking_nor_what_is_kept_changes_a_value(asked, cached):
    known = on_demand(PLAN, COUNTS).measurement().values
    other = on_demand(PLAN, COUNTS, cache=Cache(cached))
    assert all((other.values(p) == known[p]).all() for p in asked)


def test_threads_that_ask_together_get_the_same_values():
    known = on_demand(PLAN, COUNTS).measurement().values
    shared = on_demand(PLAN, COUNTS, cache=Cache(1000))
    with ThreadPoolExecutor(8) as pool:
        positions = list(range(len(PLAN.measured))) * 6
        assert all(
            (found == known[p]).all()
            for p, found in zip(positions, pool.map(shared.values, positions), strict=True)
        )


def test_another_key_has_other_noise():
    plan = planned(AllowedTables(DOMAIN, order=2), tb.ZCDP("1/100"))
    counts = np.full(DOMAIN.shape, 5)
    one, other = (on_demand(plan, counts, key=key).measurement().values for key in (KEY, KEY[::-1]))
    assert sum(int((a == b).sum()) for a, b in zip(one, other, strict=True)) < 4


def test_what_the_plan_does_not_measure_is_refused():
    plan = planned(AllowedTables(DOMAIN, order=2))
    table = tb.Table(DOMAIN, np.zeros(DOMAIN.shape, dtype=int))
    with pytest.raises(WeightedRecords, match="survey weights"):
        MeasuredOnDemand(TableTallies(table, Weights("w", 5, unit=1)), plan, KEY)
    with pytest.raises(DifferentDomains, match="different domains"):
        MeasuredOnDemand(TableTallies(table.project("a", "b")), plan, KEY)
    many = np.zeros(DOMAIN.shape, dtype=int)
    many[0, 0, 0] = 2**59
    with pytest.raises(InvalidTable, match="64-bit"):
        on_demand(planned(AllowedTables(DOMAIN, order=2), tb.ZCDP(1)), many)


def test_the_key_is_neither_printed_nor_copied():
    residuals = on_demand(planned(AllowedTables(DOMAIN, order=1)), np.zeros(DOMAIN.shape, dtype=int))
    assert repr(residuals) == f"<MeasuredOnDemand of {len(residuals.plan.measured)} parts>"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="confidential: it cannot be pickled"):
            copied(residuals)


def test_the_check_of_the_noise_tells_another_key_and_another_sampler(monkeypatch):
    here = noise_check(KEY)
    assert here == noise_check(KEY) != noise_check(KEY[::-1])
    for law in (DiscreteLaplace, DiscreteGaussian, RoundedGaussian):
        plain = law.sample

        def last_draw_moved(self, size, entropy, plain=plain):
            drawn = plain(self, size, entropy)
            drawn.flat[-1] += 1
            return drawn

        with monkeypatch.context() as changed:
            changed.setattr(law, "sample", last_draw_moved)
            assert noise_check(KEY) != here
    assert noise_check(KEY) == here
