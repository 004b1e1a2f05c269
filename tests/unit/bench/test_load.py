import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench import load


class Pages(ThreadingHTTPServer):
    """A server that counts what it is asked, takes a moment for /slow and knows no /lost."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.clients: set[object] = set()
        super().__init__(("127.0.0.1", 0), Page)


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Pages

    def do_GET(self) -> None:
        self.server.asked[self.path] += 1
        self.server.clients.add(self.client_address)
        if self.path == "/slow":
            time.sleep(0.05)
        self.send_response(404 if self.path == "/lost" else 200)
        self.send_header("Content-Length", "70000")
        self.end_headers()
        self.wfile.write(bytes(70_000))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    # The loop that is ours, whether or not wrk is installed here.
    monkeypatch.setattr(load.shutil, "which", lambda _: None)
    with Pages() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_closed_loop_keeps_its_connections_and_counts_every_answer(pages):
    told = load.closed(pages.server_port, ["/a", "/b"], seconds=0.3, connections=3)
    assert told.requests == sum(pages.asked.values()) > 3
    assert set(pages.asked) == {"/a", "/b"}
    assert len(pages.clients) == 3
    assert told.failed == 0
    assert told.requests_a_second == told.requests / told.seconds
    assert told.p50 <= told.p99


def test_an_answer_that_is_none_is_told_and_not_counted_as_one(pages):
    told = load.closed(pages.server_port, ["/a", "/lost"], seconds=0.3, connections=2)
    assert told.failed == pages.asked["/lost"] > 0
    assert told.requests_a_second == pages.asked["/a"] / told.seconds
    with pytest.raises(RuntimeError, match="404"):
        load.once_each(pages.server_port, ["/a", "/lost"])


def test_an_open_loop_asks_what_is_due_and_counts_the_wait_for_a_free_connection(pages):
    told = load.opened(pages.server_port, ["/slow"], rate=100, seconds=0.2, connections=1)
    assert told.requests == 20
    # Each takes at least 50 ms and one is due every 10 ms: the last ones wait for fifteen before them.
    assert told.p99 > 15 * 40
    free = load.opened(pages.server_port, ["/slow"], rate=20, seconds=0.2, connections=8)
    assert free.requests == 4
    assert free.p50 > 45


def test_paths_are_asked_once_each_in_their_order_over_one_connection(pages):
    took = load.once_each(pages.server_port, ["/a", "/slow", "/b"])
    assert list(pages.asked) == ["/a", "/slow", "/b"]
    assert len(pages.clients) == 1
    assert took[1] >= 50
