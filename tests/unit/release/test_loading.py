import re

import pandas as pd
import pytest

from tabulary.core.domain import Domain
from tabulary.release.loading import snippets
from tests.unit.release.releases import PEOPLE, a_release

# Labels and names that a careless reader of the file would spoil.
AWKWARD = Domain(
    {"it's a 'count'": ["NA", "01"], "count": ["None", "true, or not"], "größe \\ $x": ["é", "ü"]}
)
AWKWARD_WORK = """["it's a 'count'" count][count "größe \\ $x"]"""


def in_folder(release, tmp_path, monkeypatch):
    release.save(tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    return snippets(release.margins)


@pytest.mark.parametrize(
    ("domain", "margins"),
    [
        (PEOPLE, "[sex][age job][sex age job]"),
        (PEOPLE, "[sex]"),
        (PEOPLE, "[]"),
        (PEOPLE, "[sex age job]"),
        (AWKWARD, AWKWARD_WORK),
    ],
)
def test_every_piece_of_python_runs_as_it_stands_and_reads_the_same_table(
    domain, margins, tmp_path, monkeypatch
):
    release = a_release(domain, margins, mechanism="margins")
    frames = []
    for piece in in_folder(release, tmp_path, monkeypatch):
        if piece.language == "python":
            names = {}
            exec(compile(piece.code, piece.title, "exec"), names)
            frame = names.get("frame", names["table"])
            frames.append(frame.astype(dict.fromkeys(frame.columns[:-4], str)))
    assert len(frames) == 3
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0], check_dtype=False, check_index_type=False)
    # A label is never a missing value, and keeps its zeros.
    assert not frames[1].isna().any().any()


def test_every_piece_of_r_names_the_files_and_the_columns_that_there_are(tmp_path, monkeypatch):
    release = a_release(mechanism="margins")
    from_csv, from_parquet = (p.code for p in in_folder(release, tmp_path, monkeypatch) if p.language == "r")
    (file,) = re.findall(r'"(tables/[^"]*\.csv)"', from_csv)
    columns = pd.read_csv(file).columns
    classes = re.search(r"colClasses = c\(([^)]*)\)", from_csv)[1].split(", ")
    assert classes == ['"character"'] * (len(columns) - 4) + ['"numeric"'] * 4
    assert re.search(r'\[\["(\w+)"\]\]', from_csv)[1] in columns
    (file,) = re.findall(r'read_parquet\("([^"]*)"\)', from_parquet)
    columns = pd.read_parquet(file).columns
    for left, right in re.findall(r"xtabs\((\S+) ~ (.*), data", from_parquet):
        assert {left, *right.split(" + ")} <= set(columns)


def test_the_total_by_itself_is_shown_as_it_is_for_r_has_no_cross_table_of_nothing():
    code = snippets([()])[-1].code
    assert code.splitlines()[1:] == ["table$count", "table$standard_error"]
    assert "xtabs" not in code
    # A column that gave way to an attribute of its name is another one, and there is none here.
    assert "xtabs(count_ ~ count, data = table)" in snippets([("count",)])[-1].code


@pytest.mark.parametrize("linear", [True, False])
def test_what_noise_puts_above_zero_is_said_of_unadjusted_tables_only(linear):
    code = " ".join(piece.code for piece in snippets([("sex",)], linear=linear))
    assert code.count("# intervals above zero") == 2
    assert code.count("noise alone puts up to one empty cell in forty here") == (2 if linear else 0)
    assert "does not explain" not in code


def test_names_that_r_would_misread_stand_between_backticks():
    code = snippets([("birth country", "next")])[-1].code
    assert "xtabs(count ~ `birth country` + `next`, data = table)" in code


def test_the_table_that_is_read_is_one_of_two_attributes_if_there_is_one():
    assert "tables/age-by-job" in snippets([("sex",), ("age", "job"), ("sex", "age")])[1].code
    assert "tables/sex.csv" in snippets([("sex",)])[1].code
