"""Who may come in, how much they may carry, and what a browser is told."""

import asyncio
import json
import logging
from typing import Annotated

import httpx
import pytest
from fastapi import Body, Depends, FastAPI
from starlette.responses import JSONResponse

from tabulary.builder import problems
from tabulary.builder.app import create_app
from tabulary.builder.counting import what_was_asked
from tabulary.builder.security import analyst, custodian, optional_caller, protect
from tabulary.builder.service import Service, ServiceLimits
from tabulary.builder.state import State
from tests.builders import GENEROUS, Caller


class GuardedService:
    """An application with a room for everyone and one for each role, and someone at an address who asks."""

    def __init__(self, state, limits=GENEROUS):
        self.state = state
        self.app = FastAPI()
        problems.install(self.app)
        protect(self.app, Service({}, state, limits=limits))
        self.app.get("/api/datasets")(self._who(optional_caller))
        self.app.get("/analyst")(self._who(analyst))
        self.app.get("/custodian")(self._who(custodian))
        self.app.post("/echo")(self._echo)
        self.app.get("/fast")(
            lambda: JSONResponse({}, headers={"Cache-Control": "public", "Referrer-Policy": "origin"})
        )

    @staticmethod
    def _who(role):
        def who(token: Annotated[object, Depends(role)]) -> dict[str, object]:
            return {"id": token and token.id}

        return who

    @staticmethod
    async def _echo(given: Annotated[object, Body()]) -> object:
        return given

    def ask(self, path, token=None, address="192.0.2.1", method="GET", **given):
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **given.pop("headers", {})}

        async def asking():
            transport = httpx.ASGITransport(self.app, client=(address, 5000))
            async with httpx.AsyncClient(
                transport=transport, base_url=given.pop("base", "http://localhost")
            ) as client:
                return await client.request(method, path, headers=headers, **given)

        return asyncio.run(asking())


@pytest.fixture
def state(database):
    with State.create(database) as opened:
        yield opened


@pytest.fixture
def file_state(tmp_path):
    with State.create(tmp_path / "state.sqlite") as opened:
        yield opened


def _wrong(secret):
    return secret[:-1] + ("0" if secret[-1] != "0" else "1")


def test_a_token_opens_the_room_of_its_role_and_no_other(state):
    guarded = GuardedService(state)
    ada, adas = state.tokens.add("Ada", "analyst", account="ada")
    _, carls = state.tokens.add("Carl", "custodian")
    assert guarded.ask("/analyst", adas).json() == {"id": ada.id}
    assert guarded.ask("/custodian", carls).status_code == 200
    for path, token in (("/analyst", carls), ("/custodian", adas)):
        refused = guarded.ask(path, token)
        assert (refused.status_code, refused.json()["type"]) == (403, "forbidden")
    assert guarded.ask("/api/datasets", adas).json() == {"id": ada.id}
    assert guarded.ask("/api/datasets").json() == {"id": None}


@pytest.mark.parametrize("path", ["/analyst", "/custodian"])
def test_without_a_token_a_room_is_closed_and_says_what_it_needs(file_state, path):
    refused = GuardedService(file_state).ask(path)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == 'Bearer realm="tabulary"'
    assert refused.headers["content-type"] == "application/problem+json"


def test_a_token_that_is_not_good_is_refused_everywhere_in_the_same_words(state):
    guarded = GuardedService(state)
    _, secret = state.tokens.add("Ada", "analyst", account="ada")
    revoked, gone = state.tokens.add("Bob", "analyst", account="bob")
    state.tokens.revoke(revoked.id)
    refusals = [
        guarded.ask(path, bad, address=f"192.0.2.{i}{j}")
        for i, path in enumerate(("/analyst", "/custodian", "/api/datasets"))
        for j, bad in enumerate((_wrong(secret), gone, "nonsense", f"tab_{'0' * 12}_{'0' * 64}"))
    ]
    assert {refused.status_code for refused in refusals} == {401}
    assert {refused.headers["www-authenticate"] for refused in refusals} == {
        'Bearer realm="tabulary", error="invalid_token"'
    }
    assert len({refused.json()["detail"] for refused in refusals}) == 1


def test_another_way_to_show_a_token_is_refused_and_counts_as_no_guess(file_state):
    guarded = GuardedService(file_state)
    _, secret = file_state.tokens.add("Carl", "custodian")
    assert guarded.ask("/custodian", headers={"Authorization": f"Basic {secret}"}).status_code == 401
    assert guarded.ask("/custodian", headers={"Authorization": f"bearer  {secret}"}).status_code == 200


def test_whoever_guesses_has_to_wait_and_everyone_else_does_not(file_state):
    guarded = GuardedService(file_state)
    _, secret = file_state.tokens.add("Carl", "custodian")
    assert guarded.ask("/custodian", _wrong(secret), address="192.0.2.1").status_code == 401
    waiting = guarded.ask("/custodian", secret, address="192.0.2.1")
    assert (waiting.status_code, waiting.json()["type"]) == (429, "too-many-failures")
    assert waiting.headers["retry-after"] == "1"
    assert guarded.ask("/custodian", secret, address="192.0.2.2").status_code == 200
    # What needs no token does not wait.
    assert guarded.ask("/api/datasets", address="192.0.2.1").status_code == 200


def test_whoever_shows_a_token_that_was_revoked_makes_nobody_wait(file_state):
    guarded = GuardedService(file_state)
    token, revoked = file_state.tokens.add("Ada", "custodian")
    _, good = file_state.tokens.add("Carl", "custodian")
    file_state.tokens.revoke(token.id)
    assert guarded.ask("/custodian", revoked).status_code == 401
    assert guarded.ask("/custodian", good).status_code == 200


def test_a_guess_while_waiting_is_not_even_looked_at(file_state, monkeypatch):
    guarded = GuardedService(file_state)
    looked = []
    monkeypatch.setattr(file_state.tokens, "known", lambda text: looked.append(text))
    for _ in range(5):
        guarded.ask("/custodian", "guess")
    assert looked == ["guess"]


def test_one_token_is_one_client_from_however_many_addresses(file_state):
    guarded = GuardedService(file_state, ServiceLimits(requests_a_minute=1, burst=3))
    _, secret = file_state.tokens.add("Carl", "custodian")
    answers = [guarded.ask("/custodian", secret, address=f"192.0.2.{i}").status_code for i in range(5)]
    assert answers == [200, 200, 200, 429, 429]


def test_an_address_that_asks_too_often_is_told_to_wait_whatever_it_says_it_is(file_state):
    guarded = GuardedService(file_state, ServiceLimits(requests_a_minute=1, burst=3))
    answers = [
        guarded.ask("/api/datasets", headers={"X-Forwarded-For": f"192.0.2.{i}", "User-Agent": str(i)})
        for i in range(4)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].json()["type"] == "too-many-requests"
    assert answers[-1].headers["x-content-type-options"] == "nosniff"
    assert guarded.ask("/api/datasets", address="192.0.2.9").status_code == 200


def test_tokens_are_in_no_log(file_state, caplog):
    caplog.set_level(logging.DEBUG)
    guarded = GuardedService(file_state)
    _, secret = file_state.tokens.add("Carl", "custodian")
    guarded.ask("/custodian", secret)
    guarded.ask("/custodian", _wrong(secret))
    assert secret.split("_")[2][:-1] not in caplog.text


def test_what_anyone_may_ask_is_answered_while_the_state_is_down(own_postgres_server):
    with State.create(own_postgres_server.url("state")) as state:
        guarded = GuardedService(state)
        _, secret = state.tokens.add("Ada", "analyst", account="ada")
        own_postgres_server.stop()
        assert guarded.ask("/api/datasets").json() == {"id": None}
        assert guarded.ask("/api/datasets", secret).json() == {"id": None}
        closed = guarded.ask("/analyst", secret)
        assert (closed.status_code, closed.headers["retry-after"]) == (503, "5")
        assert "postgresql" not in closed.text
        own_postgres_server.start()
        assert guarded.ask("/analyst", secret).status_code == 200


HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.mark.parametrize("path", ["/api/datasets", "/custodian", "/nowhere"])
def test_every_answer_carries_the_security_headers(file_state, path):
    answer = GuardedService(file_state).ask(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "camera=()" in answer.headers["permissions-policy"]
    assert "set-cookie" not in answer.headers
    assert "strict-transport-security" not in answer.headers


def test_a_browser_that_came_by_https_is_told_to_stay_with_it(file_state):
    answer = GuardedService(file_state).ask("/api/datasets", base="https://localhost")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_what_an_answer_says_itself_stands(file_state):
    answer = GuardedService(file_state).ask("/fast")
    assert answer.headers.get_list("cache-control") == ["public"]
    assert answer.headers.get_list("referrer-policy") == ["origin"]


SMALL = ServiceLimits(requests_a_minute=1000, burst=1000, body_bytes=1000)


def test_a_body_up_to_the_limit_arrives_whole(file_state):
    guarded = GuardedService(file_state, SMALL)
    text = "x" * 998
    assert guarded.ask("/echo", method="POST", json=text).json() == text


def _in_pieces(size):
    async def pieces():
        for _ in range(size):
            yield b" "

    return pieces()


@pytest.mark.parametrize("declared", [True, False])
def test_a_larger_body_is_refused(file_state, declared):
    content = b" " * 1001 if declared else _in_pieces(1001)
    refused = GuardedService(file_state, SMALL).ask("/echo", method="POST", content=content)
    assert (refused.status_code, refused.json()["type"]) == (413, "too-large")
    assert refused.headers["connection"] == "close"
    assert refused.headers["x-content-type-options"] == "nosniff"


def test_a_body_in_pieces_arrives_whole(file_state):
    async def pieces():
        for piece in (b'{"a"', b": [1", b", 2]}"):
            yield piece

    answer = GuardedService(file_state, SMALL).ask(
        "/echo", method="POST", content=pieces(), headers={"Content-Type": "application/json"}
    )
    assert answer.json() == {"a": [1, 2]}


def _served(app, received, headers=(), **scope):
    """Return what an application sends when it receives these messages."""
    sent, received = [], list(received)

    async def receive():
        return received.pop(0)

    async def send(message):
        sent.append(message)

    asked = {
        "type": "http",
        "method": "POST",
        "path": "/echo",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
        "scheme": "http",
    }
    asyncio.run(app({**asked, "client": ("192.0.2.1", 1), **scope}, receive, send))
    return sent, received


def test_of_a_body_that_says_it_is_too_large_nothing_is_read(file_state):
    app = GuardedService(file_state, SMALL).app
    waiting = [{"type": "http.request", "body": b" ", "more_body": True}]
    sent, left = _served(app, waiting, headers=[(b"content-length", b"9" * 50)])
    assert sent[0]["status"] == 413
    assert left == waiting


def test_an_endless_body_is_read_no_further_than_the_limit(file_state):
    app = GuardedService(file_state, SMALL).app
    endless = [{"type": "http.request", "body": b" " * 400, "more_body": True}] * 10
    sent, left = _served(app, endless)
    assert sent[0]["status"] == 413
    assert len(left) == 7


def test_a_caller_who_leaves_in_the_middle_is_answered_nothing_and_not_counted(file_state):
    app = GuardedService(file_state, SMALL).app
    messages = [{"type": "http.request", "body": b" ", "more_body": True}, {"type": "http.disconnect"}]
    sent, _ = _served(app, messages, path="/api/datasets/census/tables")
    assert sent == []
    file_state.counter.flush()
    assert file_state.usage.read() == ()


def test_requests_are_counted_by_outcome_and_caller(file_state):
    guarded = GuardedService(file_state)
    token, secret = file_state.tokens.add("Ada", "analyst", account="ada")
    for given in (None, None, secret, _wrong(secret)):
        guarded.ask("/api/datasets", given)
    guarded.ask("/api/datasets/unheard-of/tables")
    guarded.ask("/nowhere")
    file_state.counter.flush()
    counted = {
        (row.dataset, row.kind, row.status, row.caller): row.requests for row in file_state.usage.read()
    }
    assert counted == {
        ("", "datasets", 2, "public"): 2,
        ("", "datasets", 2, token.id): 1,
        ("", "datasets", 4, "public"): 1,
        ("", "tables", 4, "public"): 1,
    }


def test_an_application_that_fails_is_counted_as_such(file_state):
    guarded = GuardedService(file_state)

    def fail():
        raise ArithmeticError("the application fails")

    guarded.app.get("/api/custodian/fails")(fail)
    with pytest.raises(ArithmeticError, match="the application fails"):
        guarded.ask("/api/custodian/fails")
    file_state.counter.flush()
    assert [(row.kind, row.status) for row in file_state.usage.read()] == [("custodian", 5)]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/api/datasets/census/tables", ("census", "tables")),
        ("/api/datasets/census/tables.parquet", ("census", "tables")),
        ("/api/datasets/census/accuracy", ("census", "accuracy")),
        ("/api/datasets/census/tests", ("census", "tests")),
        ("/api/datasets/census/plan", ("census", "plan")),
        ("/api/datasets/census", ("census", "dataset")),
        ("/api/datasets/census/else", None),
        ("/api/custodian/tokens/5f3a", ("", "custodian")),
        ("/custodian", ("", "custodian")),
        ("/custodian/tokens/5f3a", ("", "custodian")),
        ("/api/openapi.json", None),
        ("/", None),
    ],
)
def test_a_path_says_what_was_asked(path, asked):
    assert what_was_asked(path) == asked


def test_the_description_of_the_api_names_the_token(file_state):
    description = GuardedService(file_state).app.openapi()
    assert description["paths"]["/custodian"]["get"]["security"] == [{"token": []}]
    assert description["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_the_doors_stand_around_the_whole_service(tmp_path):
    """The application that is served has them: see the tests of its routes for the rest."""
    with State.create(tmp_path / "state.sqlite") as state:
        caller = Caller(create_app(Service({}, state, limits=SMALL)))
        answer = caller.ask("POST", "/api/datasets/x/tables", content=json.dumps("x" * 2000))
        assert answer.status_code == 413
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
