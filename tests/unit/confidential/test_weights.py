"""Survey weights: in whole units, never above the public maximum, and never told."""

import gc
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tabulary.confidential import validation
from tabulary.confidential.coding import Coding
from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.confidential.records import Records
from tabulary.confidential.store import CHUNK_ROWS, Store
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import Weights, in_units
from tabulary.core.domain import Domain
from tabulary.core.privacy import PureDP
from tabulary.core.table import Table
from tabulary.errors import (
    ConfidentialError,
    ImpossibleRecord,
    InvalidArgument,
    InvalidColumn,
    UnknownLevel,
    UnreadableSource,
    WeightedRecords,
    WeightsClipped,
)
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.planning import plan

DOMAIN = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})

SURVEY: dict[str, list[Any]] = {
    "sex": ["F", "M", "F", "F", "M"],
    "job": ["none", "paid", "paid", "none", "paid"],
    "w": [1.25, 0.145, 2.0, 0.0, 3.335],
}

WEIGHTS = Weights("w", 4, unit="1/100")

# 0.145 and 3.335 are ties, which go to the even unit; as doubles they lie beside the tie, one on either side.
SUMS = [[125, 200], [0, 14 + 334]]

SECRET = "73519.0624"


def expected_units(number: float, weights: Weights) -> int:
    return min(round(Fraction(repr(number)) / weights.unit), weights.sensitivity)


def sums_of(records: Records, *margin: str) -> list[Any]:
    with records:
        sums: list[Any] = records.tally([margin]).exact(margin).tolist()
        return sums


# The public description.


def test_the_sensitivity_is_the_maximum_in_units() -> None:
    assert Weights("w", 50, unit="1/100").sensitivity == 5000
    assert Weights("w", 0.3, unit=0.1).sensitivity == 3
    assert Weights("w", "10/3", unit="1/3").sensitivity == 10
    assert Weights("w", 7, unit=7).sensitivity == 1


def test_weights_are_exact_equal_and_frozen() -> None:
    weights = Weights("w", 0.3, unit="0.1")
    assert (weights.maximum, weights.unit) == (Fraction(3, 10), Fraction(1, 10))
    assert weights == Weights("w", "3/10", unit=0.1)
    assert hash(weights) == hash(Weights("w", "3/10", unit=0.1))
    with pytest.raises(AttributeError, match="cannot assign to field 'maximum'"):
        weights.maximum = Fraction(1)  # type: ignore[misc]


@pytest.mark.parametrize("column", ["", None, 3])
def test_a_column_of_weights_is_named_by_text(column: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be text"):
        Weights(column, 1, unit=1)


@pytest.mark.parametrize(
    "number", [0, -1, "0", "x", None, True, float("nan"), float("inf"), "1e-200", "1e200"]
)
def test_a_maximum_and_a_unit_are_positive_numbers(number: Any) -> None:
    with pytest.raises(InvalidArgument, match="the maximum weight"):
        Weights("w", number, unit=1)
    with pytest.raises(InvalidArgument, match="the unit of the weights"):
        Weights("w", 1, unit=number)


def test_a_maximum_that_is_no_whole_number_of_units_is_refused_and_the_next_one_named() -> None:
    with pytest.raises(
        InvalidArgument, match=r"10 is not a whole number of units of 0\.3.* or a maximum of 10\.2\."
    ):
        Weights("w", 10, unit="0.3")
    with pytest.raises(InvalidArgument, match="not a whole number"):
        Weights("w", 1, unit=2)


def test_a_unit_so_small_that_units_are_thousands_of_millions_is_refused() -> None:
    assert Weights("w", 1, unit=1e-9).sensitivity == 10**9
    with pytest.raises(InvalidArgument, match="Choose a larger unit"):
        Weights("w", 1.1, unit=1e-9)


# Units: always what fractions give.


@st.composite
def weights_and_numbers(draw: st.DrawFn) -> tuple[Weights, list[float]]:
    """A unit, a maximum of so many units, and numbers of every kind, many of them beside ties and the maximum."""
    unit = draw(
        st.one_of(
            st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(1, 3), Fraction(7, 10), Fraction(25)]),
            st.fractions(Fraction(1, 10**6), 1000, max_denominator=10**6).filter(bool),
        )
    )
    largest = draw(st.one_of(st.integers(1, 300), st.integers(1, 10**9)))
    weights = Weights("w", unit * largest, unit=unit)
    top = float(weights.maximum)
    halves = st.integers(0, 2 * largest + 3).map(lambda k: float(k * unit / 2))
    beside = st.tuples(halves, st.integers(-3, 3)).map(lambda pair: max(0.0, stepped(*pair)))
    decimals = st.integers(0, 10**7).map(lambda k: k / 1000)
    anything = st.floats(0, 1e308)
    numbers = draw(
        st.lists(st.one_of(beside, decimals, anything, st.floats(0, 2 * top)), min_size=1, max_size=30)
    )
    return weights, numbers


def stepped(number: float, steps: int) -> float:
    for _ in range(abs(steps)):
        number = float(np.nextafter(number, np.inf if steps > 0 else -np.inf))
    return number


@settings(deadline=None, max_examples=400)
@given(weights_and_numbers())
def test_units_are_what_fractions_give_and_never_above_the_maximum(
    drawn: tuple[Weights, list[float]],
) -> None:
    weights, numbers = drawn
    units, clipped = in_units(weights, np.array(numbers))
    assert units.tolist() == [expected_units(number, weights) for number in numbers]
    assert units.max() <= weights.sensitivity
    assert clipped == any(Fraction(repr(number)) > weights.maximum for number in numbers)


def test_ties_go_to_the_even_unit() -> None:
    units, _ = in_units(Weights("w", 10, unit="1/100"), np.array([0.005, 0.015, 0.025, 0.145, 1.005, 9.995]))
    assert units.tolist() == [0, 2, 2, 14, 100, 1000]


def test_a_weight_just_above_the_maximum_is_clipped_even_where_rounding_would_do() -> None:
    weights = Weights("w", 0.3, unit="1/10")
    assert in_units(weights, np.array([0.3])) == (np.array([3]), False)
    assert in_units(weights, np.array([0.30000000000000004])) == (np.array([3]), True)
    assert in_units(weights, np.array([1.7e308])) == (np.array([3]), True)


# Reading: every source, brute force.


def by_csv(rows: dict[str, list[Any]], domain: Domain, **given: Any) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
        Path(folder, "people.csv").write_text("\n".join(lines) + "\n")
        return Records.from_csv(Path(folder, "people.csv"), domain, **given)


def by_parquet(rows: dict[str, list[Any]], domain: Domain, **given: Any) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        half = len(rows["w"]) // 2
        pq.write_table(pa.table(rows).slice(0, half), Path(folder, "1.parquet"))
        # The second part has its columns in another order.
        pq.write_table(pa.table(dict(reversed(rows.items()))).slice(half), Path(folder, "2.parquet"))
        return Records.from_parquet(folder, domain, **given)


def by_file(rows: dict[str, list[Any]], domain: Domain, **given: Any) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        pd.DataFrame(rows).to_csv(Path(folder, "people.csv.gz"), index=False)
        return Records.from_file(Path(folder, "people.csv.gz"), domain, **given)


def by_arrow(rows: dict[str, list[Any]], domain: Domain, **given: Any) -> Records:
    return Records.from_arrow(pa.table(rows), domain, **given)


def by_pandas(rows: dict[str, list[Any]], domain: Domain, **given: Any) -> Records:
    return Records.from_pandas(pd.DataFrame(rows), domain, **given)


def by_polars(rows: dict[str, list[Any]], domain: Domain, **given: Any) -> Records:
    return Records.from_polars(pl.DataFrame(rows), domain, **given)


def by_disk(rows: dict[str, list[Any]], domain: Domain, **given: Any) -> Records:
    engine = CompiledEngine(DuckDBReader.of_arrow(pa.table(rows)), domain, memory_bytes=0, **given)
    assert engine.store.on_disk
    return Records(engine)


Source = Callable[..., Records]

every_source = pytest.mark.parametrize(
    "source", [by_csv, by_parquet, by_file, by_arrow, by_pandas, by_polars, by_disk]
)


@every_source
def test_every_source_gives_the_same_sums(source: Source) -> None:
    with source(SURVEY, DOMAIN, weights=WEIGHTS) as records:
        assert records.weights == WEIGHTS
        tally = records.tally([["sex", "job"], ["sex"], []])
    assert tally.exact(["sex", "job"]).tolist() == SUMS
    assert tally.exact(["sex"]).tolist() == [325, 348]
    assert tally.exact([]) == 673
    assert tally.weights == WEIGHTS


@st.composite
def surveys(draw: st.DrawFn) -> tuple[Domain, dict[str, list[Any]], Weights, list[tuple[str, ...]]]:
    """A domain, weighted records in it, some above the maximum, and margins of it."""
    attributes = draw(st.integers(1, 4))
    domain = Domain({f"a{i}": [f"v{j}" for j in range(draw(st.integers(1, 5)))] for i in range(attributes)})
    unit = draw(st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(1, 3), Fraction(1, 8)]))
    # Weights of one, of two and of four bytes.
    largest = draw(st.sampled_from([1, 7, 255, 256, 65_535, 65_536, 10**9]))
    weights = Weights("w", unit * largest, unit=unit)
    people = draw(st.integers(1, 30))
    weight = st.one_of(
        st.integers(0, 10**4).map(lambda k: k / 1000),
        st.floats(0, 1.1 * float(weights.maximum)),
    )
    rows: dict[str, list[Any]] = {
        a: draw(st.lists(st.sampled_from(domain.levels_of(a)), min_size=people, max_size=people))
        for a in domain.attributes
    }
    rows["w"] = draw(st.lists(weight, min_size=people, max_size=people))
    margins = [m for k in range(attributes + 1) for m in combinations(domain.attributes, k)]
    return domain, rows, weights, draw(st.lists(st.sampled_from(margins), min_size=1, unique=True))


def brute_force(
    rows: dict[str, list[Any]], domain: Domain, weights: Weights, margin: tuple[str, ...]
) -> np.ndarray:
    sums = np.zeros(domain.shape_of(margin), dtype=object)
    for i, number in enumerate(rows["w"]):
        sums[tuple(domain.code(a, rows[a][i]) for a in margin)] += expected_units(number, weights)
    return sums


@every_source
@pytest.mark.filterwarnings("ignore::tabulary.errors.WeightsClipped")
@settings(deadline=None, max_examples=20)
@given(surveys())
def test_a_weighted_tally_is_what_brute_force_sums(
    source: Source, survey: tuple[Domain, dict[str, list[Any]], Weights, list[tuple[str, ...]]]
) -> None:
    domain, rows, weights, margins = survey
    with source(rows, domain, weights=weights) as records:
        tally = records.tally(margins)
    for margin in margins:
        found = tally.exact(margin)
        assert found.dtype == np.int64
        assert np.array_equal(found, brute_force(rows, domain, weights, margin))


@pytest.mark.filterwarnings("ignore::tabulary.errors.WeightsClipped")
@settings(deadline=None, max_examples=60)
@given(surveys(), st.data())
def test_one_record_moves_one_cell_of_a_margin_by_at_most_the_sensitivity(
    survey: tuple[Domain, dict[str, list[Any]], Weights, list[tuple[str, ...]]], data: st.DataObject
) -> None:
    domain, rows, weights, margins = survey
    people = len(rows["w"])
    assume(people > 1)
    # Any weight at all, for the one record: the promise does not rest on its being a likely one.
    gone = data.draw(st.integers(0, people - 1))
    rows["w"][gone] = data.draw(st.floats(0, 1e300))
    fewer = {name: column[:gone] + column[gone + 1 :] for name, column in rows.items()}
    with (
        by_arrow(rows, domain, weights=weights) as records,
        by_arrow(fewer, domain, weights=weights) as others,
    ):
        tally, other = records.tally(margins), others.tally(margins)
    for margin in margins:
        moved = tally.exact(margin) - other.exact(margin)
        assert np.count_nonzero(moved) <= 1
        assert 0 <= moved.sum() <= weights.sensitivity


def test_the_sensitivity_is_reached() -> None:
    table: dict[str, list[Any]] = {"sex": ["F"], "job": ["none"], "w": [4.0]}
    assert sums_of(by_arrow(table, DOMAIN, weights=WEIGHTS), "sex") == [WEIGHTS.sensitivity, 0]


@pytest.mark.parametrize("memory_bytes", [1 << 30, 0, 600_000], ids=["memory", "file", "memory then file"])
@pytest.mark.parametrize("largest", [200, 5000, 10**6], ids=["one byte", "two bytes", "four bytes"])
@pytest.mark.parametrize("rows", [CHUNK_ROWS, 2 * CHUNK_ROWS + 1, 300_007])
def test_sums_are_exact_over_many_chunks_in_memory_and_on_disk(
    rows: int, largest: int, memory_bytes: int
) -> None:
    generator = np.random.default_rng(5)
    domain = Domain({"a": range(3), "b": range(300), "c": range(2)})
    codes = [generator.integers(0, len(domain.levels_of(a)), rows) for a in domain.attributes]
    units = generator.integers(0, largest + 1, rows)
    weights = Weights("w", Fraction(largest, 8), unit="1/8")
    table = pa.table([*codes, units / 8], names=["a", "b", "c", "w"])
    engine = CompiledEngine(DuckDBReader.of_arrow(table), domain, weights=weights, memory_bytes=memory_bytes)
    records, store = Records(engine), engine.store
    assert store.on_disk == (store.chunks * store.layout.chunk_bytes > memory_bytes)
    margins = [(), ("a",), ("a", "b"), ("b", "c")]
    with records:
        tally = records.tally(margins)
    for margin in margins:
        sums = np.zeros((1, *domain.shape_of(margin)), dtype=np.int64)
        np.add.at(sums, (np.zeros(rows, int), *(codes[domain.position(a)] for a in margin)), units)
        assert np.array_equal(tally.exact(margin), sums[0])


def test_sums_beyond_32_bits_are_exact() -> None:
    people = 3000
    table: dict[str, list[Any]] = {
        "sex": ["F"] * people,
        "job": ["paid"] * people,
        "w": [999_999_999] * people,
    }
    weights = Weights("w", 10**9, unit=1)
    assert sums_of(by_arrow(table, DOMAIN, weights=weights), "sex") == [people * 999_999_999, 0]


def test_sums_that_may_leave_64_bits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert validation.LARGEST_SUM == 2**62
    monkeypatch.setattr(validation, "LARGEST_SUM", 5 * WEIGHTS.sensitivity + 1)
    by_arrow(SURVEY, DOMAIN, weights=WEIGHTS).close()
    monkeypatch.setattr(validation, "LARGEST_SUM", 5 * WEIGHTS.sensitivity)
    with pytest.raises(ConfidentialError, match="may not fit in 64 bits") as caught:
        by_arrow(SURVEY, DOMAIN, weights=WEIGHTS)
    assert not re.search(r"\d", str(caught.value).replace("64", ""))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["1.25", ".145", "2", "0", "+3.335e0"]),
        pa.array(["1.25", ".145", "2", "0", "3.335"]).dictionary_encode(),
        pa.array([1.25, 0.145, 2, 0, 3.335], pa.float32()),
        pa.array([Decimal("1.250"), Decimal("0.145"), Decimal(2), Decimal(0), Decimal("3.335")]),
        pa.array([Decimal("1.25"), Decimal("0.145"), Decimal(2), Decimal(0), Decimal("3.335")], pa.decimal128(38, 25)),
    ],
    ids=["text", "categories", "32 bits", "decimals", "long decimals"],
)  # fmt: skip
def test_a_weight_is_the_number_that_was_written_in_whatever_type(column: Any) -> None:
    table = pa.table({**SURVEY, "w": column})
    assert sums_of(Records.from_arrow(table, DOMAIN, weights=WEIGHTS), "sex", "job") == SUMS


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.float32()])
def test_whole_weights_may_have_any_width(kind: Any) -> None:
    table = pa.table({**SURVEY, "w": pa.array([3, 1, 0, 4, 2], kind)})
    assert sums_of(Records.from_arrow(table, DOMAIN, weights=Weights("w", 4, unit=1)), "sex") == [7, 3]


def test_an_attribute_may_be_read_from_the_column_of_weights() -> None:
    domain = Domain({"size": ["0-1", "2+"]})
    coding = {"size": Coding("w", bins=[0, 2])}
    for source in (by_arrow, by_pandas, by_polars):
        records = source({"w": [1.5, 2.5, 3.0]}, domain, codings=coding, weights=Weights("w", 4, unit="1/2"))
        assert sums_of(records, "size") == [3, 11]


def test_dropped_records_weigh_nothing_and_are_not_clipped() -> None:
    survey = {**SURVEY, "sex": ["F", "M", "F", "?", "M"], "w": [1, 1, 1, 99, 1]}
    records = by_arrow(survey, DOMAIN, codings={"sex": Coding(unknown="drop")}, weights=WEIGHTS)
    assert sums_of(records, "sex") == [200, 200]


def test_records_without_weights_have_none() -> None:
    with by_arrow(SURVEY, DOMAIN) as records:
        assert records.weights is None
        assert records.tally([["sex"]]).weights is None
    assert Tally.from_table(Table(DOMAIN, [[1, 2], [3, 4]]), [["sex"]]).weights is None


# Refusals.


@every_source
@pytest.mark.parametrize("weights", ["w", 50, ("w", 50), Weights])
def test_what_is_no_weights_is_refused(source: Source, weights: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"given as Weights\(.*Nothing was read"):
        source(SURVEY, DOMAIN, weights=weights)


@every_source
def test_an_absent_column_of_weights_is_refused(source: Source) -> None:
    with pytest.raises(InvalidColumn, match="no column 'weight'"):
        source(SURVEY, DOMAIN, weights=Weights("weight", 4, unit=1))


def test_a_doubled_column_of_weights_is_refused() -> None:
    table = pa.table([*SURVEY.values(), SURVEY["w"]], names=[*SURVEY, "w"])
    with pytest.raises(InvalidColumn, match="more than one column 'w'"):
        Records.from_arrow(table, DOMAIN, weights=WEIGHTS)
    with pytest.raises(InvalidColumn, match="more than one column 'w'"):
        Records.from_pandas(table.to_pandas(), DOMAIN, weights=WEIGHTS)


@pytest.mark.parametrize("flaw", [None, float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("source", [by_parquet, by_arrow, by_pandas, by_polars, by_disk])
def test_a_missing_or_infinite_weight_is_refused(source: Source, flaw: float | None) -> None:
    with pytest.raises(
        InvalidColumn, match="'w' has a weight that is missing or not a finite number, in at least"
    ):
        source({**SURVEY, "w": [1.0, 2.0, flaw, 1.0, 1.0]}, DOMAIN, weights=WEIGHTS)


@pytest.mark.parametrize(
    "flaw", ["", "NaN", "inf", "heavy", "1,5", "1_000", " 1", "0x1", "1e999", "-", "1.2.3"]
)
def test_a_text_that_is_no_number_is_refused_as_a_weight(flaw: str) -> None:
    with pytest.raises(InvalidColumn, match="missing or not a finite number"):
        by_arrow({**SURVEY, "w": ["1", "2", flaw, "1", "1"]}, DOMAIN, weights=WEIGHTS)
    with pytest.raises(InvalidColumn, match="missing or not a finite number"):
        by_csv({**SURVEY, "w": ["1", "2", f'"{flaw}"', "1", "1"]}, DOMAIN, weights=WEIGHTS)


@every_source
@pytest.mark.parametrize("flaw", [-1.0, -1e-300])
def test_a_negative_weight_is_refused(source: Source, flaw: float) -> None:
    with pytest.raises(InvalidColumn, match="'w' has a weight that is negative, in at least"):
        source({**SURVEY, "w": [1.0, 2.0, flaw, 1.0, 1.0]}, DOMAIN, weights=WEIGHTS)


def in_three_files(folder: Path, *weights: float | None) -> Path:
    for i, weight in enumerate(weights):
        pq.write_table(
            pa.table({**SURVEY, "w": pa.array([weight] * 5, pa.float64())}), folder / f"{i}.parquet"
        )
    return folder


@pytest.mark.parametrize("flaws", [(-1, None, 1), (None, -1, 1), (1, None, -1), (None, 1, -1)])
def test_both_flaws_are_named_at_once_wherever_they_stand(
    flaws: tuple[float | None, ...], tmp_path: Path
) -> None:
    with pytest.raises(InvalidColumn, match="not a finite number, and one that is negative"):
        Records.from_file(in_three_files(tmp_path, *flaws), DOMAIN, weights=WEIGHTS)


@pytest.mark.parametrize("flaw", [-1, None])
@pytest.mark.parametrize("place", range(3))
def test_one_flaw_is_enough_wherever_it_stands(place: int, flaw: float | None, tmp_path: Path) -> None:
    given: list[float | None] = [1, 1, 1]
    given[place] = flaw
    with pytest.raises(InvalidColumn, match="in at least one record"):
        Records.from_file(in_three_files(tmp_path, *given), DOMAIN, weights=WEIGHTS)


def test_a_flawed_weight_is_refused_even_in_a_record_that_is_dropped() -> None:
    survey = {**SURVEY, "sex": ["F", "M", "F", "?", "M"], "w": [1, 1, 1, None, 1]}
    with pytest.raises(InvalidColumn, match="missing"):
        by_arrow(survey, DOMAIN, codings={"sex": Coding(unknown="drop")}, weights=WEIGHTS)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True] * 5),
        pa.array([date(2024, 1, 1)] * 5),
        pa.array([[1.5]] * 5),
        pa.array([["1.5"]] * 5),
        pa.array([{"w": 1.5}] * 5),
        pa.array([SECRET.encode()] * 5),
    ],
    ids=["booleans", "dates", "lists", "lists of texts", "structs", "bytes"],
)
def test_a_column_that_holds_no_numbers_is_refused(column: Any) -> None:
    with pytest.raises(InvalidColumn, match="'w' of the Arrow table has a type whose values are not numbers"):
        Records.from_arrow(pa.table({**SURVEY, "w": column}), DOMAIN, weights=WEIGHTS)


def test_the_other_refusals_stand_beside_weights() -> None:
    with pytest.raises(UnknownLevel, match="'sex'"):
        by_arrow({**SURVEY, "sex": ["F", "M", "F", "?", "M"]}, DOMAIN, weights=WEIGHTS)
    zero = Domain(
        {"sex": ["F", "M"], "job": ["none", "paid"]}, structural_zeros=[{"sex": "M", "job": "paid"}]
    )
    with pytest.raises(ImpossibleRecord, match="'paid'"):
        by_arrow(SURVEY, zero, weights=WEIGHTS)


# The warning.


@every_source
def test_clipped_weights_count_as_the_maximum_and_the_custodian_is_warned(source: Source) -> None:
    survey = {**SURVEY, "w": [1.0, 1.0, float(SECRET), 1.0, 4.004]}
    with pytest.warns(WeightsClipped, match=r"'w' has weights above the public maximum 4\.") as told:
        records = source(survey, DOMAIN, weights=WEIGHTS)
    assert len(told) == 1
    assert sums_of(records, "sex") == [600, 500]


@pytest.mark.parametrize("given", [(9, 1, 1), (1, 9, 1), (1, 1, 9), (9, 9, 9)])
def test_the_custodian_is_warned_once_wherever_the_weight_stands(
    given: tuple[float, ...], tmp_path: Path
) -> None:
    with pytest.warns(WeightsClipped) as told:
        Records.from_file(in_three_files(tmp_path, *given), DOMAIN, weights=WEIGHTS).close()
    assert len(told) == 1


def test_weights_at_the_maximum_are_not_clipped() -> None:
    # Every warning is an error in these tests.
    records = by_arrow({**SURVEY, "w": [4.0] * 5}, DOMAIN, weights=WEIGHTS)
    assert sums_of(records, "sex") == [1200, 800]


def test_the_warning_is_the_same_whichever_and_however_many_weights_are_clipped() -> None:
    said = set()
    for clipped in ([4.004], [float(SECRET)] * 5, [5e300, 7, 8, 9]):
        survey = {**SURVEY, "w": (clipped + [1.0] * 5)[:5]}
        with pytest.warns(WeightsClipped) as told:
            by_arrow(survey, DOMAIN, weights=WEIGHTS).close()
        (warning,) = told
        said.add(str(warning.message))
    (text,) = said
    # The one digit is the public maximum.
    assert re.findall(r"\d", text) == ["4"]
    assert "for the custodian only" in text


def test_the_warning_points_at_the_line_that_opened_the_records() -> None:
    with pytest.warns(WeightsClipped) as told:
        Records.from_arrow(pa.table({**SURVEY, "w": [9.0] * 5}), DOMAIN, weights=WEIGHTS).close()
    (warning,) = told
    assert warning.filename == __file__


def test_a_warning_that_is_made_an_error_leaves_nothing_behind() -> None:
    gc.collect()
    before = sum(isinstance(thing, Store) for thing in gc.get_objects())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(WeightsClipped, match="above the public maximum 4"):
            by_arrow({**SURVEY, "w": [9.0] * 5}, DOMAIN, weights=WEIGHTS)
    gc.collect()
    assert sum(isinstance(thing, Store) for thing in gc.get_objects()) <= before


# What is never told.


@pytest.mark.parametrize(
    ("survey", "reason"),
    [
        ({**SURVEY, "w": [f"-{SECRET}"] * 5}, "a weight that is negative"),
        ({**SURVEY, "w": [f"{SECRET}x"] * 5}, "a weight that is missing or not a finite number"),
        ({**SURVEY, "w": [-float(SECRET)] * 5}, "a weight that is negative"),
        ({**SURVEY, "w": [[SECRET]] * 5}, "a type whose values are not numbers"),
        (
            {**SURVEY, "w": pa.array([[SECRET]] * 5, pa.list_(pa.dictionary(pa.int8(), pa.string())))},
            "a type whose values are not numbers",
        ),
        ({**SURVEY, "sex": ["?"] * 5, "w": [float(SECRET)] * 5}, "a value outside its domain"),
    ],
)
def test_no_error_tells_a_weight_not_even_in_its_chain(survey: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfidentialError, match=reason) as caught:
        Records.from_arrow(pa.table(survey), DOMAIN, weights=WEIGHTS)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET.split(".")[0] not in f"{error!r} {error} {error.args}"


def test_a_frame_of_several_types_tells_no_weight() -> None:
    frame = pd.DataFrame({**SURVEY, "w": [1.5, SECRET, 2, None, 1]}, dtype=object)
    with pytest.raises(InvalidColumn, match="'w' of the frame") as caught:
        Records.from_pandas(frame, DOMAIN, weights=WEIGHTS)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_what_is_printed_is_public() -> None:
    with by_arrow(SURVEY, DOMAIN, weights=WEIGHTS) as records:
        shown = "weights 'w' up to 4 in units of 0.01"
        assert repr(records) == str(records) == f"<Records of sex 2 × job 2, {shown}>"
        assert repr(records.tally([["sex"]])) == f"<Tally of 1 margins, 2 cells, {shown}: [sex]>"


def test_nothing_of_the_weights_is_left_on_disk(tmp_path: Path) -> None:
    program = """
import os, sys, tempfile
import pyarrow as pa
from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.confidential.records import Records
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
table = pa.table({"a": ["x"], "w": [1.5]})
weights = Weights("w", 2, unit="1/2")
engine = CompiledEngine(DuckDBReader.of_arrow(table), Domain({"a": ["x"]}), weights=weights, memory_bytes=0)
records = Records(engine)
assert engine.store.on_disk
assert os.listdir(tempfile.gettempdir()) == []
match sys.argv[1]:
    case "close": records.close()
    case "killed": os.kill(os.getpid(), 9)
"""
    for ending, code in {"close": 0, "exit": 0, "killed": -9}.items():
        ended = subprocess.run(
            [sys.executable, "-c", program, ending], env={"TMPDIR": str(tmp_path)}, capture_output=True
        )
        assert ended.returncode == code, ended.stderr.decode()
        assert list(tmp_path.iterdir()) == []


def test_closed_records_are_not_summed() -> None:
    records = by_arrow(SURVEY, DOMAIN, weights=WEIGHTS)
    records.close()
    with pytest.raises(UnreadableSource, match="closed"):
        records.tally([["sex"]])


def test_no_mechanism_measures_a_weighted_tally():
    domain = Domain({"sex": ["F", "M"]})
    planned = plan(domain, "[sex]", privacy=PureDP(1))
    tally = Tally(domain, {("sex",): np.array([5, 7])}, weights=Weights("w", 50, unit=1))
    with pytest.raises(WeightedRecords, match="counts every record as one"):
        measure(tally, planned, ExactSampler())
