"""`tabulary study noise-aware-tests`: Table 3 and Figure 4 of Rinott et al. (2018)."""

import re

import pytest

from tabulary.errors import InvalidArgument, NotCertified
from tabulary.studies.proportion import rejected
from tabulary.studies.running import gathered
from tabulary.studies.selecting import chosen, distinct, numbers
from tabulary.studies.study import Lab
from tabulary_papers.noise_aware_tests import NoiseAwareTests, study
from tabulary_papers.noise_aware_tests.printed import DELTAS, DEPENDENT, INDEPENDENT, NAIVE, RATIO, WEAKLY
from tabulary_papers.noise_aware_tests.report import drawn_point, exact_point
from tabulary_papers.noise_aware_tests.study import COLUMNS, MATCHED

QUICK = NoiseAwareTests.quick()


@pytest.fixture(scope="module")
def sheets():
    return gathered(task.work(Lab(1, (QUICK.name, task.key)), *task.arguments) for task in QUICK.tasks())


@pytest.fixture(scope="module")
def sections(sheets):
    return QUICK.report(sheets)


def test_the_full_study_is_that_of_the_paper_in_pieces_of_fifty_tables():
    full = NoiseAwareTests()
    assert (full.repetitions, full.draws) == (1_000, 500)
    tasks = full.tasks()
    assert len({task.key for task in tasks}) == len(tasks)
    # Four noises for three kinds of tables, and once large counts.
    assert len(tasks) == (4 * 3 + 1) * 20 + 2 + 1
    assert study.SHAPE == (10, 10)
    assert study.LEVEL == 4
    assert study.INTERACTIONS == {INDEPENDENT: 0.0, WEAKLY: 0.31, DEPENDENT: 0.7}


def test_every_table_has_its_statistics_before_and_after_the_noise(sheets):
    rows = sheets["tests"]
    assert len(rows) == 13 * QUICK.repetitions
    assert len(distinct(rows, "original_statistic")) == len(rows)
    for row in rows:
        assert row["ratio_statistic"] > 0
        assert 0 <= row["matched_p"] <= 1
    assert distinct(rows, "level") == [(4.0,), (5.9,)]


def test_the_level_is_lost_by_who_does_not_know_the_noise(sheets):
    rows = chosen(sheets["tests"], epsilon="0.1", bound=10, attributes=INDEPENDENT, level=4.0)
    rates = {test: rejected(rows, p_value).rate for test, (p_value, _) in COLUMNS.items()}
    assert rates[NAIVE] >= 0.5
    assert rates[RATIO] <= 0.4
    assert rates[MATCHED] <= 0.4


def test_the_stated_interaction_gives_another_statistic_than_the_printed_one(sheets):
    rows = sheets["tests"]
    means = {
        kind: sum(values) / len(values)
        for kind in (WEAKLY, DEPENDENT)
        for values in [numbers(rows, "original_statistic", attributes=kind)]
    }
    assert means[WEAKLY] == pytest.approx(119, abs=12)
    assert means[DEPENDENT] > 240


def test_draws_of_one_count_agree_with_their_exact_law(sheets):
    assert sum(numbers(sheets["one-count-law"], "probability", bound=5)) == pytest.approx(1)
    assert sum(numbers(sheets["one-count-law"], "probability", bound=0)) == pytest.approx(1)
    for bound in (5, 10):
        drawn = drawn_point(sheets, bound)
        exact = exact_point(sheets, bound, drawn.critical)
        # A share of 200 draws is off by more than four standard errors once in ten thousand times.
        assert drawn.level == pytest.approx(exact.level, abs=4 * (0.05 * 0.95 / QUICK.draws) ** 0.5)
        assert drawn.power == pytest.approx(exact.power, abs=4 * (0.9 * 0.1 / QUICK.draws) ** 0.5)


def test_the_least_critical_value_keeps_the_level_and_the_next_smaller_one_does_not(sheets):
    exact = exact_point(sheets, 5)
    assert exact.level <= 0.05 + 1e-12
    under = sorted(set(numbers(chosen(sheets["one-count-law"], bound=5), "statistic_0.5")))
    below = max(value for value in under if value < exact.critical - 1e-6)
    assert exact_point(sheets, 5, below).level > 0.05


def test_the_page_has_every_printed_number_beside_ours(sections):
    [section] = [section for section in sections if section.title.startswith("Table 3")]
    independent, weak, stated, deltas = section.summaries
    assert [len(table.rows) for table in (independent, weak, stated)] == [16] * 3
    assert independent.rows[1][0] == "0.1, 10: naive"
    assert independent.rows[1][2::2] == ("86.7%", "124.5 (0.616)", "0.027 (0.002)")
    assert weak.rows[1][2::2] == stated.rows[1][2::2] == ("99.6%", "162.1 (0.792)", "0.001 (0.000)")
    # The package's own p-value is not the paper's.
    assert independent.rows[3][2::2] == ("–", "–", "–")
    assert [row[1:] for row in deltas.rows] == [(printed, printed) for printed in DELTAS.values()]


def test_the_first_words_say_what_agrees(sections):
    text = " ".join(sections[0].words)
    assert "of independent tables" in text
    assert "with the interaction 0.7 that the paper states" in text
    assert "was chosen to give the statistic that is printed" in text
    assert "(printed: 0.12)" in text
    assert "Figure 4 at m = 5" in text
    assert "The exact level at the printed value is 0.054, and the power 0.936 (printed: 0.95)" in text


def test_figures_are_drawn_with_the_exact_law_and_the_printed_shares(sections):
    figures = {figure.stem: figure.chart.to_dict() for section in sections for figure in section.figures}
    assert list(figures) == ["table-3", "figure-4"]
    panels = figures["table-3"]["hconcat"]
    assert [len(panel["layer"][3]["data"]["values"]) for panel in panels] == [12, 12, 12]
    assert len(figures["figure-4"]["concat"]) == 4
    for panel in figures["figure-4"]["concat"]:
        rows = panel["layer"][0]["data"]["values"]
        assert sum(row["draws"] for row in rows) == pytest.approx(1)
        assert sum(row["exact"] for row in rows) == pytest.approx(1)


def test_a_fit_that_fails_is_no_verdict_and_is_told(monkeypatch, sheets):
    def fails(table, method="noise-aware"):
        if method == "naive":
            return independence(table, method)
        raise NotCertified("no")

    independence = study.independence
    monkeypatch.setattr(study, "independence", fails)
    found = study.tested_tables(Lab(1, ("x",)), "0.1", 10, INDEPENDENT, 4.0, 0, 2)["tests"]
    assert [row["matched_p"] for row in found] == [None, None]
    told = QUICK.report({**sheets, "tests": [*found, *sheets["tests"]]})
    assert "The fit did not converge for 2 of 122 tables." in " ".join(told[1].words)


NO_FIT = {"ratio_statistic": None, "ratio_p": None, "matched_p": None}


def test_a_design_whose_fits_all_failed_has_no_share_and_no_point(sheets):
    lost = {"epsilon": "0.1", "bound": 10, "level": 4.0}
    failed = chosen(sheets["tests"], **lost)
    rows = [{**row, **NO_FIT} if row in failed else row for row in sheets["tests"]]
    told = QUICK.report({**sheets, "tests": rows})
    assert "The fit did not converge for 30 of 120 tables." in " ".join(told[1].words)
    for table in told[1].summaries[:3]:
        # The lines of a design are the test before the noise, the naive one, and two that need the fit.
        assert [line[1] == "–" for line in table.rows[:4]] == [False, False, True, True]
        assert [line[1::2].count("–") for line in table.rows[2:4]] == [3, 3]
        assert all(line[1] != "–" for line in table.rows[4:])
    # What has no share of ours is not counted as one that disagrees.
    assert re.search(r"of independent tables \d+ of 11;", " ".join(told[0].words))
    for panel in told[1].figures[0].chart.to_dict()["hconcat"]:
        points = panel["layer"][2]["data"]["values"]
        assert len(points) == 14
        assert {point["test"] for point in points if point["design"] == "ε = 0.1, m = 10"} == {
            "before the noise",
            "naive",
        }


def test_a_page_is_made_though_no_fit_converged(sheets):
    told = QUICK.report({**sheets, "tests": [{**row, **NO_FIT} for row in sheets["tests"]]})
    text = " ".join(told[0].words)
    assert "– by the likelihood ratio that knows the noise" in text
    assert "no fit to a weakly dependent table converged" in text
    assert "the likelihood ratio – (printed: 0.05)" in text
    assert "The fit did not converge for 10 of 10 tables." in " ".join(told[2].words)
    assert [line[1] for line in told[2].summaries[0].rows][2:] == ["–", "–"]


def test_one_repetition_is_refused():
    for wrong in ({"repetitions": 1}, {"draws": 1}):
        with pytest.raises(InvalidArgument, match="Nothing was done"):
            NoiseAwareTests(**wrong)
