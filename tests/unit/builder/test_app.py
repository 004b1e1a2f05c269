"""The application as a whole: what it describes, what it does not have, and how it ends."""

import asyncio
import json
from dataclasses import replace

import pytest
from jsonschema_rs import validator_for

from tabulary.builder.api.formats import FORMATS
from tabulary.builder.app import create_app
from tabulary.builder.service import Service, ServiceLimits
from tabulary.core.labels import Labels, VariableLabels
from tabulary.errors import InvalidArgument, ServiceError
from tabulary.release import writers
from tests.builders import Caller, service

STATUSES = {
    "get": {"200", "422", "429", "500", "503"},
    "post": {"400", "413", "415", "422", "429", "500", "503"},
}


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    opened = service(tmp_path_factory.mktemp("builder"), only=["census"])
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def ask(held):
    return Caller(create_app(held))


@pytest.fixture(scope="module")
def description(ask):
    return ask.get("/api/openapi.json").json()


def operations(description):
    return [
        (method, path, found)
        for path, methods in description["paths"].items()
        for method, found in methods.items()
        if not path.startswith("/api/custodian")
    ]


def test_the_description_has_every_route_every_status_and_the_problem_of_each(description):
    assert {(method, path) for method, path, _ in operations(description)} == {
        ("get", "/api/health"),
        ("get", "/api/datasets"),
        ("get", "/api/datasets/{id}"),
        ("get", "/api/datasets/{id}/plan"),
        ("get", "/api/datasets/{id}/tables"),
        ("post", "/api/datasets/{id}/tables"),
        ("get", "/api/datasets/{id}/tables.{format}"),
        ("post", "/api/datasets/{id}/tables.{format}"),
        ("get", "/api/datasets/{id}/accuracy"),
        ("post", "/api/datasets/{id}/accuracy"),
        ("post", "/api/datasets/{id}/tests"),
    }
    for method, path, found in operations(description):
        assert STATUSES[method] <= found["responses"].keys(), path
        assert found["summary"]
        assert found["description"]
        for status, response in found["responses"].items():
            if int(status) >= 400:
                (media_type,) = response["content"]
                assert media_type == "application/problem+json"
                assert response["content"][media_type]["schema"] == {
                    "$ref": "#/components/schemas/ProblemModel"
                }


def test_the_description_tells_the_formats_the_parameters_and_that_a_token_is_optional(description):
    tables = description["paths"]["/api/datasets/{id}/tables"]["get"]
    assert tables["responses"]["200"]["content"].keys() == {form.media_type for form in FORMATS.values()}
    content = tables["responses"]["200"]["content"]
    assert content["application/vnd.json-stat+json"]["schema"] == {"type": "object"}
    assert content["text/csv"]["schema"] == {"type": "string", "format": "binary"}
    named = description["paths"]["/api/datasets/{id}/tables.{format}"]["get"]["parameters"]
    (suffix,) = [p for p in named if p["name"] == "format"]
    assert suffix["schema"]["enum"] == ["json", *writers.FORMATS]
    assert [p["name"] for p in tables["parameters"]] == ["id", "by", "where", "keep", "estimate", "language"]
    assert tables["security"] == [{}, {"token": []}]
    assert description["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_the_examples_of_the_description_work(description, ask):
    tables = description["paths"]["/api/datasets/{id}/tables"]["get"]
    examples = {p["name"]: p["schema"].get("examples", [None])[0] for p in tables["parameters"]}
    query = [(name, value) for name in ("by", "where", "keep") for value in examples[name]]
    assert ask.get(f"/api/datasets/{examples['id']}/tables", query).status_code == 200


def test_every_reference_of_the_description_leads_somewhere(description):
    def references(part):
        if isinstance(part, dict):
            yield from ([part["$ref"]] if "$ref" in part else [])
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                yield from references(each)

    schemas = description["components"]["schemas"]
    names = {reference.removeprefix("#/components/schemas/") for reference in references(description)}
    assert names <= schemas.keys()
    assert "HTTPValidationError" not in json.dumps(description["paths"])


def test_answers_are_what_the_description_says(description, ask):
    base = "/api/datasets/census"
    for path, template, query in (
        ("/api/health", "/api/health", []),
        ("/api/datasets", "/api/datasets", []),
        (base, "/api/datasets/{id}", []),
        (f"{base}/plan", "/api/datasets/{id}/plan", []),
        (f"{base}/tables", "/api/datasets/{id}/tables", [("by", "sex"), ("by", "age")]),
        (f"{base}/accuracy", "/api/datasets/{id}/accuracy", [("by", "sex")]),
    ):
        schema = description["paths"][template]["get"]["responses"]["200"]["content"]["application/json"]
        whole = {**schema["schema"], "components": description["components"]}
        validator_for(whole).validate(ask.get(path, query).json())


def test_there_are_no_pages_that_load_anything_from_elsewhere(ask):
    for path in ("/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"):
        found = ask.get(path)
        assert found.status_code == 404
        assert found.headers["content-type"] == "application/problem+json"
        assert found.headers["content-security-policy"].startswith("default-src 'none'")


def test_too_many_requests_are_answered_with_when_to_come_again(held):
    hurried = Caller(create_app(replace(held, limits=ServiceLimits(requests_a_minute=1, burst=3))))
    answers = [hurried.get("/api/health") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].headers["content-type"] == "application/problem+json"
    assert int(answers[3].headers["retry-after"]) >= 1


def test_telemetry_that_would_record_the_messages_of_errors_is_off(held):
    # FastAPI would export them as soon as somebody sets an environment variable.
    app = create_app(held)
    assert not app._native_telemetry.enabled()


def test_the_end_of_the_application_closes_the_service(tmp_path):
    opened = service(tmp_path, only=["census"])
    app = create_app(opened)

    async def run_and_end():
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(run_and_end())
    with pytest.raises(Exception, match="closed"):
        opened.ledger.accounts()


def test_a_dataset_describes_only_attributes_that_it_has(held):
    dataset = held.datasets["census"]
    assert dataset.variables["region"] == VariableLabels("region")
    with pytest.raises(InvalidArgument, match="'faith'"):
        replace(dataset, labels=(Labels(variables={"faith": VariableLabels("Faith")}),))


def test_a_service_holds_datasets_under_their_own_names(held):
    with pytest.raises(ServiceError, match="'people'"):
        Service({"people": held.datasets["census"]}, held.state)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5])
def test_a_limit_is_a_positive_whole_number(wrong):
    with pytest.raises(ServiceError, match="burst"):
        ServiceLimits(burst=wrong)


def test_a_service_without_datasets_describes_itself_all_the_same(held):
    ask = Caller(create_app(Service({}, held.state)))
    assert ask.get("/api/datasets").json()["items"] == []
    assert ask.get("/api/openapi.json").status_code == 200
    assert ask.get("/api/datasets/census").status_code == 404
