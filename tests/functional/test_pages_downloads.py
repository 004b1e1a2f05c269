"""The files that a page offers: each is downloaded by a click, and read back by a reader that is not ours."""

import csv
import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyaxis import pyaxis
from pyjstat import pyjstat

from tabulary.release.writers import FORMATS
from tests.browsers import chromium_browser, window
from tests.builders import service
from tests.serving import served
from tests.workbooks import opened, read_cells, table_sheets

pytestmark = pytest.mark.slow

# A filter and a level that every format has to quote.
TABLE = "/datasets/census/table?rows=region&columns=sex&where=age:65%2B"
ASKED = "by=region&by=sex&where=age:65%2B"


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(service(tmp_path_factory.mktemp("builder"), only=("census",))) as answering:
        yield answering


def _csv(file):
    with Path(file).open(newline="", encoding="utf-8") as lines:
        return [(row["region"], row["sex"], float(row["count"])) for row in csv.DictReader(lines)]


def _xlsx(file):
    (sheet,) = table_sheets(opened(Path(file).read_bytes()))
    cells = [(cell.row[0], cell.column, cell.count.value) for cell in read_cells(sheet)]
    return [cell for cell in cells if "Total" not in cell]


def _parquet(file):
    return [(row["region"], row["sex"], row["count"]) for row in pq.read_table(file).to_pylist()]


def _json_stat(file):
    read = pyjstat.Dataset.read(Path(file).read_text(encoding="utf-8"))
    # It warns of a function that it calls itself.
    with pytest.warns(DeprecationWarning, match="Shouldn't use this function"):
        frame = read.write("dataframe", naming="id")
    measured = frame[frame["measure"] == "count"]
    return list(measured[["region", "sex", "value"]].itertuples(index=False, name=None))


def _sdmx_csv(file):
    frame = pd.read_csv(file)
    return list(frame[["REGION_LABEL", "SEX_LABEL", "OBS_VALUE"]].itertuples(index=False, name=None))


def _px(file):
    frame = pyaxis.parse(str(file), encoding="utf-8")["DATA"]
    measured = frame[frame["Measure"].str.lower() == "count"]
    # The format knows no quotation mark within a text.
    return [
        (row["region"].replace("'", '"'), row["Sex"], float(row["DATA"])) for _, row in measured.iterrows()
    ]


def _json(file):
    answer = json.loads(Path(file).read_text(encoding="utf-8"))
    region, sex = (each["levels"] for each in answer["variables"])
    places = [(r, s) for r in region for s in sex]
    return [(*place, count) for place, count in zip(places, answer["count"], strict=True)]


READERS = {
    "CSV": _csv,
    "Excel": _xlsx,
    "Parquet": _parquet,
    "JSON-stat 2.0": _json_stat,
    "SDMX-CSV 2.0": _sdmx_csv,
    "PX": _px,
    "JSON": _json,
}


def test_every_format_is_downloaded_by_a_click_and_holds_the_exact_numbers_with_their_labels(
    browser, address, tmp_path
):
    suffixes = {form.title: form.suffix for form in FORMATS.values()} | {"JSON": ".json"}
    assert set(READERS) == set(suffixes)
    with window(browser, address) as page:
        page.goto(TABLE)
        assert set(page.locator(".downloads a").all_inner_texts()) == set(READERS)
        answer = page.request.get(f"/api/datasets/census/tables?{ASKED}").json()
        region, sex = (each["levels"] for each in answer["variables"])
        for title, reader in READERS.items():
            with page.expect_download() as downloading:
                page.get_by_role("link", name=title, exact=True).click()
            # A name that a reader can tell apart, with the ending of its format.
            name = downloading.value.suggested_filename
            assert name.startswith("census"), title
            assert name.endswith(suffixes[title])
            downloading.value.save_as(tmp_path / name)
            read = reader(tmp_path / name)
            assert [cell[:2] for cell in read] == [(r, s) for r in region for s in sex], title
            assert [cell[2] for cell in read] == pytest.approx(answer["count"], rel=1e-14), title
        # The page is still there.
        assert page.get_by_role("table").is_visible()
