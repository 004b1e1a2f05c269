"""The workbook of a release in LibreOffice: it opens without a warning and prints on A4, with labels of real length."""

import re

import numpy as np
import pytest

import tabulary as tb
from tabulary.core.labels import Labels, VariableLabels
from tests.offices import page_sizes, pages, printed

pytestmark = pytest.mark.slow

AREAS = {
    "17-03529": "Chicago City (South)--South Shore, Hyde Park, Woodlawn, Grand Boulevard & Douglas",
    "25-00503": "Middlesex County--Waltham City, Lexington, Burlington, Bedford & Lincoln Towns",
    "48-02507": "Tarrant County (East)--Arlington City (West)--South of I-30 & East of Loop I-820",
    "36-03710": "NYC-Bronx Community District 1 & 2--Hunts Point, Longwood & Melrose",
    "48-02101": "Ellis County",
    **{f"99-{number:05}": f"Area number {number} of many others in the north-east" for number in range(30)},
}
RACES = {
    "1": "White alone",
    "5": "American Indian and Alaska Native tribes specified; or American Indian or Alaska Native, not specified "
    "and no other races",
    "7": "=Two or More Races",
}
TITLE = "Survey 2026: people & places"


@pytest.fixture(scope="module")
def release():
    domain = tb.Domain(
        {"area": list(AREAS), "race": list(RACES), "sex": ["F", "M"]},
        structural_zeros=[{"area": "48-02101", "race": "5"}],
    )
    plan = tb.plan(domain, "[area race][area race sex][sex]", privacy=tb.PureDP(1))
    possible = ~domain.impossible(domain.attributes)
    counts = (np.arange(domain.size).reshape(domain.shape) * 7 % 400) * possible
    labels = Labels(
        title=TITLE,
        source="A survey of nobody",
        unit="persons",
        variables={
            "area": VariableLabels("Public use microdata area", levels=AREAS),
            "race": VariableLabels("Race", levels=RACES, notes=("As people call themselves.",)),
            "sex": VariableLabels("Sex", levels={"F": "Women", "M": "Men"}),
        },
    )
    return tb.release(tb.Table(domain, counts), plan, labels=labels)


@pytest.fixture(scope="module", params=["below", "beside"])
def paper(request, release, tmp_path_factory):
    folder = tmp_path_factory.mktemp("office")
    release.save(folder / "out", formats=["xlsx"], errors=request.param)
    return printed(folder / "out/tables.xlsx", folder)


def test_every_page_is_a4_and_says_what_it_is_and_where_it_stands(paper):
    texts = pages(paper)
    assert set(page_sizes(paper)) <= {(210, 297), (297, 210)}
    for number, text in enumerate(texts, start=1):
        assert TITLE in text
        assert f"{number} / {len(texts)}" in text


def test_a_table_of_thirty_five_areas_takes_two_pages_and_one_in_blocks_a_few(paper):
    starts = [number for number, text in enumerate(pages(paper)) if re.search(r"Table \d\. ", text)]
    first, second, third = starts[-3:]
    assert second - first <= 2
    assert third - second <= 12
    assert len(pages(paper)) - third in (2, 3)


def test_the_paper_holds_every_label_every_total_and_every_sign(paper, release):
    text = "\n".join(pages(paper))
    words = " ".join(text.split())
    # A folded label goes on in the next line, between numbers: each of its words is there.
    for label in (*AREAS.values(), *RACES.values(), "Women", "Men", "Total"):
        assert all(word in words for word in label.split())
    for table in (release["area"], release["race"], release[()]):
        for count in np.atleast_1d(table.counts).reshape(-1).tolist():
            assert f"{count:,}" in words
    assert "±" in words
    assert "–" in words
    assert "As people call themselves." in words
    assert "What is not promised" in words
    assert "####" not in text


def test_the_header_of_a_table_stands_on_each_of_its_pages(paper):
    texts = pages(paper)
    second = next(n for n, text in enumerate(texts) if "Table 2. " in text)
    third = next(n for n, text in enumerate(texts) if "Table 3. " in text)
    for text in texts[second:third]:
        assert re.search(r"Women\s+Men\s+Total", text) or "White" in text


def test_no_page_ends_between_a_number_and_its_half_width(paper):
    for text in pages(paper):
        # Neither the header of the table nor a label that is folded into the next line has digits.
        numbers = [
            re.sub(r"\D*(Area number \d+|I-\d+|District \d+ & \d+)", "", line) for line in text.splitlines()
        ]
        rows = [line for line in numbers if re.search(r"\d\s*$", line) and " / " not in line]
        if rows:
            assert not rows[0].strip().startswith("±")


def test_a_workbook_that_an_office_cannot_open_is_noticed(release, tmp_path):
    release.save(tmp_path / "out", formats=["xlsx"])
    whole = (tmp_path / "out/tables.xlsx").read_bytes()
    (tmp_path / "broken.xlsx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AssertionError, match="could not be loaded"):
        printed(tmp_path / "broken.xlsx", tmp_path)
