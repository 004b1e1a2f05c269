"""The client of the package against the real application, over HTTP."""

import json

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

import tabulary as tb
from docs.small_builder import SmallBuilder
from tabulary.builder.app import create_app
from tabulary.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidDomain,
    InvalidTable,
    InvalidWorkload,
    ServiceUnreachable,
    TableRefused,
    UnknownDataset,
)
from tabulary.infer import independence
from tabulary.planning import StatedErrors
from tests.builders import ALLOWED, DOMAIN, Caller, service
from tests.pages import lines_of, run_curl
from tests.serving import served
from tests.unit.client.stand_in import Reply, StandIn

REGION = 'Straße, "old"'


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A builder with a dataset of each method, its address, and an analyst's token."""
    built = service(tmp_path_factory.mktemp("builder"))
    _, token = built.state.tokens.add("Ada", "analyst", account="ada")
    with served(built) as url:
        yield built, url, token


@pytest.fixture(scope="module")
def reconstructed(tmp_path_factory):
    """A builder whose published tables are non-negative."""
    built = service(tmp_path_factory.mktemp("shrunk"), reconstruct="shrink", only=["census"])
    with served(built) as url:
        yield built, url


@pytest.mark.parametrize(
    ("by", "where", "keep"),
    [
        ([], None, None),
        (["sex"], None, None),
        (["age", "sex"], {"region": REGION}, None),
        (["job: kind", "age"], None, {"age": ["65+", "0-14"]}),
        (["region"], {"sex": "F"}, {"region": ["North", REGION]}),
    ],
)
def test_a_table_over_http_is_the_table_at_home(running, by, where, keep):
    built, url, _ = running
    table = tb.connect(url).table("census", by, where, keep)
    answer = built.datasets["census"].answers.answer(DOMAIN.margin([*by, *(where or {})]))
    levels = {
        a: [level for level in DOMAIN.levels_of(a) if level in kept] for a, kept in (keep or {}).items()
    }
    home = answer.table.slice(where or {}).transpose(by).select(levels)
    assert table.domain == home.domain
    assert np.array_equal(table.counts, home.counts)
    assert np.array_equal(table.standard_errors, home.standard_errors)
    assert np.array_equal(table.covariance.dense(), home.covariance.dense())


def test_a_test_at_home_says_what_the_service_says(running):
    _, url, _ = running
    question = {"by": ["sex", "age"], "where": {"region": "North"}}
    found = independence(tb.connect(url).table("census", **question, estimate="linear"))
    told = httpx.post(f"{url}/api/datasets/census/tests", json={"test": "independence", **question}).json()
    assert (found.p_value, found.statistic) == (told["p_value"], told["statistic"])


def test_a_dataset_tells_what_may_be_asked_and_what_is_promised(running):
    built, url, _ = running
    builder = tb.connect(url)
    assert builder.datasets() == {"census": "Census 2026", "survey": "Survey", "old": "As it was"}
    for name, dataset in built.datasets.items():
        found = builder.dataset(name)
        assert found.allowed_tables == ALLOWED
        assert found.promise == dataset.answers.promise
        assert (found.method, found.version) == (dataset.answers.method.value, dataset.answers.version)


def test_the_plan_that_is_given_is_the_plan_that_was_paid_for(running):
    built, url, _ = running
    plan = tb.connect(url).plan("census", ["sex"])
    assert plan == built.datasets["census"].answers.plan
    assert plan.digest() in [entry.plan_digest for entry in built.ledger.account("census").entries()]


def test_what_is_not_differentially_private_has_no_plan(running):
    _, url, _ = running
    with pytest.raises(InvalidArgument, match="has no plan"):
        tb.connect(url).plan("old")


def test_the_expected_error_is_the_one_that_the_table_has(running):
    _, url, _ = running
    builder = tb.connect(url)
    expected = builder.expected_error("census", ["age", "sex"])
    table = builder.table("census", ["age", "sex"])
    assert expected.cells == table.counts.size
    assert expected.standard_error == pytest.approx(np.sqrt((table.standard_errors**2).mean()))


def test_a_question_that_costs_is_paid_once_and_the_repeated_answer_is_the_same(running):
    built, url, token = running
    builder = tb.connect(url, token=token)
    before = built.ledger.account("ada").spent()
    assert builder.price("survey", ["sex"]) == tb.ZCDP("1/16")
    first = builder.table("survey", ["sex"])
    assert builder.price("survey", ["sex"]) is None
    paid = built.ledger.account("ada").spent()
    again = builder.table("survey", ["sex"])
    assert paid != before
    assert built.ledger.account("ada").spent() == paid
    assert np.array_equal(first.counts, again.counts)
    assert first.covariance is not None


def test_what_the_budget_cannot_pay_is_refused_and_costs_nothing(running):
    built, url, _ = running
    ledger = built.ledger
    ledger.create_account("poor", tb.ZCDP("1/1000"), tb.Neighbours("add-remove"))
    _, token = built.state.tokens.add("Poor", "analyst", account="poor")
    before = ledger.account("survey").spent()
    with pytest.raises(BudgetExceeded):
        tb.connect(url, token=token).table("survey", ["age", "job: kind"])
    assert ledger.account("survey").spent() == before


def test_a_question_that_costs_needs_a_token_that_is_known(running):
    _, url, _ = running
    for token, reason in ((None, "needs a token"), ("tab_ffffffff_" + "0" * 64, "token is not known")):
        with pytest.raises(TableRefused, match=reason):
            tb.connect(url, token=token).table("survey", ["age"])


def test_counts_without_differential_privacy_come_as_such(running):
    built, url, _ = running
    builder = tb.connect(url)
    with pytest.raises(InvalidTable, match=r"perturbed_table\(\)"):
        builder.table("old", ["sex", "age"])
    table = builder.perturbed_table("old", ["age", "sex"], {"region": "North"})
    home = built.datasets["old"].answers.answer(("sex", "age", "region")).table
    cut = home.slice({"region": "North"}).transpose(["age", "sex"])
    assert table.counts.tolist() == cut.counts.tolist()
    assert "NOT differentially private" in table.promise


def test_non_negative_tables_bring_their_simulated_errors_and_linear_ones_their_law(reconstructed):
    built, url = reconstructed
    builder = tb.connect(url)
    answers = built.datasets["census"].answers
    published = builder.table("census", ["sex", "age"])
    home = answers.answer(("sex", "age")).table
    assert isinstance(published.errors, StatedErrors)
    assert np.array_equal(published.counts, home.counts)
    assert (published.counts >= 0).all()
    assert np.array_equal(published.standard_errors, home.standard_errors)
    assert np.allclose(published.interval(), home.interval(), rtol=1e-12)
    linear = builder.table("census", ["sex", "age"], estimate="linear")
    assert independence(linear) == independence(answers.answer(("sex", "age"), linear=True).table)


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (("cenus", ["sex"]), UnknownDataset),
        (("census", ["height"]), InvalidDomain),
        (("census", ["sex"], {"age": "9"}), InvalidDomain),
        (("census", ["sex"], None, {"age": ["65+"]}), InvalidWorkload),
        (("census", ["region", "job: kind"]), TableRefused),
        (("census", list(DOMAIN.attributes)), TableRefused),
    ],
    ids=str,
)
def test_a_refusal_is_the_error_that_it_would_be_at_home(running, question, error):
    _, url, _ = running
    with pytest.raises(error, match=r"attribute|dataset|table"):
        tb.connect(url).table(*question)


def test_a_service_under_another_path_is_no_table_builder(running):
    _, url, _ = running
    with pytest.raises(ServiceUnreachable, match="nothing at this address"):
        tb.connect(f"{url}/elsewhere").datasets()


def test_two_tables_agree_on_what_they_share(running):
    _, url, _ = running
    builder = tb.connect(url)
    by_age = builder.table("census", ["sex", "age"]).counts.sum(axis=1)
    by_region = builder.table("census", ["sex", "region"]).counts.sum(axis=1)
    assert np.allclose(by_age, by_region, rtol=1e-9)
    assert np.allclose(by_age, builder.table("census", ["sex"]).counts, rtol=1e-9)


def test_a_proxy_that_changes_a_number_is_found_out(running):
    built, _, _ = running
    caller = Caller(create_app(built))

    def tampered(request):
        if request.path.endswith("/tables"):
            document = caller.post(request.path, request.json).json()
            document["standard_error"] = [error / 2 for error in document["standard_error"]]
            return Reply(document)
        return Reply(caller.get(request.path).json())

    with StandIn(tampered) as proxy, pytest.raises(ServiceUnreachable, match="not what its plan gives"):
        tb.connect(proxy.url).table("census", ["sex"])


def test_the_commands_with_curl_on_the_page_work(tmp_path):
    running = SmallBuilder.start()
    try:
        said = [
            run_curl(line, tmp_path, ADDRESS=running.url, TOKEN=running.token)
            for line in lines_of("docs/how-to/ask-a-table-builder.md", "curl")
        ]
    finally:
        running.stop()
    assert len(said) == 8
    assert said[1].startswith("sex,employment,count,standard_error,lower_95,upper_95,status\n")
    assert said[3] == ""
    assert pq.read_table(tmp_path / "table.parquet").num_rows == 22
    for text in (said[0], said[2], *said[4:]):
        assert json.loads(text)
