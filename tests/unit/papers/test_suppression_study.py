"""`tabulary study suppression`: Figures 1 and 3 to 5 of Nabar & Mishra (2010)."""

from dataclasses import replace

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidArgument
from tabulary.studies.running import gathered
from tabulary.studies.selecting import chosen, distinct, numbers
from tabulary.studies.study import Lab
from tabulary_papers.suppression import SuppressionStudy
from tabulary_papers.suppression.distortion import distorted
from tabulary_papers.suppression.methods import METHODS

QUICK = SuppressionStudy.quick()
GENES = "hair and eyes"


@pytest.fixture(scope="module")
def sheets():
    material = QUICK.material()
    done = (task.work(Lab(1, (QUICK.name, task.key), material), *task.arguments) for task in QUICK.tasks())
    return gathered(done)


@pytest.fixture(scope="module")
def sections(sheets):
    return QUICK.report(sheets)


def test_the_full_study_has_the_tables_of_the_paper():
    full = SuppressionStudy()
    tables = {name: data.table.shape for name, data in full.material().items()}
    assert tables == {GENES: (3, 3), "carriers 5 × 5": (5, 5), "carriers 10 × 10": (10, 10)}
    keys = [task.key for task in full.tasks()]
    assert len(set(keys)) == len(keys)
    # What takes minutes begins first, and once.
    assert keys[0] == "suppress carriers 10 × 10 at 0.5"
    assert sum("suppress carriers 10 × 10" in key for key in keys) == 1


def test_nothing_is_left_out_at_the_epsilon_of_the_paper_and_everything_at_a_small_one(sheets):
    left_out = {row["epsilon"]: row["left_out"] for row in chosen(sheets["suppressed"], data=GENES)}
    assert left_out[0.5] == 0
    assert left_out[0.2] == 9
    assert 0 < left_out[0.4] < 9
    [unsafe] = numbers(sheets["decisions"], "unsafe", data=GENES, epsilon=0.5, asked="blue, black")
    assert unsafe == pytest.approx(0.00934, abs=5e-6)


def test_every_repetition_of_every_way_has_its_errors(sheets):
    rows = sheets["noise"]
    assert len(rows) == 2 * len(METHODS) * 2 * QUICK.repetitions
    assert len(distinct(rows, "data", "way", "epsilon", "repetition")) == len(rows)
    assert min(numbers(rows, "rmse")) > 0


def test_fourier_noise_distorts_more_cells_than_noise_on_each_of_them(sheets):
    own = chosen(sheets["noise"], data=GENES, epsilon=0.5)
    assert distorted(own, way="fourier").rate > 3 * distorted(own, way="cells").rate
    assert distorted(own, way="fourier-doubled").rate > distorted(own, way="fourier").rate
    errors = {way: np.mean(numbers(own, "rmse", way=way)) for way in METHODS}
    assert errors["cells"] < errors["cells-replace"] < errors["fourier"] < errors["fourier-doubled"]
    assert errors["residual"] < 2 * errors["cells"]
    # Figure 4 has two of nine cells off by more than a quarter, with a root mean square error of about ten.
    assert 0.2 < distorted(own, way="fourier").rate < 0.6
    assert 9 < errors["fourier"] < 18
    assert errors["cells"] == pytest.approx(np.sqrt(2 * 2**2), rel=0.25)


def test_the_first_table_with_noise_at_the_epsilon_of_the_paper_is_kept_to_be_looked_at(sheets):
    truth = tb.datasets.load("hair-eye-gene").counts.ravel()
    for way in METHODS:
        rows = chosen(sheets["first-tables"], data=GENES, way=way)
        assert numbers(rows, "true") == truth.tolist()
        errors = np.array(numbers(rows, "published")) - truth
        [first] = chosen(sheets["noise"], data=GENES, way=way, epsilon=0.5, repetition=0)
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(first["rmse"])


def test_the_doubled_scale_is_twice_the_exact_one_which_is_that_of_both_neighbours():
    table = tb.datasets.load("hair-eye-gene")
    scales = {way: how.plan(table, "1/2").measured[0].noise.scale for way, how in METHODS.items()}
    assert scales["fourier"] == 16 * 2
    assert scales["fourier-doubled"] == 2 * scales["fourier"]
    assert scales["cells"] == 2
    assert scales["cells-replace"] == 4
    replaced = tb.plan(
        table.domain, "[eye hair]", privacy=tb.PureDP("1/2"), mechanism="fourier", neighbours="replace"
    )
    assert replaced.measured[0].noise.scale == scales["fourier"]


def test_the_attack_leaves_two_sets_and_makes_a_hundred_people_certain(sheets, sections):
    rows = sheets["attack"]
    assert [(row["set_1"], row["set_2"]) for row in rows] == [("1 3 5", "2 4 6")] * 6
    [cell] = chosen(rows, cell=5)
    assert (cell["least_2"], cell["most_2"], cell["people"]) == (100, 100, 100)
    assert "all 100 in cell 5 have it if 2 4 6 are sensitive" in " ".join(sections[1].words)


def test_the_sums_alone_leave_what_the_paper_prints_and_the_people_leave_less(sheets, sections):
    rows = sheets["attack"]
    for row in rows:
        assert (row["least_sums"], row["most_sums"]) == (row["least_printed"], row["most_printed"])
    with_people = [(row["least_people"], row["most_people"]) for row in chosen(rows, hair="brown")]
    assert with_people == [(5, 105), (0, 100)]
    [words, _] = sections[1].words
    assert "From the sums alone a cell is known to within 71.7 on average; 6 of 6 ranges" in words
    assert "Who knows the numbers of people too knows it to within 70.0." in words
    assert "to within 3.3 to 5.0 on average" in words
    [table] = sections[1].summaries
    assert table.rows[4][:5] == ("5: not blue, brown", "100", "0–105", "0–105", "0–100")


def test_the_page_says_what_is_printed_beside_what_is_found(sections):
    text = " ".join(word for section in sections for word in section.words)
    assert "leaves out 0 of 9 cells" in text
    assert (
        "The printed table has 2 of 9 cells off by more than a quarter, and a root mean square error of 9.9"
        in text
    )
    assert "The two ε are different promises" in text
    assert "not the same promise" in QUICK.about


def test_only_a_table_of_the_size_of_the_papers_is_held_against_it(sheets, sections):
    def words(told):
        return " ".join(word for section in told for word in section.words)

    small = words(sections)
    assert "The paper prints" not in small
    assert "so its numbers are not compared with these" in small
    as_large = {
        name: [
            {**row, "data": "carriers 10 × 10"} if row.get("data") == "carriers 3 × 3" else row
            for row in rows
        ]
        for name, rows in sheets.items()
    }
    large = words(replace(QUICK, large=10).report(as_large))
    assert (
        "The paper prints 10% for its perturbation of a 10 × 10 table. Of what is tried here, cells" in large
    )
    assert "The paper prints 0 of 100, and of its perturbed cells 10% off" in large


def test_how_the_curves_run_is_read_off_the_numbers(sheets, sections):
    [words] = sections[-1].words
    falls = "Of hair and eyes, 9 of 9 cells are left out at ε = 0.2 and 0 at ε = 0.5; at no ε more than at a smaller"
    assert falls in words
    assert falls in sections[-1].figures[0].description
    turned = [
        {**row, "left_out": row["cells"] - row["left_out"]} if row["data"] == GENES else row
        for row in sheets["suppressed"]
    ]
    [words] = QUICK.report({**sheets, "suppressed": turned})[-1].words
    assert (
        "Of hair and eyes, 0 of 9 cells are left out at ε = 0.2 and 9 at ε = 0.5; "
        "more than at the ε before at 0.4, 0.5." in words
    )


def test_figures_show_the_printed_table_and_mark_what_is_far_off(sections):
    figures = {figure.stem: figure.chart.to_dict() for section in sections for figure in section.figures}
    assert list(figures) == ["figure-4", "left-out", "far-off"]
    panels = figures["figure-4"]["concat"]
    assert [panel["title"]["text"] for panel in panels][:2] == [
        "exact; suppression leaves out 0",
        "Fourier, as printed in Figure 4",
    ]
    printed = panels[1]["data"]["values"]
    assert [cell["count"] for cell in printed if cell["far"]] == ["38", "1"]


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidArgument, match="repetitions"):
        SuppressionStudy(repetitions=1)
    with pytest.raises(InvalidArgument, match=r"0\.5"):
        SuppressionStudy(noise_epsilons=("1",))
