"""Tables over HTTP: every format, every way to ask, and what cannot be asked."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tabulary.builder.api.models import Accuracy, TableModel
from tabulary.builder.app import create_app
from tabulary.release.exchange import table_from_document
from tabulary.workflows.answering.questions import Question
from tests.builders import DOMAIN, Caller, service
from tests.parquet_files import read_parquet
from tests.unit.builder.api.test_asking import as_query, questions

CENSUS = "/api/datasets/census/tables"
SURVEY = "/api/datasets/survey/tables"
KINDS = {"json": "application/json", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}

# The builder answers the same whatever was asked before, so one serves all examples.
shared = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_table_is_told_with_its_question_its_errors_and_its_promise(builder):
    found = builder.anyone.get(CENSUS, [("by", "age"), ("by", "sex"), ("where", "region:South: east")])
    assert found.status_code == 200
    document = found.json()
    TableModel.model_validate(document)
    assert document["dataset"] == "census"
    assert document["version"] == "2026"
    assert document["question"] == {
        "by": ["age", "sex"],
        "where": {"region": "South: east"},
        "keep": {},
    }
    assert document["variables"][0] == {"name": "age", "label": "Age", "levels": ["0-14", "15-64", "65+"]}
    answer = builder.service.datasets["census"].answers.answer(("sex", "age", "region"))
    cut = Question.of(DOMAIN, ["age", "sex"], {"region": "South: east"}).cut(answer.table)
    assert document["count"] == cut.counts.reshape(-1).tolist()
    assert document["standard_error"] == cut.standard_errors.reshape(-1).tolist()
    assert document["upper_95"] == cut.interval()[1].reshape(-1).tolist()
    assert document["promise"] == answer.promise.statement
    read = table_from_document(document, answer.plan)
    np.testing.assert_array_equal(read.counts, cut.counts)


@shared
@given(question=questions())
def test_every_way_to_ask_gives_the_same_bytes_or_the_same_refusal(builder, question):
    ask = builder.anyone
    answers = [
        ask.get(CENSUS, as_query(question)),
        ask.get(CENSUS, as_query(question), Accept="application/json"),
        ask.get(f"{CENSUS}.json", as_query(question)),
        ask.post(CENSUS, question),
        ask.post(f"{CENSUS}.json", question),
        ask.get(CENSUS, list(reversed(as_query({**question, "by": question["by"][::-1]})))),
    ]
    assert len({answer.status_code for answer in answers}) == 1
    if answers[0].status_code == 200:
        assert len({answer.content for answer in answers}) == 1
        assert len({answer.headers["etag"] for answer in answers}) == 1
    else:
        assert answers[0].status_code == 403
        assert len({answer.json()["detail"] for answer in answers}) == 1


@shared
@given(question=questions())
def test_every_format_holds_the_same_numbers(builder, question):
    found = {
        kind: builder.anyone.get(f"{CENSUS}.{kind}", as_query(question), Accept="image/png") for kind in KINDS
    }
    if found["json"].status_code == 403:
        assert {answer.status_code for answer in found.values()} == {403}
        return
    for kind, media_type in KINDS.items():
        assert found[kind].headers["content-type"].partition(";")[0] == media_type
    document = found["json"].json()
    parquet = read_parquet(found["parquet"].content)
    rows = list(csv.DictReader(io.StringIO(found["csv"].text)))
    assert len(rows) == parquet.num_rows == len(document["count"])
    for name in ("count", "standard_error", "lower_95", "upper_95"):
        assert parquet[name].to_pylist() == document[name]
        assert [float(row[name]) for row in rows] == document[name]
    for attribute in question["by"]:
        assert parquet[attribute].to_pylist() == [row[attribute] for row in rows]
    about = json.loads(parquet.schema.metadata[b"tabulary"])
    assert about["plan"] == document["plan"]


def test_a_file_comes_with_a_name_and_json_without(builder):
    found = builder.anyone.get(f"{CENSUS}.csv", [("by", "job: kind"), ("by", "sex")])
    assert found.headers["content-disposition"] == 'attachment; filename="census-by-job-kind-by-sex.csv"'
    assert "content-disposition" not in builder.anyone.get(CENSUS).headers


def test_tables_agree_on_what_they_share_to_the_last_digit_of_their_exact_values(builder):
    ask = builder.anyone
    joint = np.array(ask.get(CENSUS, [("by", "sex"), ("by", "age"), ("by", "region")]).json()["count"])
    for margin, axes in ((["sex", "age"], 2), (["age"], (0, 2)), ([], (0, 1, 2))):
        margin_counts = ask.get(CENSUS, [("by", a) for a in margin]).json()["count"]
        np.testing.assert_allclose(
            joint.reshape(2, 3, 3).sum(axis=axes).reshape(-1), margin_counts, rtol=1e-12, atol=1e-9
        )


def test_the_tag_of_an_answer_is_known_again_and_saves_the_body(builder):
    first = builder.anyone.get(CENSUS, [("by", "sex")])
    again = builder.anyone.get(CENSUS, [("by", "sex")], If_None_Match=first.headers["etag"])
    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["etag"] == first.headers["etag"]
    weak = builder.anyone.get(CENSUS, [("by", "sex")], If_None_Match=f'"x", W/{first.headers["etag"]}')
    assert weak.status_code == 304
    other = builder.anyone.get(CENSUS, [("by", "age")], If_None_Match=first.headers["etag"])
    assert other.status_code == 200
    assert builder.anyone.post(CENSUS, {"by": ["sex"]}, If_None_Match="*").status_code == 200


def test_what_anyone_may_ask_may_be_kept_by_anyone_and_what_costs_may_not(builder):
    public = builder.anyone.get(CENSUS)
    assert public.headers["cache-control"].startswith("public")
    assert public.headers["vary"] == "Accept"
    paid = builder.analyst("bob").get(SURVEY)
    assert paid.headers["cache-control"].startswith("private")
    assert paid.headers["vary"] == "Accept, Authorization"


def test_head_tells_what_get_would_and_sends_nothing(builder):
    whole = builder.anyone.get(CENSUS, [("by", "sex")])
    head = builder.anyone.ask("HEAD", CENSUS, params=[("by", "sex")])
    assert head.status_code == 200
    assert head.content == b""
    for name in ("etag", "content-length", "content-type", "cache-control"):
        assert head.headers[name] == whole.headers[name]


@pytest.mark.parametrize(
    ("query", "status", "kind", "words"),
    [
        ([("by", "faith")], 422, "invalid-domain", "no attribute 'faith'"),
        ([("by", "sex"), ("by", "sex")], 422, "invalid-domain", "twice"),
        ([("by", "sex"), ("where", "sex:F")], 422, "invalid-domain", "twice"),
        ([("where", "sex:X")], 422, "invalid-domain", "no level 'X'"),
        ([("keep", "sex:F")], 422, "invalid-workload", "not by it"),
        ([("estimate", "best")], 422, "invalid-request", "estimate"),
        ([("filter", "sex:F")], 422, "invalid-request", "'filter' is not known"),
        ([("by", "region"), ("by", "job: kind")], 403, "table-refused", "allows no table"),
        ([("by", "region"), ("where", "job: kind:paid")], 403, "table-refused", "allows no table"),
        ([("by", a) for a in DOMAIN.attributes], 403, "table-refused", "at most 3 attributes"),
    ],
)
def test_a_question_that_has_no_answer_is_a_problem_that_says_why(builder, query, status, kind, words):
    for path in (CENSUS, f"{CENSUS}.csv", SURVEY):
        found = builder.anyone.get(path, query)
        if path == SURVEY and status == 403:
            # Who pays is asked before the rules are: what anyone may know is told to those who may ask.
            assert found.status_code == 401
            continue
        assert found.status_code == status
        assert found.headers["content-type"] == "application/problem+json"
        problem = found.json()
        assert problem["type"] == kind
        assert problem["status"] == status
        assert problem["instance"] == path
        assert words in problem["detail"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[]", "the JSON object that is asked for"),
        ("{", "the JSON object that is asked for"),
        ("", "the JSON object that is asked for"),
        ("null", "the JSON object that is asked for"),
        ('{"by": "sex"}', "'by'"),
        ('{"by": [1]}', "'by.0'"),
        ('{"by": [NaN]}', "'by.0'"),
        ('{"by": [null]}', "'by.0'"),
        ('{"where": {"sex": ["F"]}}', "'where.sex'"),
        ('{"where": {"sex": NaN}}', "'where.sex'"),
        ('{"keep": {"sex": "F"}, "by": ["sex"]}', "'keep.sex'"),
        ('{"keep": {"sex": []}, "by": ["sex"]}', "at least one level of 'sex'"),
        ('{"by": ["sex"], "bye": 1}', "'bye' of the body is not known"),
        ('{"estimate": "best"}', "'estimate'"),
        ('{"by": ["\\ud800"]}', "no attribute"),
    ],
)
def test_a_body_that_is_no_question_is_refused_with_the_name_of_the_field(builder, body, words):
    for path in (CENSUS, f"{CENSUS}.csv", "/api/datasets/census/accuracy"):
        if "estimate" in body and path.endswith("accuracy"):
            continue
        found = builder.anyone.ask(
            "POST", path, content=body.encode(), headers={"Content-Type": "application/json"}
        )
        assert found.status_code == 422, found.text
        assert words in found.json()["detail"]


def test_a_body_that_is_not_text_or_too_deep_is_refused(builder):
    for body in (b'{"by": ["\xff"]}', b'{"by": ' + b"[" * 20_000):
        found = builder.anyone.ask("POST", CENSUS, content=body, headers={"Content-Type": "application/json"})
        assert found.status_code in (400, 422)
        assert found.headers["content-type"] == "application/problem+json"


def test_a_refusal_never_gives_back_the_value_that_was_sent(builder):
    found = builder.anyone.post(CENSUS, {"estimate": "SENT-VALUE", "by": {"SENT-KEY": "SENT-VALUE"}})
    assert found.status_code == 422
    assert "SENT-VALUE" not in found.text


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_json_is_an_unsupported_media_type(builder, content_type):
    headers = {} if content_type is None else {"Content-Type": content_type}
    for path in (CENSUS, f"{CENSUS}.csv", "/api/datasets/census/accuracy", "/api/datasets/census/tests"):
        found = builder.anyone.ask("POST", path, content=b"{}", headers=headers)
        assert found.status_code == 415
        assert found.json()["type"] == "unsupported-media-type"


def test_a_body_that_is_too_large_is_refused(builder):
    found = builder.anyone.post(CENSUS, {"by": ["x" * (1 << 17)]})
    assert found.status_code == 413
    assert found.headers["content-type"] == "application/problem+json"


def test_an_unknown_dataset_format_or_address_is_nowhere(builder):
    for path in (
        "/api/datasets/nobody/tables",
        "/api/datasets/nobody/accuracy",
        "/api/datasets/census/tables.xls",
        "/api/datasets/census/table",
        "/api/datasets/census/tables/",
        "/docs",
    ):
        found = builder.anyone.get(path)
        assert found.status_code == 404, path
        assert found.headers["content-type"] == "application/problem+json"
    assert "'census'" in builder.anyone.get("/api/datasets/nobody/tables").json()["detail"]


def test_an_accept_that_no_format_meets_is_406_and_tells_the_formats(builder):
    found = builder.anyone.get(CENSUS, Accept="image/png")
    assert found.status_code == 406
    assert "text/csv" in found.json()["detail"]


def test_another_method_is_not_allowed_and_the_header_names_those_that_are(builder):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        found = builder.anyone.ask(method, CENSUS)
        assert found.status_code == 405
        assert found.headers["allow"] == "GET, HEAD, POST"
        assert found.headers["content-type"] == "application/problem+json"
    assert builder.anyone.ask("PUT", "/api/datasets/census/tests").headers["allow"] == "POST"


def test_cell_keys_withhold_small_counts_in_every_format(builder):
    query = [("by", "sex"), ("by", "age"), ("by", "region")]
    path = "/api/datasets/old/tables"
    document = builder.anyone.get(path, query).json()
    TableModel.model_validate(document)
    withheld = [count is None for count in document["count"]]
    assert any(withheld)
    assert not all(withheld)
    assert document["standard_error"] is None
    assert "NOT differentially private" in document["promise"]
    rows = list(csv.DictReader(io.StringIO(builder.anyone.get(f"{path}.csv", query).text)))
    assert [row["count"] == "" for row in rows] == withheld
    parquet = read_parquet(builder.anyone.get(f"{path}.parquet", query).content)
    assert parquet["count"].to_pylist() == document["count"]


def test_a_question_that_costs_needs_an_analyst_and_a_refusal_costs_nothing(fresh):
    nobody = fresh.anyone.get(SURVEY, [("by", "sex")])
    assert nobody.status_code == 401
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    _, custodian = fresh.service.state.tokens.add("custodian", "custodian")
    assert Caller(fresh.app, custodian).get(SURVEY, [("by", "sex")]).status_code == 403
    assert Caller(fresh.app, "tab_" + "0" * 12 + "_" + "0" * 64).get(SURVEY).status_code == 401
    assert fresh.spent("survey") == 0


def test_refused_questions_of_an_analyst_cost_nothing(fresh):
    bob = fresh.analyst("bob")
    for query in ([("by", "faith")], [("by", "region"), ("by", "job: kind")], [("oops", "x")]):
        assert bob.get(SURVEY, query).status_code in (403, 422)
    assert bob.get(SURVEY, [("by", "sex")], Accept="image/png").status_code == 406
    assert bob.get("/api/datasets/survey/accuracy", [("by", "sex")]).status_code == 200
    assert bob.get("/api/datasets/survey/plan", [("by", "sex")]).status_code == 200
    assert fresh.spent("survey") == fresh.spent("bob") == 0


def test_a_new_question_is_paid_once_and_its_repetition_is_free_and_the_same_for_everyone(fresh):
    bob, ada = fresh.analyst("bob"), fresh.analyst("ada")
    first = bob.get(SURVEY, [("by", "sex"), ("by", "age")])
    assert first.status_code == 200
    assert (fresh.spent("survey"), fresh.spent("bob"), fresh.spent("ada")) == (1, 1, 0)
    again = [
        ada.get(SURVEY, [("by", "sex"), ("by", "age")]),
        bob.post(SURVEY, {"by": ["sex", "age"]}),
    ]
    # Another order, a filter and a choice of levels are parts of the table that was paid for.
    for part in (
        [("by", "age"), ("by", "sex")],
        [("by", "sex"), ("where", "age:65+")],
        [("by", "sex"), ("by", "age"), ("keep", "sex:F")],
    ):
        assert ada.get(SURVEY, part).status_code == 200
    assert {answer.content for answer in again} == {first.content}
    assert (fresh.spent("survey"), fresh.spent("bob"), fresh.spent("ada")) == (1, 1, 0)


def test_the_same_new_question_from_many_at_once_is_paid_once(fresh):
    bob = fresh.analyst("bob")
    answers = bob.ask_all([("GET", SURVEY, {"params": [("by", "age")]})] * 12)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert fresh.spent("survey") == fresh.spent("bob") == 1


def test_a_question_that_the_budget_cannot_pay_is_refused_and_what_was_paid_stays_free(fresh):
    ada = fresh.analyst("ada")
    asked = [ada.get(SURVEY, [("by", a)]) for a in ("sex", "age", "region")]
    assert [answer.status_code for answer in asked] == [200, 200, 403]
    assert asked[2].json()["type"] == "budget-exceeded"
    assert fresh.spent("survey") == fresh.spent("ada") == 2
    assert ada.get(SURVEY, [("by", "sex")]).content == asked[0].content


def test_nothing_of_the_call_is_in_the_body_of_an_answer(fresh):
    bob = fresh.analyst("bob")
    paid = bob.get(SURVEY, [("by", "sex")])
    for private in ("bob", "ledger", "token", "cost", "ρ = 0.0625"):
        assert private not in paid.text


def test_accuracy_is_known_from_the_plan_and_asks_nothing(fresh):
    found = fresh.anyone.get("/api/datasets/survey/accuracy", [("by", "sex"), ("where", "age:65+")])
    document = found.json()
    Accuracy.model_validate(document)
    assert found.headers["cache-control"] == "no-store"
    assert document["table"] == ["sex", "age"]
    assert document["cells"] == 2
    assert document["price"] == {"kind": "zcdp", "rho": "1/16"}
    # ρ = 1/16 on one table, add or remove: σ² = 1/(2ρ).
    assert math.isclose(document["standard_error"], math.sqrt(8), rel_tol=1e-6)
    assert fresh.spent("survey") == 0
    fresh.analyst("bob").get(SURVEY, [("by", "sex"), ("by", "age")])
    assert (
        fresh.anyone.get("/api/datasets/survey/accuracy", [("by", "age"), ("by", "sex")]).json()["price"]
        is None
    )


def test_accuracy_says_what_the_table_then_has(builder):
    asked = {"by": ["sex", "age"], "where": {"region": "North"}, "keep": {"age": ["0-14", "65+"]}}
    expected = builder.anyone.post("/api/datasets/census/accuracy", asked).json()
    table = builder.anyone.post(CENSUS, asked).json()
    assert expected["cells"] == len(table["count"]) == 4
    assert expected["price"] is None
    assert {expected["standard_error"]} == set(table["standard_error"])
    half_widths = np.subtract(table["upper_95"], table["count"])
    np.testing.assert_allclose(half_widths, expected["half_width_95"], rtol=1e-9)
    unknown = builder.anyone.post("/api/datasets/old/accuracy", asked).json()
    assert unknown["standard_error"] is None
    refused = builder.anyone.get("/api/datasets/census/accuracy", [("by", "region"), ("by", "job: kind")])
    assert refused.status_code == 403


def test_a_second_builder_with_the_same_key_answers_with_the_same_bytes(builder, tmp_path):
    other = service(tmp_path, only=["census"])
    try:
        ask = Caller(create_app(other))
        for kind in KINDS:
            query = [("by", "region"), ("by", "sex"), ("where", "age:65+")]
            assert (
                ask.get(f"{CENSUS}.{kind}", query).content
                == builder.anyone.get(f"{CENSUS}.{kind}", query).content
            )
    finally:
        other.close()


def test_reconstructed_tables_are_served_and_the_linear_ones_on_request(tmp_path):
    built = service(tmp_path, only=["census"], reconstruct="shrink", rho="1/2000")
    try:
        ask = Caller(create_app(built))
        published = ask.get(CENSUS, [("by", "sex"), ("by", "region")]).json()
        linear = ask.get(CENSUS, [("by", "sex"), ("by", "region"), ("estimate", "linear")]).json()
        assert published["reconstructed"]
        assert published["errors"] == "simulated"
        assert min(published["count"]) >= 0
        assert not linear["reconstructed"]
        assert linear["errors"] == "plan"
        assert linear["count"] != published["count"]
        tested = ask.post("/api/datasets/census/tests", {"test": "independence", "by": ["sex", "region"]})
        assert tested.status_code == 200
    finally:
        built.close()
