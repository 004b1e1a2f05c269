"""The file of the measurements: every noisy whole number that left the mechanism, one row each.

Columns: `part`, the position of the part in the manifest's list `plan.measured`, from zero, with the queries of
`plan.exact` after it; `cell`, the position of the number in its part, from zero, the last attribute fastest; `value`,
the noisy number. What a part measures, and the law of its noise, stand in the manifest.

The values are neither compressed nor summarized: each is eight bytes at a place that only the plan decides. So a file
that this version wrote is read without unpacking anything a stranger made: take the bytes at these places, write the
file again, and compare.
"""

import io
import math
from typing import TYPE_CHECKING

import numpy as np

from tabulary.core.arrays import Integers
from tabulary.errors import InvalidTable
from tabulary.planning import Measurement, Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from tabulary.release.parquet_check import ParquetCheck

MEASUREMENTS = "measurements.parquet"
COLUMNS = ("part", "cell", "value")
# Few enough rows that every version of the library writes a group of them as one page.
_ROWS_OF_A_PAGE = 1 << 14


def measured_values(plan: Plan) -> int:
    """Return how many numbers a plan measures."""
    return sum(map(math.prod, plan.shapes()))


def sizes_of(plan: Plan) -> Integers:
    """Return how many numbers each query of a plan has, in the order of the file."""
    return np.array([math.prod(shape) for shape in plan.shapes()], dtype=np.int64)


def measurements_table(measurement: Measurement) -> "pa.Table":
    """Return the measurements in long form.

    >>> import tabulary as tb
    >>> plan = tb.plan(tb.Domain({"sex": ["F", "M"]}), "[][sex]", privacy=tb.PureDP(1), mechanism="margins")
    >>> measurements_table(Measurement(plan, (np.array(41), np.array([12, 30])))).to_pydict()
    {'part': [0, 1, 1], 'cell': [0, 0, 1], 'value': [41, 12, 30]}
    """
    return _table(sizes_of(measurement.plan), _joined(measurement))


def places_of(sizes: Integers) -> tuple["np.ndarray[tuple[int], np.dtype[np.int32]]", Integers]:
    """Return the first two columns of the file: the part of each number, and its place in the part."""
    parts = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
    starts = np.cumsum(sizes) - sizes
    return parts, np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(starts, sizes)


def measurements_bytes(measurement: Measurement) -> bytes:
    """Return the file of the measurements."""
    return _file(sizes_of(measurement.plan), _joined(measurement))


def read_measurements(data: bytes, plan: Plan, parquet: "ParquetCheck") -> Measurement:
    """Return the measurements of a plan in a file from anyone; raise InvalidTable if it does not hold them.

    A file that another version of the library wrote is unpacked by another process, under bounds that follow from the
    plan.
    """
    if len(data) < 8 * measured_values(plan):
        # Nothing of the size of the plan is made for a file that cannot hold its numbers.
        raise InvalidTable("it is too short for the numbers of the plan.")
    sizes = sizes_of(plan)
    values = _values_in_place(data, sizes)
    if values is None:
        values = parquet.values(data, sizes)
    if values is None:
        raise InvalidTable("it does not hold one whole number for each measured cell, in their order.")
    pieces = np.split(values, np.cumsum(sizes)[:-1])
    return Measurement(plan, tuple(p.reshape(shape) for p, shape in zip(pieces, plan.shapes(), strict=True)))


def _values_in_place(data: bytes, sizes: Integers) -> Integers | None:
    """Return the values of a file if it has exactly the bytes that are written here; None for any other file."""
    import pyarrow.parquet as pq

    empty = _file(sizes, np.zeros(int(sizes.sum()), dtype=np.int64))
    if len(empty) != len(data):
        return None
    layout = pq.ParquetFile(io.BytesIO(empty)).metadata
    pieces = []
    for group in map(layout.row_group, range(layout.num_row_groups)):
        column = group.column(COLUMNS.index("value"))
        # One page per group: its header, then the values to the end.
        end = column.data_page_offset + column.total_compressed_size
        pieces.append(np.frombuffer(data[end - 8 * group.num_rows : end], dtype="<i8"))
    values = np.concatenate(pieces).astype(np.int64)
    return values if _file(sizes, values) == data else None


def _joined(measurement: Measurement) -> Integers:
    return np.concatenate([values.reshape(-1) for values in measurement.values])


def _table(sizes: Integers, values: Integers) -> "pa.Table":
    import pyarrow as pa

    return pa.table(dict(zip(COLUMNS, (*places_of(sizes), values), strict=True)))


def _file(sizes: Integers, values: Integers) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(
        _table(sizes, values),
        buffer,
        use_dictionary=False,
        column_encoding={"part": "DELTA_BINARY_PACKED", "cell": "DELTA_BINARY_PACKED", "value": "PLAIN"},
        compression={"part": "zstd", "cell": "zstd", "value": "none"},
        write_statistics=False,
        row_group_size=_ROWS_OF_A_PAGE,
    )
    return buffer.getvalue()
