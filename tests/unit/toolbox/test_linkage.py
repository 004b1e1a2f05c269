from collections import Counter
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tabulary.confidential.records import Records
from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, InvalidColumn, TooManyCells
from tabulary.toolbox import intersection, intersection_attack, link
from tests.unit.toolbox.slides_tables import CLINIC, HOSPITAL, KNOWN

WOMAN = {"Age": "50-60", "Gender": "Female", "Zip Code": "191**"}
ILLNESSES = ["flu", "gout", "HIV"]

keys = st.tuples(st.sampled_from("ab"), st.integers(0, 1))
patients = st.lists(
    st.tuples(*[st.sampled_from("ab"), st.integers(0, 1), st.sampled_from(ILLNESSES)]),
    min_size=1,
    max_size=12,
)


def table_of(rows, names=("sex", "age", "illness")):
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def attack(first, second):
    return intersection_attack(first, second, ["sex", "age"], sensitive="illness")


# The two releases of the slides.


@pytest.mark.parametrize("known", [KNOWN, [*KNOWN, "Smoker"]])
def test_the_woman_of_the_slides_who_is_in_both_tables_has_hiv(known):
    found = intersection_attack(CLINIC, HOSPITAL, known, sensitive="Diagnosis")
    assert found.possible(WOMAN) == ("HIV",)
    assert (found.first_smallest, found.second_smallest) == (2, 3)
    assert (found.pairs, found.pinned, found.contradictory) == (2, 1, 1)
    assert (found.first_exposed, found.second_exposed) == (2, 3)
    (exposed,) = found.exposed()
    assert exposed.values == ("HIV",)
    assert WOMAN.items() <= exposed.known.items()
    assert exposed.records == 2


def test_nobody_of_the_men_of_sixty_can_be_in_both_tables_of_the_slides():
    found = intersection_attack(CLINIC, HOSPITAL, KNOWN, sensitive="Diagnosis")
    assert found.possible({"Age": "60-70", "Gender": "Male"}) == ()


def test_knowing_less_leaves_more_possible():
    found = intersection_attack(CLINIC, HOSPITAL, KNOWN, sensitive="Diagnosis")
    assert found.possible({}) == ("HIV", "Ulcerative Colitis")
    assert found.possible({"Gender": "Female"}) == ("HIV",)


def test_the_order_of_the_releases_does_not_matter():
    one = intersection_attack(CLINIC, HOSPITAL, KNOWN, sensitive="Diagnosis")
    other = intersection_attack(HOSPITAL, CLINIC, KNOWN, sensitive="Diagnosis")
    assert one.possible(WOMAN) == other.possible(WOMAN)
    assert (one.first_exposed, one.second_exposed) == (other.second_exposed, other.first_exposed)
    assert one.exposed() == other.exposed()


def test_what_only_one_release_knows_sharpens_the_attack():
    first = table_of([("a", "y", "flu"), ("a", "n", "gout")], ("sex", "smoker", "illness"))
    second = table_of([("a", "flu"), ("a", "gout")], ("sex", "illness"))
    assert intersection_attack(first, second, ["sex"], sensitive="illness").pinned == 0
    found = intersection_attack(first, second, ["sex", "smoker"], sensitive="illness")
    assert (found.pairs, found.pinned, found.first_exposed, found.second_exposed) == (2, 2, 2, 2)
    assert found.possible({"sex": "a", "smoker": "y"}) == ("flu",)
    assert [each.known for each in found.exposed()] == [
        {"sex": "a", "smoker": "n"},
        {"sex": "a", "smoker": "y"},
    ]


@given(patients, patients)
def test_the_attack_agrees_with_trying_every_person(first, second):
    assume({r[0] for r in first} & {r[0] for r in second} and {r[1] for r in first} & {r[1] for r in second})
    found = attack(table_of(first), table_of(second))
    pairs = pinned = contradictory = 0
    exposed = [0, 0]
    for sex in "ab":
        for age in (0, 1):
            sides = [[i for s, a, i in rows if (s, a) == (sex, age)] for rows in (first, second)]
            left = set(sides[0]) & set(sides[1])
            assert set(found.possible({"sex": sex, "age": age})) == left
            if all(sides):
                pairs += 1
                pinned += len(left) == 1
                contradictory += not left
                exposed = [e + len(side) * (len(left) == 1) for e, side in zip(exposed, sides, strict=True)]
    assert (found.pairs, found.pinned, found.contradictory) == (pairs, pinned, contradictory)
    assert [found.first_exposed, found.second_exposed] == exposed


@given(patients, st.data())
def test_whoever_is_in_both_releases_is_never_excluded(first, data):
    person = data.draw(st.sampled_from(first))
    second = [*data.draw(patients), person]
    found = attack(table_of(first), table_of(second))
    assert person[2] in found.possible({"sex": person[0], "age": person[1]})


def test_releases_of_every_kind_are_compared():
    rows, others = [("a", 0, "flu"), ("a", 0, "gout")], [("a", 0, "flu"), ("b", 1, "HIV")]
    domain = Domain({"sex": ["a", "b"], "age": [0, 1], "illness": ILLNESSES})
    expected = attack(table_of(rows), table_of(others))
    with Records.from_arrow(table_of(others), domain) as records:
        for second in (table_of(others).to_pandas(), pl.from_arrow(table_of(others)), records):
            found = attack(table_of(rows), second)
            assert found == expected
            assert found.exposed() == expected.exposed()


def test_a_question_about_a_column_that_was_not_compared_is_refused():
    found = intersection_attack(CLINIC, HOSPITAL, KNOWN, sensitive="Diagnosis")
    for name in ("Smoker", "Diagnosis", "Name"):
        with pytest.raises(InvalidArgument, match="is not one of"):
            found.possible({name: "Y"})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["Name"], "have none of the columns"),
        ([*KNOWN, "Name"], "neither release has a column 'Name'"),
        (["Smoker"], "second release have none"),
    ],
)
def test_columns_that_no_release_has_are_refused(names, message):
    with pytest.raises(InvalidArgument, match=message):
        intersection_attack(CLINIC, HOSPITAL, names, sensitive="Diagnosis")


def test_releases_without_a_common_column_are_refused():
    first = table_of([("a", "flu")], ("sex", "illness"))
    second = table_of([("a", "flu")], ("gender", "illness"))
    with pytest.raises(InvalidArgument, match="in common"):
        intersection_attack(first, second, ["sex", "gender"], sensitive="illness")


def test_releases_coarsened_in_two_ways_are_refused_rather_than_called_safe():
    first, second = (
        table_of([("191**", "flu")], ("zip", "illness")),
        table_of([("19***", "flu")], ("zip", "illness")),
    )
    with pytest.raises(InvalidColumn, match="no value that occurs in both") as caught:
        intersection_attack(first, second, ["zip"], sensitive="illness")
    assert "191" not in str(caught.value)


def test_more_pairs_than_are_compared_are_refused(monkeypatch):
    monkeypatch.setattr(intersection, "MOST_PAIRS", 3)
    first = table_of([("a", n, "flu") for n in "12"], ("sex", "left", "illness"))
    second = table_of([("a", n, "flu") for n in "12"], ("sex", "right", "illness"))
    with pytest.raises(TooManyCells, match="Name fewer columns"):
        intersection_attack(first, second, ["sex", "left", "right"], sensitive="illness")


# A release beside a register.


@given(st.lists(keys, min_size=1, max_size=15), st.lists(keys, min_size=1, max_size=15))
def test_linkage_agrees_with_comparing_every_record_with_every_person(ours, theirs):
    assume(all({row[i] for row in ours} & {row[i] for row in theirs} for i in (0, 1)))
    found = link(table_of(ours, ("sex", "age")), table_of(theirs, ("sex", "age")), ["sex", "age"])
    matches = [sum(record == person for person in theirs) for record in ours]
    assert (found.records, found.people) == (len(ours), len(theirs))
    assert found.none == matches.count(0)
    assert found.one == matches.count(1)
    assert found.several == sum(count > 1 for count in matches)
    assert found.mutual == sum(
        count == 1 and ours.count(record) == 1 for record, count in zip(ours, matches, strict=True)
    )
    assert found.expected == sum(Fraction(1, count) for count in matches if count)
    single = {
        (sex, str(age)): size for (sex, age), size in Counter(ours).items() if theirs.count((sex, age)) == 1
    }
    assert {tuple(e.known.values()): e.records for e in found.exposed(limit=100)} == single


@given(st.lists(keys, min_size=1, max_size=15))
def test_a_table_linked_with_itself_names_exactly_its_uniques(rows):
    table = table_of(rows, ("sex", "age"))
    found = link(table, table, ["sex", "age"])
    uniques = sum(size == 1 for size in Counter(rows).values())
    assert (found.one, found.mutual, found.none) == (uniques, uniques, 0)
    assert found.expected == len(set(rows))


def test_numbers_are_linked_by_value_and_text_by_its_letters():
    register = pd.DataFrame({"age": [53.0, 61.0], "name": ["Ada", "Max"]})
    assert link(pa.table({"age": [53, 54]}), register, ["age"]).one == 1
    assert link(pa.table({"age": ["53", "061"]}), register, ["age"]).one == 1


def test_a_register_that_shares_no_value_is_refused_rather_than_called_safe():
    with pytest.raises(
        InvalidColumn, match="no value that occurs in both the records and the register"
    ) as caught:
        link(pa.table({"zip": ["191**"]}), pa.table({"zip": ["19104"]}), ["zip"])
    assert "191" not in str(caught.value)


def test_a_column_that_the_register_has_not_is_named():
    with pytest.raises(InvalidColumn, match="the people of the register have no column 'zip'"):
        link(pa.table({"zip": ["191**"]}), pa.table({"age": [3]}), ["zip"])
