"""How attributes and their levels are shown to readers."""

from dataclasses import replace

import pytest

from tabulary.builder.app import create_app
from tabulary.builder.configuration import read_service_file
from tabulary.core.labels import Labels, VariableLabels
from tabulary.errors import InvalidArgument, InvalidSettings
from tests.builders import Caller, service


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    opened = service(tmp_path_factory.mktemp("builder"), only=["census"])
    yield opened
    opened.close()


def labelled(**levels):
    """Return words in which the levels of sex have these labels."""
    return Labels("Census", variables={"sex": VariableLabels("Sex", levels=levels)})


def declared(tmp_path, names):
    """Return the words of a service file whose attribute sex has these names."""
    file = tmp_path / "service.toml"
    file.write_text(
        '[state]\ndatabase = "state.sqlite"\n[ledger]\ndatabase = "ledger.sqlite"\n[key]\nfile = "secret.key"\n'
        '[dataset.people]\nversion = "1"\nsource = "people.parquet"\n[dataset.people.privacy]\nrho = "1/2"\n'
        '[dataset.people.tables]\norder = 1\n[dataset.people.domain.sex]\nlevels = ["F", "M"]\n'
        f'label = "Sex"\n{names}\n',
        encoding="utf-8",
    )
    return read_service_file(file).datasets["people"].labels[0]


def test_a_service_file_gives_levels_their_labels(tmp_path):
    sex = declared(tmp_path, 'names = {F = "Female", M = "Male"}').variable("sex")
    assert sex == VariableLabels("Sex", "", {"F": "Female", "M": "Male"})
    assert declared(tmp_path, "").variable("sex") == VariableLabels("Sex")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ('names = {X = "Other"}', r"\[dataset.people.domain.sex\] names: .*'X'.*Its levels are 'F', 'M'"),
        ("names = {F = 1}", r"\[dataset.people.domain.sex\] names.F has the wrong type"),
        ('names = {F = " "}', "'F' of 'Sex' is empty"),
        ('names = {F = "Person", M = "Person"}', "both be shown as 'Person'"),
        ('names = {F = "M"}', "both be shown as 'M'"),
        ('names = "Female"', "wrong type"),
    ],
)
def test_labels_of_no_level_and_labels_that_tell_nothing_apart_are_refused(tmp_path, names, said):
    with pytest.raises(InvalidSettings, match=said):
        declared(tmp_path, names)


def test_a_dataset_refuses_labels_of_levels_that_it_does_not_have(held):
    with pytest.raises(InvalidArgument, match="'X'"):
        replace(held.datasets["census"], labels=(labelled(X="Other"),))


def test_the_api_tells_the_labels_of_levels_beside_their_codes(held):
    census = replace(held.datasets["census"], labels=(labelled(F="Female"),))
    found = Caller(create_app(replace(held, datasets={"census": census}))).get("/api/datasets/census").json()
    assert found["variables"][0] == {
        "name": "sex",
        "label": "Sex",
        "description": "",
        "levels": ["F", "M"],
        "names": {"F": "Female"},
    }
    assert found["variables"][1]["names"] == {}


@pytest.fixture
def bilingual(held):
    """Return an asker of a table builder whose dataset has two languages."""
    english = Labels(
        "Census",
        unit="persons",
        notes=("Nobody <b>lied</b>.",),
        variables={"sex": VariableLabels("Sex", levels={"F": "Female"}, notes=("As registered.",))},
        language="en",
    )
    finnish = Labels(
        "Väestö",
        unit="henkilöä",
        variables={"sex": VariableLabels("Sukupuoli", levels={"F": "Nainen"})},
        language="fi",
        total="Yhteensä",
    )
    census = replace(held.datasets["census"], labels=(english, finnish))
    return Caller(create_app(replace(held, datasets={"census": census})))


def test_a_page_has_the_language_that_its_address_names(bilingual):
    page = "/datasets/census/table?rows=sex"
    english = bilingual.get(page, accept="text/html").text
    finnish = bilingual.get(f"{page}&language=fi", accept="text/html").text
    assert "Persons by Sex" in english
    assert "Sex: As registered." in english
    assert "Nobody &lt;b&gt;lied&lt;/b&gt;." in english
    for words in ("Henkilöä: Sukupuoli", "Nainen", "Yhteensä", "Väestö"):
        assert words in finnish
        assert words not in english
    assert '<option value="fi" selected>' in finnish
    chosen = bilingual.get("/datasets/census?rows=sex&language=fi", accept="text/html").text
    assert "Sukupuoli" in chosen


@pytest.mark.parametrize("language", ["sv", "fi&language=en"])
def test_a_language_that_a_dataset_does_not_have_is_refused(bilingual, language):
    found = bilingual.get(f"/datasets/census/table?rows=sex&language={language}", accept="text/html")
    assert found.status_code == 422


def test_the_api_gives_all_words_in_every_language(bilingual):
    found = bilingual.get("/api/datasets/census").json()
    assert [labels["language"] for labels in found["labels"]] == ["en", "fi"]
    assert [Labels.from_description(labels).title for labels in found["labels"]] == ["Census", "Väestö"]


def test_a_px_file_of_a_table_builder_has_all_languages(bilingual):
    text = bilingual.get("/api/datasets/census/tables.px?by=sex").text
    assert 'LANGUAGES="en",\n"fi";' in text
    assert 'VALUES[fi]("Sukupuoli")="Nainen"' in text


def test_a_file_of_a_table_builder_has_the_language_that_is_asked_for(bilingual):
    def document(query):
        return bilingual.get(f"/api/datasets/census/tables.json-stat?by=sex{query}").json()

    assert document("")["label"] == document("&language=en")["label"] == "Persons by Sex"
    assert document("&language=fi")["label"] == "Henkilöä: Sukupuoli"
    assert document("")["label"] == "Persons by Sex"
    refused = bilingual.get("/api/datasets/census/tables?by=sex&language=sv")
    assert refused.status_code == 422
    page = bilingual.get("/datasets/census/table?rows=sex&language=fi", accept="text/html").text
    assert "/api/datasets/census/tables.json-stat?by=sex&amp;language=fi" in page
