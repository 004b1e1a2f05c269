"""Datasets over HTTP: the list, the details and the plans."""

import pytest

import tabulary as tb
from tabulary.builder.api.models import DatasetDetails, DatasetList
from tabulary.planning import plan_from_description


def test_the_service_says_that_it_answers(builder):
    assert builder.anyone.get("/api/health").json() == {"status": "ok"}


def test_the_datasets_are_listed_with_how_they_are_protected(builder):
    document = builder.anyone.get("/api/datasets").json()
    DatasetList.model_validate(document)
    methods = {item["id"]: (item["method"], item["differentially_private"]) for item in document["items"]}
    assert methods == {
        "census": ("fixed", True),
        "survey": ("interactive", True),
        "old": ("cell-key", False),
    }


def test_a_long_list_comes_page_by_page_and_each_page_names_the_next(builder):
    path, found = "/api/datasets?size=2", []
    while path is not None:
        page = builder.anyone.get(path).json()
        found += [item["id"] for item in page["items"]]
        path = page["next"]
    assert found == ["census", "survey", "old"]
    beyond = builder.anyone.get("/api/datasets?page=9").json()
    assert (beyond["items"], beyond["next"], beyond["total"]) == ([], None, 3)


@pytest.mark.parametrize("query", ["page=0", "size=0", "size=100000", "page=x", "pages=1", "page=1e400"])
def test_a_page_that_cannot_be_is_refused(builder, query):
    found = builder.anyone.get(f"/api/datasets?{query}")
    assert found.status_code == 422
    assert query.partition("=")[0] in found.json()["detail"]


def test_all_that_is_public_about_a_dataset_is_told(builder):
    found = builder.anyone.get("/api/datasets/census")
    document = found.json()
    DatasetDetails.model_validate(document)
    answers = builder.service.datasets["census"].answers
    assert document["variables"][1] == {
        "name": "age",
        "label": "Age",
        "description": "In completed years.",
        "levels": ["0-14", "15-64", "65+"],
        "names": {},
    }
    assert document["variables"][2]["label"] == "region"
    assert document["allowed_tables"] == {
        "order": 3,
        "forbidden": [["region", "job: kind"]],
        "max_cells": 100,
        "within": None,
    }
    assert document["release"] is None
    assert document["privacy"] == {"kind": "zcdp", "rho": "1/2"}
    assert document["neighbours"] == tb.Neighbours().describe()
    assert document["promise"] == answers.promise.describe()
    assert document["plan"] == answers.plan_of(()).digest()
    again = builder.anyone.get("/api/datasets/census", If_None_Match=found.headers["etag"])
    assert again.status_code == 304


def test_a_paid_dataset_tells_the_price_of_a_question_and_a_perturbed_one_that_it_promises_nothing(builder):
    paid = builder.anyone.get("/api/datasets/survey").json()
    DatasetDetails.model_validate(paid)
    assert paid["privacy"] == {"kind": "zcdp", "rho": "1/16"}
    assert paid["plan"] is None
    perturbed = builder.anyone.get("/api/datasets/old").json()
    DatasetDetails.model_validate(perturbed)
    assert perturbed["privacy"] is perturbed["neighbours"] is perturbed["plan"] is None
    assert "NOT differentially private" in perturbed["promise"]["statement"]


def test_the_plan_behind_a_table_is_the_one_that_the_table_names(builder):
    bob = builder.analyst("bob")
    for name, query in (("census", [("by", "sex")]), ("survey", [("by", "age"), ("by", "sex")])):
        described = builder.anyone.get(f"/api/datasets/{name}/plan", query).json()
        table = bob.get(f"/api/datasets/{name}/tables", query).json()
        assert plan_from_description(described).digest() == table["plan"]


def test_a_plan_is_refused_where_the_table_is_and_missing_where_there_is_none(builder):
    refused = builder.anyone.get("/api/datasets/census/plan", [("by", "region"), ("by", "job: kind")])
    assert refused.status_code == 403
    missing = builder.anyone.get("/api/datasets/old/plan")
    assert missing.status_code == 404
    assert "not differentially private" in missing.json()["detail"]


@pytest.mark.parametrize("path", ["/api/datasets/nobody", "/api/datasets/nobody/plan"])
def test_a_dataset_that_is_not_there_is_404_and_names_those_that_are(builder, path):
    found = builder.anyone.get(path)
    assert found.status_code == 404
    assert found.json()["type"] == "unknown-dataset"
    assert "'survey'" in found.json()["detail"]


@pytest.mark.parametrize("path", ["/api/datasets/census", "/api/datasets/census/plan"])
def test_a_parameter_that_is_not_known_is_refused_by_name(builder, path):
    found = builder.anyone.get(path, [("verbose", "1")])
    assert found.status_code == 422
    assert "'verbose'" in found.json()["detail"]
