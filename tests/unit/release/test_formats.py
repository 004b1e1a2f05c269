import csv
import io
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.release.formats import (
    arrow_table,
    csv_bytes,
    expected_bytes,
    file_stems,
    parquet_bytes,
)
from tests.parquet_files import read_parquet
from tests.unit.release.releases import a_release

SAFE_NAME = re.compile(r"[a-z0-9_-]{1,120}")
printable = st.text(min_size=1, max_size=40).filter(lambda s: s.isprintable() and s == s.strip())
names = printable.filter(lambda s: not set(s) & set('[]",'))


@given(st.lists(st.lists(names, max_size=3, unique=True).map(tuple), max_size=12, unique=True))
def test_file_names_are_safe_and_never_shared_whatever_the_attributes_are_called(margins):
    stems = file_stems(margins)
    assert len(set(stems.values())) == len(margins)
    assert all(SAFE_NAME.fullmatch(stem) for stem in stems.values())


def test_ten_thousand_names_that_come_out_the_same_are_numbered_one_after_the_other():
    stems = list(file_stems([(name,) for name in map(chr, range(0x4E00, 0x4E00 + 10_000))]).values())
    assert stems[:3] == ["table", "table-2", "table-3"]
    assert stems[-1] == "table-10000"


def test_file_names_read_like_the_tables_they_hold():
    margins = [("sex", "age"), (), ("Größe",), ("../../etc/passwd",), ("nul",)]
    assert list(file_stems(margins).values()) == [
        "sex-by-age",
        "total",
        "groe",
        "etc-passwd",
        "nul-table",
    ]


def test_an_attribute_called_total_gives_way_to_the_total():
    assert file_stems([("total",), ()]) == {("total",): "total-2", (): "total"}


def test_names_that_look_alike_get_numbers():
    stems = file_stems([("a b",), ("a-b",), ("A-B",), ("a", "b"), ("a by b",)])
    assert list(stems.values()) == ["a-b", "a-b-2", "a-b-3", "a-by-b", "a-by-b-2"]


@given(st.lists(printable, min_size=1, max_size=5, unique=True))
def test_every_label_comes_back_from_csv_and_parquet(levels):
    release = a_release(Domain({"level": levels}), "[level]")
    arrow = arrow_table(release["level"], release.plan)
    rows = list(csv.DictReader(io.StringIO(csv_bytes(arrow).decode("utf-8"), newline="")))
    assert [row["level"] for row in rows] == levels
    assert [int(row["count"]) for row in rows] == release["level"].counts.tolist()
    assert read_parquet(parquet_bytes(arrow)).equals(arrow, check_metadata=True)


def test_csv_has_lines_that_end_in_a_line_feed_and_quotes_only_where_needed():
    release = a_release(work="[job]")
    lines = csv_bytes(arrow_table(release["job"], release.plan)).decode().split("\n")
    assert lines[0] == "job,count,standard_error,lower_95,upper_95"
    assert lines[1].startswith("none,")
    assert lines[2].startswith('"paid, or self",')
    assert lines[3] == ""


def test_parquet_says_what_it_is_in_its_own_metadata():
    release = a_release(work="[sex]")
    data = parquet_bytes(arrow_table(release["sex"], release.plan))
    about = json.loads(read_parquet(data).schema.metadata[b"tabulary"])
    assert about["margin"] == ["sex"]
    assert about["privacy"] == "ε = 1"
    assert about["plan"] == release.plan.digest()


def test_the_expected_size_is_enough_for_what_is_written(tmp_path):
    domain = Domain({"zone": [f"a rather long name of zone {i}" for i in range(300)], "sex": ["F", "M"]})
    for number, work in enumerate(["[sex]", "[zone]", "[zone sex]", "[zone][sex][zone sex]"]):
        release = a_release(domain, work, mechanism="margins")
        release.save(tmp_path / str(number))
        written = sum(p.stat().st_size for p in (tmp_path / str(number)).rglob("*") if p.is_file())
        assert written <= expected_bytes(release.plan)
