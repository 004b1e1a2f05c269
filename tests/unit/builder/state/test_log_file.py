"""The copy of the log in a file: every entry, in order, whatever happens in between."""

import json
import logging
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from tabulary.builder.state import Action, State
from tabulary.builder.state.log import SERVICE
from tabulary.errors import ServiceError


@pytest.fixture
def file(tmp_path):
    return tmp_path / "custodian.jsonl"


@pytest.fixture
def logged(tmp_path, file):
    """A state whose log has a copy, with three entries."""
    with State.create(tmp_path / "state.sqlite", log_file=file) as opened:
        for number in range(3):
            opened.log.add(SERVICE, Action.version_opened, f"Zürich {number}")
        yield opened


def _lines(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_each_entry_is_a_line_of_json_which_its_owner_alone_reads(logged, file):
    assert _lines(file) == [vars(entry) for entry in logged.log.entries()]
    assert "Zürich 2" in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_a_crash_kept_from_it_comes_with_the_next_entry(logged, file):
    whole = file.read_bytes()
    for cut in (len(whole) - 5, len(whole.splitlines(keepends=True)[0]) + 1, 7, 0):
        file.write_bytes(whole[:cut])
        logged.log.check()
        assert file.read_bytes() == whole
    file.unlink()
    logged.log.add(SERVICE, Action.service_started)
    assert [line["number"] for line in _lines(file)] == [1, 2, 3, 4]


def test_processes_that_write_at_once_write_every_entry_once_and_in_order(tmp_path, logged, file):
    others = [State.open(tmp_path / "state.sqlite", log_file=file) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(lambda each: [each.log.add(SERVICE, Action.service_started) for _ in range(10)], others)
        )
    assert [line["number"] for line in _lines(file)] == list(range(1, 44))
    for each in others:
        each.close()


def test_a_file_that_cannot_be_written_is_warned_of_and_refused_at_a_start(logged, file, caplog):
    file.unlink()
    file.mkdir()
    with caplog.at_level(logging.WARNING):
        logged.log.add(SERVICE, Action.service_started)
    assert "was not written to" in caplog.text
    assert len(logged.log.list()) == 4
    with pytest.raises(ServiceError, match=r"cannot be written to.*\[state\] log"):
        logged.log.check()
    file.rmdir()
    logged.log.check()
    assert len(_lines(file)) == 4


@pytest.mark.parametrize("content", ["[state]\n", "port = 8000", '{"time": 1}\n', '{"number": 1}'])
def test_a_file_of_something_else_is_refused_and_left_alone(logged, file, content):
    file.write_text(content)
    with pytest.raises(ServiceError, match="not a copy of this log"):
        logged.log.check()
    assert file.read_text() == content


def test_a_state_that_is_behind_its_copy_or_beside_it_is_refused(tmp_path, logged, file):
    logged.close()
    older = (tmp_path / "state.sqlite").read_bytes()
    with State.open(tmp_path / "state.sqlite", log_file=file) as state:
        state.log.add(SERVICE, Action.service_started)
    (tmp_path / "state.sqlite").write_bytes(older)
    with State.open(tmp_path / "state.sqlite", log_file=file) as state:
        with pytest.raises(ServiceError, match="set back to an older one"):
            state.log.check()
        # With as many entries, but others.
        state.log.add(SERVICE, Action.version_opened, "another")
        with pytest.raises(ServiceError, match="set back to an older one"):
            state.log.check()
