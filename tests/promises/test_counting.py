"""What every way of counting promises: the counts that brute force gives, and the same refusals everywhere."""

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tabulary.confidential.coding import Coding
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import TabularyError, WeightsClipped
from tests.counters import ELSEWHERE, READ_HERE, SPARK, Places, Way, places  # noqa: F401 - a fixture

few = settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))
"""For engines that take a connection or a job a tally."""


def table_of_records(table: pa.Table, domain: Domain) -> Any:
    """A table is counted too: its cells are the records."""
    whole = Table(domain, brute_force(table.to_pydict(), domain, domain.attributes))

    class TableOfRecords:
        def tally(self, margins):
            return Tally.from_table(whole, margins)

        def close(self):
            pass

    return TableOfRecords()


read_here = pytest.mark.parametrize("counted_by", [*READ_HERE, table_of_records])
elsewhere = pytest.mark.parametrize("engine", [*ELSEWHERE, SPARK])


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


def check_counts(counted_by, population) -> None:
    domain, rows, wanted = population
    records = counted_by(pa.table(rows), domain)
    tally = records.tally(wanted)
    records.close()
    assert tally.margins == tuple(wanted)
    for margin in wanted:
        assert np.array_equal(tally.exact(margin), brute_force(rows, domain, margin))
    assert {int(tally.exact(margin).sum()) for margin in wanted} == {len(rows["a0"])}


@read_here
@settings(deadline=None, max_examples=25)
@given(populations())
def test_a_tally_is_what_brute_force_counts_and_its_margins_agree_on_the_total(counted_by, population):
    if counted_by is table_of_records:
        assume(population[0].size <= 10_000)
    check_counts(counted_by, population)


@elsewhere
@few
@given(populations())
def test_an_engine_elsewhere_counts_what_brute_force_counts(engine, places: Places, population):  # noqa: F811
    check_counts(getattr(places, engine), population)


@st.composite
def surveys(draw: st.DrawFn) -> tuple[pa.Table, Domain, dict[str, Any], list[tuple[str, ...]]]:
    """Records with unknown values, mappings, bins, weights and impossible cells, and how they are to be read."""
    people = draw(st.integers(1, 40))

    def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(st.sampled_from(values), min_size=people, max_size=people)), kind)

    def unknown(level: str) -> str:
        return draw(st.sampled_from(["error", "drop", f"level:{level}", f"level:{level}"]))

    # Half of the surveys hold nothing unknown, so that half of them are counted.
    spoilt = draw(st.booleans())
    texts = ["F", "M"] + ["f", "M ", "", None, "\\", "é"] * spoilt
    numbers = [1, 2, 3] + [7, -1, None, 2**40] * spoilt
    amounts = [0.0, 14.9, 15.0, 70.25, 1e300] + [-0.5, float("nan"), float("inf"), None] * spoilt
    table = pa.table(
        {
            "sex": column(texts, pa.string()),
            "code": column(numbers, pa.int64()),
            "years": column(amounts, pa.float64()),
            "w": column([0.0, 0.125, 0.25, 1.375, 2.0] + [2.5] * spoilt, pa.float64()),
        }
    )
    zeros = [{"sex": "M", "job": "c"}] if draw(st.booleans()) else []
    domain = Domain(
        {"sex": ["F", "M", "other"], "job": ["c", "a", "b"], "age": ["0-14", "15-64", "65+", "unknown"]},
        zeros,
    )
    codings = {
        "sex": Coding(unknown=unknown("other")),
        "job": Coding(column="code", mapping={1: "a", 2: "b", 3: "a", 7: "c"}, unknown=unknown("b")),
        "age": Coding(column="years", bins=[0, 15, 65], unknown=unknown("unknown")),
    }
    weights = Weights("w", 2, unit="1/4") if draw(st.booleans()) else None
    return (
        table,
        domain,
        {"codings": codings, "weights": weights},
        [("sex", "job"), ("age",), (), ("sex", "age")],
    )


def outcome(counted_by: Way, table: pa.Table, domain: Domain, given: Any, wanted: Any) -> Any:
    """Return the counts, or the error that was raised in place of them; and what was warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            records: Records = counted_by(table, domain, **given)
            with records:
                tally = records.tally(wanted)
            found = {margin: tally.exact(margin).tolist() for margin in wanted}
        except TabularyError as problem:
            found = (type(problem), str(problem))
    return found, [str(one.message) for one in warned if one.category is WeightsClipped]


@elsewhere
@few
@given(surveys())
def test_unknown_values_bins_weights_and_impossible_records_mean_the_same_in_every_engine(
    engine,
    places: Places,  # noqa: F811
    survey,
):
    table, domain, given, wanted = survey
    assert outcome(getattr(places, engine), *survey) == outcome(READ_HERE[0], table, domain, given, wanted)


@elsewhere
def test_no_engine_takes_nan_for_what_stands_beside_it(engine, places: Places):  # noqa: F811
    # Statistics of a Parquet file leave NaN out, so that all of a column may seem to be one number.
    table = pa.table({"years": pa.array([0.0, 0.0, float("nan")], pa.float64())})
    binned = Domain({"age": ["0-14", "15+", "unknown"]})
    listed = Domain({"age": ["0", "1", "unknown"]})
    for domain, bins in ((binned, [0, 15]), (listed, None)):
        coding = Coding(column="years", bins=bins, unknown="level:unknown")
        with getattr(places, engine)(table, domain, codings={"age": coding}) as records:
            assert records.tally([("age",)]).exact(("age",)).tolist() == [2, 0, 1]
