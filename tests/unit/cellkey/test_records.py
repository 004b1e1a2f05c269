"""Records with keys, from every source: exact counts and key sums, or a clear refusal."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.cellkey import KeyedRecords, RecordKeys, record_keys
from tabulary.cellkey.reading import Digits, encoded, encoded_table
from tabulary.confidential.coding import Coding
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, InvalidColumn, TooManyCells, UnknownLevel, UnreadableSource
from tests.entropy import SeededEntropy

DOMAIN = Domain({"sex": ["F", "M"], "age": ["0", "1", "2"]})


def brute_force(rows, keys, shape, modulus):
    counts, sums = np.zeros(shape, dtype=object), np.zeros(shape, dtype=object)
    for row, key in zip(rows, keys, strict=True):
        counts[tuple(row)] += 1
        sums[tuple(row)] = (sums[tuple(row)] + key) % modulus
    return counts.tolist(), sums.tolist()


people = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=60)


@settings(deadline=None, max_examples=30)
@given(people, st.sampled_from([256, 4096, 5000, 10**9, 2**62]), st.integers(0, 2**32))
def test_counts_and_key_sums_are_exact(rows, modulus, seed):
    keys = record_keys(len(rows), modulus, SeededEntropy(seed))
    table = pa.table({"sex": ["FM"[r[0]] for r in rows], "age": [r[1] for r in rows], "record_key": keys})
    with KeyedRecords.from_frame(table, DOMAIN, keys=RecordKeys(modulus=modulus)) as records:
        for margin, part in (
            (("sex", "age"), rows),
            (("age",), [r[1:] for r in rows]),
            ((), [()] * len(rows)),
        ):
            counts, sums = records.sums(margin)
            expected = brute_force(part, keys.tolist(), DOMAIN.shape_of(margin), modulus)
            assert (counts.tolist(), sums.tolist()) == expected


def sources(folder, frame):
    frame.to_csv(folder / "people.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), folder / "people.parquet")
    frame.to_csv(folder / "people.csv.gz", index=False, sep=";")
    read = KeyedRecords.from_file
    yield "csv", lambda *a, **k: read(folder / "people.csv", *a, **k)
    yield "parquet", lambda *a, **k: read(folder / "people.parquet", *a, **k)
    yield "semicolons", lambda *a, **k: read(folder / "people.csv.gz", *a, delimiter=";", **k)
    frames = {
        "pandas": frame,
        "categories": frame.astype({"sex": "category", "age": "category"}),
        "objects": frame.astype({"sex": object}),
        "small integers": frame.astype({"age": "int8", "record_key": "uint64"}),
        "polars": pl.from_pandas(frame),
        "polars categories": pl.from_pandas(frame).with_columns(pl.col("sex").cast(pl.Categorical)),
        "arrow": pa.Table.from_pandas(frame),
        "chunks": pa.concat_tables(
            [pa.Table.from_pandas(frame.iloc[:9]), pa.Table.from_pandas(frame.iloc[9:])]
        ),
        "batch": pa.RecordBatch.from_pandas(frame),
        "floats": frame.astype({"age": float, "record_key": float}),
        "text keys": frame.astype({"record_key": str}),
    }
    for name, given_frame in frames.items():
        yield name, lambda *a, frame=given_frame, **k: KeyedRecords.from_frame(frame, *a, **k)


def test_every_source_gives_the_same_counts_and_sums(tmp_path):
    generator = np.random.default_rng(3)
    rows = np.stack([generator.integers(0, 2, 5000), generator.integers(0, 3, 5000)], axis=1)
    keys = record_keys(5000, 4096, SeededEntropy(3))
    frame = pd.DataFrame({"sex": np.array(["F", "M"])[rows[:, 0]], "age": rows[:, 1], "record_key": keys})
    expected = brute_force(rows, keys.tolist(), (2, 3), 4096)
    for name, read in sources(tmp_path, frame):
        with read(DOMAIN, keys=RecordKeys(modulus=4096)) as records:
            counts, sums = records.sums(("sex", "age"))
            assert (counts.tolist(), sums.tolist()) == expected, name


def test_decimal_keys_are_read_exactly(tmp_path):
    keys = record_keys(2000, 10**8, SeededEntropy(8))
    rows = [(k % 2, k % 3) for k in keys.tolist()]
    decimals = [float(f"0.{key:08}") for key in keys.tolist()]
    frame = pd.DataFrame(
        {"sex": ["FM"[r[0]] for r in rows], "age": [r[1] for r in rows], "record_key": decimals}
    )
    expected = brute_force(rows, keys.tolist(), (2, 3), 10**8)
    for name, read in sources(tmp_path, frame):
        if name == "small integers":
            continue
        with read(DOMAIN, keys=RecordKeys(digits=8)) as records:
            counts, sums = records.sums(("sex", "age"))
            assert (counts.tolist(), sums.tolist()) == expected, name


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_plain_columns_are_encoded_as_the_engine_recodes_them(data):
    """Both ways to read a table in memory give the same records, recoded or not."""
    size = data.draw(st.integers(1, 40))
    ages = data.draw(st.lists(st.integers(-2, 3), min_size=size, max_size=size))
    sexes = data.draw(st.lists(st.sampled_from(["F", "M", "x"]), min_size=size, max_size=size))
    table = pa.table(
        {
            "age": pa.array(ages, data.draw(st.sampled_from([pa.int8(), pa.int64()]))),
            "sex": data.draw(
                st.sampled_from(
                    [pa.array(sexes), pa.array(sexes, pa.large_string()), pa.array(sexes).dictionary_encode()]
                )
            ),
            "record_key": record_keys(size, 5000, SeededEntropy(size)),
        }
    )
    codings = {
        "age": Coding(
            mapping={-1: "0", 1: "2", 3: "1"}, unknown=data.draw(st.sampled_from(["drop", "level:2"]))
        ),
        "sex": Coding(unknown=data.draw(st.sampled_from(["drop", "level:F"]))),
    }
    digits = Digits(RecordKeys(modulus=5000), DOMAIN, codings)
    found = []
    for store in (
        encoded_table(table, "the table", digits),
        encoded(DuckDBReader.of_arrow(table, "the table"), digits),
    ):
        with KeyedRecords(store, DOMAIN, digits) as records:
            found.append([array.tolist() for array in records.sums(("sex", "age"))])
    assert found[0] == found[1]


def people_frame(**columns):
    return pd.DataFrame({"sex": ["F", "M", "F"], "age": [0, 1, 2], "record_key": [3, 200, 77]} | columns)


@pytest.mark.parametrize(
    "keys",
    [
        [3, None, 77],
        [3, -1, 77],
        [3, 256, 77],
        [3, 1.5, 77],
        [3, float("nan"), 77],
        [3, float("inf"), 77],
        ["3", "", "77"],
        ["3", "many", "77"],
        ["3", "1.5", "77"],
        [3, 2**63 - 1, 77],
        [0.5, 0.25, 0.125],
        [True, False, True],
    ],
)
def test_what_is_no_key_is_refused_without_telling_it(tmp_path, keys):
    frame = people_frame(record_key=keys)
    frame.to_csv(tmp_path / "people.csv", index=False)
    for read in (
        lambda: KeyedRecords.from_frame(frame, DOMAIN, keys=RecordKeys(modulus=256)),
        lambda: KeyedRecords.from_file(tmp_path / "people.csv", DOMAIN, keys=RecordKeys(modulus=256)),
    ):
        with pytest.raises(
            InvalidColumn, match="column 'record_key' holds a record key that is missing"
        ) as refused:
            read()
        assert "77" not in str(refused.value)
        assert "0 to 255" in str(refused.value)


@pytest.mark.parametrize(
    "keys", [[0.25, 0.5, 1.0], [0.25, 0.5, 0.12345], [0.25, -0.5, 0.1], [0.25, None, 0.1], [0.25, 2, 0.1]]
)
def test_what_is_no_decimal_key_is_refused(keys):
    with pytest.raises(InvalidColumn, match="at most 4 digits"):
        KeyedRecords.from_frame(people_frame(record_key=keys), DOMAIN, keys=RecordKeys(digits=4))


def test_small_decimals_in_scientific_writing_are_keys():
    frame = people_frame(record_key=[1e-05, 0.3, 0.99999])
    with KeyedRecords.from_frame(frame, DOMAIN, keys=RecordKeys(digits=5)) as records:
        assert records.sums(())[1] == (1 + 30_000 + 99_999) % 100_000


@pytest.mark.parametrize("modulus", [256, 10**6])
def test_keys_that_repeat_beyond_chance_are_refused_without_a_count(modulus):
    keys = record_keys(4000, modulus, SeededEntropy(1))
    frame = pd.DataFrame({"sex": "F", "age": 0, "record_key": keys})
    KeyedRecords.from_frame(frame, DOMAIN, keys=RecordKeys(modulus=modulus)).close()
    doubled = pd.concat([frame, frame, frame, frame], ignore_index=True)
    for broken in (doubled, frame.assign(record_key=7)):
        with pytest.raises(InvalidColumn, match="repeat far more often") as refused:
            KeyedRecords.from_frame(broken, DOMAIN, keys=RecordKeys(modulus=modulus))
        assert not set("4123") & set(str(refused.value).replace(str(modulus), ""))


def test_a_column_that_is_missing_or_doubled_is_named(tmp_path):
    with pytest.raises(InvalidColumn, match="'record_key'"):
        KeyedRecords.from_frame(
            people_frame().drop(columns="record_key"), DOMAIN, keys=RecordKeys(modulus=256)
        )
    twice = people_frame()
    twice.insert(0, "record_key", [1, 2, 3], allow_duplicates=True)
    with pytest.raises(InvalidColumn, match="more than one column 'record_key'"):
        KeyedRecords.from_frame(twice, DOMAIN, keys=RecordKeys(modulus=256))
    (tmp_path / "twice.csv").write_text("sex,age,record_key,record_key\nF,0,1,1\n")
    with pytest.raises(InvalidColumn, match="more than one column 'record_key'"):
        KeyedRecords.from_file(tmp_path / "twice.csv", DOMAIN, keys=RecordKeys(modulus=256))
    with pytest.raises(InvalidColumn, match="no column 'key'"):
        KeyedRecords.from_frame(people_frame(), DOMAIN, keys=RecordKeys("key", modulus=256))


def test_a_missing_category_is_an_error_or_a_level_with_the_sum_of_its_own_keys():
    frame = people_frame(sex=["F", None, None])
    with pytest.raises(UnknownLevel, match="'sex'"):
        KeyedRecords.from_frame(frame, DOMAIN, keys=RecordKeys(modulus=256))
    domain = Domain({"sex": ["F", "M", "not stated"], "age": ["0", "1", "2"]})
    codings = {"sex": Coding(unknown="level:not stated")}
    with KeyedRecords.from_frame(frame, domain, codings, keys=RecordKeys(modulus=256)) as records:
        counts, sums = records.sums(("sex",))
    assert counts.tolist() == [1, 0, 2]
    assert sums.tolist() == [3, 0, (200 + 77) % 256]


def test_a_dropped_record_takes_its_key_along():
    frame = people_frame(sex=["F", None, "M"])
    codings = {"sex": Coding(unknown="drop")}
    with KeyedRecords.from_frame(frame, DOMAIN, codings, keys=RecordKeys(modulus=256)) as records:
        assert [array.tolist() for array in records.sums(("sex",))] == [[1, 1], [3, 77]]


def test_an_attribute_may_have_the_name_of_a_digit():
    frame = people_frame().rename(columns={"sex": "record key 0"})
    domain = Domain({"record key 0": ["F", "M"]})
    with KeyedRecords.from_frame(frame, domain, keys=RecordKeys(modulus=256)) as records:
        assert records.sums(("record key 0",))[0].tolist() == [2, 1]


def test_many_records_lie_in_a_file_and_cross_chunks():
    rows = 200_000
    keys = record_keys(rows, 10**12, SeededEntropy(5))
    ages = np.arange(rows) % 3
    digits = Digits(RecordKeys(modulus=10**12), DOMAIN, {})
    table = pa.table({"sex": ["F"] * rows, "age": ages, "record_key": keys})
    store = encoded_table(table, "the table", digits, memory_bytes=1 << 16)
    assert store.on_disk
    with KeyedRecords(store, DOMAIN, digits) as records:
        counts, sums = records.sums(("age",))
    assert counts.tolist() == np.bincount(ages).tolist()
    assert sums.tolist() == [sum(keys[ages == a].tolist()) % 10**12 for a in range(3)]


def test_records_show_their_domain_and_cannot_be_copied_or_pickled():
    records = KeyedRecords.from_frame(people_frame(), DOMAIN, keys=RecordKeys(modulus=256))
    assert repr(records) == f"{records}" == "<KeyedRecords of sex 2 × age 3, 256 keys>"
    for action in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="confidential"):
            action(records)
    records.close()
    with pytest.raises(UnreadableSource, match="closed"):
        records.sums(("sex",))


def test_a_wrong_request_is_refused():
    with pytest.raises(InvalidArgument, match="RecordKeys"):
        KeyedRecords.from_frame(people_frame(), DOMAIN, keys=256)
    with pytest.raises(InvalidArgument, match="colour"):
        KeyedRecords.from_frame(people_frame(), DOMAIN, {"colour": Coding()}, keys=RecordKeys(modulus=256))
    with pytest.raises(InvalidArgument, match="delimiter"):
        KeyedRecords.from_file("people.csv", DOMAIN, keys=RecordKeys(modulus=256), delimiter="ab")
    with pytest.raises(UnreadableSource, match="a frame must be"):
        KeyedRecords.from_frame([1, 2], DOMAIN, keys=RecordKeys(modulus=256))
    with pytest.raises(InvalidColumn, match="more than one type") as refused:
        KeyedRecords.from_frame(people_frame(age=[0, "x", b"2"]), DOMAIN, keys=RecordKeys(modulus=256))
    assert refused.value.__context__ is None
    records = KeyedRecords.from_frame(people_frame(), DOMAIN, keys=RecordKeys(modulus=256))
    with pytest.raises(TooManyCells, match="more than the cap of 5"):
        records.sums(("sex", "age"), max_cells=5)
