"""A table builder whose promise is about replaced records: how many there are counts as public and has no noise."""

import pytest

from tabulary.builder.app import create_app
from tabulary.builder.pages.sessions import form_token
from tabulary.builder.state import Role
from tests.builders import Caller, service

HTML = "text/html"
SURVEY = "/api/datasets/survey"
REFUSED = "the number of all records is not given"


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    opened = service(
        tmp_path_factory.mktemp("builder"), only=["survey", "census"], budget="8", neighbours="replace"
    )
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def ada(held):
    _, text = held.state.tokens.add("Ada", "analyst", "ada")
    return Caller(create_app(held), text)


def spent(held):
    return held.ledger.account("survey").spent()


@pytest.mark.parametrize("name", ["survey", "census"])
def test_a_dataset_is_described_with_its_price_and_its_neighbours(ada, held, name):
    before = spent(held)
    found = ada.get(f"/api/datasets/{name}")
    assert found.status_code == 200
    described = found.json()
    assert described["privacy"] == {"kind": "zcdp", "rho": "1/16" if name == "survey" else "1/2"}
    assert described["neighbours"]["relation"] == "replace"
    assert "That the number of records is hidden." in " ".join(described["promise"]["not_promised"])
    assert spent(held) == before


def test_a_table_its_plan_and_its_accuracy_are_given(ada):
    accuracy = ada.get(f"{SURVEY}/accuracy?by=sex&by=age").json()
    assert accuracy["half_width_95"] > 0
    assert ada.get(f"{SURVEY}/plan?by=sex&by=age").json()["neighbours"]["relation"] == "replace"
    table = ada.get(f"{SURVEY}/tables?by=sex&by=age")
    assert table.status_code == 200
    filtered = ada.get(f"{SURVEY}/tables?where=sex:F")
    assert filtered.status_code == 200


def test_independence_and_a_difference_are_tested(ada):
    independence = ada.post(f"{SURVEY}/tests", {"test": "independence", "by": ["sex", "age"]})
    assert (independence.status_code, independence.json()["degrees_of_freedom"]) == (200, 2)
    cells = [{"age": "0-14"}, {"age": "65+"}]
    difference = ada.post(f"{SURVEY}/tests", {"test": "difference", "by": ["age"], "cells": cells})
    assert difference.status_code == 200
    assert difference.json()["standard_error"] > 0


def test_the_pages_tell_the_price_take_the_payment_and_show_the_table_with_its_test(held):
    token, _ = held.state.tokens.add("Bob", Role.analyst, "bob")
    session = held.state.sessions.begin(token)
    bob = Caller(create_app(held))
    bob.headers = {"Cookie": f"tabulary-session={session}", "Accept": HTML}
    page = bob.get("/datasets/survey")
    assert page.status_code == 200
    assert 'data-price="Asking costs ρ = 0.0625, once: asked again, by anyone, it is free."' in page.text
    assert REFUSED[1:] in page.text
    path = "/datasets/survey/table?rows=sex&columns=region"
    assert "Ask and pay" in bob.get(path).text
    assert bob.ask("POST", path, data={"form_token": form_token(session)}).status_code == 303
    assert "Total" in bob.get(path).text
    tested = bob.get(f"{path}&test=independence")
    assert tested.status_code == 200
    assert "p = " in tested.text or "p &lt; " in tested.text


@pytest.mark.parametrize("path", [f"{SURVEY}/tables", f"{SURVEY}/accuracy", f"{SURVEY}/plan"])
def test_the_total_is_refused_with_the_reason_and_nothing_is_spent(ada, held, path):
    before = spent(held)
    found = ada.get(path)
    assert found.status_code == 403
    assert REFUSED in found.json()["detail"]
    assert "Ask for a table by at least one attribute." in found.json()["detail"]
    assert spent(held) == before


def test_the_page_of_the_total_says_that_it_is_not_given(ada):
    found = ada.get("/datasets/survey/table", accept=HTML)
    assert found.status_code == 403
    assert REFUSED[1:] in found.text


def test_where_records_are_added_or_removed_the_total_is_answered_with_noise(tmp_path):
    held = service(tmp_path, only=["survey"])
    _, text = held.state.tokens.add("Ada", "analyst", "ada")
    found = Caller(create_app(held), text).get(f"{SURVEY}/tables")
    assert found.status_code == 200
    held.close()
