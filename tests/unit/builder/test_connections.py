"""Connections that are too slow or too many are closed by the server itself."""

import socket
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from tabulary.builder.service import Service
from tabulary.builder.state import State
from tests.builders import GENEROUS
from tests.serving import served
from tests.waiting import PATIENCE, wait_until

HEAD = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc"


@contextmanager
def listening(tmp_path, proxy=False, **limits):
    """The port of a service with these limits."""
    with State.create(tmp_path / "state.sqlite") as state:
        service = Service({}, state, limits=replace(GENEROUS, **limits))
        with served(service, proxy=proxy) as address:
            yield int(address.rpartition(":")[2])


def _connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(source, 0))


def _rest(connection):
    """All that comes until the connection is closed."""
    said = b""
    try:
        while piece := connection.recv(1 << 16):
            said += piece
    except ConnectionResetError:
        pass
    return said


def _answer(connection):
    """The next answer, over a connection that stays open."""
    said = b""
    while not said.endswith(b'{"status":"ok"}'):
        piece = connection.recv(1 << 16)
        assert piece, said
        said += piece
    return said


def test_a_header_that_does_not_end_in_time_is_answered_with_408_and_closed(tmp_path):
    begun = (b"", b"GET", HEAD, HEAD + b"X-Padding: a")
    with listening(tmp_path, header_seconds=1) as port, ExitStack() as stack:
        connections = [stack.enter_context(_connect(port)) for _ in begun]
        for connection, sent in zip(connections, begun, strict=True):
            connection.sendall(sent)
        for connection in connections:
            assert _rest(connection).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_sending_a_little_now_and_then_buys_no_time(tmp_path):
    with listening(tmp_path, header_seconds=1) as port, _connect(port) as connection:
        connection.settimeout(0.05)
        said = b""
        connection.sendall(HEAD)
        # Without end unless the server ends it. What is sent to a closed connection may take its last words away.
        while True:
            try:
                piece = connection.recv(1 << 16)
            except TimeoutError:
                with suppress(ConnectionResetError, BrokenPipeError):
                    connection.sendall(b"X: a\r\n")
                continue
            except ConnectionResetError:
                break
            said += piece
            if not piece:
                break
        assert not said or said.startswith(b"HTTP/1.1 408")


def test_a_second_request_of_a_connection_has_to_come_in_time_too(tmp_path):
    # An empty line before a request is no part of it, but ends the time in which a connection may be idle.
    begun = (b"G", b"\r\n", HEAD)
    with listening(tmp_path, header_seconds=3) as port, ExitStack() as stack:
        connections = _opened(stack, port, len(begun))
        for connection, sent in zip(connections, begun, strict=True):
            connection.sendall(sent)
        for connection in connections:
            assert _rest(connection).startswith(b"HTTP/1.1 408")


def test_a_body_that_does_not_come_in_time_is_cut_off(tmp_path):
    with listening(tmp_path, body_seconds=1) as port, _connect(port) as connection:
        connection.sendall(POST)
        assert _rest(connection).startswith(b"HTTP/1.1 408")


def test_a_header_without_end_is_read_no_further_than_a_bound(tmp_path):
    with listening(tmp_path) as port, _connect(port) as connection:
        connection.sendall(HEAD)
        try:
            for _ in range(1_000):
                connection.sendall(b"X: " + b"a" * 8_000 + b"\r\n")
        except (ConnectionResetError, BrokenPipeError):
            return
        assert _rest(connection).startswith(b"HTTP/1.1 431")


def test_requests_that_come_in_pieces_but_in_time_are_answered(tmp_path):
    with listening(tmp_path) as port, _connect(port) as connection:
        for _ in range(3):
            for piece in (HEAD[:7], HEAD[7:], b"\r", b"\n"):
                connection.sendall(piece)
            assert _answer(connection).startswith(b"HTTP/1.1 200")


def _opened(stack, port, count, source="127.0.0.1"):
    """So many connections that have been answered, and stay."""
    made = [stack.enter_context(_connect(port, source)) for _ in range(count)]
    for each in made:
        each.sendall(HEAD + b"\r\n")
        assert _answer(each).startswith(b"HTTP/1.1 200")
    return made


def test_one_caller_has_so_many_connections_and_others_have_theirs(tmp_path):
    with listening(tmp_path, connections_a_caller=3) as port, ExitStack() as stack:
        first, *_ = _opened(stack, port, 3)
        with _connect(port) as refused:
            said = _rest(refused)
            assert said.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert b"retry-after: " in said
        _opened(stack, port, 1, source="127.0.0.7")
        # A place that is left is free.
        first.close()
        wait_until(lambda: _is_answered(port), "a free place")


def test_all_callers_together_have_so_many_connections(tmp_path):
    with listening(tmp_path, connections=2) as port, ExitStack() as stack:
        _opened(stack, port, 1)
        _opened(stack, port, 1, source="127.0.0.7")
        with _connect(port, "127.0.0.8") as refused:
            assert _rest(refused).startswith(b"HTTP/1.1 503")


def test_a_trusted_proxy_stands_for_many_callers(tmp_path):
    with listening(tmp_path, proxy=True, connections_a_caller=1) as port, ExitStack() as stack:
        _opened(stack, port, 4)
        _opened(stack, port, 1, source="127.0.0.7")
        with _connect(port, "127.0.0.7") as refused:
            assert _rest(refused).startswith(b"HTTP/1.1 503")


def _is_answered(port):
    with _connect(port) as connection:
        connection.sendall(HEAD + b"Connection: close\r\n\r\n")
        return _rest(connection).startswith(b"HTTP/1.1 200")
