"""The words of a release in one language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.labels import LONGEST, Labels, VariableLabels
from tabulary.errors import InvalidArgument

DOMAIN = Domain({"sex": ["F", "M"], "age": ["young", "old"]})

texts = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), max_size=12)
named = texts.map(lambda text: f"{text}x")
variables = st.builds(
    VariableLabels,
    named,
    texts,
    st.dictionaries(named, named, max_size=3),
    texts,
    st.lists(texts, max_size=2).map(tuple),
    texts,
)
labels = st.builds(
    Labels,
    *(texts, texts, texts, texts),
    st.lists(texts, max_size=2).map(tuple),
    st.dictionaries(named, variables, max_size=2),
    texts,
    named,
)


@given(labels)
def test_labels_read_back_from_their_description(given_labels):
    assert Labels.from_description(given_labels.describe()) == given_labels


@pytest.mark.parametrize(
    "described",
    [
        {},
        {"title": "Census"},
        {**Labels().describe(), "unknown": ""},
        {**Labels().describe(), "title": 1},
        {**Labels().describe(), "notes": "one"},
        {**Labels().describe(), "variables": []},
        {**Labels().describe(), "variables": {"sex": {"label": "Sex"}}},
    ],
)
def test_anything_else_is_refused(described):
    with pytest.raises(InvalidArgument, match=r"not (labels|the labels of an attribute)|one line"):
        Labels.from_description(described)


def test_what_has_no_label_is_shown_by_its_code():
    words = Labels(variables={"sex": VariableLabels("Sex", levels={"F": "Female"})})
    assert (words.name("sex"), words.name("age")) == ("Sex", "age")
    assert (words.level("sex", "F"), words.level("sex", "M"), words.level("age", "old")) == (
        "Female",
        "M",
        "old",
    )


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        (VariableLabels("Sex", levels={"X": "Other"}), "'X'.*Its levels are 'F', 'M'"),
        (VariableLabels("Sex", levels={"F": " "}), "'F' of 'Sex' is empty"),
        (VariableLabels("Sex", levels={"F": "Person", "M": "Person"}), "both be shown as 'Person'"),
        (VariableLabels("Sex", levels={"F": "M"}), "both be shown as 'M'"),
        (VariableLabels("age"), "two attributes would both be shown as 'age'"),
    ],
)
def test_labels_of_no_level_and_labels_that_tell_nothing_apart_are_refused(variable, said):
    with pytest.raises(InvalidArgument, match=said):
        Labels(variables={"sex": variable}).check(DOMAIN)


def test_labels_of_an_attribute_that_is_not_there_are_refused():
    with pytest.raises(InvalidArgument, match="'faith'"):
        Labels(variables={"faith": VariableLabels("Faith")}).check(DOMAIN)


@pytest.mark.parametrize("text", ["two\nlines", "a\tb", "\x00", "‮", "a" * (LONGEST + 1), 7, None])
def test_a_text_is_printable_and_on_one_line(text):
    with pytest.raises(InvalidArgument, match="printable text on one line"):
        Labels(title=text)
    with pytest.raises(InvalidArgument, match="printable text on one line"):
        VariableLabels("Sex", levels={"F": text})


def test_a_label_says_something():
    with pytest.raises(InvalidArgument, match="empty"):
        VariableLabels(" ")


def test_labels_cannot_be_changed_from_outside():
    given_levels = {"F": "Female"}
    variable = VariableLabels("Sex", levels=given_levels)
    given_levels["F"] = "Other"
    assert variable.level("F") == "Female"
    with pytest.raises(TypeError, match="does not support item assignment"):
        variable.levels["F"] = "Other"
