"""The file of the measurements: every noisy whole number that left the mechanism, one row each.

Columns: `part`, the position of the part in the manifest's list `plan.measured`, from zero, with the queries of
`plan.exact` after it; `cell`, the position of the number in its part, from zero, the last attribute fastest; `value`,
the noisy number. What a part measures, and the law of its noise, stand in the manifest.
"""

from typing import TYPE_CHECKING

import numpy as np

from tabulary.core.arrays import Integers
from tabulary.errors import InvalidTable
from tabulary.planning import Measurement, Plan
from tabulary.release.formats import parquet_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from tabulary.release.parquet_check import ParquetCheck

MEASUREMENTS = "measurements.parquet"
COLUMNS = ("part", "cell", "value")


def sizes_of(plan: Plan) -> Integers:
    """Return how many numbers each query of a plan has, in the order of the file."""
    return np.array([int(np.prod(shape)) for shape in plan.shapes()], dtype=np.int64)


def measurements_table(measurement: Measurement) -> "pa.Table":
    """Return the measurements in long form.

    >>> import tabulary as tb
    >>> plan = tb.plan(tb.Domain({"sex": ["F", "M"]}), "[][sex]", privacy=tb.PureDP(1), mechanism="margins")
    >>> measurements_table(Measurement(plan, (np.array(41), np.array([12, 30])))).to_pydict()
    {'part': [0, 1, 1], 'cell': [0, 0, 1], 'value': [41, 12, 30]}
    """
    import pyarrow as pa

    parts, cells = places_of(sizes_of(measurement.plan))
    values = np.concatenate([v.reshape(-1) for v in measurement.values])
    return pa.table(dict(zip(COLUMNS, (parts, cells, values), strict=True)))


def places_of(sizes: Integers) -> tuple["np.ndarray[tuple[int], np.dtype[np.int32]]", Integers]:
    """Return the first two columns of the file: the part of each number, and its place in the part."""
    parts = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
    starts = np.cumsum(sizes) - sizes
    return parts, np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(starts, sizes)


def measurements_bytes(measurement: Measurement) -> bytes:
    """Return the file of the measurements."""
    return parquet_bytes(measurements_table(measurement))


def read_measurements(data: bytes, plan: Plan, parquet: "ParquetCheck") -> Measurement:
    """Return the measurements of a plan in a file from anyone; raise InvalidTable if it does not hold them.

    Another process unpacks the file, under bounds that follow from the plan.
    """
    sizes = sizes_of(plan)
    values = parquet.values(data, sizes)
    if values is None:
        raise InvalidTable("it does not hold one whole number for each measured cell, in their order.")
    pieces = np.split(values, np.cumsum(sizes)[:-1])
    return Measurement(plan, tuple(p.reshape(shape) for p, shape in zip(pieces, plan.shapes(), strict=True)))
