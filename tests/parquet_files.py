"""Parquet as any reader finds it."""

import pyarrow as pa
import pyarrow.parquet as pq


def read_parquet(data):
    """The table in a Parquet file's bytes."""
    return pq.read_table(pa.BufferReader(data))
