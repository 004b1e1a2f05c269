from dataclasses import FrozenInstanceError
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain, bin_labels
from tabulary.errors import InvalidDomain, PublicError, TooManyCells
from tests.unit.core.small_domains import counted, domains, margins_of, possible_cells


@given(domains(), st.data())
def test_the_multiplicity_of_a_margin_counts_the_possible_cells_it_sums_over(domain, data):
    margin = data.draw(margins_of(domain))
    assert np.array_equal(domain.multiplicity(margin), counted(domain, margin, possible_cells(domain)))


@given(domains(), st.data())
def test_a_cell_of_a_margin_is_impossible_when_every_cell_it_sums_over_is(domain, data):
    margin = data.draw(margins_of(domain))
    assert np.array_equal(domain.impossible(margin), counted(domain, margin, possible_cells(domain)) == 0)


@given(domains(), st.data())
def test_the_domain_of_a_margin_rules_out_the_same_cells(domain, data):
    margin = data.draw(margins_of(domain))
    projected = domain.project(margin)
    assert projected.attributes == margin
    assert projected.shape == domain.shape_of(margin)
    assert np.array_equal(projected.impossible(margin), domain.impossible(margin))
    # Made without the checks of a written domain, and the same as one that passes them.
    assert Domain.from_description(projected.describe()) == projected


@given(domains(), st.data())
def test_projecting_twice_is_projecting_once(domain, data):
    margin = data.draw(margins_of(domain))
    lower = data.draw(st.sets(st.sampled_from(margin)).map(domain.margin) if margin else st.just(()))
    twice, once = domain.project(margin).project(lower), domain.project(lower)
    assert twice.levels == once.levels
    assert np.array_equal(twice.impossible(lower), once.impossible(lower))


@given(domains())
def test_the_groups_of_structural_zeros_share_no_attribute(domain):
    named = [a for attributes, _ in domain.zero_blocks for a in attributes]
    assert len(named) == len(set(named))


@given(domains())
def test_a_description_gives_the_domain_back(domain):
    assert Domain.from_description(domain.describe()) == domain
    assert hash(Domain.from_description(domain.describe())) == hash(domain)


def test_the_domain_knows_its_shape_size_and_codes():
    domain = Domain({"sex": ["F", "M"], "age": ["young", "middle", "old"], "floor": [1, 2]})
    assert domain.shape == (2, 3, 2)
    assert domain.size == 12
    assert domain.position("age") == 1
    assert domain.code("age", "old") == 2
    assert domain.code("floor", 2) == domain.code("floor", "2") == 1
    assert domain.levels_of("floor") == ("1", "2")
    assert domain.cells(("sex", "floor")) == 4
    assert domain.cells(()) == 1


def test_a_margin_comes_back_in_the_order_of_the_domain():
    domain = Domain({"A": "xy", "B": "xy", "C": "xy"})
    assert domain.margin(["C", "A"]) == ("A", "C")
    assert domain.margin("B") == ("B",)
    assert domain.margin([]) == ()


def test_zeros_on_a_huge_domain_never_build_the_full_table():
    domain = Domain({f"a{i}": range(10) for i in range(30)}, [{"a0": 1, "a1": 2}, {"a5": 3, "a6": [4, 5]}])
    assert domain.size == 10**30
    assert domain.impossible(("a0", "a1")).sum() == 1
    assert domain.impossible(("a5", "a6")).sum() == 2
    assert domain.multiplicity(("a9",)).min() == 2**62


def test_a_repeated_structural_zero_is_kept_once():
    zero = {"a": "x", "b": ["x", "y"]}
    assert Domain({"a": "xy", "b": "xyz"}, [zero, {"b": ["y", "x"], "a": ["x"]}]).structural_zeros == (
        (("a", ("x",)), ("b", ("x", "y"))),
    )


def test_a_domain_cannot_be_changed():
    domain = Domain({"a": "xy", "b": "xy"}, [{"a": "x", "b": "y"}])
    with pytest.raises(FrozenInstanceError):
        domain.attributes = ("b", "a")
    [(_, mask)] = domain.zero_blocks
    with pytest.raises(ValueError, match="read-only"):
        mask[0, 0] = True


def test_equal_domains_are_equal_and_others_are_not():
    assert Domain({"a": "xy"}) == Domain({"a": ["x", "y"]})
    assert Domain({"a": "xy"}) != Domain({"a": "yx"})
    assert Domain({"a": "xy", "b": "xy"}) != Domain({"b": "xy", "a": "xy"})
    assert Domain({"a": "xy"}) != Domain({"a": "xy"}, [{"a": "x"}])


@pytest.mark.parametrize("attribute", ["salary", "", None, 3])
def test_an_unknown_attribute_is_refused_with_those_there_are(attribute):
    domain = Domain({"sex": "FM", "age": "12"})
    for ask in (
        domain.position,
        domain.levels_of,
        lambda a: domain.margin([a]),
        lambda a: domain.code(a, "F"),
    ):
        with pytest.raises(InvalidDomain, match="It has 'sex', 'age'"):
            ask(attribute)


def test_an_attribute_named_twice_in_a_margin_is_refused():
    with pytest.raises(InvalidDomain, match="names attribute 'sex' twice"):
        Domain({"sex": "FM", "age": "12"}).margin(["sex", "age", "sex"])


def test_an_unknown_level_is_refused_with_those_there_are():
    with pytest.raises(InvalidDomain, match=r"no level 'X'\. It has 'F', 'M'"):
        Domain({"sex": "FM"}).code("sex", "X")


@pytest.mark.parametrize("levels", [["x", "y", "x"], [1, "1"]])
def test_a_duplicate_level_is_refused_by_name(levels):
    with pytest.raises(InvalidDomain, match=r"attribute 'a' names the level '[x1]' twice"):
        Domain({"a": levels})


@pytest.mark.parametrize(
    "levels", [[], [""], [" x"], ["x\n"], [None], [1.5], [True, False], [("x",)], ["x\x00"], [float("nan")]]
)
def test_levels_that_cannot_be_are_refused(levels):
    with pytest.raises(InvalidDomain, match="attribute 'a'"):
        Domain({"a": levels})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "printable text without outer spaces") for name in ("", " a", "a ", "a\tb", 3, None)),
        *((name, "must not contain brackets, commas or double quotes") for name in ("[a]", "a,b", 'a"b')),
    ],
)
def test_names_that_cannot_be_written_in_a_workload_are_refused(name, reason):
    with pytest.raises(InvalidDomain, match=reason):
        Domain({name: "xy"})


@pytest.mark.parametrize("levels", [["a", "b"], None, "ab", 3])
def test_a_domain_that_is_not_a_mapping_is_refused(levels):
    with pytest.raises(InvalidDomain, match="mapping"):
        Domain(levels)


@pytest.mark.parametrize("levels", [None, 5])
def test_levels_that_are_not_a_list_are_refused(levels):
    with pytest.raises(InvalidDomain, match="attribute 'a'"):
        Domain({"a": levels})


@pytest.mark.parametrize(
    ("zero", "reason"),
    [
        *((zero, "a structural zero must be a mapping") for zero in ({}, "a", None)),
        ({"a": []}, "names no level of attribute 'a'"),
        ({"a": "z"}, "no level 'z'"),
        ({"q": "x"}, "no attribute 'q'"),
        ({"a": ["x", "z"]}, "no level 'z'"),
        ({"a": True}, "no level True"),
    ],
)
def test_structural_zeros_that_cannot_be_are_refused(zero, reason):
    with pytest.raises(InvalidDomain, match=reason):
        Domain({"a": "xy", "b": "xy"}, [zero])


def test_a_structural_zero_may_name_a_level_as_a_numpy_number():
    assert Domain({"a": np.arange(3)}, [{"a": np.int64(1)}]).impossible(("a",)).tolist() == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "zeros",
    [
        [{"a": ["x", "y"]}],
        [{"a": "x"}, {"a": "y"}],
        [{"a": "x", "b": ["x", "y"]}, {"a": "y"}],
        [{"a": a, "b": b} for a, b in product("xy", "xy")],
        [{"a": "x", "b": "x"}, {"b": "y"}, {"a": "y", "c": ["x", "y"]}],
    ],
)
def test_structural_zeros_that_leave_nothing_possible_are_refused(zeros):
    with pytest.raises(InvalidDomain, match="contradict each other: they leave no combination of"):
        Domain({"a": "xy", "b": "xy", "c": "xy"}, zeros)


def test_structural_zeros_that_tie_too_much_together_are_refused_with_the_number():
    levels = {a: range(1000) for a in "abc"}
    with pytest.raises(TooManyCells, match="1,000,000,000 combinations"):
        Domain(levels, [{"a": 1, "b": 1}, {"b": 2, "c": 2}])


def test_a_table_above_the_cap_is_refused_with_the_number():
    domain = Domain({"postcode": range(10_000), "age": range(100), "job": range(50)})
    with pytest.raises(TooManyCells, match=r"50,000,000 cells, more than the cap of 10,000,000\.") as refusal:
        domain.check_cells(("postcode", "age", "job"))
    assert isinstance(refusal.value, PublicError)


def test_the_cap_itself_is_allowed_and_can_be_raised():
    domain = Domain({"a": range(10_000), "b": range(1000), "c": "xy"})
    domain.check_cells(("a", "b"))
    domain.check_cells(("a", "b", "c"), cap=20_000_000)
    with pytest.raises(TooManyCells, match="more than the cap of 19,999,999"):
        domain.check_cells(("a", "b", "c"), cap=19_999_999)


def test_a_margin_in_another_order_is_answered_in_that_order_or_refused():
    domain = Domain({"a": "xyz", "b": "xy"}, [{"a": "x", "b": "y"}])
    try:
        impossible = domain.impossible(("b", "a"))
    except InvalidDomain:
        return
    assert np.array_equal(impossible, domain.impossible(("a", "b")).T)


NOT_OURS = "not the description of a domain that Tabulary writes"


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        (None, NOT_OURS),
        ([], NOT_OURS),
        ("domain", NOT_OURS),
        ({}, NOT_OURS),
        ({"attributes": []}, NOT_OURS),
        ({"attributes": {}, "structural_zeros": []}, NOT_OURS),
        ({"attributes": [], "structural_zeros": [], "more": 1}, NOT_OURS),
        ({"attributes": ["a"], "structural_zeros": []}, NOT_OURS),
        ({"attributes": [{"name": 3, "levels": ["x"]}], "structural_zeros": []}, NOT_OURS),
        ({"attributes": [{"name": "a", "levels": ["x"]}] * 2, "structural_zeros": []}, NOT_OURS),
        ({"attributes": [{"name": "a", "levels": ["x", "x"]}], "structural_zeros": []}, "'x' twice"),
        (
            {"attributes": [{"name": "a", "levels": ["x"]}], "structural_zeros": [{"b": ["x"]}]},
            "attribute 'b'",
        ),
    ],
)
def test_a_description_that_tabulary_did_not_write_is_refused(description, reason):
    with pytest.raises(InvalidDomain, match=reason):
        Domain.from_description(description)


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ({"attributes": [{"name": "a"}], "structural_zeros": []}, NOT_OURS),
        ({"attributes": [{"name": "a", "levels": 5}], "structural_zeros": []}, NOT_OURS),
        ({"attributes": [{"name": "a", "levels": "xy"}], "structural_zeros": []}, NOT_OURS),
        ({"attributes": [{"name": "a", "levels": ["x"], "more": 1}], "structural_zeros": []}, NOT_OURS),
        (
            {"attributes": [{"name": "a", "levels": ["x", "y"]}], "structural_zeros": [{"a": None}]},
            "one level or a list of levels",
        ),
    ],
)
def test_a_description_with_a_damaged_attribute_is_refused(description, reason):
    with pytest.raises(InvalidDomain, match=reason):
        Domain.from_description(description)


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([0, 15, 65], ("0-14", "15-64", "65+")),
        ([0, 1, 2], ("0", "1", "2+")),
        ([18], ("18+",)),
        ([0.0, 5.0], ("0-4", "5+")),
        ([-5, 0, 0.5], ("-5 to under 0", "0 to under 0.5", "0.5+")),
    ],
)
def test_bins_are_named_by_what_they_hold(edges, labels):
    assert bin_labels(edges) == labels


@pytest.mark.parametrize(
    "edges", [[], [1, 1], [2, 1], [0, float("nan")], [0, float("inf")], ["a"], [True, 2]]
)
def test_bins_that_cannot_be_are_refused(edges):
    with pytest.raises(InvalidDomain, match="bins"):
        bin_labels(edges)
