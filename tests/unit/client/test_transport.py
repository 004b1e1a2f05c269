import datetime
import socket
import threading
from email.utils import format_datetime

import pytest

from tabulary.client import transport
from tabulary.client.transport import Transport
from tabulary.errors import (
    BudgetExceeded,
    InvalidWorkload,
    PublicError,
    ServiceUnreachable,
    TableRefused,
)
from tests.memory import at_most
from tests.unit.client.stand_in import Reply, StandIn

SECRET = "tab_1_0123456789abcdef"


def asked(reply, **options):
    """What a client gets from a service that always replies the same, or raises."""
    with StandIn(lambda _: reply) as service:
        return Transport(service.url, **options).get(["datasets"])


def test_json_comes_back_as_plain_data():
    assert asked(Reply({"a": [1, 0.1, None, "ε"]})) == {"a": [1, 0.1, None, "ε"]}


def test_segments_and_queries_are_escaped():
    with StandIn(lambda _: Reply()) as service:
        Transport(f"{service.url}/tables/").get(["datasets", "a/b ?é"], [("by", "x&y"), ("by", "ü")])
    assert service.asked[0].path == "/tables/api/datasets/a%2Fb%20%3F%C3%A9?by=x%26y&by=%C3%BC"


def test_a_question_is_sent_as_json():
    with StandIn(lambda _: Reply()) as service:
        Transport(service.url).post(["datasets", "census", "tables"], {"by": ["sex"]})
    (request,) = service.asked
    assert (request.method, request.json) == ("POST", {"by": ["sex"]})
    assert request.headers["Content-Type"] == "application/json"


def test_the_token_goes_along_as_a_bearer_and_nothing_shows_it():
    with StandIn(lambda _: Reply()) as service:
        reached = Transport(service.url, token=SECRET)
        reached.get(["datasets"])
    assert service.asked[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in repr(reached)


def test_without_a_token_no_authorization_is_sent():
    with StandIn(lambda _: Reply()) as service:
        Transport(service.url).get(["datasets"])
    assert "Authorization" not in service.asked[0].headers


def test_a_token_does_not_travel_in_plain_text_unless_told_to():
    with pytest.raises(ServiceUnreachable, match="plain text") as refused:
        Transport("http://tables.example.org", token=SECRET)
    assert SECRET not in str(refused.value)
    assert Transport("http://tables.example.org", token=SECRET, insecure=True).insecure
    for safe in ("https://tables.example.org", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"):
        Transport(safe, token=SECRET)


@pytest.mark.parametrize("host", ["127.0.0.1.example.org", "localhost.example.org", "0.0.0.0", "10.0.0.1"])
def test_a_host_that_only_looks_like_this_machine_gets_no_token_in_plain_text(host):
    with pytest.raises(ServiceUnreachable, match="plain text"):
        Transport(f"http://{host}:8000", token=SECRET)


def test_a_redirect_is_not_followed_and_the_other_host_sees_nothing():
    with StandIn(lambda _: Reply()) as other:
        redirect = Reply(status=307, headers={"Location": f"{other.url}/api/datasets"})
        with pytest.raises(ServiceUnreachable, match="redirects to") as refused:
            asked(redirect, token=SECRET)
    assert other.url in str(refused.value)
    assert other.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "tables.example.org",
        "ftp://tables.example.org",
        "file:///etc/passwd",
        "http://",
        "http://user:password@tables.example.org",
        "http://tables.example.org?by=sex",
        "http://tables.example.org#top",
        "http://tables.example.org:notaport",
        "http://tables.example.org:99999999",
        "http://tables example.org",
        "http://tables.example.org/\r\nX-Injected: 1",
        "",
        None,
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_asked(url):
    with pytest.raises(ServiceUnreachable, match="address of a table builder"):
        Transport(url)


@pytest.mark.parametrize("token", ["tab\r\nX-Injected: 1", "two words", "täb"])
def test_a_token_that_would_be_another_header_is_refused_and_not_repeated(token):
    with pytest.raises(ServiceUnreachable, match="not a token") as refused:
        Transport("https://tables.example.org", token=token)
    assert token not in str(refused.value)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), "soon", None])
def test_a_timeout_is_a_positive_number_of_seconds(timeout):
    with pytest.raises(ServiceUnreachable, match="timeout"):
        Transport("https://tables.example.org", timeout=timeout)


def test_a_port_where_nobody_listens_says_so():
    with socket.socket() as taken:
        # Bound and not listening: nobody else gets the port, and a connection is refused.
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ServiceUnreachable, match=r"cannot be reached.*Check that a table builder runs"):
            Transport(f"http://127.0.0.1:{taken.getsockname()[1]}").get(["datasets"])


def test_a_service_that_never_answers_is_left_after_the_timeout():
    late = pytest.raises(ServiceUnreachable, match=r"did not answer within 0\.1 seconds")
    with socket.create_server(("127.0.0.1", 0)) as silent, late:
        Transport(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1).get(["datasets"])


def test_a_service_that_answers_drop_by_drop_is_left_after_the_timeout():
    done = threading.Event()

    def drip(server):
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while not done.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        with pytest.raises(ServiceUnreachable, match="did not answer within"):
            Transport(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.2).get(["datasets"])
        done.set()
        thread.join()


def test_a_host_that_speaks_no_http_is_no_table_builder():
    def babble(server):
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"220 mail.example.org ESMTP\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=babble, args=(server,))
        thread.start()
        with pytest.raises(ServiceUnreachable, match="broke off or answered in no known way"):
            Transport(f"http://127.0.0.1:{server.getsockname()[1]}").get(["datasets"])
        thread.join()


def test_an_answer_that_was_cut_short_is_no_answer():
    with pytest.raises(ServiceUnreachable, match="cut short"):
        asked(Reply(b'{"count": [1]}', stated=1_000))


def test_an_answer_without_end_is_not_read_to_the_end(monkeypatch):
    monkeypatch.setattr(transport, "MOST_BYTES", 10)
    with pytest.raises(ServiceUnreachable, match="more than 10 bytes"):
        asked(Reply({"count": [1] * 100}))


@pytest.mark.parametrize("status", [200, 404, 502])
def test_a_web_page_is_no_table_builder(status):
    with pytest.raises(ServiceUnreachable, match="text/html"):
        asked(Reply(b"<html>Welcome</html>", status, kind="text/html"))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"count": NaN}', b"[" * 100_000])
def test_what_claims_to_be_json_and_is_not_is_refused(body):
    with pytest.raises(ServiceUnreachable, match="not the JSON"):
        asked(Reply(body))


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (403, "budget-exceeded", BudgetExceeded),
        (403, "table-refused", TableRefused),
        (401, "token-needed", TableRefused),
        (422, "invalid-request", InvalidWorkload),
        (500, "unexpected", ServiceUnreachable),
        (503, "ledger-busy", ServiceUnreachable),
    ],
)
def test_a_problem_is_raised_as_the_error_of_its_kind_in_the_words_of_the_service(status, kind, error):
    problem = {"type": kind, "title": "…", "status": status, "detail": "Nothing was spent.", "instance": "/"}
    with pytest.raises(PublicError, match="Nothing was spent") as raised:
        asked(Reply(problem, status, kind="application/problem+json"))
    assert type(raised.value) is error


@pytest.mark.parametrize("kind", ["confidential-error", "unknown-level", "tabulary-error", "exception", 3])
def test_a_service_cannot_have_any_other_error_raised(kind):
    with pytest.raises(PublicError, match="answers 500 Internal Server Error: boo") as raised:
        asked(Reply({"type": kind, "detail": "boo"}, 500, kind="application/problem+json"))
    assert type(raised.value) is ServiceUnreachable


def test_words_of_a_service_cannot_steer_a_terminal():
    with pytest.raises(TableRefused, match=r"^a \[2Jb c$"):
        asked(
            Reply({"type": "table-refused", "detail": "a\x1b[2Jb\nc"}, 403, kind="application/problem+json")
        )


def test_a_busy_service_is_asked_again_when_it_says():
    replies = iter(
        [Reply(status=429, headers={"Retry-After": "0"}), Reply(status=503, headers=_past()), Reply(7)]
    )
    with StandIn(lambda _: next(replies)) as service:
        assert Transport(service.url).get(["datasets"]) == 7
    assert len(service.asked) == 3


def test_a_service_that_stays_busy_is_asked_no_more_than_a_few_times():
    busy = Reply({"detail": "Slow down."}, 429, {"Retry-After": "0"}, "application/problem+json")
    with StandIn(lambda _: busy) as service, pytest.raises(ServiceUnreachable, match="Slow down"):
        Transport(service.url).get(["datasets"])
    assert len(service.asked) == transport.MOST_WAITS + 1


@pytest.mark.parametrize(
    "headers", [{}, {"Retry-After": "3600"}, {"Retry-After": "soon"}, {"Retry-After": "-1"}]
)
def test_nobody_waits_longer_than_the_timeout_or_for_no_stated_time(headers):
    busy = Reply({"detail": "Slow down."}, 503, headers, "application/problem+json")
    with StandIn(lambda _: busy) as service, pytest.raises(ServiceUnreachable, match="Slow down"):
        Transport(service.url, timeout=20).get(["datasets"])
    assert len(service.asked) == 1


def test_a_proxy_is_not_asked_for_what_is_on_this_machine(monkeypatch):
    with StandIn(lambda _: Reply("proxied")) as proxy, StandIn(lambda _: Reply("direct")) as service:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert Transport(service.url, token=SECRET).get(["datasets"]) == "direct"
    assert proxy.asked == []


def _past():
    return {"Retry-After": format_datetime(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), usegmt=True)}


def test_an_answer_of_empty_lists_without_end_is_refused_before_it_is_read():
    with pytest.raises(ServiceUnreachable, match="of a form in which no table builder answers"), at_most(64):
        asked(Reply(b"[" + b"[]," * 1_000_001 + b"[]]"))
