import os
import re
import shutil
import subprocess

import pandas as pd
import pytest

from tabulary.core.domain import Domain
from tabulary.release.loading import snippets
from tabulary.release.table import column_names
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


@pytest.mark.parametrize(
    ("domain", "margins"),
    [
        (PEOPLE, "[sex][age job]"),
        (PEOPLE, "[sex]"),
        (PEOPLE, "[]"),
        (AWKWARD, AWKWARD_WORK),
        (AWKWARD, '[count "größe \\ $x"]'),
    ],
)
def test_r_reads_what_pandas_reads_and_shows_the_same_counts(domain, margins, tmp_path, monkeypatch):
    release = a_release(domain, margins, mechanism="margins")
    pieces = in_folder(release, tmp_path, monkeypatch)
    from_csv, from_parquet = (piece.code for piece in pieces if piece.language == "r")
    reading, _, above = from_csv.rpartition("\n")
    # R's arrow is in few systems' packages; what is done with the table is the same for both.
    shown = from_parquet.partition("\n")[2].splitlines()
    wanted = [f"nrow({above.partition('  #')[0]})", *(f"sum({line})" for line in shown)]
    said = r_says(
        f"{reading}\nwrite.csv(table, 'read.csv', row.names = FALSE)\n"
        + "\n".join(f"cat({each}, '\\n')" for each in wanted)
    )
    margin = next((m for m in release.margins if len(m) == 2), release.margins[0])
    columns = [*margin, *column_names(margin)]
    read = pd.read_csv("read.csv", dtype=dict.fromkeys(margin, str), keep_default_na=False)
    expected = release[margin].to_pandas().astype(dict.fromkeys(margin, str))
    assert list(read.columns) == columns
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)
    above_zero = (expected[columns[-2]] > 0).sum()
    totals = [expected[column].sum() for column in columns[-4:-2]]
    assert [float(line) for line in said.splitlines()] == pytest.approx([above_zero, *totals], rel=1e-5)


def r_says(code):
    """Return what R prints for a piece of code, in the folder of the release."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip(
            "no Rscript, and what R is told is run by R. Install it: sudo apt-get install --yes r-base-core"
        )
    told = subprocess.run(
        [program, "--vanilla", "-"],
        input=code,
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


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
