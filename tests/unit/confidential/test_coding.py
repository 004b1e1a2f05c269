"""How raw values become levels."""

import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tabulary.confidential.coding import Coding
from tabulary.confidential.records import Records
from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, InvalidDomain, UnknownLevel


def counted(values: Any, levels: list[Any], coding: Coding | None = None) -> list[int]:
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    with Records.from_arrow(
        pa.table({"a": column}), Domain({"a": levels}), {"a": coding or Coding()}
    ) as records:
        counts: list[int] = records.tally([["a"]]).exact(["a"]).tolist()
        return counts


def test_a_mapping_gives_values_their_levels() -> None:
    coding = Coding(mapping={"1": "F", "2": "M", "3": "M"})
    assert counted(["1", "2", "3", "3"], ["F", "M"], coding) == [1, 3]


def test_a_value_that_the_mapping_does_not_name_is_unknown_even_if_it_is_a_level() -> None:
    with pytest.raises(UnknownLevel, match="outside the mapping of 'a'"):
        counted(["1", "F"], ["F", "M"], Coding(mapping={"1": "F"}))


def test_a_large_mapping_is_read_like_a_small_one() -> None:
    coding = Coding(mapping={f"it's {i}": str(i % 3) for i in range(1000)})
    assert counted([f"it's {i}" for i in range(1000)], [0, 1, 2], coding) == [334, 333, 333]
    with pytest.raises(UnknownLevel, match="a value outside the mapping of 'a'"):
        counted(["it's 1000"], [0, 1, 2], coding)


def test_bins_are_half_open_and_the_last_is_open() -> None:
    coding = Coding(bins=[0, 15, 65])
    assert counted([0, 14, 15, 64, 65, 2**40], ["0-14", "15-64", "65+"], coding) == [2, 2, 2]
    assert counted([0.0, 14.99, 15.0], ["0-14", "15-64", "65+"], coding) == [2, 1, 0]
    assert counted([Decimal("14.99"), Decimal("65.00")], ["0-14", "15-64", "65+"], coding) == [1, 0, 1]


def test_bins_read_numbers_from_text() -> None:
    coding = Coding(bins=[0, 15, 65], unknown="level:none")
    values = ["3", "+3", "3.5e1", "007", ".5", " 3", "3 ", "1_000", "inf", "nan", "x", "", None, "-1"]
    assert counted(values, ["0-14", "15-64", "65+", "none"], coding) == [4, 1, 0, 9]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_an_edge_that_is_no_binary_fraction_belongs_to_the_upper_bin(kind: pa.DataType) -> None:
    levels = ["0 to under 0.7", "0.7+"]
    assert counted(pa.array([0.7, 0.69], kind), levels, Coding(bins=[0, 0.7])) == [1, 1]


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, -math.inf, None])
def test_a_number_in_no_bin_is_unknown(value: float | None) -> None:
    with pytest.raises(UnknownLevel, match="none of the bins of 'a'"):
        counted(pa.array([1.0, value]), ["0+"], Coding(bins=[0]))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, 4, 4], pa.int8()),
        pa.array([3, 4, 4], pa.uint64()),
        pa.array([3.0, 4.0, 4.0]),
        pa.array([3.0, 4.0, 4.0], pa.float32()),
        pa.array([Decimal("3.00"), Decimal("4.00"), Decimal("4.00")]),
        pa.array(["3", "4", "4"]),
        pa.array(["3", "4", "4"]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_are_compared_by_value_however_they_are_stored(values: pa.Array) -> None:
    assert counted(values, ["3", "4"]) == [1, 2]
    assert counted(values, ["4", "3", "-7", "other"]) == [2, 1, 0, 0]
    assert counted(values, ["low", "high"], Coding(mapping={3: "low", 4.0: "high"})) == [1, 2]


def test_other_numbers_have_their_shortest_text() -> None:
    assert counted([3.5, 0.1, 1.5e-7], ["3.5", "0.1", "1.5e-07"]) == [1, 1, 1]
    assert counted([Decimal("3.50"), Decimal("0.25")], ["3.5", "0.25"]) == [1, 1]
    assert counted(pa.array([0.1], pa.float32()), ["0.1"]) == [1]


def test_a_whole_number_in_a_pandas_column_with_gaps_is_still_whole() -> None:
    frame = pd.DataFrame({"a": [3, 4, None]})
    domain = Domain({"a": ["3", "4"]})
    with Records.from_pandas(frame, domain, {"a": Coding(unknown="drop")}) as records:
        assert records.tally([["a"]]).exact(["a"]).tolist() == [1, 1]


@pytest.mark.parametrize("text", ["3.0", "03", " 3", "3 ", "+3"])
def test_text_is_compared_by_its_characters(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"a,b\n{text},x\n")
    with pytest.raises(UnknownLevel, match="a value outside its domain"):
        Records.from_csv(tmp_path / "a.csv", Domain({"a": ["3"]}))


def test_an_integer_is_not_a_level_with_leading_zeros() -> None:
    with pytest.raises(UnknownLevel, match="a value outside its domain"):
        counted([1], ["01", "2"])


def test_integers_beyond_64_bits_of_span_are_compared_by_value_too() -> None:
    assert counted(pa.array([0, 2**63 - 1, -(2**63)]), [0, 2**63 - 1, -(2**63)]) == [1, 1, 1]
    with pytest.raises(UnknownLevel, match="a value outside its domain"):
        counted(pa.array([2**63 - 1, -(2**63)]), [0, 1])


def test_booleans_are_the_texts_true_and_false() -> None:
    assert counted([True, False, True], ["false", "true"]) == [1, 2]
    assert counted([True, False, True], ["no", "yes"], Coding(mapping={True: "yes", False: "no"})) == [1, 2]
    with pytest.raises(UnknownLevel, match="a value outside its domain"):
        counted([True, False], [0, 1])


def test_dates_are_written_year_first() -> None:
    assert counted([date(2024, 2, 29)], ["x"], Coding(mapping={date(2024, 2, 29): "x"})) == [1]


@pytest.mark.parametrize(
    "values",
    [["x", None], ["x", ""], ["x", "stranger"], pa.array([3.0, math.nan]), pa.array([3.0, math.inf])],
    ids=str,
)
def test_an_unknown_value_is_refused_dropped_or_given_a_level(values: Any) -> None:
    # The levels "nan" and "inf" are there to be missed: they are texts, and no number has them.
    levels = ["x", "3", "nan", "inf", "none"]
    known = [1, 0] if values[0] == "x" else [0, 1]
    with pytest.raises(UnknownLevel, match="a value outside its domain"):
        counted(values, levels)
    assert counted(values, levels, Coding(unknown="drop")) == [*known, 0, 0, 0]
    assert counted(values, levels, Coding(unknown="level:none")) == [*known, 0, 0, 1]


def test_all_records_may_be_dropped() -> None:
    assert counted(["?", "?"], ["x"], Coding(unknown="drop")) == [0]


def test_a_column_that_refuses_does_so_even_in_a_record_that_another_drops() -> None:
    domain = Domain({"a": ["x"], "b": ["x"]})
    table = pa.table({"a": ["?", "x"], "b": ["?", "x"]})
    with pytest.raises(UnknownLevel, match="'b'"):
        Records.from_arrow(table, domain, {"a": Coding(unknown="drop")})


@pytest.mark.parametrize("levels", [255, 256, 257, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("text", [False, True], ids=["integers", "texts"])
def test_codes_are_wide_enough_for_the_levels(levels: int, text: bool) -> None:
    values = [0, 1, levels - 1, levels - 1]
    expected = np.bincount(values, minlength=levels).tolist()
    assert counted(list(map(str, values)) if text else values, list(range(levels))) == expected
    with pytest.raises(UnknownLevel, match="a value outside its domain"):
        counted([str(levels)] if text else [levels], list(range(levels)))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"mapping": {"1": "F"}, "bins": [0]}, "not both"),
        ({"mapping": {}}, "gives each value"),
        ({"mapping": [1]}, "gives each value"),
        ({"bins": "0, 15"}, "list of numbers"),
        ({"bins": 3}, "list of numbers"),
        ({"unknown": "ignore"}, "`unknown` must be"),
        ({"unknown": None}, "`unknown` must be"),
        ({"column": ""}, "must be text"),
        ({"column": 3}, "must be text"),
    ],
)
def test_a_coding_that_cannot_be_is_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidArgument, match=word):
        Coding(**options)


def test_bins_must_rise() -> None:
    with pytest.raises(InvalidDomain, match="strictly ascending"):
        Coding(bins=[5, 5])


@pytest.mark.parametrize(
    ("coding", "error", "word"),
    [
        (Coding(mapping={"1": "X"}), InvalidDomain, "no level 'X'"),
        (Coding(bins=[0, 20]), InvalidDomain, "no level '0-19'"),
        (Coding(unknown="level:none"), InvalidDomain, "no level 'none'"),
        (Coding(mapping={None: "F"}), InvalidArgument, "not None"),
        (Coding(mapping={math.nan: "F"}), InvalidArgument, "not nan"),
        (Coding(mapping={"": "F"}), InvalidArgument, "empty text"),
        (Coding(mapping={"3": "F", 3: "M"}), InvalidArgument, "'3' two levels"),
    ],
)
def test_a_coding_that_does_not_fit_the_domain_is_refused(
    coding: Coding, error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        coding.resolve(Domain({"sex": ["F", "M"]}), "sex")


def test_codings_are_given_for_attributes_of_the_domain() -> None:
    table, domain = pa.table({"a": ["x"]}), Domain({"a": ["x"]})
    with pytest.raises(InvalidArgument, match="'b', but the domain has no such attribute"):
        Records.from_arrow(table, domain, {"b": Coding()})
    with pytest.raises(InvalidArgument, match="must be a Coding, not a dict"):
        Records.from_arrow(table, domain, {"a": {"unknown": "drop"}})


def test_a_coding_is_a_value() -> None:
    coding = Coding("AGE", bins=[0, 15])
    assert coding == Coding("AGE", bins=(0, 15))
    assert hash(coding) == hash(Coding("AGE", bins=(0, 15)))
    given = {"1": "F"}
    kept = Coding(mapping=given)
    given["2"] = "M"
    assert dict(kept.mapping or {}) == {"1": "F"}
