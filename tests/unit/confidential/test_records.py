"""Reading records: every source, every refusal."""

import copy
import gc
import gzip
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tabulary.confidential.coding import Coding
from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.confidential.records import Records
from tabulary.core.domain import Domain
from tabulary.core.workload import Workload
from tabulary.errors import (
    ConfidentialError,
    ImpossibleRecord,
    InvalidArgument,
    InvalidColumn,
    InvalidDomain,
    InvalidWorkload,
    TooManyCells,
    UnknownLevel,
    UnreadableSource,
)

SECRET = "Hyacinth-9137"

DOMAIN = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]})

ROWS = {"sex": ["F", "M", "F", "F", "M"], "age": ["0-14", "65+", "15-64", "15-64", "0-14"]}

COUNTS = [[1, 2, 0], [1, 0, 1]]


def csv_file(folder: Path, text: str, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def csv_text(rows: dict[str, list[Any]]) -> str:
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    return "\n".join(lines) + "\n"


def counts_of(records: Records, *margin: str) -> list[Any]:
    with records:
        counts: list[Any] = (
            records.tally([margin or records.domain.attributes])
            .exact(margin or records.domain.attributes)
            .tolist()
        )
        return counts


def from_csv(folder: Path) -> Records:
    return Records.from_csv(csv_file(folder, csv_text(ROWS)), DOMAIN)


def from_compressed_csv(folder: Path) -> Records:
    return Records.from_file(csv_file(folder, csv_text(ROWS), "people.csv.gz"), DOMAIN)


def from_parquet(folder: Path) -> Records:
    pq.write_table(pa.table(ROWS), folder / "people.parquet")
    return Records.from_parquet(folder / "people.parquet", DOMAIN)


def in_parts(folder: Path) -> Path:
    parts = folder / "parts"
    parts.mkdir()
    pq.write_table(pa.table(ROWS).slice(0, 2), parts / "part-0.parquet")
    # The second part has its columns in another order and under another type.
    second = pa.table({"age": pa.array(ROWS["age"][2:]).dictionary_encode(), "sex": ROWS["sex"][2:]})
    pq.write_table(second, parts / "part-1.parquet")
    (parts / "_SUCCESS").touch()
    return parts


def from_folder(folder: Path) -> Records:
    return Records.from_file(in_parts(folder), DOMAIN)


def from_glob(folder: Path) -> Records:
    return Records.from_file(str(in_parts(folder) / "part-*.parquet"), DOMAIN)


def from_csv_folder(folder: Path) -> Records:
    (folder / "parts").mkdir()
    csv_file(folder / "parts", "sex,age\nF,0-14\nM,65+\n", "a.csv")
    csv_file(folder / "parts", "age,id,sex\n15-64,1,F\n15-64,2,F\n0-14,3,M\n", "b.csv.gz")
    return Records.from_csv(folder / "parts", DOMAIN)


def from_arrow(folder: Path) -> Records:
    return Records.from_arrow(pa.table(ROWS), DOMAIN)


def from_batch(folder: Path) -> Records:
    return Records.from_arrow(pa.RecordBatch.from_pydict(ROWS), DOMAIN)


def from_reader(folder: Path) -> Records:
    return Records.from_arrow(pa.table(ROWS).to_reader(max_chunksize=2), DOMAIN)


def from_pandas(folder: Path) -> Records:
    return Records.from_pandas(pd.DataFrame(ROWS), DOMAIN)


def from_pandas_categories(folder: Path) -> Records:
    return Records.from_pandas(pd.DataFrame(ROWS).astype("category"), DOMAIN)


def from_polars(folder: Path) -> Records:
    return Records.from_polars(pl.DataFrame(ROWS), DOMAIN)


def from_polars_categories(folder: Path) -> Records:
    return Records.from_polars(pl.DataFrame(ROWS).cast(pl.Categorical), DOMAIN)


every_source = pytest.mark.parametrize(
    "source",
    [
        from_csv, from_compressed_csv, from_parquet, from_folder, from_glob, from_csv_folder, from_arrow,
        from_batch, from_reader, from_pandas, from_pandas_categories, from_polars, from_polars_categories,
    ],
    ids=lambda source: source.__name__,
)  # fmt: skip


@every_source
def test_every_source_gives_the_same_counts(source: Callable[[Path], Records], tmp_path: Path) -> None:
    assert counts_of(source(tmp_path)) == COUNTS


def test_a_workload_may_be_tallied(tmp_path: Path) -> None:
    with from_arrow(tmp_path) as records:
        tally = records.tally(Workload.all_up_to(DOMAIN, 2))
    assert tally.margins == (("sex",), ("age",), ("sex", "age"))
    assert tally.exact(["sex"]).tolist() == [3, 2]


def test_the_total_is_the_empty_margin(tmp_path: Path) -> None:
    with from_arrow(tmp_path) as records:
        assert records.tally([[]]).exact([]) == 5


def test_a_workload_of_another_domain_is_refused(tmp_path: Path) -> None:
    other = Domain({"sex": ["M", "F"], "age": ["0-14", "15-64", "65+"]})
    with from_arrow(tmp_path) as records, pytest.raises(InvalidWorkload, match="another domain"):
        records.tally(Workload.k_way(other, 1))


def test_a_margin_above_the_cap_is_refused(tmp_path: Path) -> None:
    with from_arrow(tmp_path) as records, pytest.raises(TooManyCells, match="6 cells"):
        records.tally([["sex", "age"]], max_cells=5)


def test_text_in_a_csv_file_keeps_its_leading_zeros(tmp_path: Path) -> None:
    domain = Domain({"code": ["01", "1"]})
    path = csv_file(tmp_path, "code\n01\n01\n1\n")
    assert counts_of(Records.from_file(path, domain)) == [2, 1]


def test_a_csv_file_may_have_a_byte_order_mark_quotes_and_another_delimiter(tmp_path: Path) -> None:
    domain = Domain({"job": ["cook; baker", 'the "boss"']})
    path = csv_file(tmp_path, '\ufeff"job";id\r\n"cook; baker";1\r\n"the ""boss""";2\r\n')
    assert counts_of(Records.from_csv(path, domain, delimiter=";")) == [1, 1]


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    path = csv_file(tmp_path, csv_text(ROWS), "it's [all] people*?.csv")
    assert counts_of(Records.from_file(path, DOMAIN)) == COUNTS


def test_columns_outside_the_domain_are_not_read(tmp_path: Path) -> None:
    table = pa.table({**ROWS, "list": [[1]] * 5, "id": [SECRET] * 5})
    pq.write_table(table, tmp_path / "people.parquet")
    assert counts_of(Records.from_file(tmp_path / "people.parquet", DOMAIN)) == COUNTS


def test_two_attributes_may_come_from_one_column() -> None:
    domain = Domain({"adult": ["0-17", "18+"], "old": ["0-64", "65+"]})
    codings = {"adult": Coding("age", bins=[0, 18]), "old": Coding("age", bins=[0, 65])}
    records = Records.from_arrow(pa.table({"age": [3, 20, 90]}), domain, codings)
    assert counts_of(records) == [[1, 0], [1, 1]]


def test_names_that_differ_in_case_are_different_columns(tmp_path: Path) -> None:
    domain = Domain({"sex": ["F", "M"]})
    table = pa.table([pa.array(["x", "x", "x"]), pa.array(["F", "M", "M"])], names=["SEX", "sex"])
    pq.write_table(table, tmp_path / "people.parquet")
    assert counts_of(Records.from_arrow(table, domain)) == [1, 2]
    assert counts_of(Records.from_file(tmp_path / "people.parquet", domain)) == [1, 2]
    assert counts_of(Records.from_csv(csv_file(tmp_path, "SEX,sex\nx,F\nx,M\nx,M\n"), domain)) == [1, 2]


@pytest.mark.parametrize(
    ("text", "error", "word"),
    [
        ("", UnreadableSource, "is empty"),
        ("sex,years\nF,3\n", InvalidColumn, "no column 'age'"),
        ("F,0-14\nM,65+\n", InvalidColumn, "no column 'sex', 'age'"),
        ("sex,age,sex\nF,0-14,M\n", InvalidColumn, "more than one column 'sex'"),
        ("sex,age\nF,0-14\nM,65+,x\n", UnreadableSource, "more or fewer fields"),
        ("sex,age\nF,0-14\nM\n", UnreadableSource, "more or fewer fields"),
        ('sex,age\nF,0-14\n"M,65+\n', UnreadableSource, "quote"),
        ('sex,age\nF,0-14\n"M"x,65+\n', UnreadableSource, "quote"),
    ],
)
def test_an_unsound_csv_file_is_refused_and_the_reason_told(
    text: str, error: type[ConfidentialError], word: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=word):
        Records.from_file(csv_file(tmp_path, text), DOMAIN)


def test_empty_fields_beyond_the_header_lose_nothing_and_are_passed_over(tmp_path: Path) -> None:
    path = csv_file(tmp_path, csv_text(ROWS).replace("65+", "65+,,"))
    assert counts_of(Records.from_csv(path, DOMAIN)) == COUNTS
    with pytest.raises(UnreadableSource, match="more or fewer fields"):
        Records.from_csv(csv_file(tmp_path, csv_text(ROWS).replace("65+", "65+,,x")), DOMAIN)


def test_a_csv_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"sex,age\nF,\xff\n")
    (tmp_path / "b.csv").write_bytes(b"sex,ag\xff\nF,0-14\n")
    for name in ("a.csv", "b.csv"):
        with pytest.raises(UnreadableSource, match="UTF-8"):
            Records.from_file(tmp_path / name, DOMAIN)


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    many = csv_text({name: column * 5000 for name, column in ROWS.items()})
    whole = csv_file(tmp_path, many, "people.csv.gz")
    whole.write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(UnreadableSource, match="gzip"):
        Records.from_file(whole, DOMAIN)
    pq.write_table(pa.table(ROWS), tmp_path / "people.parquet")
    half = tmp_path / "people.parquet"
    half.write_bytes(half.read_bytes()[:-40])
    with pytest.raises(UnreadableSource, match=r"people\.parquet"):
        Records.from_file(half, DOMAIN)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("people.xlsx", "has no known format"),
        ("absent.csv", "no file or folder"),
        ("*.json", "no file matches"),
        ("https://example.org/people.csv", "an address"),
        ("mixed", "not all of one format"),
        ("nested", "not a file"),
        ("hollow", "is empty"),
        ("strange", "has no known format"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused(path: str, word: str, tmp_path: Path) -> None:
    for folder in ("mixed", "nested/inner", "hollow", "strange"):
        (tmp_path / folder).mkdir(parents=True)
    csv_file(tmp_path, csv_text(ROWS), "people.xlsx")
    for file in ("mixed/a.csv", "mixed/b.parquet", "strange/a.csv", "strange/b.csv.zst"):
        (tmp_path / file).write_text(csv_text(ROWS))
    with pytest.raises(UnreadableSource, match=word):
        Records.from_file(path if "://" in path else str(tmp_path / path), DOMAIN)


def test_a_parquet_reader_refuses_csv_files(tmp_path: Path) -> None:
    csv_file(tmp_path, csv_text(ROWS), "a.csv")
    csv_file(tmp_path, csv_text(ROWS), "b.csv")
    with pytest.raises(UnreadableSource, match="not all Parquet"):
        Records.from_parquet(tmp_path, DOMAIN)


def test_a_doubled_column_is_refused_in_arrow_and_in_pandas() -> None:
    table = pa.table([pa.array(["F"])] * 3, names=["sex", "age", "sex"])
    with pytest.raises(InvalidColumn, match="more than one column 'sex'"):
        Records.from_arrow(table, DOMAIN)
    with pytest.raises(InvalidColumn, match="more than one column 'sex'"):
        Records.from_pandas(pd.DataFrame([["F", "0-14", "F"]], columns=["sex", "age", "sex"]), DOMAIN)


def test_a_column_without_text_is_refused() -> None:
    with pytest.raises(InvalidColumn, match="'age'"):
        Records.from_arrow(pa.table({"sex": ["F"], "age": [[1, 2]]}), DOMAIN)


def test_a_column_of_several_types_is_refused() -> None:
    with pytest.raises(InvalidColumn, match="'sex' of the frame has values of more than one type"):
        Records.from_pandas(pd.DataFrame({"sex": [1, SECRET], "age": ["0-14", "65+"]}, dtype=object), DOMAIN)


def test_a_polars_column_of_python_objects_is_refused() -> None:
    frame = pl.DataFrame({"sex": pl.Series([{SECRET}], dtype=pl.Object), "age": ["0-14"]})
    with pytest.raises(InvalidColumn, match="'sex'"):
        Records.from_polars(frame, DOMAIN)


def test_a_column_name_is_taken_literally() -> None:
    domain = Domain({"sex": ["F", "M"]})
    frame = {"^s.*$": ["F", "M", "M"], "sex": ["F", "F", "F"]}
    for source, data in (
        (Records.from_polars, pl.DataFrame(frame)),
        (Records.from_pandas, pd.DataFrame(frame)),
    ):
        assert counts_of(source(data, domain, {"sex": Coding("^s.*$")})) == [1, 2]


@pytest.mark.parametrize("source", [Records.from_arrow, Records.from_pandas, Records.from_polars])
def test_a_source_of_another_kind_is_refused(source: Callable[..., Records]) -> None:
    with pytest.raises(UnreadableSource, match="not a dict"):
        source(ROWS, DOMAIN)


def test_a_delimiter_of_two_characters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="one character"):
        Records.from_csv(csv_file(tmp_path, csv_text(ROWS)), DOMAIN, delimiter="||")


def test_a_domain_without_attributes_has_nothing_to_read() -> None:
    with pytest.raises(InvalidDomain, match="nothing to read"):
        Records.from_arrow(pa.table(ROWS), Domain({}))


def test_an_unknown_level_is_refused_with_the_columns_and_nothing_else() -> None:
    with pytest.raises(UnknownLevel, match=r"^column 'sex' holds a value outside") as one:
        Records.from_arrow(pa.table({**ROWS, "sex": ["F", "M", SECRET, SECRET, "M"]}), DOMAIN)
    assert str(one.value) == (
        "column 'sex' holds a value outside its domain ['F', 'M'] in at least one record. "
        'Add the level to the domain, or declare `unknown = "drop"` for that column.'
    )
    with pytest.raises(UnknownLevel, match=r"2 columns hold a value outside .*: 'sex', 'age'"):
        Records.from_arrow(pa.table({"sex": ["F", "x"], "age": ["x", "65+"]}), DOMAIN)


ZERO = Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15+"], "job": ["none", "paid"], "town": ["a", "b"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}, {"sex": "M", "town": "b"}],
)


def test_an_impossible_record_is_refused_with_its_structural_zero_even_outside_the_margins() -> None:
    rows = {"sex": ["F", "F"], "age": ["0-14", "15+"], "job": ["paid", "none"], "town": ["b", "a"]}
    with pytest.raises(ImpossibleRecord, match=r"impossible: age '0-14' with job 'paid'\. Nothing"):
        Records.from_arrow(pa.table(rows), ZERO)


def test_records_beside_the_structural_zeros_are_counted() -> None:
    rows = {"sex": ["F", "M"], "age": ["0-14", "15+"], "job": ["none", "paid"], "town": ["b", "a"]}
    assert counts_of(Records.from_arrow(pa.table(rows), ZERO), "age", "job") == [[1, 0], [0, 1]]


def test_a_dropped_record_is_not_impossible() -> None:
    rows = {"sex": ["?", "F"], "age": ["0-14", "15+"], "job": ["paid", "none"], "town": ["b", "a"]}
    records = Records.from_arrow(pa.table(rows), ZERO, {"sex": Coding(unknown="drop")})
    assert counts_of(records, "sex") == [1, 0]


def leaks(folder: Path) -> dict[str, Callable[[], object]]:
    """Sources whose trouble comes from a record that holds the secret."""
    good = csv_text(ROWS)
    bad = {
        "unknown": f"{good}{SECRET},0-14\n",
        "ragged": f"{good}F,0-14,{SECRET}\n",
        "quote": f'{good}"{SECRET},0-14\n',
        "beside": f'{good}"F"{SECRET},0-14\n',
        "headless": f"{SECRET},0-14\n",
        "header": f'"{SECRET}\n',
    }
    sources: dict[str, Callable[[], object]] = {
        name: (lambda text=text, name=name: Records.from_csv(csv_file(folder, text, f"{name}.csv"), DOMAIN))
        for name, text in bad.items()
    }
    mixed = pd.DataFrame({"sex": [1, SECRET], "age": ["0-14", "65+"]}, dtype=object)
    sources["pandas"] = lambda: Records.from_pandas(mixed, DOMAIN)
    table = pa.table({**ROWS, "sex": [SECRET] * 5})
    sources["arrow"] = lambda: Records.from_arrow(table, DOMAIN)
    binned = Coding("sex", bins=[0, 15, 65])
    sources["bins"] = lambda: Records.from_arrow(
        table, DOMAIN, {"sex": Coding(unknown="drop"), "age": binned}
    )
    (folder / "bytes.csv").write_bytes(good.encode() + f"{SECRET},\xff\n".encode("latin-1"))
    sources["bytes"] = lambda: Records.from_csv(folder / "bytes.csv", DOMAIN)
    return sources


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("unknown", "a value outside its domain"),
        ("ragged", "more or fewer fields than the header"),
        ("quote", "a quote is not closed"),
        ("beside", "there is text next to a quoted field"),
        ("headless", "has no column 'sex', 'age'"),
        ("header", "text with a header line"),
        ("pandas", "values of more than one type"),
        ("arrow", "a value outside its domain"),
        ("bins", "in none of the bins"),
        ("bytes", "it must be UTF-8 text"),
    ],
)
def test_no_error_tells_a_value_not_even_in_its_chain(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfidentialError, match=reason) as caught:
        leaks(tmp_path)[name]()
    error: BaseException | None = caught.value
    seen = []
    while error is not None:
        seen.append(f"{error!r} {error} {error.args}")
        error = error.__cause__ or error.__context__
    assert len(seen) == 1
    assert SECRET not in "".join(seen)


def test_what_is_printed_is_the_domain(tmp_path: Path) -> None:
    with from_arrow(tmp_path) as records:
        assert repr(records) == str(records) == f"{records:>50}" == "<Records of sex 2 × age 3>"


def test_records_are_not_copied_or_pickled(tmp_path: Path) -> None:
    with from_arrow(tmp_path) as records:
        for action in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="confidential"):
                action(records)


def test_closed_records_are_not_counted(tmp_path: Path) -> None:
    records = from_arrow(tmp_path)
    records.close()
    records.close()
    with pytest.raises(UnreadableSource, match="closed"):
        records.tally([["sex"]])


def test_nothing_of_the_records_is_left_on_disk(tmp_path: Path) -> None:
    # The records go to disk; the process ends in every way it can, and the temporary folder stays empty.
    program = """
import os, sys, tempfile
import pyarrow as pa
from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.confidential.records import Records
from tabulary.core.domain import Domain
engine = CompiledEngine(DuckDBReader.of_arrow(pa.table({"a": ["x"]})), Domain({"a": ["x"]}), memory_bytes=0)
records = Records(engine)
assert engine.store.on_disk
assert os.listdir(tempfile.gettempdir()) == []
match sys.argv[1]:
    case "close": records.close()
    case "error": raise SystemExit(3)
    case "killed": os.kill(os.getpid(), 9)
"""
    expected = {"close": 0, "exit": 0, "error": 3, "killed": -9}
    for ending, code in expected.items():
        ended = subprocess.run(
            [sys.executable, "-c", program, ending], env={"TMPDIR": str(tmp_path)}, capture_output=True
        )
        assert ended.returncode == code, ended.stderr.decode()
        assert list(tmp_path.iterdir()) == []


def test_the_garbage_collector_lets_go_of_the_records() -> None:
    engine = CompiledEngine(DuckDBReader.of_arrow(pa.table(ROWS)), DOMAIN)
    records, store = Records(engine), engine.store
    del engine, records
    gc.collect()
    with pytest.raises(UnreadableSource, match="closed"):
        next(store.read())


def test_progress_tells_hundredths_and_ends_at_all_of_them() -> None:
    told: list[tuple[str, int, int]] = []
    many = pa.table({"a": np.arange(200_000) % 3})
    with Records.from_arrow(many, Domain({"a": range(3)})) as records:
        records.tally([["a"]], progress=lambda *step: told.append(step))
    assert told[-1] == ("counting", 100, 100)
    assert all(0 <= done <= total == 100 for _, done, total in told)


def test_an_error_in_progress_stops_the_tally(tmp_path: Path) -> None:
    def fails(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with from_arrow(tmp_path) as records, pytest.raises(KeyboardInterrupt):
        records.tally([["sex"]], progress=fails)
