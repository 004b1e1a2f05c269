"""The words in a plan file: per attribute and per release, in one language or in several."""

import re
from pathlib import Path

import pytest

from tabulary.core.labels import Labels, VariableLabels
from tabulary.errors import InvalidSettings
from tabulary.workflows.planfile import read_plan_file

PLAN = """
[data]
source = "people.csv"
[privacy]
epsilon = 1
[tables]
margins = "[sex]"
[domain.sex]
levels = ["F", "M"]
{attribute}
[output]
{output}
"""


def labels_of(tmp_path, attribute="", output=""):
    """Return the labels of a plan file with these lines about an attribute and about the release."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(attribute=attribute, output=output), encoding="utf-8")
    return read_plan_file(path).labels


def test_a_file_without_words_has_empty_labels(tmp_path):
    assert labels_of(tmp_path) == (Labels(),)


def test_every_word_of_an_attribute_and_of_a_release_is_read(tmp_path):
    attribute = """
    label = "Sex"
    description = "Sex in the register."
    unit = "persons"
    names = { F = "Female" }
    notes = ["Other answers are not published."]
    source = "Register"
    """
    output = """
    title = "Census"
    description = "Everyone."
    unit = "people"
    source = "Statistics Demo"
    notes = ["One.", "Two."]
    total = "All"
    """
    sex = VariableLabels(
        "Sex",
        "Sex in the register.",
        {"F": "Female"},
        "persons",
        ("Other answers are not published.",),
        "Register",
    )
    (found,) = labels_of(tmp_path, attribute, output)
    assert found == Labels(
        "Census", "Everyone.", "people", "Statistics Demo", ("One.", "Two."), {"sex": sex}, "", "All"
    )


def test_a_text_that_lacks_a_language_is_that_of_the_default_language(tmp_path):
    attribute = """
    label = { en = "Sex", fi = "Sukupuoli" }
    names = { F = { en = "Female", fi = "Nainen" }, M = { en = "Male" } }
    notes = ["For all.", { en = "A note.", fi = "Huomautus." }]
    """
    output = 'title = { en = "Census" }\nlanguages = ["en", "fi"]\ntotal = { en = "Total", fi = "Yhteensä" }'
    english, finnish = labels_of(tmp_path, attribute, output)
    assert (english.language, finnish.language) == ("en", "fi")
    assert (english.title, finnish.title) == ("Census", "Census")
    assert (english.total, finnish.total) == ("Total", "Yhteensä")
    assert finnish.variable("sex") == VariableLabels(
        "Sukupuoli", levels={"F": "Nainen", "M": "Male"}, notes=("For all.", "Huomautus.")
    )
    assert english.variable("sex").levels == {"F": "Female", "M": "Male"}


LANGUAGES = 'languages = ["en", "fi"]'


@pytest.mark.parametrize(
    ("attribute", "output", "said"),
    [
        (
            'label = { en = "Sex" }',
            "",
            r"\[domain.sex\] label is a table by language, but \[output\] names no",
        ),
        (
            'label = { sv = "Kön", en = "Sex" }',
            LANGUAGES,
            r"\[domain.sex\] label has a text in 'sv', but .*'en', 'fi'",
        ),
        ('label = { fi = "Sukupuoli" }', LANGUAGES, r"\[domain.sex\] label has no text in 'en', the default"),
        ('names = { F = { fi = "Nainen" } }', LANGUAGES, r"\[domain.sex\] names.F has no text in 'en'"),
        ("names = { F = 1 }", "", r"\[domain.sex\] names.F has the wrong type"),
        ("names = { F = { en = 1 } }", LANGUAGES, r"\[domain.sex\] names.F has the wrong type"),
        ('names = { X = "Other" }', "", r"\[domain.sex\] names: .*'X'"),
        ('names = { F = "M" }', "", r"\[domain.sex\] names: .*both be shown as 'M'"),
        ('notes = "one"', "", r"\[domain.sex\] notes has the wrong type"),
        ('notes = ["one", 2]', "", r"\[domain.sex\] notes, number 2 has the wrong type"),
        ('label = " "', "", r"\[domain.sex\]: the label of an attribute is empty"),
        (r'label = "a\nb"', "", r"\[domain.sex\]: a label must be printable"),
        (r'label = "Sex"', r'title = "a\u202eb"', r"\[output\]: a label must be printable"),
        ("", 'languages = ["en", "en"]', r"\[output\] languages is a list of different language tags"),
        ("", 'languages = ["English!"]', r"\[output\] languages is a list"),
        ("", 'title = { fi = "x" }\nlanguages = ["en", "fi"]', r"\[output\] title has no text in 'en'"),
        ("", 'titel = "x"', r"\[output\] holds the unknown key 'titel'"),
    ],
)
def test_a_wrong_word_is_refused_with_its_place(tmp_path, attribute, output, said):
    with pytest.raises(InvalidSettings, match=said):
        labels_of(tmp_path, attribute, output)


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "plan-file.md"


@pytest.mark.parametrize(
    "table", ["data", "domain.sex", "privacy", "tables", "mechanism", "output", "ledger"]
)
def test_the_page_of_plan_files_names_every_key(tmp_path, table):
    path = tmp_path / "plan.toml"
    text = PLAN.format(attribute="", output="")
    text = text if f"[{table}]" in text else f"{text}\n[{table}]\n"
    path.write_text(text.replace(f"[{table}]\n", f"[{table}]\nunheard_of = 1\n"), encoding="utf-8")
    with pytest.raises(InvalidSettings, match="unknown key 'unheard_of'") as refused:
        read_plan_file(path)
    keys = re.findall("'([^']+)'", str(refused.value).partition("It may hold")[2])
    assert keys
    assert [key for key in keys if f"`{key}`" not in PAGE.read_text("utf-8")] == []
