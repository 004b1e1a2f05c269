"""`tabulary study perturbation`: Table 2 and Figures 1 to 3 of Rinott et al. (2018)."""

import pytest

from tabulary.errors import InvalidArgument
from tabulary.infer.association import cramers_v
from tabulary.studies.proportion import rejected
from tabulary.studies.running import gathered
from tabulary.studies.selecting import chosen, distinct, numbers
from tabulary.studies.study import Lab
from tabulary_papers.perturbation import PerturbationStudy

pytestmark = pytest.mark.slow

STUDY = PerturbationStudy.quick()


@pytest.fixture(scope="module")
def sheets():
    material = STUDY.material()
    done = (task.work(Lab(1, (STUDY.name, task.key), material), *task.arguments) for task in STUDY.tasks())
    return gathered(done)


@pytest.fixture(scope="module")
def sections(sheets):
    return STUDY.report(sheets)


def words(sections, title):
    [section] = [section for section in sections if section.title.startswith(title)]
    return " ".join(section.words)


def test_the_full_study_is_that_of_the_paper():
    study = PerturbationStudy()
    assert study.epsilons == ("0.1", "0.5", "1", "1.5", "2", "3")
    assert (study.repetitions, study.people) == (100, 10_000)
    tables = study.material()
    assert {name: table.counts.size for name, table in tables.items()} == {
        "UK census": 132,
        "small": 100,
        "large": 1_000,
    }
    # The axis of Cramér's V in Figure 3 begins at 0.08.
    assert cramers_v(tables["large"]) == pytest.approx(0.0995, abs=0.005)
    assert len({task.key for task in study.tasks()}) == len(study.tasks())


def test_every_repetition_of_every_law_and_table_has_its_numbers(sheets):
    rows = sheets["perturbed"]
    assert len(rows) == 3 * 6 * STUDY.repetitions
    assert len(distinct(rows, "table", "family", "epsilon", "repetition")) == len(rows)
    assert len(distinct(rows, "l1")) > len(rows) / 2
    # The small table gets the noise-aware test each time, the large one as often as asked, the census table never.
    for table, expected in (("small", STUDY.repetitions), ("large", STUDY.aware), ("UK census", 0)):
        assert len(numbers(rows, "aware_p", table=table)) == 6 * expected


def test_fresh_tables_are_new_and_the_same_for_every_law(sheets):
    rows = chosen(sheets["fresh"], table="small")
    assert len(rows) == 6 * STUDY.fresh_small
    assert len(distinct(rows, "exact_p")) == STUDY.fresh_small
    assert len(distinct(rows, "number", "exact_p")) == STUDY.fresh_small
    assert len(distinct(rows, "naive_p")) == len(rows)


def test_who_does_not_know_the_noise_of_a_normal_law_finds_association_that_is_not_there(sheets):
    rows = chosen(sheets["fresh"], table="large", family="normal")
    assert rejected(rows, "naive_p").rate > 0.9
    assert rejected(rows, "aware_p").rate < 0.5


def test_the_page_says_where_the_sentences_of_the_paper_hold(sections):
    assert "120 of its 120 printed probabilities" in words(sections, "In short")
    assert "of 27 comparisons" in words(sections, "In short")
    assert "“[O]ver 92% of the perturbed values are within ±4 for ε = 0.5 and δ = 0.008”" in words(
        sections, "Table 2"
    )
    assert "between 6% and 25% lower”: within ±4 they are 6% to 25% lower" in words(sections, "Table 2")
    assert "less than 0.005”: so it is for" in words(sections, "Figure 1")
    text = words(sections, "Figures 2 and 3")
    for family in ("Laplace", "Normal"):
        assert f"With {family} perturbations of the large table the naive test" in text
    assert "Both were chosen here after several tries" in text
    assert "of 30 cases for the naive test and Laplace" in text


def test_printed_numbers_stand_beside_ours(sections):
    [section] = [section for section in sections if section.title.startswith("Table 2")]
    [table] = section.summaries
    assert len(table.rows) == 24
    assert table.rows[0] == (
        "Laplace, ε = 1.5, m = 7: 0",
        "0.8176 (0.82)",
        "0.9593 (0.96)",
        "0.9909 (0.99)",
        "0.9980 (1.00)",
        "0.9996 (1.00)",
    )
    [laws] = sections[-1].summaries
    assert ("Laplace, ε = 0.5, m = 7", "0.008", "0.00757", "0.5", "0.14") in laws.rows
    assert "4 of 4 printed values are ours, rounded" in words(sections, "What the laws promise")


def test_figures_have_a_row_for_each_measure_and_lines_at_the_truth(sections):
    figures = {figure.stem: figure for section in sections for figure in section.figures}
    assert list(figures) == ["figure-1", "figure-2", "figure-3", "levels"]
    first, second = (figures[stem].chart.to_dict() for stem in ("figure-1", "figure-2"))
    assert [len(chart["concat"]) for chart in (first, second)] == [8, 12]
    titles = [panel["title"]["text"] for panel in second["concat"]]
    assert titles[:4] == [
        "Laplace, p-value, naive (m = 7)",
        "Normal, p-value, naive (m = 10, 12, 14)",
        "Laplace, p-value, noise-aware",
        "Normal, p-value, noise-aware",
    ]
    values = second["concat"][0]["layer"][0]["data"]["values"]
    assert values[1] == {"value": 0.05}


def without_fits(rows, **which):
    failed = chosen(rows, **which)
    assert failed
    return [{**row, "aware_p": None} if row in failed else row for row in rows]


def test_a_law_whose_fits_all_failed_has_no_share_and_no_point_and_the_rest_of_the_page_is_there(sheets):
    law = {"family": "normal", "epsilon": 0.5}
    told = STUDY.report(
        {
            **sheets,
            "perturbed": without_fits(sheets["perturbed"], table="small", **law),
            "fresh": without_fits(sheets["fresh"], table="large", **law),
        }
    )
    assert (
        f"did not converge for {STUDY.repetitions} of {6 * STUDY.repetitions} perturbations of the small table"
        in words(told, "Figures 2 and 3")
    )
    assert "perturbations of the large table." not in words(told, "Figures 2 and 3")
    assert (
        f"did not converge for {STUDY.fresh_large} of {6 * (STUDY.fresh_small + STUDY.fresh_large)} "
        "perturbed tables" in words(told, "How often")
    )
    shares = {
        (section.title.split()[0], place): table.rows[0][1:]
        for section in told[3:5]
        for place, table in enumerate(section.summaries)
    }
    # The columns are Laplace and Normal, naive and noise-aware; a share of nought would read 0%.
    dashes = {place: [share == "–" for share in row] for place, row in shares.items()}
    assert dashes["Figures", 0] == dashes["How", 1] == [False, False, False, True]
    assert dashes["Figures", 1] == dashes["How", 0] == [False] * 4
    figures = {figure.stem: figure.chart.to_dict() for section in told for figure in section.figures}
    values = figures["figure-2"]["concat"][3]["layer"][-1]["data"]["values"]
    assert {value["box"] for value in values} == {"1", "3"}
    [large] = [p for p in figures["levels"]["concat"] if p["title"]["text"] == "large table"]
    points = {(point["series"], point["x"]) for point in large["layer"][-1]["data"]["values"]}
    assert len(points) == 11
    assert ("Normal, noise-aware", 0.5) not in points
    assert ("Normal, naive", 0.5) in points


def test_a_page_is_made_and_drawn_though_no_fit_converged(sheets):
    from tabulary.release.drawing import svg

    rows = {name: without_fits(sheets[name]) for name in ("perturbed", "fresh")}
    told = STUDY.report({**sheets, **rows})
    assert "the noise-aware test could be fitted to none of them" in words(told, "In short")
    assert "in no case that is known for the noise-aware test and Laplace" in words(told, "Figures 2 and 3")
    for section in told:
        for figure in section.figures:
            assert svg(figure.chart).startswith("<svg")


def test_what_shows_nothing_is_refused():
    for wrong in ({"repetitions": 1}, {"aware": 0}, {"fresh_small": 1}, {"fresh_large": 0}, {"epsilons": ()}):
        with pytest.raises(InvalidArgument, match="Nothing was done"):
            PerturbationStudy(**wrong)
