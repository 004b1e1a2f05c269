"""What every way of counting promises: the counts that brute force gives."""

import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.confidential.engines.duckdb import DuckDBEngine
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.core.domain import Domain
from tabulary.core.table import Table


def by_arrow(rows, domain):
    return Records.from_arrow(pa.table(rows), domain)


def by_file(rows, domain):
    return Records(DuckDBEngine.of_arrow(pa.table(rows)), domain, memory_bytes=0)


def by_pandas(rows, domain):
    return Records.from_pandas(pd.DataFrame(rows), domain)


def by_polars(rows, domain):
    return Records.from_polars(pl.DataFrame(rows), domain)


def by_parquet(rows, domain):
    with tempfile.TemporaryDirectory() as folder:
        half = len(next(iter(rows.values()))) // 2
        pq.write_table(pa.table(rows).slice(0, half), Path(folder, "1.parquet"))
        pq.write_table(pa.table(rows).slice(half), Path(folder, "2.parquet"))
        return Records.from_file(folder, domain)


def by_csv(rows, domain):
    with tempfile.TemporaryDirectory() as folder:
        pd.DataFrame(rows).to_csv(Path(folder, "people.csv.gz"), index=False)
        return Records.from_file(Path(folder, "people.csv.gz"), domain)


class TableOfRecords:
    """A table is counted too: its cells are the records."""

    def __init__(self, rows, domain):
        self._table = Table(domain, brute_force(rows, domain, domain.attributes))

    def tally(self, margins):
        return Tally.from_table(self._table, margins)

    def close(self):
        pass


every_way = pytest.mark.parametrize(
    "counted_by", [by_arrow, by_file, by_pandas, by_polars, by_parquet, by_csv, TableOfRecords]
)


@st.composite
def populations(draw):
    """A domain of printable levels, records in it, and margins of it."""
    label = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=4)
    labels = st.lists(label, min_size=1, max_size=20, unique=True)
    attributes = draw(st.integers(1, 5))
    domain = Domain({f"a{i}": draw(labels) for i in range(attributes)})
    people = draw(st.integers(1, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = {
        a: [domain.levels_of(a)[c] for c in generator.integers(0, len(domain.levels_of(a)), people)]
        for a in domain.attributes
    }
    margins = [m for k in range(attributes + 1) for m in combinations(domain.attributes, min(k, 3))]
    wanted = draw(st.lists(st.sampled_from(margins), min_size=1, unique=True))
    return domain, rows, wanted


def brute_force(rows, domain, margin):
    counts = np.zeros(domain.shape_of(margin), dtype=np.int64)
    people = zip(*rows.values(), strict=True)
    for person in people:
        named = dict(zip(rows, person, strict=True))
        counts[tuple(domain.code(a, named[a]) for a in margin)] += 1
    return counts


@every_way
@settings(deadline=None, max_examples=25)
@given(populations())
def test_a_tally_is_what_brute_force_counts(counted_by, population):
    domain, rows, wanted = population
    if counted_by is TableOfRecords and domain.size > 10_000:
        return
    records = counted_by(rows, domain)
    tally = records.tally(wanted)
    records.close()
    assert tally.margins == tuple(wanted)
    for margin in wanted:
        assert np.array_equal(tally.exact(margin), brute_force(rows, domain, margin))


@every_way
@settings(deadline=None, max_examples=15)
@given(populations())
def test_margins_of_one_tally_agree_on_the_total(counted_by, population):
    domain, rows, wanted = population
    if counted_by is TableOfRecords and domain.size > 10_000:
        return
    records = counted_by(rows, domain)
    tally = records.tally(wanted)
    records.close()
    assert {int(tally.exact(margin).sum()) for margin in wanted} == {len(rows["a0"])}
