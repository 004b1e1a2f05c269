"""Parquet files are compared with the table that they should hold, and none of them can do harm."""

import io
import random
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tabulary.release import parquet_check
from tabulary.release.formats import parquet_bytes
from tabulary.release.parquet_check import ParquetCheck
from tests.memory import at_most

LABELS = ["F", "M"]


def table(rows=2, labels=LABELS, metadata=None):
    codes = np.arange(rows, dtype=np.int32) % len(labels)
    sex = pa.DictionaryArray.from_arrays(codes, pa.array(labels, pa.string()), ordered=True)
    made = pa.table({"sex": sex, "count": np.arange(rows), "standard_error": np.full(rows, 0.5)})
    return made.replace_schema_metadata(metadata or {"tabulary": "{}"})


def packed(made, **options):
    buffer = io.BytesIO()
    pq.write_table(made, buffer, **{"compression": "zstd", **options})
    return buffer.getvalue()


@pytest.fixture(scope="module")
def check():
    with ParquetCheck() as opened:
        yield opened


def test_a_file_with_the_bytes_that_the_table_gives_is_the_table_and_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(
        parquet_check.subprocess, "Popen", lambda *_, **__: pytest.fail("a child was started")
    )
    with ParquetCheck() as opened:
        assert opened.holds(parquet_bytes(table(1_000)), table(1_000))


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "snappy"},
        {"row_group_size": 300},
        {"data_page_version": "2.0"},
        {"use_dictionary": False},
    ],
)
def test_a_file_that_another_version_wrote_holds_the_same_table(check, options):
    assert check.holds(packed(table(1_000), **options), table(1_000))


@pytest.mark.parametrize(
    "other",
    [
        table(1_000).slice(0, 999),
        table(1_000, labels=["F", "X"]),
        table(1_000, labels=["M", "F"]),
        table(1_000, metadata={"tabulary": "[]"}),
        table(1_000).drop_columns("count"),
        table(1_000).set_column(1, "count", pa.array(np.arange(1_000) * 1.0)),
        table(1_000).set_column(1, "count", pa.array([*range(999), 5])),
        table(1_000).set_column(1, "count", pa.array([*range(999), None])),
        table(1_000).set_column(1, "count", pa.array([[i] for i in range(1_000)])),
    ],
)
def test_a_file_that_holds_another_table_is_found(check, other):
    assert not check.holds(packed(other), table(1_000))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1 nothing of the kind PAR1", bytes(1_000)])
def test_what_is_not_parquet_is_found(check, data):
    assert not check.holds(data, table())


def a_bomb(rows):
    """A Parquet file of a few hundred kilobytes that unpacks to gigabytes."""
    piece = pa.table({"count": np.zeros(1 << 20, dtype=np.int64)})
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, piece.schema, compression="zstd") as writer:
        for _ in range(rows >> 20):
            writer.write_table(piece)
    return buffer.getvalue()


def test_rows_that_unpack_to_gigabytes_are_refused_by_their_number(check):
    data = a_bomb(100 << 20)
    assert len(data) < 1 << 20
    with at_most(64):
        assert not check.holds(data, table())


def test_a_label_that_unpacks_to_a_gigabyte_takes_no_more_room_than_the_child_is_given(check):
    # The rows and the types are right, so that nothing but unpacking tells; in four row groups.
    data = packed(table(1_000, labels=["x" * (100 << 20), "M"]), write_statistics=False, row_group_size=250)
    assert len(data) < 1 << 20
    with at_most(64):
        assert not check.holds(data, table(1_000))
    # Its peak, not what it holds now; a child that was ended by its bound has none.
    if check.child is not None:
        status = Path(f"/proc/{check.child.pid}/status").read_text()
        assert int(status.split("VmHWM:")[1].split()[0]) < 512 << 10
    # It serves on.
    assert check.holds(packed(table(), compression="snappy"), table())


def test_the_room_of_the_child_is_what_bounds_it(monkeypatch):
    other = packed(table(1 << 20), compression="snappy")
    with ParquetCheck() as opened:
        monkeypatch.setattr(parquet_check, "COPIES", 0)
        monkeypatch.setattr(parquet_check, "ROOM", 1 << 20)
        assert not opened.holds(other, table(1 << 20))
        monkeypatch.undo()
        assert opened.holds(other, table(1 << 20))


def test_whatever_is_changed_in_a_file_the_reader_lives_and_says_that_it_is_another():
    data, draw = packed(table(50), compression="snappy"), random.Random(5)
    begin = len(data) - int.from_bytes(data[-8:-4], "little") - 8
    with ParquetCheck() as opened:
        for _ in range(150):
            changed = bytearray(data)
            # In the footer, where a change ends some readers of Parquet.
            changed[draw.randrange(begin, len(data) - 8)] = draw.choice([0, 1, 127, 128, 255])
            verdict = opened.holds(bytes(changed), table(50))
            assert verdict in (True, False)
        assert opened.holds(data, table(50))


def test_a_child_that_is_ended_by_what_it_reads_is_an_answer_and_another_takes_its_place():
    with ParquetCheck() as opened:
        assert opened.holds(packed(table(), compression="snappy"), table())
        opened.child.kill()
        opened.child.wait()
        assert not opened.holds(packed(table(), compression="snappy"), table())
        assert opened.holds(packed(table(), compression="snappy"), table())


def test_a_child_that_is_lost_in_what_it_reads_is_ended(monkeypatch, tmp_path):
    endless = tmp_path / "endless.py"
    endless.write_text("while True: pass")
    monkeypatch.setattr(parquet_check, "CHILD", endless)
    monkeypatch.setattr(parquet_check, "PATIENCE", 0.2)
    with ParquetCheck() as opened:
        assert not opened.holds(packed(table(), compression="snappy"), table())
        assert opened.child is None


def test_no_child_is_left_behind():
    with ParquetCheck() as opened:
        opened.holds(packed(table(), compression="snappy"), table())
        child = psutil.Process(opened.child.pid)
    assert not child.is_running()
