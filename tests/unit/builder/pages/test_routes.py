"""The pages as a reader's browser gets them, without a script."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

import tabulary as tb
from tabulary.builder.app import create_app
from tabulary.builder.pages.choices import Choices
from tabulary.builder.pages.rendering import PAGE_POLICY, assets
from tabulary.builder.pages.sessions import form_token
from tabulary.builder.service import ServiceLimits
from tabulary.builder.state import Role
from tabulary.core.labels import Labels, VariableLabels
from tests.builders import DOMAIN, Caller, service

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
PAGES = (
    "/",
    "/datasets/census",
    "/datasets/census?rows=sex&columns=age&where=region:North",
    "/datasets/census?rows=sex&rows=age&columns=region&columns=job: kind",
    "/datasets/census/table",
    "/datasets/census/table?rows=sex&columns=age&chart=bars&test=independence",
    "/datasets/census/table?rows=sex&rows=region&columns=age&chart=heat&show=row-percent&totals=off&names=codes",
    "/datasets/old/table?rows=sex&columns=age",
    "/datasets/survey/table?rows=sex",
    "/datasets/nowhere",
)
LABELLED = Labels(
    "Census 2026",
    "Everyone.",
    variables={
        "sex": VariableLabels("Sex", levels={"F": "Female", "M": "Male"}),
        "age": VariableLabels("Age", "In completed years."),
    },
)


class Read(HTMLParser):
    """A page as its tags, its text and the addresses that it names."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.stack, self.words = [], [], []
        self.feed(text)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.stack.append(tag)

    def handle_endtag(self, tag):
        self.stack.append(f"/{tag}")

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag, **wanted):
        """Return the attributes of every such tag; an underscore in a name stands for a hyphen."""
        named = {name.replace("_", "-"): value for name, value in wanted.items()}
        return [a for t, a in self.tags if t == tag and named.items() <= a.items()]


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    opened = service(tmp_path_factory.mktemp("builder"))
    census = replace(opened.datasets["census"], labels=(LABELLED,))
    labelled = replace(opened, datasets={**opened.datasets, "census": census})
    yield labelled
    opened.close()


@pytest.fixture(scope="module")
def ask(held):
    return Caller(create_app(held))


@pytest.fixture(scope="module")
def read(ask):
    def reading(path):
        found = ask.get(path, accept=HTML)
        assert found.headers["content-type"] == "text/html; charset=utf-8"
        return Read(found.text)

    return reading


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_nothing_from_elsewhere_and_holds_no_script_and_no_style_of_its_own(ask, path):
    found = ask.get(path, accept=HTML)
    assert found.headers["content-security-policy"] == PAGE_POLICY
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["referrer-policy"] == "no-referrer"
    page = Read(found.text)
    for tag, attributes in page.tags:
        assert tag != "style"
        assert not any(name == "style" or name.startswith("on") for name in attributes), attributes
        for name in ("href", "src", "action", "formaction"):
            place = attributes.get(name, "/")
            assert place.startswith(("/", "#")) and not place.startswith("//"), place  # noqa: PT018
    (script,) = page.all("script")
    assert (script["type"], script["src"]) == ("module", assets()["builder.js"].url)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_landmarks_a_way_past_them_and_headings_in_order(read, path):
    page = read(path)
    assert page.all("html") == [{"lang": "en"}]
    assert page.all("a", href="#main", **{"class": "skip"})
    assert len(page.all("main", id="main")) == len(page.all("h1")) == 1
    assert page.all("p", role="status", aria_live="polite")
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("for", "aria-labelledby"):
            assert set(attributes.get(name, "").split()) <= set(ids)


def test_the_first_page_tells_every_dataset_and_what_each_promises(read, held):
    page = read("/")
    for dataset in held.datasets.values():
        assert dataset.title in page.text
        assert dataset.description in page.text
        assert page.all("a", href=f"/datasets/{dataset.name}")
    assert held.datasets["census"].answers.promise.statement in page.text
    assert "Not differentially private." in page.text


def test_the_page_of_a_dataset_shows_every_variable_its_levels_and_where_it_may_stand(read):
    page = read("/datasets/census?rows=sex&columns=age&keep=age:65%2B&where=region:North")
    assert "2 levels" in page.text
    assert "3 levels · In completed years." in page.text
    assert {a["data-name"] for a in page.all("div", role="group")} == set(DOMAIN.attributes)
    for name, place in (("sex", "rows"), ("age", "columns"), ("region", "filter"), ("job: kind", "")):
        fields = page.all("input", name=f"place:{name}")
        assert [f["value"] for f in fields] == ["", "rows", "columns", "filter"]
        assert [f["value"] for f in fields if "checked" in f] == [place]
    assert [f["value"] for f in page.all("input", name="keep") if "checked" in f] == ["age:65+"]
    assert [o["value"] for o in page.all("option") if "selected" in o] == ["North"]
    assert "Female" in page.text
    assert "Not together: region and job: kind." in page.text


def test_the_size_and_the_expected_accuracy_are_told_before_anything_is_asked(read, ask):
    expected = ask.get("/api/datasets/census/accuracy?by=sex&by=age").json()
    page = read("/datasets/census?rows=sex&columns=age")
    width = f"{expected['half_width_95']:.1f}".removesuffix(".0")
    assert f"{expected['cells']} cells" in page.text
    assert f"within ±{width} of the truth, 19 times out of 20" in page.text


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("rows=sex&rows=age&columns=region&columns=job: kind", "at most 3 attributes"),
        ("rows=region&columns=job: kind", "allows no table with 'region' and 'job: kind' together"),
    ],
)
def test_a_table_that_is_not_given_is_refused_while_choosing_and_when_asked_for(read, ask, query, reason):
    page = read(f"/datasets/census?{query}")
    assert "This table is not given." in page.text
    assert reason in page.text
    asked = ask.get(f"/datasets/census/table?{query}", accept=HTML)
    assert asked.status_code == 403
    refused = Read(asked.text)
    assert reason in refused.text
    (back,) = refused.all("a", **{"class": "button"})
    # The way back leads to the choices that were made.
    assert ask.get(back["href"], accept=HTML).status_code == 200


def test_a_form_without_a_script_leads_to_the_address_of_its_choices(ask):
    sent = [("place:sex", "rows"), ("level:sex", "F"), ("place:age", "columns"), ("level:age", "0-14")]
    for path, place in (
        ("/datasets/census", "/datasets/census"),
        ("/datasets/census/table", "/datasets/census/table"),
    ):
        found = ask.get(path, sent, accept=HTML)
        assert found.status_code == 303
        assert found.headers["location"] == f"{place}?rows=sex&columns=age"


def test_a_table_has_a_caption_headers_with_scope_and_the_keys_reach_its_region(read):
    page = read("/datasets/census/table?rows=sex&columns=age")
    (region,) = page.all("div", role="region")
    assert region["tabindex"] == "0"
    assert len(page.all("caption")) == 1
    assert all(header["scope"] in ("col", "colgroup", "row", "rowgroup") for header in page.all("th"))
    for words in ("Female", "Male", "0-14", "15-64", "65+"):
        assert words in page.text


def test_the_numbers_on_the_page_are_those_of_the_api_rounded(ask):
    counts = ask.get("/api/datasets/census/tables?by=sex&by=age").json()["count"]
    found = ask.get("/datasets/census/table?rows=sex&columns=age&totals=off", accept=HTML).text
    shown = re.findall(r"<td[^>]*data-cell[^>]*>(?:<span class=\"mark\">~</span>)?([−\d,.]+)", found)
    numbers = [float(text.replace(",", "").replace("−", "-")) for text in shown]
    assert len(numbers) == len(counts) == 6
    assert all(abs(n - c) <= 0.5 for n, c in zip(numbers, counts, strict=True))


def test_the_address_that_is_passed_on_holds_only_what_was_chosen(ask):
    found = ask.get(
        "/datasets/census/table?rows=sex&show=counts&chart=bars&totals=on&first=&test=", accept=HTML
    )
    assert (found.status_code, found.headers["location"]) == (
        303,
        "/datasets/census/table?rows=sex&chart=bars",
    )


def test_names_are_labels_or_codes(read):
    labels = read("/datasets/census/table?rows=sex&where=age:65%2B")
    assert "People by Sex (Age: 65+)" in labels.text
    codes = read("/datasets/census/table?rows=sex&where=age:65%2B&names=codes")
    assert "People by sex (age: 65+)" in codes.text
    assert "Female" not in codes.text


def test_a_filter_is_shown_with_a_way_to_remove_it_and_a_variable_with_ways_to_move_it(read):
    page = read("/datasets/census/table?rows=sex&columns=age&keep=age:65%2B&where=region:North&chart=bars")
    links = {a["title"]: a["href"] for a in page.all("a") if "title" in a}
    table, only, kept = "/datasets/census/table", "where=region%3ANorth", "keep=age%3A65%2B"
    assert links == {
        "Remove the filter region: North": f"{table}?rows=sex&columns=age&{kept}&chart=bars",
        "Move Sex to the columns": f"{table}?columns=age&columns=sex&{only}&{kept}&chart=bars",
        "Leave out Sex": f"{table}?columns=age&{only}&{kept}&chart=bars",
        "Move Age to the rows": f"{table}?rows=sex&rows=age&{only}&{kept}&chart=bars",
        "Leave out Age": f"{table}?rows=sex&{only}&chart=bars",
        "Show all levels of Age": f"{table}?rows=sex&columns=age&{only}&chart=bars",
    }
    (pivot,) = page.all("a", data_focus="pivot")
    assert pivot["href"].startswith("/datasets/census/table?rows=age&columns=sex&")


def test_every_download_is_the_table_of_the_page(read, ask):
    page = read("/datasets/census/table?rows=sex&columns=age&where=region:North")
    links = [a["href"] for a in page.all("a") if "download" in a]
    assert len(links) >= 3
    for link in links:
        found = ask.get(link)
        assert found.status_code == 200, link
        assert urlsplit(link).query == "by=sex&by=age&where=region%3ANorth"


def test_the_call_in_python_gives_the_table_of_the_page(held, ask, monkeypatch):
    found = ask.get(
        "/datasets/census/table?rows=sex&columns=age&keep=age:0-14&where=region:South: east", accept=HTML
    )
    told = re.search(r'<code id="api-python"[^>]*>(.*?)</code>', found.text, re.S).group(1)
    asked = []

    class Connected:
        def table(self, *given, **named):
            asked.append((given, named))

    monkeypatch.setattr(tb, "connect", lambda url: Connected())
    exec(told.replace("&#39;", "'").replace("&#34;", '"'), {})
    (call,) = asked
    assert call == (
        ("census", ["sex", "age"]),
        {"where": {"region": "South: east"}, "keep": {"age": ["0-14"]}},
    )


def test_a_page_tells_how_to_cite_and_to_link_to_a_table_the_same_whenever_it_is_asked(ask, read):
    path = "/datasets/census/table?rows=sex"
    page = read(path)
    assert f"http://localhost{path}" in page.text
    assert (
        "Tables. Census 2026, version 2026. People by Sex. http://localhost/datasets/census/table?rows=sex"
        in page.text
    )
    first, second = ask.get(path, accept=HTML), ask.get(path, accept=HTML)
    assert first.content == second.content
    known = ask.get(path, accept=HTML, if_none_match=first.headers["etag"])
    assert (known.status_code, known.content) == (304, b"")
    assert known.headers["content-security-policy"] == PAGE_POLICY


def test_an_address_in_a_page_is_that_of_whoever_asked_for_it(ask):
    path = "/datasets/census/table?rows=sex"
    assert "http://127.0.0.1:8000/" in ask.get(path, accept=HTML, host="127.0.0.1:8000").text
    assert "127.0.0.1" not in ask.get(path, accept=HTML).text


def test_a_page_says_what_the_numbers_promise_and_what_they_do_not(read, held):
    promise = held.datasets["census"].answers.promise
    for path in ("/datasets/census", "/datasets/census/table?rows=sex"):
        page = read(path)
        for sentence in (promise.statement, promise.protected, *promise.meaning, *promise.not_promised):
            assert sentence in page.text


def test_cell_keys_carry_a_banner_and_cannot_be_tested(read):
    page = read("/datasets/old/table?rows=sex&columns=age")
    assert page.text.count("NOT differentially private") >= 2
    assert "Is this difference real?" not in page.text
    asked = read("/datasets/old/table?rows=sex&columns=age&test=independence")
    assert "Real" not in asked.text


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (
            "test=difference&first=sex:F&second=sex:M",
            "Real: noise alone would hardly ever make such a difference",
        ),
        ("test=difference&first=sex:F&second=sex:M", "“Female” minus “Male” is"),
        ("test=difference&first=sex:F&second=sex:F", "Choose two cells that are not the same."),
        ("test=difference", "Choose two cells that are not the same."),
        ("test=independence", "Noise-aware test of independence: statistic"),
    ],
)
def test_whether_a_difference_is_real_is_answered_with_a_sentence(read, query, answer):
    assert answer in read(f"/datasets/census/table?rows=sex&columns=age&{query}").text


def test_the_outcome_of_a_test_on_the_page_is_that_of_the_api(read, ask):
    body = {"test": "difference", "by": ["sex", "age"], "cells": [{"sex": "F"}, {"sex": "M"}]}
    found = ask.post("/api/datasets/census/tests", body).json()
    page = read("/datasets/census/table?rows=sex&columns=age&test=difference&first=sex:F&second=sex:M")
    assert f"is {round(found['estimate']):,};".replace("-", "−") in page.text


def test_a_question_that_costs_is_told_its_price_and_nothing_is_spent_by_looking(read, held):
    page = read("/datasets/survey/table?rows=sex")
    assert "Asking costs ρ = 0.0625, once" in page.text
    assert page.all("a", href="/sign-in?to=%2Fdatasets%2Fsurvey%2Ftable%3Frows%3Dsex")
    assert "Authorization: Bearer TOKEN" in page.text
    assert "token=TOKEN" in page.text
    # The script says the same, whatever is chosen.
    (forecast,) = read("/datasets/survey").all("div", id="forecast")
    assert forecast["data-price"] == "Asking costs ρ = 0.0625, once: asked again, by anyone, it is free."
    assert held.datasets["survey"].answers.price(("sex",)) is not None
    assert held.ledger.account("survey").spent() is None


class Analyst(Caller):
    """Somebody who signed in with a token of an account."""

    def __init__(self, held, account, role=Role.analyst):
        super().__init__(create_app(held))
        token, _ = held.state.tokens.add(f"of {account}", role, account)
        self.session = held.state.sessions.begin(token)
        self.headers = {"Cookie": f"tabulary-session={self.session}", "Accept": HTML}

    def pay(self, path, token=None):
        fields = {"form_token": form_token(self.session) if token is None else token}
        return self.ask("POST", path, data=fields)


def test_an_analyst_who_signed_in_pays_once_with_a_form_and_then_sees_the_table(tmp_path):
    held = service(tmp_path, only=["survey"])
    ada, path = Analyst(held, "ada"), "/datasets/survey/table?rows=sex&columns=age"
    asked = ada.get(path)
    assert "Ask and pay" in asked.text
    assert "Signed in: the account “ada” has ρ = 0.125 left." in Read(asked.text).text
    assert Read(asked.text).all("form", method="post", action="/sign-out")
    assert asked.headers["referrer-policy"] == "same-origin"
    refused = ada.pay(path, token="0" * 64)
    assert (refused.status_code, held.ledger.account("ada").spent()) == (403, None)
    paid = ada.pay(path)
    assert (paid.status_code, paid.headers["location"]) == (303, path)
    assert str(held.ledger.account("ada").spent()) == "ρ = 0.0625"
    shown = ada.get(path)
    assert "Total" in shown.text
    assert "Signed in: the account “ada” has ρ = 0.0625 left." in Read(shown.text).text
    assert shown.headers["cache-control"] == "no-store"
    ada.pay(path)
    tested = ada.get(f"{path}&test=difference&first=sex:F&second=sex:M")
    assert "minus" in tested.text
    for link in [a["href"] for a in Read(shown.text).all("a") if "download" in a]:
        assert link.startswith("/datasets/survey/table.")
        assert ada.get(link).status_code == 200
    # All of that was one question.
    assert str(held.ledger.account("ada").spent()) == "ρ = 0.0625"
    held.close()


def test_nobody_but_an_analyst_who_signed_in_pays_or_downloads_what_was_not_paid(tmp_path):
    held = service(tmp_path, only=["survey", "census"])
    path = "/datasets/survey/table?rows=sex"
    stranger, bob = Caller(create_app(held)), Analyst(held, "bob")
    custodian = Analyst(held, None, Role.custodian)
    for caller in (stranger, custodian):
        assert "Sign in to ask" in caller.get(path, accept=HTML).text
        assert caller.ask("POST", path, data={}).status_code == 403
        assert caller.get("/datasets/survey/table.csv?rows=sex").status_code == 403
    assert bob.get("/datasets/survey/table.csv?rows=sex").status_code == 403
    assert bob.get("/datasets/survey/table.tex?rows=sex").status_code == 404
    assert bob.pay("/datasets/census/table?rows=sex").status_code == 403
    assert (
        bob.pay("/datasets/survey/table?rows=sex&rows=age&columns=region&columns=job: kind").status_code
        == 403
    )
    assert held.ledger.account("survey").spent() is None
    held.close()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("/datasets/nowhere", 404),
        ("/datasets/nowhere/table", 404),
        ("/datasets/census?row=sex", 422),
        ("/datasets/census/table?rows=gender", 422),
        ("/?page=2", 422),
        ("/static/0123456789abcdef/builder.js", 404),
    ],
)
def test_an_error_is_a_page_for_a_browser_and_a_problem_for_a_program(ask, path, status):
    page, problem = ask.get(path, accept=HTML), ask.get(path)
    assert page.status_code == problem.status_code == status
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert problem.headers["content-type"] == "application/problem+json"
    assert problem.headers["content-security-policy"].startswith("default-src 'none'; frame")
    detail = problem.json()["detail"]
    assert detail[1:] in Read(page.text).text


def test_the_api_speaks_json_even_to_a_browser(ask):
    found = ask.get("/api/datasets/nowhere", accept=HTML)
    assert found.headers["content-type"] == "application/problem+json"


def test_a_method_that_no_page_takes_and_too_many_requests_are_pages_too(held, ask):
    found = ask.ask("DELETE", "/datasets/census", headers={"Accept": HTML})
    assert found.status_code == 405
    assert found.headers["allow"] == "GET, HEAD"
    assert "This cannot be done here" in found.text
    hurried = Caller(create_app(replace(held, limits=ServiceLimits(requests_a_minute=1, burst=1))))
    hurried.get("/", accept=HTML)
    refused = hurried.get("/", accept=HTML)
    assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (429, True)
    assert "Too many requests" in refused.text


def test_an_unexpected_error_is_a_page_that_tells_nothing(held, monkeypatch):
    monkeypatch.setattr(
        "tabulary.builder.pages.routes.build_page", lambda *_: (_ for _ in ()).throw(ValueError("a secret"))
    )
    found = Caller(create_app(held)).get("/datasets/census", accept=HTML)
    assert found.status_code == 500
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert "secret" not in found.text


def test_what_is_filled_into_a_page_is_text_and_never_a_tag(held):
    evil = '<script>alert("x")</script>'
    census = replace(
        held.datasets["census"],
        labels=(Labels(evil, evil, variables={"sex": VariableLabels(evil, evil, {"F": evil})}),),
    )
    ask = Caller(create_app(replace(held, title=evil, datasets={"census": census})))
    for path in (
        "/",
        "/datasets/census?rows=sex",
        "/datasets/census/table?rows=sex&columns=age&chart=bars",
        "/datasets/census/table?rows=sex&columns=age&chart=heat&test=difference&first=sex:F",
        f"/datasets/{evil}",
        f"/datasets/census?{evil}=1",
    ):
        found = ask.get(path, accept=HTML)
        assert "<script>" not in found.text, path
        assert "alert(" in found.text, path


def test_files_of_pages_are_kept_for_good_under_an_address_of_their_bytes(ask):
    for asset in assets().values():
        found = ask.get(asset.url)
        assert (found.status_code, found.content) == (200, asset.content)
        assert found.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert found.headers["content-type"] == asset.media_type
    assert len(assets()["builder.js"].content) < 15_000


def test_a_page_is_asked_for_again_and_head_has_no_body(ask):
    found = ask.ask("HEAD", "/datasets/census/table?rows=sex", headers={"Accept": HTML})
    assert (found.status_code, found.content) == (200, b"")
    assert found.headers["cache-control"] == "no-cache"
    assert int(found.headers["content-length"]) > 0


def test_pages_are_no_part_of_the_description_of_the_api(ask):
    paths = ask.get("/api/openapi.json").json()["paths"]
    assert all(path.startswith("/api/") for path in paths)


def test_a_table_on_a_page_is_counted_as_a_table_that_was_asked_for(tmp_path):
    opened = service(tmp_path, only=["census"])
    caller = Caller(create_app(opened))
    counted = []
    opened.state.counter.count = lambda *given: counted.append(given[:3])
    caller.get(Choices(rows=("sex",)).url("census"), accept=HTML)
    caller.get("/datasets/census", accept=HTML)
    opened.close()
    assert counted == [("census", "tables", 200)]
