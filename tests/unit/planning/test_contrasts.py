"""Plans of contrasts: what they measure, what they refuse, and when they are chosen."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core.basis import coefficients, contrast_matrix
from tabulary.errors import InvalidPlan, PublicError, TooManyCells
from tabulary.noise import DiscreteLaplace
from tabulary.planning import Contrasts, contrast_errors, plan_from_description
from tests.memory import at_most

of_contrasts = pytest.mark.parametrize("mechanism", ["fourier", "efron-stein"])
of_counts = pytest.mark.parametrize("mechanism", ["cells", "margins"])

BINARY = tb.Domain(dict.fromkeys("ABCDEF", "01"))
PEOPLE = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]})
ZEROS = tb.Domain(dict(zip(PEOPLE.attributes, PEOPLE.levels, strict=True)), [{"age": "0-14", "job": "paid"}])


@st.composite
def requests(draw):
    sizes = draw(st.lists(st.integers(2, 5), min_size=1, max_size=4))
    domain = tb.Domain({f"x{i}": range(size) for i, size in enumerate(sizes)})
    every = list(tb.Workload.all_up_to(domain, len(sizes)).margins)
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    return {
        "domain": domain,
        "workload": tb.Workload(domain, chosen),
        "privacy": draw(st.sampled_from([tb.PureDP("1/3"), tb.ZCDP("1/8")])),
        "neighbours": draw(st.sampled_from(["add-remove", "replace"])),
    }


@of_contrasts
@given(requests())
@settings(max_examples=25)
def test_a_plan_measures_every_subset_of_every_wanted_table_once(mechanism, asked):
    try:
        plan = tb.plan(**asked, mechanism=mechanism, reconstruct="least-squares")
    except InvalidPlan:
        assert asked["workload"].margins == ((),)  # The public number of records and nothing else.
        return
    wanted = {
        s
        for margin in map(plan.measured_margin, plan.workload)
        for k in range(len(margin) + 1)
        for s in combinations(margin, k)
    }
    measured = [part.margin for part in plan.measured]
    assert len(measured) == len(set(measured))
    assert set(measured) == wanted
    assert measured[0] == ()
    for part in plan.measured:
        assert math.prod(plan.shape_of(part)) == coefficients(plan.measured_domain.shape_of(part.margin))


def test_equal_noise_on_every_coefficient_has_their_number_as_its_scale():
    plan = tb.plan(BINARY, "[A B][B C]", privacy=tb.PureDP("1/2"), mechanism="fourier")
    assert plan.sensitivity == 6
    assert {part.noise for part in plan.measured} == {DiscreteLaplace(12)}
    assert plan.encoding == "levels"


def test_the_published_example_has_its_sensitivity_in_both_relations():
    # Fungus: published 1.5 and 3.0 in units of the normalised coefficients, 2^{-6/2}; exactly 1.5 and 2.
    margins = "[A D][A B][B E][C E][C F]"
    found = [
        tb.plan(BINARY, margins, privacy=tb.PureDP(1), mechanism="fourier", neighbours=relation).sensitivity
        for relation in ("add-remove", "replace")
    ]
    assert [value / 8 for value in found] == [1.5, 2]


def test_journey_to_work_has_as_many_contrasts_as_independent_terms():
    domain = tb.datasets.load("journey-to-work").domain
    work = tb.Workload.k_way(domain, 2)
    plan = tb.plan(domain, work, privacy=tb.PureDP(1), mechanism="efron-stein")
    # 169 terms were published, of rank 121.
    assert plan.sensitivity == 121
    assert sum(math.prod(plan.shape_of(part)) for part in plan.measured) == 121


@of_contrasts
@given(requests())
@settings(max_examples=15)
def test_a_plan_survives_its_description(mechanism, asked):
    try:
        plan = tb.plan(**asked, mechanism=mechanism)
    except InvalidPlan:
        return
    assert plan_from_description(plan.describe()) == plan


@given(requests())
@settings(max_examples=25)
def test_auto_is_never_worse_than_a_mechanism_that_is_there(asked):
    try:
        chosen = tb.plan(**asked)
    except InvalidPlan:
        return
    for mechanism in ("cells", "margins", "fourier", "efron-stein", "residual"):
        alone = tb.plan(**asked, mechanism=mechanism)
        # A reconstruction that nobody asked for is not chosen: its error is not known beforehand.
        assert alone.reconstruct != "none" or chosen.expected_rmse <= alone.expected_rmse * (1 + 1e-12)


def test_a_mechanism_that_does_not_fit_is_skipped_and_not_fatal():
    # As bits these are 2^9 cells; their own number is 125.
    domain = tb.Domain({"a": range(5), "b": range(5), "c": range(5)})
    work = tb.Workload.k_way(domain, 2)
    with pytest.raises(TooManyCells, match=r"2\^9 = 512 cells, more than the cap of 200.*efron-stein"):
        tb.plan(domain, work, privacy=tb.PureDP(1), mechanism="fourier", max_cells=200)
    chosen = tb.plan(domain, work, privacy=tb.PureDP(1), max_cells=200)
    assert chosen.mechanism != "fourier"


def test_a_name_that_a_bit_would_take_does_not_stop_the_other_mechanisms():
    domain = tb.Domain({"age": "abc", "age.1": "FM"})
    assert tb.plan(domain, "[age][age.1]", privacy=tb.PureDP(1)).expected_rmse > 0


def test_padding_is_refused_before_it_fills_the_memory_and_the_alternative_is_named():
    domain = tb.Domain({f"x{i}": range(5) for i in range(9)})
    with pytest.raises(TooManyCells, match=r"2\^27 = 134,217,728 cells.*efron-stein"):
        tb.plan(domain, tb.Workload.k_way(domain, 1), privacy=tb.PureDP(1), mechanism="fourier")


@of_contrasts
def test_a_closure_that_is_too_large_is_refused_with_its_number_and_the_alternative(mechanism):
    work = tb.Workload.k_way(BINARY, 4)
    with pytest.raises(TooManyCells, match=r"closure.*cap of 40.*'margins'"):
        tb.plan(BINARY, work, privacy=tb.PureDP(1), mechanism=mechanism, max_cells=40)


@of_contrasts
def test_a_closure_within_the_cap_is_not_refused_because_tables_share_subsets(mechanism):
    # Seven coefficients: four of each table, but the three tables share most of them.
    domain = tb.Domain(dict.fromkeys("ABC", "01"))
    plan = tb.plan(
        domain, "[A B][A C][B C]", privacy=tb.PureDP(1), mechanism=mechanism, max_cells=10, reconstruct="none"
    )
    assert plan.sensitivity == 7


@pytest.mark.parametrize(
    ("domain", "mechanism"),
    [
        (PEOPLE, "efron-stein"),
        (PEOPLE, "fourier"),
        (ZEROS, "efron-stein"),
        (ZEROS, "margins"),
        (BINARY, "fourier"),
    ],
)
def test_the_official_face_is_the_default_of_every_mechanism(domain, mechanism):
    work = tb.Workload.k_way(domain, 2)
    plan = tb.plan(domain, work, privacy=tb.PureDP(1), mechanism=mechanism)
    assert (plan.reconstruct, plan.rounding) == ("shrink", "controlled")
    assert plan.face.official
    assert plan.face.whole(plan)


@pytest.mark.parametrize("rounding", ["nearest", "controlled"])
@pytest.mark.parametrize("reconstruct", ["none", "shift"])
def test_rounding_without_tables_that_agree_is_refused(rounding, reconstruct):
    with pytest.raises(InvalidPlan, match="'shrink', 'least-squares' or 'lp'"):
        tb.plan(
            BINARY,
            "[A B]",
            privacy=tb.PureDP(1),
            mechanism="fourier",
            reconstruct=reconstruct,
            rounding=rounding,
        )


@of_counts
def test_a_shift_of_counts_is_refused(mechanism):
    with pytest.raises(InvalidPlan, match="'fourier' or 'efron-stein'"):
        tb.plan(BINARY, "[A B]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="shift")


def test_a_shift_makes_auto_choose_among_mechanisms_that_can_be_shifted():
    chosen = tb.plan(BINARY, "[A B]", privacy=tb.PureDP(1), reconstruct="shift")
    assert chosen.query is Contrasts


@pytest.mark.parametrize("mechanism", ["fourier", "efron-stein", "margins"])
@pytest.mark.parametrize("reconstruct", ["lp", "least-squares"])
def test_a_full_table_that_does_not_fit_is_refused_with_its_number_and_the_alternative(
    mechanism, reconstruct
):
    domain = tb.Domain({f"x{i}": "01" for i in range(30)})
    work = tb.Workload.k_way(domain, 1)
    with pytest.raises(TooManyCells, match=r"1,073,741,824 cells.*reconstruct = 'shrink'"):
        tb.plan(domain, work, privacy=tb.PureDP(1), mechanism=mechanism, reconstruct=reconstruct)
    assert tb.plan(domain, work, privacy=tb.PureDP(1), mechanism=mechanism).reconstruct == "shrink"


@pytest.mark.parametrize("mechanism", ["auto", "fourier", "efron-stein"])
def test_a_reconstruction_that_was_chosen_for_the_caller_must_fit_too(mechanism):
    domain = tb.Domain({f"x{i}": "01" for i in range(30)}, [{"x0": "0", "x1": "1"}])
    work = tb.Workload.k_way(domain, 2)
    try:
        plan = tb.plan(domain, work, privacy=tb.ZCDP(1), mechanism=mechanism)
    except TooManyCells:
        assert mechanism != "auto"
    else:
        # Shrunk tables need no full one.
        assert plan.reconstruct in ("none", "shrink")


def test_impossible_cells_are_not_counted_among_those_with_an_error():
    plan = tb.plan(ZEROS, "[age job]", privacy=tb.PureDP(1), mechanism="efron-stein")
    assert plan.expected_error()["age", "job"].cells == 5
    assert plan.error_of(("age", "job")).standard_errors[0, 1] == 0


@of_contrasts
def test_tables_that_no_person_can_change_are_refused(mechanism):
    with pytest.raises(InvalidPlan, match="no person can change"):
        tb.plan(BINARY, "[]", privacy=tb.PureDP(1), mechanism=mechanism, neighbours="replace")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("rounding", "nearest", "rounding needs tables that are non-negative"),
        ("mechanism", "cells", "does not measure what this plan lists"),
        ("reconstruct", "magic", "reconstruct must be one of"),
    ],
)
def test_a_description_of_what_no_plan_can_be_is_refused(key, value, reason):
    plan = tb.plan(
        ZEROS, "[age job]", privacy=tb.PureDP(1), mechanism="efron-stein", reconstruct="lp", rounding="none"
    )
    described = plan.describe()
    described[key] = value
    if key == "rounding":
        described["reconstruct"] = "none"
    with pytest.raises(PublicError, match=reason):
        plan_from_description(described)


def test_the_linear_program_on_cells_alone_is_refused_with_an_alternative():
    with pytest.raises(InvalidPlan, match="least-squares"):
        tb.plan(BINARY, "[A B]", privacy=tb.PureDP(1), mechanism="cells", reconstruct="lp")


@pytest.mark.parametrize("shape", [(2,), (5,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("power", [2, 4])
def test_powers_of_the_basis_are_added_up_without_a_matrix(shape, power):
    values = np.random.default_rng(1).random(shape)
    expected = values
    for axis, levels in enumerate(shape):
        matrix = contrast_matrix(levels).astype(float) ** power
        expected = np.moveaxis(np.tensordot(matrix.T, expected, axes=(1, axis)), 0, axis)
    assert np.allclose(contrast_errors.basis_powers(values, power), expected, rtol=1e-12)


def test_the_errors_of_an_attribute_of_many_levels_take_no_more_room_than_its_table():
    with at_most(64):
        domain = tb.Domain({"place": range(20_000)})
        tb.plan(domain, "[place]", privacy=tb.PureDP(1), mechanism="efron-stein").expected_error()
