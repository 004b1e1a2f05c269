"""`tabulary compare`: what changed from one release to another, or between two groups of one."""

import csv
import json
import re

import numpy as np
import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.noise import ExactSampler
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
YEARS = {
    "town-2025": [[[300, 0], [200, 700], [250, 40]], [[310, 0], [120, 800], [240, 60]]],
    "town-2026": [[[290, 0], [180, 760], [390, 50]], [[312, 0], [118, 790], [250, 66]]],
}


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder = tmp_path_factory.mktemp("town")
    plan = tb.plan(DOMAIN, "[sex age job]", privacy=tb.PureDP(1), mechanism="residual", reconstruct="none")
    for seed, (name, counts) in enumerate(YEARS.items()):
        table = tb.Table(DOMAIN, np.array(counts))
        tb.release(table, plan, sampler=ExactSampler(SeededEntropy(seed))).save(folder / name)
    tb.Release.load(folder / "town-2025").rebuild().save(folder / "rebuilt-2025")
    (folder / "empty").mkdir()
    ages = tb.Domain({"sex": ["F", "M"], "age": ["0-17", "18+"]})
    other = tb.plan(ages, "[sex age]", privacy=tb.PureDP(1), mechanism="cells")
    tb.release(tb.Table(ages, np.full((2, 2), 500)), other).save(folder / "other-levels")
    return folder


@pytest.fixture
def said(town, capsys, monkeypatch):
    """What the command says; it must have this exit code."""
    monkeypatch.setattr("tabulary.cli.compare.output.width", 140)
    monkeypatch.chdir(town)

    def ask(*arguments, code=0):
        assert run(["compare", *arguments]) == code
        found = capsys.readouterr()
        return found.out if code == 0 else found.err

    return ask


def words(text):
    return " ".join(re.sub(r"[│┃━─┏┳┓┡╇┩├┼┤└┴┘]", " ", text).split())


def tables(town, *attributes):
    return [tb.Release.load(town / year)[attributes] for year in ("town-2026", "town-2025")]


def test_every_cell_of_a_table_is_shown_with_its_change_its_interval_and_a_verdict(said, town):
    text = words(said("town-2025", "town-2026", "sex", "age"))
    found = tb.infer.compare(*tables(town, "sex", "age"))
    assert "A: town-2025" in text
    assert "B: town-2026" in text
    for one, verdict in zip(found.compared, found.verdicts, strict=True):
        low, high = one.interval.lower, one.interval.upper
        assert re.search(rf"[+-]?{abs(round(one.estimate, 1)):,.1f}".rstrip("0").rstrip("."), text)
        assert f"{round(low, 1):,.1f}".rstrip("0").rstrip(".") in text
        assert f"{round(high, 1):,.1f}".rstrip("0").rstrip(".") in text
        assert verdict in text
    assert "clearly more" in found.verdicts
    assert (
        "The verdicts hold together: with 95% confidence none of them calls equal numbers different." in text
    )
    assert "“Not clear” does not mean equal" in text


def test_json_holds_the_same_numbers_and_what_they_are(said, town):
    found = json.loads(said("town-2025", "town-2026", "sex", "age", "--json"))
    expected = tb.infer.compare(*tables(town, "sex", "age"))
    assert [row["difference"] for row in found["rows"]] == [each.estimate for each in expected.compared]
    assert [row["verdict"] for row in found["rows"]] == list(expected.verdicts)
    assert found["rows"][0]["sex"] == "F"
    assert (found["confidence"], found["target"], found["verdicts"]) == (0.95, "records", "all rows together")
    assert found["a"] == tb.Release.load(town / "town-2025").digest


def test_a_file_is_written_once(said, town, tmp_path):
    file = tmp_path / "changes.csv"
    said("town-2025", "town-2026", "sex", "--ratio", "-o", str(file))
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert list(rows[0])[:4] == ["sex", "a", "b", "ratio"]
    assert "never overwritten" in words(said("town-2025", "town-2026", "sex", "-o", str(file), code=2))


def test_levels_are_added_up_even_if_one_has_a_plus_of_its_own(said, town):
    options = ["--where", "age=15-64+65+", "--per", "sex", "--json"]
    found = json.loads(said("town-2025", "town-2026", "sex", "age", *options))
    one, two = tables(town, "sex", "age")
    expected = tb.infer.difference(one, {"sex": "F", "age": ["15-64", "65+"]}, other=two, per=["sex"])
    assert [row["sex"] for row in found["rows"]] == ["F", "M"]
    assert found["rows"][0]["difference"] == expected.estimate
    assert found["rows"][0]["lower"] == expected.interval.lower


def test_percentages_are_shown_as_such(said):
    text = words(said("town-2025", "town-2026", "sex", "--percent"))
    assert re.search(r"5\d\.\d %", text)
    assert "Differences of percentages are in percentage points." in text


def test_two_groups_of_one_release_share_its_noise(said, town):
    asked = ["town-2026", "town-2026", "sex", "age", "--first", "sex=F", "--second", "sex=M"]
    found = json.loads(said(*asked, "--json"))
    (table, _) = tables(town, "sex", "age")
    expected = tb.infer.difference(table, {"sex": "M", "age": "0-14"}, {"sex": "F", "age": "0-14"})
    assert found["rows"][0]["difference"] == expected.estimate
    assert found["rows"][0]["upper"] == expected.interval.upper
    text = words(said(*asked))
    assert "A: sex F" in text
    assert "B: sex M" in text


def test_two_groups_share_their_noise_if_one_is_from_another_face_of_the_release(said):
    groups = ["sex", "age", "--first", "sex=F", "--second", "sex=M", "--json"]
    one, two = (
        json.loads(said("town-2025", after, *groups))["rows"] for after in ("town-2025", "rebuilt-2025")
    )
    assert one == two


def test_the_title_names_the_levels_that_were_added_up(said):
    text = words(said("town-2025", "town-2026", "sex", "age", "--where", "age=15-64+65+", "--per", "sex"))
    assert "sex, age 15-64+65+, from A to B" in text
    text = words(said("town-2025", "town-2026", "sex", "--where", "sex=F", "--percent", "--ratio"))
    assert "sex F, from A to B" in text
    assert "The verdict is right with 95% confidence." in text
    assert "percentage points" not in text
    assert "total, from A to B" in words(said("town-2025", "town-2026", "[]"))


def test_a_population_is_less_certain_than_its_records(said):
    asked = ["town-2025", "town-2026", "sex", "--json"]
    records, population = (json.loads(said(*asked, *more))["rows"][0] for more in ([], ["--population"]))
    assert population["lower"] < records["lower"] < records["upper"] < population["upper"]


def test_rows_can_be_judged_each_by_itself(said):
    together = json.loads(said("town-2025", "town-2026", "sex", "age", "--json"))
    each = json.loads(said("town-2025", "town-2026", "sex", "age", "--each", "--json"))
    clear = [sum(row["verdict"] != "not clear" for row in found["rows"]) for found in (together, each)]
    assert clear[0] <= clear[1]
    assert each["verdicts"] == "each row by itself"
    assert "some are wrong" in words(said("town-2025", "town-2026", "sex", "age", "--each"))


def test_an_impossible_cell_has_no_numbers(said):
    found = json.loads(said("town-2025", "town-2026", "age", "job", "--json"))
    row = next(row for row in found["rows"] if (row["age"], row["job"]) == ("0-14", "paid"))
    assert row["a"] is row["difference"] is row["verdict"] is None
    assert "–" in said("town-2025", "town-2026", "age", "job")


@pytest.mark.parametrize("more", [[], ["--ratio"], ["--percent"], ["--per", "sex", "--ratio"]])
def test_everything_fits_a_terminal(said, more, monkeypatch):
    monkeypatch.setattr("tabulary.cli.compare.output.width", 100)
    text = said("town-2025", "town-2026", "sex", "age", *more)
    assert max(map(len, text.splitlines())) <= 100
    assert "nan" not in text.lower().split()


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (["town-2025", "town-2025", "sex"], "A and B are the same release"),
        (["town-2025", "rebuilt-2025", "sex"], "two faces of it"),
        (["town-2025", "empty", "sex"], "the folder has no manifest.json"),
        (["town-2025", "other-levels", "age"], "the levels of 'age' differ"),
        (["town-2025", "town-2026", "sex", "--per", "age"], "no attribute 'age'"),
        (["town-2025", "town-2026", "height"], "height"),
        (["town-2025", "town-2026", "sex", "--where", "sex=X"], "the levels of sex are"),
        (["town-2025", "town-2026", "sex", "--where", "sex"], "write it as --where score=Medium+High"),
        (["town-2025", "town-2026", "sex", "--where", "hair=red"], "hair"),
        (["town-2025", "town-2026", "sex", "age", "--first", "sex=F"], "the same attributes"),
        (["town-2025", "town-2026", "sex", "--json", "-o", "x.csv"], "Leave one of them out"),
        (["town-2025", "town-2026", "sex", "--confidence", "2"], "confidence"),
        (["town-2025", "nowhere", "sex"], "nowhere"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(said, asked, reason):
    assert reason in words(said(*asked, code=2))
