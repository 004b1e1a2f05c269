"""What a Parquet file claims about itself, checked before any of it is unpacked.

A few kilobytes of Parquet can claim, and unpack to, gigabytes: in the footer, in the header of every page and in the
dictionaries. So the footer is bounded before it is parsed, its claims are compared with the table that the file should
hold, and the headers of all pages are read one by one: the decoder allocates what they say, and no more.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tabulary.errors import ReleaseError

_MAGIC = b"PAR1"
_LABEL = pa.dictionary(pa.int32(), pa.string(), ordered=True)
_WRITER = "parquet-cpp-arrow version "
_CODEC = "ZSTD"
# What Tabulary's files are written with; others, such as deltas of strings, expand without a bound.
_ENCODINGS = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"}
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
# The codes of those encodings in a page's header.
_PAGE_ENCODINGS = {0, 2, 3, 4, 8}
_SLACK = 1 << 16
_MOST_CHUNKS = 10_000


class FalseClaim(ReleaseError):
    """A Parquet file is not one that Tabulary wrote of the table that it should hold."""


@dataclass(frozen=True)
class TableSize:
    """The table that a Parquet file should hold: its rows, and the labels and value columns by name."""

    rows: int
    labels: Mapping[str, Sequence[str]]
    values: Sequence[str]

    @property
    def groups(self) -> int:
        """How many groups its rows are parted into, at most."""
        return self.rows // (1 << 20) + 1

    @property
    def columns(self) -> int:
        """How many columns the file has."""
        return len(self.labels) + len(self.values)

    def text(self, column: int) -> int:
        """Return the bytes of the labels of a column, each written once."""
        labels = list(self.labels.values())
        return sum(len(label.encode()) + 4 for label in labels[column]) if column < len(labels) else 0

    @property
    def most_footer_bytes(self) -> int:
        """The longest footer: a few hundred bytes for each piece of a column, with its smallest and largest label."""
        longest = sum(max(len(label.encode()) for label in labels) for labels in self.labels.values())
        names = sum(len(name.encode()) for name in (*self.labels, *self.values))
        return _SLACK + self.groups * (1_024 * self.columns + 4 * longest) + 16 * names

    @property
    def most_bytes(self) -> int:
        """The longest file: all columns unpacked, and the footer."""
        return self.most_footer_bytes + sum(self.most_unpacked(i) for i in range(self.columns))

    def most_unpacked(self, column: int) -> int:
        """Return the most bytes that a column unpacks to: a number and an index a row, and the labels."""
        return _SLACK + 16 * self.rows + 2 * self.groups * self.text(column)


def checked_parquet(data: bytes, size: TableSize) -> pa.Table:
    """Return the table in a Parquet file's bytes if its claims are those of such a table; raise FalseClaim if not."""
    if len(data) > size.most_bytes:
        raise FalseClaim("the file is longer than the table can be.")
    if len(data) < 12 or data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise FalseClaim("it is not a Parquet file.")
    (footer,) = struct.unpack("<I", data[-8:-4])
    if footer > min(len(data) - 12, size.most_footer_bytes):
        raise FalseClaim("its footer is longer than that of such a table.")
    file = pq.ParquetFile(
        pa.BufferReader(data),
        pre_buffer=False,
        thrift_string_size_limit=size.most_footer_bytes,
        thrift_container_size_limit=_MOST_CHUNKS,
    )
    _check_footer(file, size)
    for group in range(file.metadata.num_row_groups):
        for column in range(size.columns):
            _check_pages(data, file.metadata.row_group(group).column(column), size, column)
    # One thread: a reader of many small tables gains nothing from a pool of them.
    return file.read(use_threads=False)


def _check_footer(file: pq.ParquetFile, size: TableSize) -> None:
    about = file.metadata
    if about.num_rows != size.rows or about.num_columns != size.columns:
        raise FalseClaim(
            f"it claims {about.num_rows:,} rows and {about.num_columns:,} columns, and the table has {size.rows:,} and "
            f"{size.columns:,}."
        )
    if not str(about.created_by).startswith(_WRITER):
        raise FalseClaim("it was not written by Tabulary.")
    schema = file.schema_arrow
    kinds = [*([{_LABEL}] * len(size.labels)), *([{pa.int64(), pa.float64()}] * len(size.values))]
    if schema.names != [*size.labels, *size.values] or any(
        field.type not in kind for field, kind in zip(schema, kinds, strict=True)
    ):
        raise FalseClaim("it does not have the columns of the table.")
    for i in range(size.columns):
        column = about.schema.column(i)
        if column.max_repetition_level or column.max_definition_level > 1:
            raise FalseClaim("a column of it is nested.")
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    rows = [group.num_rows for group in groups]
    if min(rows, default=1) < 1 or sum(rows) != size.rows or len(rows) > size.groups:
        raise FalseClaim("its rows are parted in a way in which Tabulary does not part them.")
    for group in groups:
        for i in range(size.columns):
            chunk = group.column(i)
            if chunk.compression != _CODEC or not set(chunk.encodings) <= _ENCODINGS or chunk.file_path:
                raise FalseClaim("it is packed in a way in which Tabulary does not pack.")
            if chunk.num_values != group.num_rows:
                raise FalseClaim("its columns are not of the same length.")


def _check_pages(data: bytes, chunk: Any, size: TableSize, column: int) -> None:
    """Walk over the pages of one piece of a column and add up what they claim."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page:
        start = min(start, chunk.dictionary_page_offset)
    end = start + chunk.total_compressed_size
    if start < len(_MAGIC) or not start < end <= len(data):
        raise FalseClaim("a piece of a column lies outside the file.")
    labels = list(size.labels.values())
    most_entries = len(labels[column]) if column < len(labels) else chunk.num_values
    unpacked = values = 0
    while start < end:
        header, start = _page_header(data, start, end)
        unpacked += header.unpacked
        start += header.packed
        if header.is_dictionary:
            if header.values > most_entries:
                raise FalseClaim("a dictionary of it has more entries than the column has values.")
        else:
            values += header.values
        if unpacked > size.most_unpacked(column) or values > chunk.num_values or start > end:
            raise FalseClaim("a page of it claims more than the table holds.")


@dataclass(frozen=True)
class _PageHeader:
    packed: int
    unpacked: int
    values: int
    is_dictionary: bool


def _page_header(data: bytes, start: int, end: int) -> tuple[_PageHeader, int]:
    """Return the header of a page and where its content begins."""
    reader = _Compact(data, start, end)
    try:
        fields = reader.structure(depth=3)
        kind = fields[1]
        inner = fields[5 if kind == _DATA_PAGE else 7]
        header = _PageHeader(fields[3], fields[2], inner[1], kind == _DICTIONARY_PAGE)
        known = kind in (_DATA_PAGE, _DICTIONARY_PAGE) and inner[2] in _PAGE_ENCODINGS
    except (IndexError, KeyError, TypeError):
        raise FalseClaim("the header of a page cannot be read.") from None
    if not known or min(header.packed, header.unpacked, header.values) < 0:
        raise FalseClaim("it has a page of a kind that Tabulary does not write.")
    return header, reader.place


@dataclass
class _Compact:
    """A reader of Thrift's compact protocol, as far as page headers go: numbers, booleans, texts and structures."""

    data: bytes
    place: int
    end: int

    def structure(self, depth: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            if number in found:
                raise FalseClaim("the header of a page says one thing twice.")
            found[number] = self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 8:
            length = self._unsigned()
            self.place += length
            return None
        if kind == 12 and depth:
            return self.structure(depth - 1)
        raise FalseClaim("the header of a page holds what Tabulary does not write.")

    def _byte(self) -> int:
        if self.place >= self.end:
            raise IndexError
        self.place += 1
        return self.data[self.place - 1]

    def _unsigned(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise IndexError

    def _signed(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)
