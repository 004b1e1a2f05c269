"""Independent tables: products where nothing is forbidden, and as near as structural zeros allow where something is."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.errors import InvalidDomain
from tabulary.reconstruct.independence import Independence

TIED = Domain(
    {"age": ["0-14", "15-64", "65+"], "job": ["none", "paid"], "sex": ["F", "M"], "pension": ["no", "yes"]},
    [{"age": "0-14", "job": "paid"}, {"age": ["0-14", "15-64"], "pension": "yes"}],
)


def test_without_zeros_every_table_is_the_product_of_its_attributes():
    domain = Domain({"a": range(2), "b": range(3), "c": range(1)})
    ones = {"a": np.array([30.0, 10.0]), "b": np.array([20.0, 0.0, 20.0]), "c": np.array([40.0])}
    found = Independence(domain, ones, 40.0)
    assert found.table(("a", "b")) == pytest.approx(np.outer(ones["a"], ones["b"]) / 40)
    assert found.table(("a", "b", "c")).shape == (2, 3, 1)
    assert found.table(()) == 40
    assert found.ones["a"] is ones["a"]


@pytest.mark.parametrize("domain", [TIED, Domain({"age": range(3), "job": range(2)})])
def test_a_total_of_nothing_is_nothing_everywhere(domain):
    ones = {a: np.zeros(len(domain.levels_of(a))) for a in domain.attributes}
    table = Independence(domain, ones, 0.0).table(domain.attributes)
    assert table.shape == domain.shape
    assert not table.any()


def test_zeros_force_as_little_dependence_as_they_can():
    truth = np.array([[20.0, 0.0], [30.0, 60.0], [10.0, 5.0]])
    domain = Domain({"age": range(3), "job": range(2)}, [{"age": 0, "job": 1}])
    ones = {"age": truth.sum(axis=1), "job": truth.sum(axis=0)}
    table = Independence(domain, ones, 125.0).table(("age", "job"))
    assert table[0, 1] == 0
    assert table.sum(axis=1) == pytest.approx(ones["age"])
    assert table.sum(axis=0) == pytest.approx(ones["job"])
    # Where nothing is forbidden, there is no interaction.
    assert table[1, 0] / table[1, 1] == pytest.approx(table[2, 0] / table[2, 1])


def test_attributes_outside_the_zeros_stay_independent_of_those_inside():
    ones = {
        "age": np.array([20.0, 60.0, 20.0]),
        "job": np.array([50.0, 50.0]),
        "sex": np.array([40.0, 60.0]),
        "pension": np.array([85.0, 15.0]),
    }
    found = Independence(TIED, ones, 100.0)
    full = found.table(TIED.attributes)
    assert not full[TIED.impossible(TIED.attributes)].any()
    shares = full.sum(axis=(0, 1, 3)) / 100
    assert full == pytest.approx(full.sum(axis=2, keepdims=True) * shares[:, None])


@st.composite
def tied(draw):
    """A domain with zeros and tables of single attributes that need not fit to them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    names = "abcd"[: len(sizes)]
    level = st.integers(0, 3)
    zeros = draw(st.lists(st.dictionaries(st.sampled_from(names), level, min_size=1, max_size=3), max_size=4))
    zeros = [{a: v % sizes[names.index(a)] for a, v in zero.items()} for zero in zeros]
    try:
        domain = Domain({a: range(k) for a, k in zip(names, sizes, strict=True)}, zeros)
    except InvalidDomain:
        assume(False)
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    total = draw(st.sampled_from([1e-3, 1.0, 1e3, 1e9]))
    ones = {}
    for a, k in zip(names, sizes, strict=True):
        possible = ~domain.impossible((a,))
        own = np.where(possible & (generator.random(k) < 0.7), generator.random(k), 0.0)
        own = own if own.any() else possible.astype(float)
        ones[a] = own * total / own.sum()
    return domain, ones, total


@given(tied())
def test_all_margins_agree_whatever_the_zeros_and_the_attributes_say(drawn):
    domain, ones, total = drawn
    found = Independence(domain, ones, total)
    full = found.table(domain.attributes)
    assert (full >= 0).all()
    assert full.sum() == pytest.approx(total)
    assert not full[domain.impossible(domain.attributes)].any()
    for order in range(len(domain.attributes) + 1):
        for margin in itertools.combinations(domain.attributes, order):
            summed = full.sum(axis=tuple(i for i, a in enumerate(domain.attributes) if a not in margin))
            assert found.table(margin) == pytest.approx(summed, rel=1e-9, abs=1e-9 * total)
    for a in domain.attributes:
        assert found.ones[a] == pytest.approx(found.table((a,)), rel=1e-9, abs=1e-9 * total)


def test_of_counties_and_states_that_contradict_each_other_the_states_decide():
    counties = {"county": range(6), "state": range(2)}
    apart = [{"county": c, "state": 1 - c // 3} for c in range(6)]
    ones = {"county": np.array([10.0, 20.0, 30.0, 15.0, 15.0, 10.0]), "state": np.array([50.0, 50.0])}
    found = Independence(Domain(counties, apart), ones, 100.0)
    assert found.ones["state"] == pytest.approx([50, 50])
    assert found.ones["county"][:3] == pytest.approx(np.array([10, 20, 30]) * 50 / 60)
    turned = Independence(Domain({"state": range(2), "county": range(6)}, apart), ones, 100.0)
    assert turned.ones["state"] == pytest.approx([50, 50])


def test_levels_that_exclude_each_other_do_not_lose_the_total():
    domain = Domain({"a": range(2), "b": range(2), "c": range(2)}, [{"a": 0, "b": 1}])
    # Everybody has a = 0 and b = 1, says the noise; nobody can.
    ones = {"a": np.array([9.0, 0.0]), "b": np.array([0.0, 9.0]), "c": np.array([4.0, 5.0])}
    found = Independence(domain, ones, 9.0)
    assert found.table(("a", "b")).sum() == pytest.approx(9)
    assert found.table(("a", "b"))[0, 1] == 0
    assert found.table(("a", "c")).sum() == pytest.approx(9)
