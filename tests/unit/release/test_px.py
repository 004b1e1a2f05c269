"""PX, read by pyaxis and by a reader of the grammar that its specification gives."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyaxis import pyaxis

from tabulary.core.labels import Labels, VariableLabels
from tabulary.release.px import px_bytes
from tests.unit.release.publications import (
    FINNISH,
    WORDS,
    a_publication,
    cells,
    large_publication,
    publications,
    withheld_publication,
)

STATEMENT = re.compile(r'\s*([A-Z0-9-]+(?:\[[a-z-]+\])?)(?:\(((?:"[^"]*",?)+)\))?=((?:"[^"]*"|[^";])*);')
MANDATORY = {
    *("MATRIX", "SUBJECT-CODE", "SUBJECT-AREA", "DECIMALS", "TITLE", "CONTENTS"),
    *("UNITS", "VALUES", "HEADING", "DATA"),
}


def texts_of(value):
    """Return the texts of a list; quoted pieces without a comma between them are one text."""
    return ["".join(re.findall(r'"([^"]*)"', part)) for part in re.findall(r'(?:"[^"]*"\s*)+', value)]


def read_px(data):
    """Return the statements of a PX file, by keyword and then by what stands in the parentheses."""
    text = data.decode()
    found, place = {}, 0
    while text[place:].strip():
        statement = STATEMENT.match(text, place)
        assert statement, text[place : place + 80]
        keyword, key, value = statement.groups()
        keys = tuple(re.findall(r'"([^"]*)"', key or ""))
        assert keys not in found.setdefault(keyword, {})
        found[keyword][keys] = value.split() if keyword == "DATA" else texts_of(value) or value
        place = statement.end()
    return found


def number(text):
    return None if text == '".."' else float(text)


@given(publications())
def test_a_file_follows_the_grammar_and_holds_every_number_and_status(published):
    found = read_px(px_bytes(published))
    assert found.keys() >= MANDATORY
    (variables,) = [[*found.get("STUB", {(): []})[()], *found["HEADING"][()]]]
    assert len(set(variables)) == len(variables) == len(published.domain.attributes) + 1
    sizes = [*published.domain.shape, len(published.measures)]
    for keyword in ("VALUES", "CODES"):
        given = [found[keyword][variable,] for variable in variables]
        assert [len(set(each)) for each in given] == [len(each) for each in given] == sizes
    told = [numbers[name] for _, numbers, _ in cells(published) for name in published.measures]
    assert [number(text) for text in found["DATA"][()]] == told
    codes = [
        dict(zip(levels, found["CODES"][v,], strict=True))
        for levels, v in zip(published.domain.levels, variables, strict=False)
    ]
    marked = {
        (*(by_level[level] for by_level, level in zip(codes, at, strict=True)), "*"): [mark]
        for at, _, mark in cells(published)
        if mark != "e"
    }
    assert found.get("DATANOTECELL", {}) == marked
    assert ("DATASYMBOL2" in found) == ("c" in published.marks())


@given(publications())
def test_labels_are_as_they_are_but_for_quotation_marks(published):
    found = read_px(px_bytes(published))
    for variable, levels in zip(found.get("STUB", {(): []})[()], published.domain.levels, strict=True):
        clean = [level.replace('"', "'") for level in levels]
        shown = found["VALUES"][variable,]
        assert all(
            s == c or (s.startswith(c) and clean.count(c) > 1) for s, c in zip(shown, clean, strict=True)
        )


def test_each_language_has_its_own_words_and_shares_the_codes_and_the_numbers():
    data = px_bytes(a_publication(words=WORDS, translations=(FINNISH,)))
    found = read_px(data)
    assert found["LANGUAGE"][()] == ["en"]
    assert found["LANGUAGES"][()] == ["en", "fi"]
    assert (found["TITLE"][()], found["TITLE[fi]"][()]) == (
        ["Persons by Age and job"],
        ["Henkilöä: Ikä, job"],
    )
    assert (found["STUB"][()], found["STUB[fi]"][()]) == (["Age", "job"], ["Ikä", "job"])
    assert found["VALUES"]["Age",] == ["Children", "15-64", "65+"]
    assert found["VALUES[fi]"]["Ikä",] == ["Lapset", "15-64", "65+"]
    assert found["CODES"]["Age",] == found["CODES[fi]"]["Ikä",] == ["0-14", "15-64", "65+"]
    assert (found["UNITS"]["Count",], found["UNITS[fi]"]["Count",]) == (["persons"], ["henkilöä"])
    assert (found["SOURCE"][()], found["SOURCE[fi]"][()]) == (["Statistics Demo, 2026"], ["Tilastot, 2026"])
    assert (found["SUBJECT-AREA"][()], found["SUBJECT-AREA[fi]"][()]) == (
        ["Census 2026"],
        ["Väestölaskenta 2026"],
    )
    notes = found["NOTE"][()][0].split("#")
    assert notes[1:6] == [
        "Everyone on census night.",
        "A note on the census.",
        "Age, years: In completed years.",
        "Age, years: Rounded down.",
        "Age, years: Source: Register",
    ]
    dependent = {keyword.split("[")[0] for keyword in found if "[" in keyword}
    assert all(keyword in found for keyword in dependent)
    assert found["DATA"] == read_px(px_bytes(a_publication()))["DATA"]


def test_pyaxis_reads_a_file_in_two_languages(file):
    published = a_publication(words=WORDS, translations=(FINNISH,))
    assert read_by_pyaxis(file, published)[::4] == [
        ((*at, "Count"), numbers["count"])
        for at, numbers, _ in (
            ((published.level_label("age", at[0]), at[1]), n, m) for at, n, m in cells(published)
        )
    ]


# pyaxis takes DATA= anywhere for the beginning of the data, trims, and knows no empty-looking text.
tame = st.text("abcäß年01234 ,;:+*#=%'()", min_size=1, max_size=8).map(str.strip).filter(bool)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("px") / "table.px"


def read_by_pyaxis(file, published):
    file.write_bytes(px_bytes(published))
    frame = pyaxis.parse(str(file), encoding="utf-8", sd_values=r'"\.\."', null_values=r'^"\."$')["DATA"]
    *levels, values = (frame[name].tolist() for name in frame.columns)
    return [
        (at, None if isinstance(v, float) and math.isnan(v) else float(v))
        for at, v in zip(zip(*levels, strict=True), values, strict=True)
    ]


@given(publications(tame))
def test_pyaxis_reads_the_same_table(file, published):
    found = read_by_pyaxis(file, published)
    labels = published.measure_labels
    told = [((*at, labels[name]), numbers[name]) for at, numbers, _ in cells(published) for name in labels]
    assert found == told


def test_pyaxis_reads_a_large_table(file):
    published = large_publication()
    found = read_by_pyaxis(file, published)
    assert [value for _, value in found[:: len(published.measures)]] == published.values("count")


def test_words_and_withheld_numbers_are_told():
    found = read_px(px_bytes(a_publication()))
    assert found["VALUES"]["Age",] == ["Children", "15-64", "65+"]
    assert found["CODES"]["Age",] == ["0-14", "15-64", "65+"]
    assert found["VARIABLECODE"]["Age",] == ["age"]
    assert found["SOURCE"][()] == ["A survey, 2026"]
    assert found["NOTE"][()][0].startswith("A promise.#e: noise was added")
    assert found["DATANOTECELL"] == {
        ("0-14", "paid, or self", "*"): ["z"],
        ("65+", "paid, or self", "*"): ["u"],
    }
    assert read_px(px_bytes(withheld_publication()))["DATASYMBOL2"][()] == ["withheld"]


def test_long_text_is_cut_into_lines_and_a_name_never():
    long = " ".join(["word"] * 200)
    data = px_bytes(
        a_publication(title=long, words=Labels(variables={"age": VariableLabels("A" * 250)}))
    ).decode()
    assert read_px(data.encode())["TITLE"][()] == [long]
    assert max(map(len, data.splitlines())) <= 300
    assert f'STUB="{"A" * 250}"' in data
