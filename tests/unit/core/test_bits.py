"""Levels as bits: nothing is lost, and nothing can be where no level is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core import bits
from tabulary.core.bits import binary_domain, bits_of, from_bits, to_bits
from tabulary.core.domain import Domain
from tabulary.errors import TooManyCells
from tests.unit.core.small_domains import domains, margins_of


def codes(domain, margin):
    """The cells of a margin's bits that stand for levels, in the order of the margin's cells."""
    numbers = np.arange(1, np.prod(domain.shape_of(margin), dtype=int) + 1).reshape(domain.shape_of(margin))
    return to_bits(domain, margin, numbers)


@given(domains(max_levels=5), st.data())
@settings(max_examples=60)
def test_a_table_survives_the_way_to_bits_and_back(domain, data):
    margin = data.draw(margins_of(domain))
    size = int(np.prod(domain.shape_of(margin), dtype=int))
    table = np.arange(1.0, size + 1).reshape(domain.shape_of(margin))
    there = to_bits(domain, margin, table)
    assert there.shape == (2,) * len(bits_of(domain, margin))
    assert there.sum() == table.sum()
    assert (there > 0).sum() == size
    assert (from_bits(domain, margin, there) == table).all()


@given(domains(max_levels=5), st.data())
@settings(max_examples=60)
def test_what_is_impossible_as_bits_is_what_has_no_level_or_was_impossible_before(domain, data):
    margin = data.draw(margins_of(domain))
    as_bits = binary_domain(domain)
    possible = to_bits(domain, margin, (~domain.impossible(margin)).astype(np.int64)).astype(bool)
    assert (as_bits.impossible(bits_of(domain, margin)) == ~possible).all()


@given(domains(max_levels=5), st.data())
@settings(max_examples=40)
def test_summing_out_an_attribute_is_summing_out_its_bits(domain, data):
    margin = data.draw(margins_of(domain))
    table = np.arange(np.prod(domain.shape, dtype=int)).reshape(domain.shape)
    summed = tuple(i for i, a in enumerate(domain.attributes) if a not in margin)
    all_bits = bits_of(domain, domain.attributes)
    dropped = tuple(i for i, b in enumerate(all_bits) if b not in bits_of(domain, margin))
    whole = to_bits(domain, domain.attributes, table).sum(axis=dropped)
    assert (whole == to_bits(domain, margin, table.sum(axis=summed))).all()


def test_binary_attributes_stay_as_they_are():
    domain = Domain({"sex": "FM", "job": ["none", "paid"]}, [{"sex": "F", "job": "paid"}])
    assert binary_domain(domain) is domain
    table = np.array([[1, 2], [3, 4]])
    assert (to_bits(domain, domain.attributes, table) == table).all()


def test_a_binary_attribute_keeps_its_labels_beside_one_that_becomes_bits():
    as_bits = binary_domain(Domain({"sex": "FM", "age": "abcde"}))
    assert as_bits.attributes == ("sex", "age.1", "age.2", "age.3")
    assert as_bits.levels == (("F", "M"), ("0", "1"), ("0", "1"), ("0", "1"))


def test_the_most_significant_bit_comes_first():
    domain = Domain({"age": "abcde"})
    assert codes(domain, ("age",)).reshape(-1).tolist() == [1, 2, 3, 4, 5, 0, 0, 0]


def test_an_attribute_of_one_level_needs_no_bit():
    domain = Domain({"planet": ["Earth"], "age": "abc"})
    assert bits_of(domain, ("planet", "age")) == ("age.1", "age.2")
    assert to_bits(domain, ("planet",), np.array([7])).tolist() == 7


def test_a_name_that_a_bit_would_take_is_not_confused_with_it():
    domain = Domain({"age": "abc", "age.1": ["0", "1"]})
    as_bits = binary_domain(domain)
    assert len(set(as_bits.attributes)) == 3
    named = bits_of(domain, domain.attributes)
    assert len(set(named)) == 3
    possible = to_bits(domain, domain.attributes, np.ones((3, 2), dtype=np.int64)).astype(bool)
    assert (as_bits.impossible(named) == ~possible).all()


def test_more_codes_than_can_be_listed_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(bits, "MOST_CODES", 8)
    domain = Domain({"a": range(5), "b": range(5)}, [{"a": [0, 1, 2], "b": [0, 1, 2]}])
    with pytest.raises(TooManyCells, match="efron-stein"):
        binary_domain(domain)
