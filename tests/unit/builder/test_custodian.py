"""What the custodian sees and does over HTTP."""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tabulary.builder.app import create_app
from tabulary.builder.service import Service
from tabulary.builder.state import State
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.errors import ServiceError
from tabulary.ledger import Ledger
from tests.builders import DOMAIN, GENEROUS, SECRET, Caller, service

ROOT = "/api/custodian"
LISTS = ["accounts", "ledger?account=census", "tokens", "usage", "log", "log.jsonl", "key", "datasets"]


class Office:
    """A service without data, its ledger and state on one database, and the custodian who looks after it."""

    def __init__(self, place):
        self.state = State.create(place)
        self.ledger = Ledger.create(place if "://" in place else f"{place}.ledger")
        self.app = create_app(Service({}, self.state, self.ledger, "ab" * 8, GENEROUS))
        _, text = self.state.tokens.add("Carl", "custodian")
        self.caller = Caller(self.app, text)

    def get(self, path, **params):
        return self.caller.get(f"{ROOT}/{path}", params or None)

    def post(self, path, **body):
        return self.caller.post(f"{ROOT}/{path}", body)

    def close(self):
        self.state.close()
        self.ledger.close()


@pytest.fixture
def office(database):
    opened = Office(database)
    yield opened
    opened.close()


@pytest.fixture
def file_office(tmp_path):
    opened = Office(str(tmp_path / "state.sqlite"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def refusing_office(tmp_path_factory):
    """An office for requests that are refused: nothing is left behind."""
    opened = Office(str(tmp_path_factory.mktemp("office") / "state.sqlite"))
    opened.ledger.create_account("bob", ZCDP(1), Neighbours())
    yield opened
    opened.close()


def _pages(office, path, size):
    """Return the items of all pages, following `next`."""
    items, address = [], f"{ROOT}/{path}{'&' if '?' in path else '?'}size={size}"
    while address is not None:
        page = office.caller.get(address).json()
        assert len(page["items"]) <= size
        items += page["items"]
        address = page["next"]
    return items


def _routes(app):
    for path, operations in app.openapi()["paths"].items():
        if path.startswith(ROOT):
            for method in operations:
                yield method.upper(), path.replace("{id}", "0" * 12)


def test_every_route_is_closed_without_a_token_and_to_an_analyst(file_office):
    _, analysts = file_office.state.tokens.add("Ada", "analyst", account="ada")
    routes = list(_routes(file_office.app))
    assert len(routes) >= 9
    for method, path in routes:
        for content in (b"", b"{}", b"not json"):
            given = {"content": content, "headers": {"Content-Type": "application/json"}}
            assert Caller(file_office.app).ask(method, path, **given).status_code == 401, path
            assert Caller(file_office.app, analysts).ask(method, path, **given).status_code == 403, path


def test_an_account_is_opened_and_listed_with_exact_amounts(office):
    made = office.post("accounts", name="ada", budget={"rho": "1/3"})
    assert made.status_code == 201
    office.ledger.account("ada").debit(ZCDP("1/7"), Neighbours(), purpose="sex by age", plan_digest="5f")
    (listed,) = office.get("accounts").json()["items"]
    assert listed == {
        "name": "ada",
        "budget": {"rho": "1/3"},
        "spent": {"rho": "1/7"},
        "remaining": {"rho": "4/21"},
        "neighbours": Neighbours().describe(),
        "head": {"entries": 1, "digest": office.ledger.account("ada").head().digest},
    }
    assert made.json()["remaining"] == {"rho": "1/3"}
    assert made.json()["head"]["entries"] == 0


@pytest.mark.parametrize(
    ("budget", "privacy"),
    [
        ({"epsilon": "0.5"}, PureDP(Fraction(1, 2))),
        ({"epsilon": "2", "delta": "1/1000000"}, ApproxDP(2, Fraction(1, 10**6))),
        ({"rho": "1/8"}, ZCDP("1/8")),
    ],
)
def test_every_kind_of_budget_can_be_given(file_office, budget, privacy):
    neighbours = {"relation": "replace", "records": 3}
    assert file_office.post("accounts", name="ada", budget=budget, neighbours=neighbours).status_code == 201
    account = file_office.ledger.account("ada")
    assert (account.budget, account.neighbours) == (privacy, Neighbours("replace", 3))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": " ada"},
        {"name": "a\x00da"},
        {"name": "\ud800"},
        {"name": "a" * 201},
        {"budget": {}},
        {"budget": {"rho": "0"}},
        {"budget": {"rho": "1/0"}},
        {"budget": {"rho": "-1"}},
        {"budget": {"rho": "1e999999999"}},
        {"budget": {"rho": 0.1}},
        {"budget": {"rho": "1" * 101}},
        {"budget": {"rho": "1", "epsilon": "1"}},
        {"budget": {"delta": "1"}},
        {"budget": {"epsilon": "1", "delta": "1"}},
        {"budget": {"sigma": "1"}},
        {"neighbours": {"relation": "same"}},
        {"neighbours": {"records": 0}},
        {"wish": "more"},
    ],
)
def test_an_account_that_cannot_be_is_not_opened(refusing_office, wrong):
    refused = refusing_office.post("accounts", **{"name": "ada", "budget": {"rho": "1"}, **wrong})
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert [account.name for account in refusing_office.ledger.accounts()] == ["bob"]


def test_an_account_is_opened_once_and_keeps_its_budget(office):
    office.post("accounts", name="ada", budget={"rho": "1"})
    again = office.post("accounts", name="ada", budget={"rho": "100"})
    assert (again.status_code, again.json()["type"]) == (409, "account-exists")
    assert office.ledger.account("ada").budget == ZCDP(1)


def test_the_ledger_is_read_with_its_chain_a_page_at_a_time(office):
    account = office.ledger.create_account("census", ZCDP(1), Neighbours())
    for i in range(7):
        account.debit(ZCDP("1/100"), Neighbours(), purpose=f"question {i}", plan_digest=f"{i}{i}")
    first = office.get("ledger", account="census", size=3).json()
    assert first["ledger"] == office.ledger.identity
    assert first["head"] == {"entries": 7, "digest": account.head().digest}
    entries = _pages(office, "ledger?account=census", 3)
    assert [entry["number"] for entry in entries] == [1, 2, 3, 4, 5, 6, 7]
    assert [entry["purpose"] for entry in entries] == [f"question {i}" for i in range(7)]
    assert {json.dumps(entry["cost"]) for entry in entries} == {'{"rho": "1/100"}'}
    assert [entry["previous"] for entry in entries[1:]] == [entry["digest"] for entry in entries[:-1]]
    assert entries[-1]["digest"] == first["head"]["digest"]


def test_an_account_without_debits_has_a_head_all_the_same(file_office):
    account = file_office.ledger.create_account("census", ZCDP(1), Neighbours())
    empty = file_office.get("ledger", account="census").json()
    assert (empty["items"], empty["next"]) == ([], None)
    assert empty["head"] == {"entries": 0, "digest": account.head().digest}


def test_an_account_that_is_not_there_is_not_found(file_office):
    refused = file_office.get("ledger", account="nobody")
    assert (refused.status_code, refused.json()["type"]) == (404, "no-such-account")


def test_accounts_are_listed_a_page_at_a_time_in_the_order_of_their_opening(file_office):
    names = ["zoe", "ada", "Bob & Sons, 1/2", "müller", "carl"]
    for name in names:
        file_office.ledger.create_account(name, ZCDP(1), Neighbours())
    assert [account["name"] for account in _pages(file_office, "accounts", 2)] == names
    assert file_office.get("accounts", after="nobody").json() == {"items": [], "next": None}


def test_a_token_is_made_shown_once_and_good(office):
    office.ledger.create_account("ada", ZCDP(1), Neighbours())
    made = office.post("tokens", name="Ada Lovelace", role="analyst", account="ada", days=30)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    text = made.json()["text"]
    token = office.state.tokens.find(text)
    assert (token.name, token.role, token.account) == ("Ada Lovelace", "analyst", "ada")
    listed = office.get("tokens")
    assert listed.json()["items"][1] == made.json()["token"]
    assert text.split("_")[2] not in listed.text


def test_a_token_is_revoked_at_once_and_stays_in_the_list(office):
    token, text = office.state.tokens.add("Carla", "custodian")
    assert Caller(office.app, text).get(f"{ROOT}/key").status_code == 200
    gone = office.caller.ask("DELETE", f"{ROOT}/tokens/{token.id}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert Caller(office.app, text).get(f"{ROOT}/key").status_code == 401
    assert [each["revoked"] is None for each in office.get("tokens").json()["items"]] == [True, False]


def test_a_token_that_is_not_there_is_not_found(file_office):
    assert file_office.caller.ask("DELETE", f"{ROOT}/tokens/{'0' * 12}").status_code == 404
    assert file_office.caller.ask("DELETE", f"{ROOT}/tokens/nonsense").status_code == 422


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "owner"},
        {"role": "analyst"},
        {"role": "analyst", "account": "nobody"},
        {"account": "bob"},
        {"name": "a\nb"},
        {"days": 0},
        {"days": 10**9},
        {"wish": "more"},
    ],
)
def test_a_token_that_cannot_be_is_not_made(refusing_office, wrong):
    assert (
        refusing_office.post("tokens", **{"name": "Carla", "role": "custodian", **wrong}).status_code == 422
    )
    assert len(refusing_office.state.tokens.list()) == 1


def test_tokens_are_listed_a_page_at_a_time(file_office):
    for i in range(4):
        file_office.state.tokens.add(f"number {i}", "custodian")
    names = [token["name"] for token in _pages(file_office, "tokens", 2)]
    assert names == ["Carl", "number 0", "number 1", "number 2", "number 3"]


def test_usage_is_read_by_dataset_a_page_at_a_time(office):
    for name in ("census", "survey"):
        for kind in ("tables", "accuracy", "tests"):
            office.state.counter.count(name, kind, 200, "public")
            office.state.counter.count(name, kind, 200, "public")
    office.state.counter.flush()
    rows = _pages(office, "usage?dataset=survey", 2)
    assert {(row["dataset"], row["kind"], row["status"], row["caller"]) for row in rows} == {
        ("survey", kind, 2, "public") for kind in ("tables", "accuracy", "tests")
    }
    assert {row["requests"] for row in rows} == {2}


def test_what_the_custodian_does_is_counted_too(file_office):
    token, *_ = file_office.state.tokens.list()
    for method, path in (("GET", "key"), ("HEAD", "tokens"), ("DELETE", f"tokens/{'0' * 12}")):
        file_office.caller.ask(method, f"{ROOT}/{path}")
    file_office.state.counter.flush()
    rows = file_office.get("usage").json()["items"]
    assert {(row["kind"], row["status"], row["caller"], row["requests"]) for row in rows} == {
        ("custodian", 2, token.id, 2),
        ("custodian", 4, token.id, 1),
    }


@pytest.mark.parametrize(
    "path",
    [
        "accounts?size=0",
        "accounts?size=1001",
        "accounts?after=%00",
        "accounts?wish=more",
        "ledger",
        "ledger?account=census&after=-1",
        "ledger?account=census&after=99999999999999999999",
        "tokens?after=nonsense",
        "usage?after=x",
        "usage?dataset=%00",
        "datasets?size=x",
    ],
)
def test_a_page_that_cannot_be_is_refused(refusing_office, path):
    refused = refusing_office.get(path)
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")


def test_the_key_is_named_and_not_shown(tmp_path):
    built = service(tmp_path, only=("census",))
    _, text = built.state.tokens.add("Carl", "custodian")
    caller = Caller(create_app(built), text)
    assert caller.get(f"{ROOT}/key").json() == {"fingerprint": built.key_fingerprint}
    for path in LISTS:
        assert SECRET.hex() not in caller.get(f"{ROOT}/{path}").text
    built.close()


def test_datasets_are_listed_with_their_version_plan_and_account(tmp_path):
    built = service(tmp_path)
    _, text = built.state.tokens.add("Carl", "custodian")
    caller = Caller(create_app(built), text)
    listed = caller.get(f"{ROOT}/datasets").json()["items"]
    plan = built.datasets["census"].answers.plan_of(()).digest()
    assert [(d["id"], d["method"], d["version"], d["account"], d["plan"]) for d in listed] == [
        ("census", "fixed", "2026", "census", plan),
        ("survey", "interactive", "1", "survey", None),
        ("old", "cell-key", "1", None, None),
    ]
    assert [entry["plan"] for entry in caller.get(f"{ROOT}/ledger?account=census").json()["items"]] == [plan]
    refused = caller.post(f"{ROOT}/tokens", {"name": "Ada", "role": "analyst", "account": "survey"})
    assert (refused.status_code, refused.json()["type"]) == (422, "not-a-payer")
    assert (
        caller.post(f"{ROOT}/tokens", {"name": "Ada", "role": "analyst", "account": "ada"}).status_code == 201
    )
    built.close()


def test_nothing_the_custodian_reads_depends_on_the_records(tmp_path):
    """Twice the people, and every answer is the same but for the fingerprints of records and the chance in digests."""
    answers = []
    for people in (1, 2):
        folder = Path(tmp_path, str(people))
        folder.mkdir()
        counts = people * (np.arange(DOMAIN.size).reshape(DOMAIN.shape) + 20)
        built = service(folder, counts=counts, only=("census",))
        _, text = built.state.tokens.add("Carl", "custodian")
        caller = Caller(create_app(built), text)
        answers.append([caller.get(f"{ROOT}/{path}").text for path in LISTS])
        built.close()
    chance = re.compile(r"[0-9a-f]{12,64}|\d{4}-\d\d-\d\dT[^\"]+")
    assert [chance.sub("…", text) for text in answers[0]] == [chance.sub("…", text) for text in answers[1]]


def test_a_service_without_a_ledger_has_no_accounts(tmp_path):
    with State.create(tmp_path / "state.sqlite") as state:
        _, text = state.tokens.add("Carl", "custodian")
        caller = Caller(create_app(Service({}, state)), text)
        for answer in (
            caller.get(f"{ROOT}/accounts"),
            caller.get(f"{ROOT}/ledger?account=a"),
            caller.post(f"{ROOT}/accounts", {"name": "ada", "budget": {"rho": "1"}}),
        ):
            assert (answer.status_code, answer.json()["type"]) == (404, "no-ledger")
        assert caller.get(f"{ROOT}/key").json() == {"fingerprint": None}


def test_a_ledger_that_is_gone_is_told_without_its_address(file_office, tmp_path):
    (tmp_path / "state.sqlite.ledger").rename(tmp_path / "elsewhere")
    for answer in (
        file_office.get("accounts"),
        file_office.get("ledger", account="census"),
        file_office.post("accounts", name="ada", budget={"rho": "1"}),
        file_office.post("tokens", name="Ada", role="analyst", account="ada"),
    ):
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text


def test_what_is_sent_must_be_json(file_office):
    refused = file_office.caller.ask("POST", f"{ROOT}/tokens", content=b"name=Ada")
    assert refused.status_code == 415


def test_the_description_tells_every_refusal(file_office):
    described = file_office.app.openapi()["paths"]
    for method, path in _routes(file_office.app):
        responses = described[path.replace("0" * 12, "{id}")][method.lower()]["responses"]
        assert {"401", "403", "422", "429", "503"} <= set(responses), path
        if method == "POST":
            assert {"413", "415"} <= set(responses)


def _acts(office):
    return [(each["actor"], each["action"], each["object"]) for each in _pages(office, "log", 2)]


def test_what_the_custodian_does_is_in_the_log_with_their_token_and_address(office):
    (carl,) = office.state.tokens.list()
    office.post("accounts", name="ada", budget={"rho": "1/3"})
    made = office.post("tokens", name="Ada", role="analyst", account="ada").json()
    office.caller.ask("DELETE", f"{ROOT}/tokens/{made['token']['id']}")
    ada = f"{made['token']['id']}, Ada, analyst"
    assert _acts(office) == [
        ("command line", "token made", f"{carl.id}, Carl, custodian"),
        ("Carl", "account opened", "ada"),
        ("Carl", "token made", ada),
        ("Carl", "token revoked", ada),
    ]
    items = office.get("log").json()["items"]
    assert {each["token"] for each in items[1:]} == {carl.id}
    assert all(each["address"] for each in items[1:])
    assert made["text"] not in json.dumps(items)
    office.state.log.check()


def test_what_was_refused_is_not_in_the_log(office):
    office.post("accounts", name="ada", budget={"rho": "1/3"})
    before = _acts(office)
    assert office.post("accounts", name="ada", budget={"rho": "1/3"}).status_code == 409
    assert office.post("accounts", name="bob", budget={"rho": "0"}).status_code == 422
    assert office.post("tokens", name="Ada", role="analyst", account="nobody").status_code == 422
    assert office.caller.ask("DELETE", f"{ROOT}/tokens/{'0' * 12}").status_code == 404
    assert _acts(office) == before


def test_an_account_that_cannot_be_logged_is_not_opened(file_office, monkeypatch):
    def full(*_):
        raise ServiceError("the disk of the state is full.")

    monkeypatch.setattr(file_office.state.log, "writing", full)
    assert file_office.post("accounts", name="ada", budget={"rho": "1/3"}).status_code == 503
    assert file_office.ledger.accounts() == []


def test_the_log_is_given_as_json_lines_whole_or_from_an_entry_on(file_office):
    for number in range(5):
        file_office.post("accounts", name=f"a{number}", budget={"rho": "1/3"})
    answer = file_office.get("log.jsonl")
    assert answer.headers["content-type"] == "application/jsonl"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines == _pages(file_office, "log", 4)
    assert [json.loads(line) for line in file_office.get("log.jsonl", after=4).text.splitlines()] == lines[4:]
    assert file_office.get("log.jsonl", after=99).text == ""
    assert file_office.get("log.jsonl", size=4).status_code == 422
    assert file_office.get("log", after=-1).status_code == 422


def test_tokens_that_are_not_good_are_in_the_log_and_their_text_is_not(file_office):
    ended, text = file_office.state.tokens.add("Eve", "custodian")
    file_office.state.tokens.revoke(ended.id)
    guess = text[:-8] + "0" * 8
    for shown in (text, guess):
        assert Caller(file_office.app, shown).get(f"{ROOT}/key").status_code == 401
    # While the address waits, no guess is looked at, and none is logged.
    assert Caller(file_office.app, guess).get(f"{ROOT}/key").status_code == 429
    failed = [entry for entry in file_office.state.log.entries() if entry.action == "sign-in failed"]
    assert [(entry.actor, entry.object) for entry in failed] == [
        ("Eve", f"the token {ended.id}, Eve, custodian, which has ended"),
        ("unknown", "a token that is not known"),
    ]
    assert not any(secret in entry.line for entry in failed for secret in (guess, text, text[-8:]))
