"""Coins are a function of the measurement: the same numbers give the same words, any other numbers others."""

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning import Measurement
from tabulary.reconstruct.coins import coins_of, measurement_digest


def plan_of(**options):
    domain = tb.Domain({"sex": ["F", "M"], "age": range(3)})
    return tb.plan(
        domain,
        tb.Workload(domain, [("sex", "age"), ("age",)]),
        privacy=tb.PureDP(1),
        mechanism="margins",
        **options,
    )


def measured(plan, values):
    """A measurement with these values, one after another; zeros where there are too few."""
    filled = iter([*values, *[0] * 100])
    parts = []
    for shape in plan.shapes():
        parts.append(np.array([next(filled) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape))
    return Measurement(plan, tuple(parts))


some_values = st.lists(st.integers(-(2**62), 2**62), min_size=6, max_size=6)


@given(some_values)
def test_the_same_measurement_has_the_same_words(values):
    one, again = (coins_of(measured(plan_of(), values)).words(600) for _ in range(2))
    assert (one == again).all()


@given(some_values, st.integers(0, 5), st.sampled_from([1, -1, 256, 2**32]))
def test_one_changed_value_changes_the_digest_and_all_words(values, place, change):
    plan = plan_of()
    one = measured(plan, values)
    values[place] += change
    other = measured(plan, values)
    assert measurement_digest(one) != measurement_digest(other)
    assert not set(coins_of(one).words(600).tolist()) & set(coins_of(other).words(600).tolist())


def test_another_plan_with_the_same_values_has_other_words():
    one, other = measured(plan_of(), range(6)), measured(plan_of(reconstruct="least-squares"), range(6))
    assert measurement_digest(one) != measurement_digest(other)
    assert not (coins_of(one).words(50) == coins_of(other).words(50)).any()


def test_the_digest_is_what_its_docstring_says():
    measurement = measured(plan_of(), [3, -1, 4, -1, 5, -9])
    numbers = [int(value) for part in measurement.values for value in part.reshape(-1)]
    spelled = bytes.fromhex(measurement.plan.digest()) + struct.pack(f"<{len(numbers)}q", *numbers)
    assert measurement_digest(measurement) == hashlib.sha256(spelled).hexdigest()
    expected = KeyedEntropy(hashlib.sha256(spelled).digest(), "face").words(10)
    assert (coins_of(measurement).words(10) == expected).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_digest_does_not_depend_on_how_an_array_lies_in_memory(order):
    plan = plan_of()
    measurement = measured(plan, range(6))
    laid = Measurement(plan, tuple(np.array(part, order=order) for part in measurement.values))
    assert measurement_digest(laid) == measurement_digest(measurement)
