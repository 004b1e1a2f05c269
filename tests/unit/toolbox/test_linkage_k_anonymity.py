import copy
import pickle
from collections import Counter, defaultdict
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.confidential.records import Records
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, InvalidColumn, UnreadableSource, WeightedRecords
from tabulary.toolbox import homogeneity, intersection_attack, k_anonymity, link, risks
from tests.unit.toolbox.slides_tables import CLINIC, HOSPITAL, KNOWN

SECRET = "987654"

people = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.sampled_from(["flu", "gout", "HIV"])),
    min_size=1,
    max_size=25,
)


def frame_of(rows):
    return pa.table(dict(zip(("sex", "age", "illness"), zip(*rows, strict=True), strict=True)))


def test_the_clinic_of_the_slides_is_two_anonymous_even_by_smoking():
    found = k_anonymity(CLINIC, [*KNOWN, "Smoker"], k=2)
    assert (found.holds, found.smallest, found.classes, found.uniques) == (True, 2, 4, 0)
    assert not k_anonymity(CLINIC, KNOWN, k=3).holds


def test_the_hospital_of_the_slides_is_three_anonymous():
    found = k_anonymity(HOSPITAL, KNOWN, k=3)
    assert (found.holds, found.smallest, found.classes) == (True, 3, 2)


def test_smoking_is_disclosed_to_whoever_knows_age_and_gender():
    found = homogeneity(CLINIC, KNOWN, sensitive="Smoker")
    assert (found.homogeneous, found.disclosed, found.diversity, found.largest_share) == (4, 9, 1, 1)
    assert {(e.known["Gender"], e.values) for e in found.exposed()} == {("Male", ("Y",)), ("Female", ("N",))}


def test_the_diagnoses_of_the_slides_are_diverse_within_each_table():
    found = homogeneity(CLINIC, KNOWN, sensitive="Diagnosis")
    assert (found.homogeneous, found.disclosed, found.diversity) == (0, 0, 2)
    assert found.largest_share == Fraction(1, 2)
    assert homogeneity(HOSPITAL, KNOWN, sensitive="Diagnosis").diversity == 3


@given(people, st.integers(2, 6))
def test_k_anonymity_agrees_with_counting_every_tuple(rows, k):
    found = k_anonymity(frame_of(rows), ["sex", "age"], k=k)
    sizes = Counter((sex, str(age)) for sex, age, _ in rows)
    assert found.records == len(rows)
    assert found.classes == len(sizes)
    assert found.smallest == min(sizes.values())
    assert found.below == sum(size for size in sizes.values() if size < k)
    assert found.classes_below == sum(size < k for size in sizes.values())
    assert found.uniques == sum(size == 1 for size in sizes.values())
    assert found.holds == all(size >= k for size in sizes.values())
    exposed = {tuple(e.known.values()): e.records for e in found.exposed(limit=100)}
    assert exposed == {key: size for key, size in sizes.items() if size < k}


@given(people)
def test_homogeneity_agrees_with_looking_at_every_class(rows):
    found = homogeneity(frame_of(rows), ["sex", "age"], sensitive="illness")
    classes = defaultdict(list)
    for sex, age, illness in rows:
        classes[sex, str(age)].append(illness)
    alike = {key: values for key, values in classes.items() if len(set(values)) == 1}
    assert found.homogeneous == len(alike)
    assert found.disclosed == sum(map(len, alike.values()))
    assert found.diversity == min(len(set(values)) for values in classes.values())
    assert found.largest_share == max(
        Fraction(max(Counter(values).values()), len(values)) for values in classes.values()
    )
    exposed = {tuple(e.known.values()): (e.records, e.values) for e in found.exposed(limit=100)}
    assert exposed == {key: (len(values), (values[0],)) for key, values in alike.items()}


@given(people)
def test_an_attacker_who_knows_more_finds_classes_that_are_no_larger(rows):
    frame = frame_of(rows)
    less, more = k_anonymity(frame, ["sex"], k=3), k_anonymity(frame, ["sex", "age"], k=3)
    assert more.smallest <= less.smallest
    assert more.below >= less.below


@given(people)
def test_every_kind_of_table_gives_the_same_finding(rows):
    arrow = frame_of(rows)
    domain = Domain({"sex": list("abc"), "age": [0, 1, 2], "illness": ["flu", "gout", "HIV"]})
    expected = homogeneity(arrow, ["age", "sex"], sensitive="illness")
    with Records.from_arrow(arrow, domain) as records:
        for table in (arrow.to_pandas(), pl.from_arrow(arrow), arrow.to_batches()[0], records):
            found = homogeneity(table, ["age", "sex"], sensitive="illness")
            assert found == expected
            assert found.exposed() == expected.exposed()


def test_the_order_of_exposed_classes_does_not_depend_on_that_of_the_records():
    rows = [("a", 1, "flu"), ("b", 0, "flu"), ("c", 2, "gout"), ("c", 2, "flu")]
    forward, backward = (k_anonymity(frame_of(r), ["sex", "age"], k=3).exposed() for r in (rows, rows[::-1]))
    assert forward == backward
    assert [each.records for each in forward] == [1, 1, 2]


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        ([1, 1.0, 2], 2),
        ([0.0, -0.0, 0.5], 2),
        (["01", "1", "1"], 2),
        ([True, False, True], 2),
        ([Decimal("1.50"), Decimal("1.5"), Decimal(2)], 2),
        ([date(2024, 1, 1), date(2024, 1, 1), date(2024, 1, 2)], 2),
        (pa.array(["x", "y", "x"]).dictionary_encode(), 2),
        (pa.chunked_array([pa.array(part).dictionary_encode() for part in (["x", "y"], ["y"])]), 2),
        (pa.array(["x", "y", "x"], pa.string_view()), 2),
        (pa.array(["x", "y", "x"], pa.large_string()), 2),
    ],
)
def test_values_are_the_same_if_their_texts_are(column, classes):
    assert k_anonymity(pa.table({"c": column}), ["c"], k=2).classes == classes


@pytest.mark.parametrize(
    "column",
    [
        [SECRET, None],
        [SECRET, ""],
        [float(SECRET), float("nan")],
        [float(SECRET), float("inf")],
        [None, None],
        [[1], [2]],
        pa.array([SECRET, None]).dictionary_encode(),
    ],
)
def test_a_missing_value_or_one_without_text_is_refused_without_being_told(column):
    with pytest.raises(InvalidColumn, match="Nothing was checked") as caught:
        k_anonymity(pa.table({"c": column}), ["c"], k=2)
    assert SECRET not in str(caught.value)


def test_a_missing_value_of_pandas_is_refused():
    for column in ([1, np.nan], ["x", None], pd.array([1, None], "Int64"), pd.Categorical(["x", None])):
        with pytest.raises(InvalidColumn, match="at least one missing or empty value"):
            k_anonymity(pd.DataFrame({"c": column}), ["c"], k=2)


@pytest.mark.parametrize("k", [1, 0, -2, 2.0, True, "3", None])
def test_a_k_that_asks_for_nothing_is_refused(k):
    for check in (k_anonymity, risks):
        with pytest.raises(InvalidArgument, match="at least 2"):
            check(CLINIC, KNOWN, k=k)


@pytest.mark.parametrize("names", [[], "Age", ["Age", "Age"], [3], None])
def test_quasi_identifiers_that_are_no_list_of_names_are_refused(names):
    with pytest.raises(InvalidArgument, match="quasi-identifiers must"):
        k_anonymity(CLINIC, names, k=2)


def test_a_column_that_is_missing_or_doubled_is_refused():
    with pytest.raises(InvalidColumn, match="no column 'age'"):
        k_anonymity(CLINIC, ["age"], k=2)
    twice = pd.DataFrame([[1, 2]], columns=["age", "age"])
    with pytest.raises(InvalidColumn, match="more than one column 'age'"):
        k_anonymity(twice, ["age"], k=2)


def test_a_column_that_is_known_cannot_be_sensitive():
    for check in (
        lambda: homogeneity(CLINIC, KNOWN, sensitive="Age"),
        lambda: risks(CLINIC, KNOWN, k=2, sensitive=["Age"]),
        lambda: intersection_attack(CLINIC, HOSPITAL, KNOWN, sensitive="Age"),
    ):
        with pytest.raises(InvalidArgument, match="known and sensitive"):
            check()


def test_no_records_and_no_table_are_refused():
    with pytest.raises(UnreadableSource, match="no record"):
        k_anonymity(CLINIC.slice(0, 0), KNOWN, k=2)
    with pytest.raises(UnreadableSource, match="not a dict"):
        k_anonymity({"Age": [1]}, ["Age"], k=2)


def test_weighted_records_are_refused_because_a_person_counts_one():
    survey = pa.table({"sex": ["F", "M"], "w": [1.0, 2.0]})
    with (
        Records.from_arrow(survey, Domain({"sex": ["F", "M"]}), weights=Weights("w", 5, unit=1)) as records,
        pytest.raises(WeightedRecords, match="survey weights"),
    ):
        k_anonymity(records, ["sex"], k=2)


def _findings():
    return [
        k_anonymity(CLINIC, KNOWN, k=5),
        k_anonymity(CLINIC, KNOWN, k=2),
        homogeneity(CLINIC, KNOWN, sensitive="Smoker"),
        homogeneity(CLINIC, KNOWN, sensitive="Diagnosis"),
        link(HOSPITAL, CLINIC, KNOWN),
        intersection_attack(CLINIC, HOSPITAL, KNOWN, sensitive="Diagnosis"),
        risks(CLINIC, KNOWN, k=2, sensitive=["Smoker", "Diagnosis"], register=HOSPITAL),
    ]


@pytest.mark.parametrize("found", _findings(), ids=repr)
def test_every_verdict_says_plainly_that_it_is_no_guarantee(found):
    assert found.verdict.startswith(found.finding)
    assert "This is not a guarantee." in found.verdict
    assert found.verdict.count("not a guarantee") == 1
    assert "Differential privacy" in found.verdict


@pytest.mark.parametrize("found", _findings(), ids=repr)
def test_a_diagnosis_prints_no_value_and_no_count_and_cannot_be_copied(found):
    for text in (repr(found), str(found), f"{found}", f"{found:>300}"):
        assert text.endswith("confidential, no guarantee>")
        assert not any(character.isdigit() for character in text)
        for table in (CLINIC, HOSPITAL):
            for column in table.columns:
                assert not any(f" {value} " in text for value in column.to_pylist())
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="confidential"):
            duplicate(found)


def test_the_risks_are_those_of_the_single_checks():
    found = risks(CLINIC, KNOWN, k=3, sensitive=["Diagnosis", "Smoker"], register=HOSPITAL)
    assert found.anonymity == k_anonymity(CLINIC, KNOWN, k=3)
    assert found.homogeneity == (
        homogeneity(CLINIC, KNOWN, sensitive="Diagnosis"),
        homogeneity(CLINIC, KNOWN, sensitive="Smoker"),
    )
    assert found.linkage == link(CLINIC, HOSPITAL, KNOWN)
    for part in (found.anonymity, *found.homogeneity, found.linkage):
        assert part.finding in found.finding
    assert risks(CLINIC, KNOWN, k=3).linkage is None


def test_a_date_of_pandas_is_the_date_it_says():
    frame = pd.DataFrame({"born": [datetime(1971, 5, 3), datetime(1980, 1, 1)]})
    register = pa.table({"born": [date(1971, 5, 3), date(1999, 1, 1)]})
    assert link(frame, register, ["born"]).one == 1
