import csv
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.privacy import ApproxDP
from tabulary.errors import InvalidArgument, MissingExtra
from tabulary.studies.running import run
from tabulary.studies.study import Lab
from tabulary_papers.rap import RapCurves
from tabulary_papers.rap.answering import (
    ADAPTIVE,
    METHODS,
    NOTHING,
    ONCE,
    PRINTED,
    ROWS,
    TABLES,
    Fitting,
    Job,
    RapQuestion,
    answer,
)
from tabulary_papers.rap.people import ADULT, MADE_UP, adult, chosen_margins, made_up_people

pytestmark = pytest.mark.slow

FITTING = Fitting(50, 40, 20)
COLUMNS = "age,workclass,marital-status,occupation,relationship,race,sex,income>50K"


@pytest.fixture
def extract(tmp_path):
    path = tmp_path / "extract.csv"
    lines = [
        f"{20 + i % 12},{i % 3},{i % 2},{i % 5},{i % 4},{i % 2},{i // 2 % 2},{i % 7 // 5}" for i in range(60)
    ]
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return run(RapCurves.quick(), tmp_path_factory.mktemp("study") / "out", processes=1)


def rows_of(page):
    return list(csv.DictReader((page.parent / "numbers" / "errors.csv").read_text().splitlines()))


def test_the_study_leaves_every_number_both_figures_and_a_page(page):
    rows = rows_of(page)
    assert {row["series"] for row in rows} == {ONCE, ADAPTIVE, PRINTED, TABLES, ROWS, NOTHING}
    assert {float(row["epsilon"]) for row in rows} == {0.1, 1.0}
    for stem in ("against-epsilon", "against-tables"):
        assert (page.parent / "figures" / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        drawn = (page.parent / "figures" / f"{stem}.svg").read_text()
        assert all(
            word in drawn for word in (ONCE, ADAPTIVE, TABLES, ROWS, NOTHING, "largest error of a share")
        )
    text = page.read_text()
    assert "Rounds and queries a round" in text
    assert "CONFIDENTIAL" not in text


def test_the_page_says_which_panels_of_the_paper_are_missing(page, extract):
    text = page.read_text()
    assert text.count("Those on LOANS are missing here") == 2
    assert text.count("Those on ADULT are missing") == 2
    kinds = {"data": str, "series": str, "epsilon": float, "largest_error": float, "mean_l1": float}
    errors = [{name: kinds.get(name, int)(value) for name, value in row.items()} for row in rows_of(page)]
    sections = RapCurves.quick(extract).report({"errors": errors})
    captions = [figure.caption for section in sections for figure in section.figures]
    assert sum("Those on LOANS are missing here" in caption for caption in captions) == 2
    assert not any("Those on ADULT are missing" in caption for caption in captions)


def test_more_privacy_costs_more_and_what_spends_nothing_is_the_same_at_every_epsilon(page):
    whole = [row for row in rows_of(page) if row["margins"] == "4"]

    def mean(series, epsilon):
        return np.mean(
            [
                float(row["largest_error"])
                for row in whole
                if row["series"] == series and float(row["epsilon"]) == epsilon
            ]
        )

    assert mean(NOTHING, 0.1) == mean(NOTHING, 1.0)
    assert mean(TABLES, 1.0) < mean(TABLES, 0.1)
    assert mean(TABLES, 1.0) < mean(NOTHING, 1.0)
    assert mean(ONCE, 1.0) < mean(NOTHING, 1.0)


def test_the_printed_accounting_of_one_round_has_more_noise(page):
    rows = [row for row in rows_of(page) if row["epsilon"] == "0.1" and row["margins"] == "4"]
    errors = {
        series: np.mean([float(row["largest_error"]) for row in rows if row["series"] == series])
        for series in (ONCE, PRINTED)
    }
    assert errors[ONCE] < errors[PRINTED]


def test_the_error_is_the_largest_difference_of_a_share():
    people = made_up_people(500, seed=3)
    question = RapQuestion(MADE_UP, 2, 3, "1", 100)
    work = chosen_margins(people.domain, 2, 3, largest=100)
    lab = Lab(1, ("rap", "x"), {MADE_UP: people})
    (row,) = answer(lab, question, "nothing", FITTING, 1, 1, (0,))["errors"]
    codes = {name: people.table[name].to_pandas().to_numpy() for name in people.domain.attributes}
    worst = 0.0
    for one, other in work:
        possible = people.domain.multiplicity((one, other))
        for i, a in enumerate(people.domain.levels_of(one)):
            for j, b in enumerate(people.domain.levels_of(other)):
                share = np.mean((codes[one] == a) & (codes[other] == b))
                worst = max(worst, abs(share - possible[i, j] / possible.sum()))
    assert row["largest_error"] == pytest.approx(worst)
    assert (row["margins"], row["epsilon"]) == (3, 1.0)


@pytest.mark.parametrize("method", ["rap", "rap-adaptive", "release", "mwem", "nothing"])
def test_every_way_answers_with_shares_and_the_same_whenever_it_is_repeated(method):
    # Four attributes, so that multiplicative weights have a small table.
    whole = made_up_people(300, seed=1)
    names = ["sex", "employment", "education", "birth_country"]
    people = replace(
        whole, domain=Domain({n: whole.domain.levels_of(n) for n in names}), table=whole.table.select(names)
    )
    work = chosen_margins(people.domain, 2, 3, largest=50)
    privacy = ApproxDP(1, Fraction(1, 300**2))
    found = [METHODS[method](Job(people, work, privacy, Lab(1, ("x",)), FITTING, 2, 4, 0)) for _ in range(2)]
    for series, shares in found[0].items():
        assert all(shares[m].shape == people.domain.shape_of(m) for m in work)
        assert all(shares[m].sum() == pytest.approx(1, abs=0.3) for m in work)
        assert all((shares[m] == found[1][series][m]).all() for m in work)


def test_few_of_many_tables_are_the_first_of_them_and_none_is_too_large():
    domain = made_up_people(10, seed=1).domain
    few, many = (chosen_margins(domain, 3, number, largest=1_000) for number in (5, 99))
    assert few.margins == many.margins[:5]
    assert max(map(domain.cells, many)) <= 1_000


def test_both_figures_share_the_tables_they_have_in_common():
    study = RapCurves.quick()
    keys = [task.key for task in study.tasks()]
    assert len(keys) == len(set(keys))
    assert sum("4 3-way tables, ε = 0.1, rap, repetition 0" in key for key in keys) == 1


def test_a_graphical_model_and_multiplicative_weights_are_part_of_the_full_study(extract):
    keys = [task.key for task in RapCurves(path=extract).tasks()]
    assert any("made-up people, 64 3-way tables, ε = 1, graphical" in key for key in keys)
    assert any("made-up people, 64 5-way tables, ε = 0.05, mwem" in key for key in keys)
    assert any(key.startswith("Adult, 64 3-way tables, ε = 0.1, rap-adaptive") for key in keys)


def test_adult_is_read_with_its_levels_in_order(extract):
    found = adult(extract)
    assert found.name == ADULT
    assert found.number == 60
    assert found.domain.levels_of("age") == tuple(str(20 + i) for i in range(12))
    assert found.domain.levels_of("sex") == ("0", "1")


def test_a_column_that_makes_no_table_is_left_out(tmp_path):
    path = tmp_path / "extract.csv"
    lines = [f"{i % 9},1,0,2,3,1,{i % 2},{i}.5," for i in range(1_200)]
    path.write_text("\n".join([f"{COLUMNS.rsplit(',', 1)[0]},weight,gap", *lines]) + "\n")
    assert "weight" not in adult(path).domain.attributes
    assert "gap" not in adult(path).domain.attributes


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("name,age\nEve,3\n", "is not the Adult extract: it has no column"),
        (f"{COLUMNS}\n", "holds no record"),
        ("", "cannot be read as CSV"),
    ],
)
def test_a_file_that_is_not_adult_is_refused_without_showing_what_is_in_it(content, match, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(InvalidArgument, match=match) as refused:
        adult(path)
    assert "Eve" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="there is no file"):
        adult(tmp_path / "nowhere.csv")


def test_settings_hold_what_is_in_the_file_and_not_where_it_is(extract, tmp_path):
    before = RapCurves.quick(extract).settings
    moved = extract.rename(tmp_path / "moved.csv")
    assert RapCurves.quick(moved).settings == before
    assert str(tmp_path) not in str(before)
    moved.write_text(moved.read_text() + "31,1,1,1,1,1,1,0\n")
    assert RapCurves.quick(moved).settings != before


def test_without_jax_nothing_is_begun(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"tabulary\[synth\]"):
        run(RapCurves.quick(), tmp_path / "out", processes=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "wrong", [{"epsilons": ()}, {"numbers": (0,)}, {"repetitions": 1}, {"methods": ("rap",)}, {"margins": 0}]
)
def test_a_grid_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="Nothing was done"):
        RapCurves(**wrong)
