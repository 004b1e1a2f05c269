"""JSON-stat 2.0, read by pyjstat and checked against the rules of json-stat.org."""

import json
import math
import warnings

import pytest
from hypothesis import given
from pyjstat import pyjstat

from tabulary.release.json_stat import json_stat_bytes
from tests.unit.release.publications import (
    FINNISH,
    WORDS,
    a_publication,
    cells,
    large_publication,
    publications,
    withheld_publication,
)


def check_rules(document):
    """Hold a document against the rules that version 2.0 of the format states for a dataset."""
    assert document["version"] == "2.0"
    assert document["class"] == "dataset"
    ids, size, dimensions = document["id"], document["size"], document["dimension"]
    assert len(ids) == len(size) == len(set(ids))
    assert dimensions.keys() == set(ids)
    assert len(document["value"]) == len(document["status"]) == math.prod(size)
    assert all(value is None or isinstance(value, int | float) for value in document["value"])
    assert all(isinstance(status, str) for status in document["status"])
    assert document.keys() >= {"label", "role"}
    for role, named in document["role"].items():
        assert role in ("time", "geo", "metric")
        assert set(named) <= set(ids)
    for name, length in zip(ids, size, strict=True):
        category = dimensions[name]["category"]
        assert len(category["index"]) == length == len(set(category["index"]))
        assert category["label"].keys() == set(category["index"])
        assert all(isinstance(label, str) and label for label in category["label"].values())
        if "unit" in category:
            # Units belong to a dimension with the role metric.
            assert name in document["role"]["metric"]
            assert category["unit"].keys() == set(category["index"])
    assert all(isinstance(note, str) for note in document.get("note", []))
    assert isinstance(document.get("source", ""), str)


@given(publications())
def test_a_document_keeps_the_rules_and_holds_every_number_and_status(published):
    document = json.loads(json_stat_bytes(published))
    check_rules(document)
    assert document["id"][:-1] == list(published.domain.attributes)
    told = [numbers[name] for _, numbers, _ in cells(published) for name in published.measures]
    assert document["value"] == told
    marks = [mark for _, _, mark in cells(published) for _ in published.measures]
    assert document["status"] == marks
    for name, levels in zip(published.domain.attributes, published.domain.levels, strict=True):
        assert document["dimension"][name]["category"]["index"] == list(levels)


@pytest.mark.parametrize("published", [a_publication(), withheld_publication(), large_publication()])
def test_pyjstat_reads_the_same_table(published):
    with warnings.catch_warnings():
        # What pandas is about to change is no concern of ours.
        warnings.simplefilter("ignore")
        frame = pyjstat.Dataset.read(json_stat_bytes(published).decode()).write("dataframe", naming="id")
    found = [(tuple(row[:-1]), None if math.isnan(row[-1]) else row[-1]) for row in frame.to_numpy().tolist()]
    told = [
        ((*at, name), numbers[name]) for at, numbers, _ in cells(published) for name in published.measures
    ]
    assert found == told


def test_labels_notes_and_facts_go_along():
    document = json.loads(json_stat_bytes(a_publication()))
    age = document["dimension"]["age"]
    assert age["label"] == "Age"
    assert age["category"]["label"] == {"0-14": "Children", "15-64": "15-64", "65+": "65+"}
    assert document["source"] == "A survey, 2026"
    assert document["note"][0] == "A promise."
    assert document["extension"]["plan"] == "5f3a"
    assert document["dimension"]["measure"]["category"]["unit"]["count"] == {"label": "people", "decimals": 0}


def test_all_words_of_the_publisher_go_along_in_one_language():
    document = json.loads(json_stat_bytes(a_publication(words=WORDS, translations=(FINNISH,))))
    check_rules(document)
    assert document["label"] == "Persons by Age and job"
    assert document["source"] == "Statistics Demo, 2026"
    assert document["note"][:3] == ["A promise.", "Everyone on census night.", "A note on the census."]
    assert document["dimension"]["age"]["note"] == ["Rounded down."]
    assert document["dimension"]["age"]["extension"] == {
        "description": "In completed years.",
        "unit": "years",
        "source": "Register",
    }
    units = document["dimension"]["measure"]["category"]["unit"]
    assert {unit["label"] for unit in units.values()} == {"persons"}
    assert document["extension"]["title"] == "Census 2026"
    assert document["extension"]["language"] == "en"
    finnish = json.loads(json_stat_bytes(a_publication(words=FINNISH)))
    assert finnish["label"] == "Henkilöä: Ikä, job"
    assert finnish["dimension"]["age"]["category"]["label"]["0-14"] == "Lapset"
