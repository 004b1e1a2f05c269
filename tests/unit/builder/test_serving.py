"""How a table builder is served: what it does to the process that it runs in."""

import io
import logging
import sys

import pytest
import uvicorn

from tabulary.builder.release_folders import ReleaseFolders
from tabulary.builder.serving import log_warnings, serve
from tests.release_folders import written_release
from tests.serving import served


class _Foreign(logging.StreamHandler):
    """The handler of another library, which closes its stream with itself, as that of absl does."""

    def close(self):
        self.stream.close()
        super().close()


@pytest.fixture
def source(tmp_path):
    written_release(tmp_path / "census")
    return ReleaseFolders.of([tmp_path / "census"])


@pytest.fixture
def foreign():
    handler = _Foreign(io.StringIO())
    yield handler
    handler.close()


def test_serving_closes_no_handler_of_anybody_else(source, foreign, monkeypatch):
    with monkeypatch.context() as patched:
        ran = []
        patched.setattr(uvicorn.Server, "run", lambda server, sockets: ran.append(server.config))
        serve(source, port=0)
    assert ran
    assert not foreign.stream.closed
    with served(source.open()):
        assert not foreign.stream.closed


def test_warnings_go_to_the_standard_error_of_the_moment(monkeypatch):
    log_warnings()
    for _ in range(2):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        logging.getLogger("tabulary.builder").warning("A worker died.")
        assert sys.stderr.getvalue().endswith(" WARNING A worker died.\n")
        sys.stderr.close()


def test_a_log_line_names_the_place_of_an_exception_and_not_its_message(monkeypatch):
    log_warnings()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    try:
        raise ValueError("a value of a record")
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Failed.")
    assert "ValueError at " in sys.stderr.getvalue()
    assert "a value of a record" not in sys.stderr.getvalue()
