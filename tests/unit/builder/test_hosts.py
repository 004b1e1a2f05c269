"""The names of a service: nobody can make it call itself otherwise."""

import asyncio

import httpx
import pytest

from tabulary.builder.app import create_app
from tabulary.builder.hosts import Hosts
from tabulary.builder.service import Service
from tabulary.builder.state import State
from tabulary.errors import InvalidSettings
from tests.builders import Caller, service


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    held = service(tmp_path_factory.mktemp("hosts"), only=("census",))
    yield create_app(held)
    held.close()


LOOPBACK = ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:8000"]
STRANGE = [
    "elsewhere.example",
    "elsewhere.example:8000",
    "localhost.elsewhere.example",
    "localhost.",
    "localhost:",
    "localhost:80a",
    "localhost:8000@elsewhere.example",
    "elsewhere.example#localhost",
    "127.0.0.1.elsewhere.example",
    "::1",
    "[::1",
    "[::2]",
    "",
    " localhost",
    "localhost/",
    "lo\xe4calhost",
    "a" * 400,
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_this_machine_may_always_be_called_by_its_own_names(app, host):
    page = Caller(app).get("/datasets/census/table?rows=sex", host=host, accept="text/html")
    assert page.status_code == 200
    assert f"http://{host.lower()}/datasets/census" in page.text.lower()


@pytest.mark.parametrize("host", STRANGE)
@pytest.mark.parametrize("path", ["/api/datasets", "/datasets/census/table?rows=sex"])
def test_any_other_name_is_refused_and_not_repeated(app, host, path):
    refused = Caller(app).ask("GET", path, headers={b"Host": host.encode("latin-1")})
    assert refused.status_code == 400
    assert refused.json()["type"] == "unknown-host"
    assert "elsewhere" not in refused.text
    # As every answer, it may be kept by nobody and says so.
    assert refused.headers["cache-control"] == "no-store"
    assert "content-security-policy" in refused.headers


def test_a_browser_is_shown_a_page_that_says_so(app):
    refused = Caller(app).get("/datasets/census", host="elsewhere.example", accept="text/html")
    assert refused.status_code == 400
    assert refused.headers["content-type"].startswith("text/html")
    assert "not called by that name" in refused.text
    assert "elsewhere" not in refused.text


def test_a_request_with_two_names_or_none_is_refused(app):
    twice = httpx.Headers([("Host", "localhost"), ("Host", "localhost")])
    assert Caller(app).ask("GET", "/api/health", headers=twice).status_code == 400
    said = []

    async def heard(message):
        said.append(message)

    scope = {"type": "http", "method": "GET", "path": "/api/health", "query_string": b"", "headers": []}
    asyncio.run(app(scope, None, heard))
    assert said[0]["status"] == 400


@pytest.mark.parametrize("name", ["X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host"])
def test_no_other_header_names_the_service(app, name):
    value = "host=elsewhere.example" if name == "Forwarded" else "elsewhere.example"
    path = "/datasets/census/table?rows=sex"
    told = Caller(app).ask("GET", path, headers={name: value, "Accept": "text/html"})
    assert told.status_code == 200
    assert "elsewhere" not in told.text


@pytest.mark.parametrize(
    ("named", "listening", "allowed", "refused"),
    [
        (("tables.example",), "127.0.0.1", ["tables.example", "Tables.Example:443"], ["tables.example:8443"]),
        (("tables.example:8443",), "127.0.0.1", ["tables.example:8443"], ["tables.example"]),
        (("[2001:db8::1]",), "127.0.0.1", ["[2001:db8::1]"], ["[2001:db8::2]"]),
        ((), "192.0.2.7", ["192.0.2.7:8000", "192.0.2.7", "localhost"], ["192.0.2.8:8000"]),
        ((), "2001:db8::7", ["[2001:db8::7]:8000"], ["2001:db8::7"]),
        ((), "tables.internal", ["tables.internal:8000"], ["other.internal:8000"]),
        # Listening on every address names none of them.
        ((), "0.0.0.0", ["localhost:8000"], ["0.0.0.0:8000", "192.0.2.7:8000"]),
        ((), "::", ["[::1]:8000"], ["[::]:8000"]),
    ],
)
def test_a_name_with_a_port_needs_that_port_and_where_it_listens_is_its_name(
    named, listening, allowed, refused
):
    hosts = Hosts(named, listening)
    assert all(map(hosts.allow, allowed))
    assert not any(map(hosts.allow, refused))


def test_a_service_answers_to_the_names_that_it_was_given(tmp_path):
    with State.create(tmp_path / "state.sqlite") as state:
        app = create_app(Service({}, state, hosts=Hosts(("tables.example",))))
        assert Caller(app).get("/api/health", host="tables.example").status_code == 200
        assert Caller(app).get("/api/health", host="tables.elsewhere.example").status_code == 400


@pytest.mark.parametrize(
    "name", ["*", "*.example", "https://tables.example", "tables.example/", "::1", "", 7]
)
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InvalidSettings, match="hosts holds names such as"):
        Hosts((name,))
