"""`tabulary.studies.own_data`: what its numbers come to, and what its page says of them."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import StudyError
from tabulary.studies.own_data import PlanStudy
from tabulary.studies.own_data.charts import table_figures
from tabulary.studies.own_data.findings import Band, Findings, band_chance, people
from tabulary.studies.own_data.grid import Asked
from tabulary.studies.own_data.work import trials
from tabulary.studies.running import gathered, run
from tabulary.studies.study import Lab
from tests.own_plans import COUNTS, compared_once, leave_undrawn, sheet, words, write_people, write_plan

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def compared():
    with compared_once():
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own-data")
    write_people(folder)
    return folder


@pytest.fixture(scope="module")
def planned(place):
    return write_plan(place)


@pytest.fixture(scope="module")
def done(place, planned):
    """The quick grid with a margin that is summed, a model of each kind and two tests: the study and its folder."""
    study = PlanStudy.of(
        planned,
        quick=True,
        margins=["[sex age]", "[job]"],
        models=["[age][job]", "[sex age][age job]"],
        tests=["[age job]", "[sex age]"],
    )
    with pytest.MonkeyPatch.context() as patched:
        leave_undrawn(patched, svg=True)
        run(study, place / "quick", processes=1)
    return study, place / "quick"


def sheets_of(folder):
    lines = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return gathered(json.loads(line)["sheets"] for line in lines)


def test_the_quick_grid_has_three_amounts_two_mechanisms_and_three_repetitions(done):
    study, folder = done
    rows = sheet(folder, "all")
    assert sorted(rows["epsilon"].unique()) == [0.25, 1, 4]
    assert set(rows["mechanism"]) == {each.name for each in study.series}
    assert (study.series[0].name, len(study.series)) == ("margins", 2)
    assert len(rows) == 3 * 2 * 3
    assert len(sheet(folder, "tables")) == 2 * len(rows)
    assert len(sheet(folder, "models")) == 2 * len(rows)
    assert len(sheet(folder, "tests")) == 2 * len(rows)


def test_the_page_says_what_was_found_and_marks_the_amount_of_the_plan(done):
    _, folder = done
    said = words(folder)
    assert "At ε = 1, the plan's own amount, a count published by margins, the plan's own mechanism" in said
    assert (
        "The largest relative error among the cells with at least 1 % of the people is at most 10 %" in said
    )
    for stem in ("errors", "shares", "each-table", "models", "decisions", "association"):
        drawn = (folder / "figures" / f"{stem}.svg").read_text()
        assert "ε of the plan" in drawn, stem
        assert "margins (the plan's)" in drawn, stem
        assert "CONFIDENTIAL: " in drawn, stem
    assert "expected by the plan alone" in (folder / "figures" / "errors.svg").read_text()


def test_root_mean_squares_stand_beside_what_is_expected(done):
    study, folder = done
    rows = sheet(folder, "all").query("mechanism == 'margins' and epsilon == 1")
    measured = np.sqrt((rows["rmse"] ** 2).mean())
    # Laplace noise of scale 2 has a variance of about 8; in the jobs it is that of three cells.
    expected = Findings(sheets_of(folder), tb.PureDP(1)).expected(study.series[0], tb.PureDP(1))
    assert expected == pytest.approx(np.sqrt((6 * 8 + 3 * 24) / 9), rel=0.03)
    assert (
        f"is off by {people(measured)} people: the root mean square over the cells of all 2 tables together and over "
        f"3 repetitions. The plan alone, without data, expects {people(expected)}."
    ) in words(folder)
    (table,) = (folder / "tables").glob("01-*.csv")
    heads, first, *_ = [line.split(",") for line in table.read_text().splitlines()]
    assert heads[:3] == ["mechanism", "RMSE", "expected"]
    assert first[:3] == ["margins (the plan's)", people(measured), people(expected)]
    drawn = (folder / "figures" / "errors.svg").read_text()
    assert "All tables, root mean square of the repetitions" in drawn
    assert "All tables, expected by the plan alone" in drawn


def test_the_root_mean_square_and_the_worst_table_are_what_one_reckons_by_hand(done):
    study, _ = done
    series, at = study.series[0], {"mechanism": study.series[0].name, "epsilon": 1.0}
    errors = {"[sex age]": (1.0, 7.0), "[job]": (5.0, 4.9)}
    tables = [{**at, "table": name, "rmse": each} for name, both in errors.items() for each in both]
    found = Findings({"all": [{**at, "rmse": 3.0}, {**at, "rmse": 4.0}], "tables": tables}, tb.PureDP(1))
    assert found.rmse(series, tb.PureDP(1)) == pytest.approx(np.sqrt(12.5))
    assert found.band("all", "rmse", series, tb.PureDP(1)) == Band(3.0, 3.5, 4.0)
    # Its median is the smaller one.
    assert found.worst_table(series, tb.PureDP(1), errors) == ("[sex age]", pytest.approx(5.0))
    assert found.rmse(series, tb.PureDP(2)) is None
    assert found.worst_table(series, tb.PureDP(2), errors) is None


REPETITIONS = 1_000


def measured_and_expected(planned, epsilon):
    """The sheets of many repetitions of the plan's own mechanism, with tables of each kind."""
    study = PlanStudy.of(planned, epsilons=[epsilon], mechanisms=["margins"], margins=["[sex age]", "[job]"])
    (series,) = study.series
    lab = Lab(1, ("risk-utility", "a test"), study.material())
    sheets = trials(lab, Asked.of(planned), series, tb.PureDP(epsilon), study.measures, REPETITIONS)
    return Findings(sheets, tb.PureDP(1)), series


def test_the_measured_error_of_a_linear_mechanism_is_the_expected_one_and_a_wrong_scale_is_found(planned):
    found, series = measured_and_expected(planned, 1)
    expected = found.expected(series, tb.PureDP(1))
    # The variance of a squared Laplace draw is five times its mean squared; the jobs weigh most, and are three.
    tolerance = 4 * np.sqrt(5 / (3 * REPETITIONS))

    def agrees(measured):
        return abs((measured / expected) ** 2 - 1) < tolerance

    assert agrees(found.rmse(series, tb.PureDP(1)))
    for scale in ("0.7", "1.3"):
        sabotaged = tb.PureDP(1 / Fraction(scale))
        other, _ = measured_and_expected(planned, sabotaged.epsilon)
        assert not agrees(other.rmse(series, sabotaged)), scale
    for name in ("[sex age]", "[job]"):
        (row,) = found.rows("expected", series, tb.PureDP(1), name)
        assert abs((found.rmse(series, tb.PureDP(1), name) / row["rmse"]) ** 2 - 1) < tolerance


def test_more_epsilon_is_less_error(done):
    study, folder = done
    for measure in ("rmse", "worst_rmse", "l1_share", "largest_relative_error"):
        medians = sheet(folder, "all").groupby(["mechanism", "epsilon"])[measure].median()
        for series in study.series:
            assert medians[series.name].is_monotonic_decreasing, (series.name, measure)


def test_a_confidential_study_says_so_and_is_for_its_owner_alone(done):
    study, folder = done
    assert study.confidential
    page = (folder / "index.html").read_text()
    assert "<strong>CONFIDENTIAL</strong>" in page
    assert "Nothing was released and no ledger was debited" in page
    assert "depends on the records, and the promise of the release" in words(folder)
    assert folder.stat().st_mode & 0o077 == 0


def test_no_file_of_a_study_holds_an_exact_count(done):
    _, folder = done
    exact = {int(COUNTS.sum())}
    for kept in ((0, 1), (1, 2), (0,), (1,), (2,), (0, 1, 2)):
        others = tuple(axis for axis in range(3) if axis not in kept)
        exact |= set(COUNTS.sum(axis=others).reshape(-1).tolist())
    # The smallest would be found in the coordinates of any picture.
    exact = {count for count in exact if count > 999}
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".png"]
    assert len(files) > 10
    for file in files:
        numbers = set(re.findall(r"(?<![\w.+/])\d[\d,]*(?![\w+/])", file.read_text(encoding="utf-8")))
        found = {int(number.replace(",", "")) for number in numbers} & exact
        assert not found, file


def test_the_people_can_be_counted_from_the_numbers_and_the_seed_as_the_page_warns(done):
    """Why rounding or the like protects nobody: the noise is known, and so is its share of the people."""
    study, folder = done
    series, own = study.series[0], tb.PureDP(1)
    (key,) = (task.key for task in study.tasks() if task.arguments[1:3] == (series, own))
    nobody = {margin: np.zeros_like(counted) for margin, counted in study.material().items()}
    lab = Lab(1, (study.name, key), nobody)
    noise = trials(lab, Asked.of(study.planned), series, own, study.measures, 1)["all"][0]["l1_share"]
    written = sheet(folder, "all").query("mechanism == 'margins' and epsilon == 1 and repetition == 1")
    assert noise / written["l1_share"].item() == pytest.approx(COUNTS.sum(), abs=0.5)
    assert "the counts can be worked out from the numbers" in words(folder)


def test_a_folder_of_another_plan_is_not_gone_on_with(done):
    study, folder = done
    with pytest.raises(StudyError, match="differs in its settings"):
        run(replace(study, repetitions=4), folder, processes=1)


def test_tests_and_models_stand_on_the_page(done):
    _, folder = done
    said = words(folder)
    assert "On the counts, independence in [age job] is rejected." in said
    assert "On the counts, independence in [sex age] is not rejected." in said
    assert "No table of the plan holds all attributes of [sex age][age job]" in said
    assert "cannot answer this plan:" not in said


# Bands


@pytest.mark.parametrize("repetitions", [3, 9, 20])
def test_a_release_lies_in_the_band_as_often_as_the_page_says(repetitions):
    draws = np.random.default_rng(1).laplace(size=(4_000, repetitions + 1)) ** 2
    release, others = draws[:, 0], draws[:, 1:]
    bands = [Band.of(each.tolist()) for each in others]
    inside = np.mean([band.low <= one <= band.high for band, one in zip(bands, release, strict=True)])
    assert inside == pytest.approx(band_chance(repetitions), abs=4 * np.sqrt(0.25 / 4_000))
    # The usual percentiles are too narrow, and this finds it.
    low, high = np.quantile(others, [0.1, 0.9], axis=1)
    assert np.mean((low <= release) & (release <= high)) < band_chance(repetitions) - 0.05


def test_few_repetitions_are_called_what_they_are(done):
    study, folder = done
    said = words(folder)
    assert "percentile" not in said
    assert "median of the repetitions, in brackets the smallest to the largest of 3" in said
    assert "its error lies in the band in 50 % of all cases, with 9 repetitions or more in 80 %" in said
    drawn = (folder / "figures" / "errors.svg").read_text()
    assert "band from the smallest to the largest of 3" in drawn
    sections = replace(study, repetitions=9).report(sheets_of(folder))
    more = " ".join([text for section in sections for text in section.words])
    more += " ".join(summary.note for section in sections for summary in section.summaries)
    more += " ".join(figure.caption for section in sections for figure in section.figures)
    assert "smallest to the largest" not in more
    assert "its error lies in the band in 80 % of all cases." in more
    assert more.count("the 10th to the 90th percentile") >= 8


def test_every_band_is_drawn_whole(done):
    study, folder = done
    found = Findings(sheets_of(folder), tb.PureDP(1))
    figure = next(each for each in table_figures(study, found) if each.stem == "errors")
    bands = [found.band("all", "rmse", series, privacy) for series in study.series for privacy in study.grid]
    panel = figure.chart.to_dict()["concat"][0]
    assert [row["low"] for row in panel["data"]["values"]] == [band.low for band in bands]
    begins = {
        layer["encoding"]["y"]["scale"]["domain"][0]
        for layer in panel["layer"]
        if "scale" in layer["encoding"].get("y", {})
    }
    assert max(begins) < min(band.low for band in bands)


# Many tables, and what is not told


class Counted(list):
    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


def test_the_rows_are_gone_through_once_however_many_tables_there_are(done):
    study, _ = done
    names = [f"[a{number} b]" for number in range(50)]
    rows = Counted(
        {"mechanism": series.name, "epsilon": float(privacy.epsilon), "table": name, "rmse": 1.0}
        for series in study.series
        for privacy in study.grid
        for name in names
        for _ in range(2)
    )
    rows.passes = 0
    found = Findings({"tables": rows}, tb.PureDP(1))
    for series in study.series:
        for name in names:
            assert len(found.rows("tables", series, tb.PureDP(1), name)) == 2
            assert found.band("tables", "rmse", series, tb.PureDP(4), name) == Band(1.0, 1.0, 1.0)
    assert len(found.rows("tables", study.series[0], tb.PureDP(1))) == 2 * len(names)
    assert rows.passes == 1


@pytest.mark.parametrize(("margin", "told"), [("[job]", False), ("[sex age]", True)])
def test_what_a_plan_does_not_expect_is_explained(margin, told, planned, tmp_path, monkeypatch):
    leave_undrawn(monkeypatch)
    study = PlanStudy.of(planned, epsilons=[1], mechanisms=["shrunk"], margins=[margin], repetitions=2)
    run(study, tmp_path / "out", processes=1)
    said = words(tmp_path / "out")
    assert ("The plan alone, without data, expects" in said) == told
    assert ("the model of shrunk tables speaks of the tables that the plan publishes" in said) != told
