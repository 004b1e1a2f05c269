"""SDMX-CSV 2.0, read by pysdmx's own reader and by pandas."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysdmx.io.csv.sdmx20.reader import read

from tabulary.core.domain import Domain
from tabulary.core.labels import Labels
from tabulary.release.publication import Publication
from tabulary.release.sdmx import codes, identifiers, sdmx_csv_bytes
from tests.unit.release.publications import (
    ODD,
    WORDS,
    a_publication,
    cells,
    large_publication,
    publications,
    withheld_publication,
)

STATUS = {"e": "E", "u": "U", "c": "Q", "z": "M"}


def measure_columns(published):
    names = {"count": "OBS_VALUE", "standard_error": "STD_ERROR"}
    return {name: names.get(name, name.upper()) for name in published.measures}


def check(frame, published):
    """Hold a frame of texts against a publication: every number and status, in order."""
    assert frame["OBS_STATUS"].tolist() == [STATUS[mark] for _, _, mark in cells(published)]
    for name, column in measure_columns(published).items():
        found = [float(text) if text else None for text in frame[column].tolist()]
        assert found == [numbers[name] for _, numbers, _ in cells(published)]


@settings(max_examples=40)
@given(publications())
def test_pandas_reads_the_same_table(published):
    frame = pd.read_csv(io.BytesIO(sdmx_csv_bytes(published)), dtype=str, keep_default_na=False)
    check(frame, published)
    assert set(frame["STRUCTURE"]) == {"dataflow"}
    assert set(frame["STRUCTURE_ID"]) == {"TABULARY:TABLE(1.0)"}
    width = len(published.domain.attributes)
    first, last = 3, 3 + width
    dimensions = frame.columns[first:last]
    labels = [name for name in frame.columns[last:] if "_LABEL" in name][:width]
    told = [at for at, _, _ in cells(published)]
    assert list(map(tuple, frame[labels].to_numpy().tolist())) == told
    # One code for each level and one level for each code.
    for name, levels in zip(dimensions, published.domain.levels, strict=True):
        assert re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name)
        assert frame[name].nunique() == len(levels)
        assert all(re.fullmatch("[A-Za-z0-9_@$-]+", code) for code in frame[name])
    assert len(frame[dimensions].drop_duplicates()) == len(told)


@pytest.mark.parametrize("published", [a_publication(), withheld_publication(), large_publication()])
def test_pysdmx_reads_the_same_table(published):
    (dataset,) = read(sdmx_csv_bytes(published).decode())
    assert dataset.short_urn == "Dataflow=TABULARY:TABLE(1.0)"
    check(dataset.data, published)


def test_the_total_and_labels_and_the_name_are_told():
    total = Publication(Domain({}), a_publication().counts.sum(), None, name="people-by-age")
    (dataset,) = read(sdmx_csv_bytes(total).decode())
    assert dataset.short_urn == "Dataflow=TABULARY:PEOPLE_BY_AGE(1.0)"
    assert dataset.data["OBS_VALUE"].tolist() == ["1000"]
    (dataset,) = read(sdmx_csv_bytes(a_publication()).decode())
    assert dataset.data["AGE"].tolist()[:2] == ["0-14", "0-14"]
    assert dataset.data["AGE_LABEL"].tolist()[:2] == ["Children", "Children"]


@given(st.lists(st.sampled_from(ODD), unique=True))
def test_identifiers_and_codes_are_those_of_sdmx_and_each_is_used_once(names):
    for made, allowed in ((identifiers(names), "[A-Z][A-Z0-9_]*"), (codes(names), "[A-Za-z0-9_@$-]+")):
        assert len(set(made)) == len(names)
        assert all(re.fullmatch(allowed, each) for each in made)


def test_the_words_of_the_publisher_are_columns():
    (dataset,) = read(sdmx_csv_bytes(a_publication(words=WORDS)).decode())
    frame = dataset.data
    assert set(frame["UNIT_MEASURE"]) == {"persons"}
    # What holds for the whole table is in the first row only.
    for column, said in (
        ("TITLE", "Census 2026"),
        ("DATA_SOURCE", "Statistics Demo"),
        ("COMMENT_DSET", "A note on the census."),
    ):
        assert frame[column].tolist() == [said] + [""] * 5


def test_an_attribute_may_have_the_name_of_such_a_column():
    published = Publication(Domain({"title": ["a", "b"]}), np.array([1, 2]), None, words=Labels("Census"))
    (dataset,) = read(sdmx_csv_bytes(published).decode())
    assert dataset.data["TITLE"].tolist() == ["Census", ""]
    assert dataset.data["TITLE_2"].tolist() == ["a", "b"]
