"""The proxies of the examples, run in front of a real service."""

from contextlib import ExitStack

import httpx
import pytest

from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise
from tests.proxies import NAME, Certificate, caddy, nginx
from tests.service_files import dataset, places
from tests.services import ServerProcess
from tests.visitors import form_token, words

pytestmark = pytest.mark.slow

CENSUS = dataset(
    "census",
    {"sex": ["F", "M"], "job": ["none", "paid"]},
    privacy='rho = "1/2"\nneighbours = "add-remove"',
    budget="rho = 1",
)
SERVICE = f"""
title = "Tables behind a proxy"
[server]
proxy = true
hosts = ["tables.example"]
[limits]
requests_a_minute = 60
burst = 40
{places()}{CENSUS}"""
BURST = 40


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that trusts a proxy, and the token of its custodian."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "service.toml").write_text(SERVICE)
    (folder / "people.csv").write_text("sex,job\n" + "F,none\nM,paid\n" * 20)
    token = initialise(read_service_file(folder / "service.toml"))
    with ServerProcess(folder / "service.toml", workers=1) as server:
        yield server, token


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def proxy(request, service, tmp_path_factory):
    """A proxy in front of it, and a connection on which half a header was sent at the start."""
    server, _ = service
    folder = tmp_path_factory.mktemp("proxy")
    with ExitStack() as stack:
        running = stack.enter_context(request.param(folder, server.port, Certificate.made(folder)))
        slow = stack.enter_context(running.connection())
        slow.sendall(f"GET /api/health HTTP/1.1\r\nHost: {NAME}\r\nX-Padding: ".encode())
        yield running, slow


def test_a_table_and_its_page_come_through_with_the_name_and_the_scheme_of_the_proxy(proxy):
    running, _ = proxy
    with running.client("127.0.0.11") as client:
        table = client.get("/api/datasets/census/tables", params={"by": ["sex", "job"]})
        assert table.status_code == 200
        assert len(table.json()["count"]) == 4
        forged = {"X-Forwarded-Host": "elsewhere.example", "Accept": "text/html"}
        page = client.get("/datasets/census/table?rows=sex&columns=job", headers=forged)
        assert page.status_code == 200
        # Links and citations name the service as its readers do, and nobody can make them say otherwise.
        assert f"https://{NAME}/datasets/census/table?rows=sex" in words(page)
        assert "elsewhere" not in page.text
        assert "strict-transport-security" in page.headers
        other = client.get("/datasets/census", headers={"Host": "elsewhere.example", "Accept": "text/html"})
        # Caddy knows no such site, and says nothing; what nginx passes on the service refuses.
        assert other.status_code == 400 or not other.content
        assert "elsewhere" not in other.text


def test_the_custodian_signs_in_through_it(proxy, service):
    running, _ = proxy
    _, token = service
    with running.client("127.0.0.12") as client:
        asked = client.get("/sign-in", headers={"Accept": "text/html"})
        fields = {"form_token": form_token(asked, "/sign-in"), "token": token, "to": "/custodian"}
        # As a browser sends back a cookie of this name, which httpx would keep for another host.
        cookies = "; ".join(f"{name}={value}" for name, value in asked.cookies.items())
        entered = client.post(
            "/sign-in", data=fields, headers={"Cookie": cookies, "Origin": f"https://{NAME}"}
        )
        assert (entered.status_code, entered.headers["location"]) == (303, "/custodian")
        (session,) = (
            c for c in entered.headers.get_list("set-cookie") if c.startswith("__Host-tabulary-session=")
        )
        assert "Secure" in session
        page = client.get("/custodian", headers={"Cookie": session.partition(";")[0], "Accept": "text/html"})
        assert page.status_code == 200
        assert "census" in page.text


def test_a_caller_is_who_the_proxy_saw_and_not_who_they_say_they_are(proxy):
    running, _ = proxy
    with running.client("127.0.0.13") as eager, running.client("127.0.0.14") as other:
        statuses = [
            eager.get("/api/datasets", headers={"X-Forwarded-For": f"203.0.113.{number}"}).status_code
            for number in range(BURST + 20)
        ]
        assert set(statuses) == {200, 429}
        assert other.get("/api/datasets").status_code == 200


def test_a_body_above_the_limit_does_not_come_through(proxy):
    running, _ = proxy
    with running.client("127.0.0.15") as client:
        # With a length that is told, and in pieces without one: Caddy 2.6 cuts such a body off, and calls that 502.
        # The rest of a refusal may be cut off too.
        for large in (b"a" * 100_000, (b"a" * 10_000 for _ in range(10))):
            with client.stream("POST", "/api/datasets/census/tests", content=large) as refused:
                assert refused.status_code in (413, 502)
        small = {"by": ["sex", "job"]}
        assert client.post("/api/datasets/census/tables", json=small).status_code == 200


def test_a_header_that_does_not_end_is_cut_off(proxy):
    _, slow = proxy
    said = b""
    try:
        while piece := slow.recv(1 << 16):
            said += piece
    except ConnectionResetError:
        pass
    assert not said or said.split()[1] in (b"400", b"408")


def test_behind_no_proxy_only_the_proxys_own_address_is_believed(service):
    server, _ = service

    def ask(address, caller):
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{server.port}") as client:
            return [client.get("/api/datasets", headers=caller(i)).status_code for i in range(BURST + 20)]

    def forged(number):
        return {"X-Forwarded-For": f"198.51.100.{number}"}

    assert set(ask("127.0.0.16", forged)) == {200, 429}
    assert set(ask("127.0.0.1", forged)) == {200}
