"""How attributes and their levels are shown to readers."""

from dataclasses import replace

import pytest

from tabulary.builder.app import create_app
from tabulary.builder.configuration import read_service_file
from tabulary.builder.service import Variable
from tabulary.errors import InvalidSettings, ServiceError
from tests.builders import Caller, service


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    opened = service(tmp_path_factory.mktemp("builder"), only=["census"])
    yield opened
    opened.close()


def declared(tmp_path, names):
    """Return the variables of a service file whose attribute sex has these names."""
    file = tmp_path / "service.toml"
    file.write_text(
        '[state]\ndatabase = "state.sqlite"\n[ledger]\ndatabase = "ledger.sqlite"\n[key]\nfile = "secret.key"\n'
        '[dataset.people]\nversion = "1"\nsource = "people.parquet"\n[dataset.people.privacy]\nrho = "1/2"\n'
        '[dataset.people.tables]\norder = 1\n[dataset.people.domain.sex]\nlevels = ["F", "M"]\n'
        f'label = "Sex"\n{names}\n',
        encoding="utf-8",
    )
    return read_service_file(file).datasets["people"].variables


def test_a_service_file_gives_levels_their_labels(tmp_path):
    sex = declared(tmp_path, 'names = {F = "Female", M = "Male"}')["sex"]
    assert sex == Variable("Sex", "", {"F": "Female", "M": "Male"})
    assert declared(tmp_path, "")["sex"] == Variable("Sex")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ('names = {X = "Other"}', r"\[dataset.people.domain.sex\] names: .*'X'.*Its levels are 'F', 'M'"),
        ("names = {F = 1}", r"\[dataset.people.domain.sex\] names gives levels"),
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
    with pytest.raises(ServiceError, match="'X'"):
        replace(held.datasets["census"], variables={"sex": Variable("Sex", levels={"X": "Other"})})


def test_the_api_tells_the_labels_of_levels_beside_their_codes(held):
    labelled = replace(held.datasets["census"], variables={"sex": Variable("Sex", levels={"F": "Female"})})
    found = (
        Caller(create_app(replace(held, datasets={"census": labelled}))).get("/api/datasets/census").json()
    )
    assert found["variables"][0] == {
        "name": "sex",
        "label": "Sex",
        "description": "",
        "levels": ["F", "M"],
        "names": {"F": "Female"},
    }
    assert found["variables"][1]["names"] == {}


def test_the_labels_of_a_variable_cannot_be_changed_from_outside():
    given = {"F": "Female"}
    variable = Variable("Sex", levels=given)
    given["F"] = "Other"
    assert variable.level("F") == "Female"
    with pytest.raises(TypeError, match="does not support item assignment"):
        variable.levels["F"] = "Other"
