import copy
import threading
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidTable, ServiceUnreachable, TableRefused, UnknownDataset
from tabulary.infer import independence
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.release import ReleasedTable
from tabulary.release.cutting import cut
from tabulary.release.exchange import Provenance, table_document
from tabulary.release.promise import promise_of
from tests.unit.client.stand_in import Reply, StandIn

DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "year": [2025, 2026]})
ALLOWED = AllowedTables(DOMAIN, order=2, forbidden=[("sex", "year")])
PLAN = tb.plan(DOMAIN, ALLOWED.workload(), privacy=tb.ZCDP("1/8"), mechanism="residual")
OTHER = tb.plan(DOMAIN, ALLOWED.workload(), privacy=tb.ZCDP("1/4"), mechanism="residual")
DATASET = {
    "id": "census",
    "title": "Census 2026",
    "description": "Everybody.",
    "method": "fixed",
    "version": "2026",
    "differentially_private": True,
    "variables": [
        {"name": a, "label": a.title(), "description": "", "levels": list(DOMAIN.levels_of(a))}
        for a in DOMAIN.attributes
    ],
    "structural_zeros": [],
    "allowed_tables": ALLOWED.describe(),
    "promise": promise_of(PLAN).describe(),
    "privacy": {"kind": "zcdp", "rho": "1/8"},
    "neighbours": {"relation": "add-remove", "records": 1, "sensitive": []},
    "plan": PLAN.digest(),
}


def served(by, where=None, keep=None):
    """The table that the stand-in serves for a question."""
    margin = DOMAIN.margin((*by, *(where or {})))
    counts = 40 + np.arange(DOMAIN.cells(margin)).reshape(DOMAIN.shape_of(margin)) ** 2 / 3
    whole = ReleasedTable(tb.Table(DOMAIN.project(margin), counts), PLAN.error_of(margin))
    return cut(whole, by, where or {}, keep or {})


def document(asked):
    """The document of the answer to a question."""
    table = served(asked["by"], asked["where"], asked["keep"])
    source = Provenance("census", "2026", "fixed", "a promise", plan=PLAN.digest())
    return table_document(table, source, {name: asked[name] for name in ("by", "where", "keep")})


def perturbed(asked):
    """The document of an answer without differential privacy, one count withheld."""

    class Published:
        domain = DOMAIN.project(asked["by"])
        counts = np.ma.masked_less(np.array([12, 3]), 5)

    source = Provenance("census", "2026", "cell-key", "NOT private", perturbation={"keys": 256})
    return table_document(Published, source, {name: asked[name] for name in ("by", "where", "keep")})


def service(changes=None, *, tables=document, plan=PLAN):
    """A stand-in that serves one dataset; `changes` are made to every table."""

    def answer(request):
        path, query = urlsplit(request.path).path, parse_qsl(urlsplit(request.path).query)
        match path.removeprefix("/api/datasets").split("/")[1:]:
            case []:
                page = int(dict(query)["page"])
                names = ["census", "labour", "health"]
                following = f"/api/datasets?page={page + 1}" if page < len(names) else None
                item = {"id": names[page - 1], "title": names[page - 1].title()}
                return Reply({"items": [item], "next": following})
            case ["census"]:
                return Reply(DATASET)
            case ["census", "plan"]:
                return Reply(plan.describe())
            case ["census", "tables"]:
                return Reply({**tables(request.json), **(changes or {})})
            case ["census", "accuracy"]:
                found = {"cells": 6, "standard_error": 2.5, "half_width_95": 4.9, "price": None}
                return Reply({**found, **(changes or {})})
        problem = {"type": "unknown-dataset", "detail": "there is no such dataset."}
        return Reply(problem, 404, kind="application/problem+json")

    return StandIn(answer)


def test_connecting_asks_nothing_and_shows_no_token():
    builder = tb.connect("http://127.0.0.1:1", token="tab_1_secret")
    assert repr(builder) == "<TableBuilder at http://127.0.0.1:1>"


@pytest.mark.parametrize(
    ("by", "where", "keep"),
    [
        (["sex", "age"], None, None),
        (["age", "sex"], None, {"age": ["65+", "0-14"]}),
        (["age"], {"sex": "F"}, None),
        ([], None, None),
    ],
)
def test_a_table_arrives_as_it_was_served_with_the_law_of_its_errors(by, where, keep):
    with service() as builder:
        table = tb.connect(builder.url).table("census", by, where, keep)
    known = served(by, where, keep)
    assert isinstance(table, tb.ReleasedTable)
    assert table.domain == known.domain
    assert np.array_equal(table.counts, known.counts)
    assert np.array_equal(table.standard_errors, known.standard_errors)
    assert np.array_equal(table.covariance.dense(), known.covariance.dense())


def test_the_functions_of_inference_take_the_table():
    with service() as builder:
        table = tb.connect(builder.url).table("census", ["sex", "age"], estimate="linear")
    assert independence(table) == independence(served(["sex", "age"]))


def test_one_attribute_needs_no_list_and_levels_may_be_numbers():
    with service() as builder:
        table = tb.connect(builder.url).table("census", "age", {"year": 2026})
    assert table.margin == ("age",)
    assert builder.asked[0].json == {
        "by": ["age"],
        "where": {"year": "2026"},
        "keep": {},
        "estimate": "published",
    }


def test_a_plan_is_fetched_once_whatever_is_asked_and_by_however_many_threads():
    with service() as stand_in:
        builder = tb.connect(stand_in.url)
        threads = [
            threading.Thread(target=builder.table, args=("census", by)) for by in ("sex", "age", "year") * 2
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    paths = [request.path.split("?")[0] for request in stand_in.asked]
    assert paths.count("/api/datasets/census/tables") == 6
    assert paths.count("/api/datasets/census/plan") == 1


def test_a_plan_that_is_not_the_one_named_by_the_table_is_not_believed():
    with service(plan=OTHER) as builder, pytest.raises(ServiceUnreachable, match="names another plan"):
        tb.connect(builder.url).table("census", ["sex"])


def test_a_table_that_names_another_plan_than_it_has_is_not_believed():
    lying = service({"plan": OTHER.digest()})
    with lying as builder, pytest.raises(ServiceUnreachable, match="names another plan"):
        tb.connect(builder.url).table("census", ["sex"])


def test_a_plan_whose_noise_is_too_small_for_its_promise_is_not_believed():
    lying = copy.deepcopy(PLAN.describe())
    lying["privacy"] = lying["loss"] = {"kind": "zcdp", "rho": "1/80"}

    class Lying:
        @staticmethod
        def describe():
            return lying

    with service(plan=Lying) as builder, pytest.raises(ServiceUnreachable, match="too small for its loss"):
        tb.connect(builder.url).plan("census")


def test_a_plan_that_calls_for_more_than_anyone_can_compute_is_refused_by_arithmetic():
    vast = copy.deepcopy(PLAN.describe())
    vast["domain"]["attributes"] = [{"name": f"a{i}", "levels": ["x", "y"]} for i in range(60)]
    vast["workload"] = [{"attributes": [f"a{i}" for i in range(60)], "weight": "1"}]

    class Vast:
        @staticmethod
        def describe():
            return vast

    with (
        service(plan=Vast) as builder,
        pytest.raises(ServiceUnreachable, match="more cells than may be read"),
    ):
        tb.connect(builder.url).plan("census")


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": "labour"},
        {"question": {"by": ["age"], "where": {}, "keep": {}}},
        {"question": {"by": ["sex"], "where": {"age": "65+"}, "keep": {}}},
        {"question": None},
        {"schema": "tabulary-table/9"},
        {"count": [1.0]},
        {"count": [1.0, None]},
        {"standard_error": [0.1, 0.1]},
    ],
    ids=str,
)
def test_a_table_that_is_not_what_was_asked_or_not_what_it_claims_is_not_believed(changes):
    with service(changes) as builder, pytest.raises(ServiceUnreachable, match="cannot trust"):
        tb.connect(builder.url).table("census", ["sex"])


@pytest.mark.parametrize("answer", [[], None, 3, "table"])
def test_an_answer_of_another_shape_is_not_believed(answer):
    with StandIn(lambda _: Reply(answer)) as stand_in:
        builder = tb.connect(stand_in.url)
        for ask in (
            lambda: builder.datasets(),
            lambda: builder.dataset("census"),
            lambda: builder.table("census", ["sex"]),
            lambda: builder.perturbed_table("census", ["sex"]),
            lambda: builder.expected_error("census", ["sex"]),
            lambda: builder.price("census", ["sex"]),
            lambda: builder.plan("census"),
        ):
            with pytest.raises(ServiceUnreachable, match="cannot trust"):
                ask()


def test_the_datasets_of_all_pages_are_listed():
    with service() as builder:
        assert tb.connect(builder.url).datasets() == {
            "census": "Census",
            "labour": "Labour",
            "health": "Health",
        }


def test_a_dataset_tells_its_attributes_its_rules_and_its_promise():
    with service() as builder:
        found = tb.connect(builder.url).dataset("census")
    assert found.domain == DOMAIN
    assert found.allowed_tables == ALLOWED
    assert found.promise == promise_of(PLAN)
    assert found.privacy == tb.ZCDP("1/8")
    assert found.neighbours == tb.Neighbours("add-remove")
    assert (found.method, found.version, found.labels["sex"]) == ("fixed", "2026", "Sex")
    with pytest.raises(TableRefused, match="'sex' and 'year' together"):
        found.allowed_tables.refuse(("sex", "year"))


@pytest.mark.parametrize(
    "change",
    [
        {"variables": [{"name": "sex"}]},
        {"variables": [{"name": "sex", "label": 3, "levels": ["F"]}]},
        {"allowed_tables": {"order": 99, "forbidden": [], "max_cells": 1}},
        {"allowed_tables": {"order": 2, "unheard_of": 1}},
        {"promise": {}},
        {"privacy": {"rho": 1}},
        {"neighbours": {"relation": "near", "records": 1, "sensitive": []}},
        {"title": None},
    ],
    ids=str,
)
def test_a_dataset_that_cannot_be_is_not_believed(change):
    refused = pytest.raises(ServiceUnreachable, match="description of dataset 'census'")
    with StandIn(lambda _: Reply({**DATASET, **change})) as builder, refused:
        tb.connect(builder.url).dataset("census")


def test_the_error_of_a_table_is_known_before_it_is_asked_for():
    with service() as builder:
        found = tb.connect(builder.url).expected_error("census", ["age", "sex"])
    assert (found.margin, found.cells, found.standard_error) == (("age", "sex"), 6, 2.5)
    assert found.half_width == 4.9


def test_the_price_of_a_table_is_known_before_it_is_asked_for():
    with service() as builder:
        assert tb.connect(builder.url).price("census", ["sex"]) is None
    with service({"price": {"kind": "zcdp", "rho": "1/100"}}) as builder:
        assert tb.connect(builder.url).price("census", ["sex"]) == tb.ZCDP("1/100")


def test_a_table_without_differential_privacy_is_no_released_table():
    with service(tables=perturbed) as builder:
        with pytest.raises(InvalidTable, match=r"not differentially private.*perturbed_table\(\)"):
            tb.connect(builder.url).table("census", ["sex"])
        table = tb.connect(builder.url).perturbed_table("census", ["sex"])
    assert (table["F"], table["M"]) == (12, None)
    assert (table.promise, table.perturbation) == ("NOT private", {"keys": 256})
    assert "not differentially private" in repr(table)
    assert table.to_pandas()["count"].isna().tolist() == [False, True]


def test_a_released_table_is_not_taken_for_a_perturbed_one():
    with service() as builder, pytest.raises(InvalidTable, match=r"Take them with table\(\)"):
        tb.connect(builder.url).perturbed_table("census", ["sex"])


def test_the_accuracy_of_a_table_without_differential_privacy_is_not_known():
    unknown = {"standard_error": None, "half_width_95": None}
    with service(unknown) as builder, pytest.raises(InvalidTable, match="not differentially private"):
        tb.connect(builder.url).expected_error("census", ["sex"])


def test_a_dataset_that_is_not_there_is_unknown():
    with service() as builder, pytest.raises(UnknownDataset, match="no such dataset"):
        tb.connect(builder.url).table("cenus", ["sex"])
