"""`tabulary perturb`: a table beside its guarantee, the figure of risk and utility, and what it refuses."""

import csv
import json
import re
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.release.promise import guess_sentence
from tests.pages import blocks, lines_of

CENSUS = ["perturb", "--dataset", "uk-census"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder to work in, and a terminal that breaks no sentence."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def said(capsys):
    """What a command line says on both outputs, as one line; it must have this code."""

    def ask(*arguments, code=0):
        assert run(list(arguments)) == code
        found = capsys.readouterr()
        return " ".join((found.out if code == 0 else found.err).split())

    return ask


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_stands_beside_its_guarantee(said):
    words = said(*CENSUS, "--epsilon", "1.5", "--bound", "7")
    law = tb.perturb.Laplace(1.5, bound=7)
    assert "age by occupation" in words
    assert "every count ±2" in words
    assert "Promise: ε = 1.5, δ = 1.749e-5, for one person more or less in the table." in words
    assert float(law.privacy().delta) == 1.749e-5
    assert "One person can change one count by 1." in words
    # e^1.5 = 4.4817, rounded against the promise.
    assert "e^ε = 4.49" in words
    assert guess_sentence(law.privacy()) in words
    assert "price of the bound: a count that was changed by the full 7" in words
    assert f"standard error {law.variance() ** 0.5:.2f}; 95% are within ±2" in words
    assert "Unbiased" in words
    assert "uk-census is already published" in words
    assert "protects nobody" in words


def test_what_is_printed_is_perturbed_anew_each_time_and_never_further_than_the_bound(said, here):
    exact = tb.datasets.load("uk-census").counts.reshape(-1)
    found = []
    for name in ("a.csv", "b.csv"):
        said(*CENSUS, "--epsilon", "1/2", "--bound", "7", "-o", name)
        found.append(np.array([int(row["count"]) for row in read(here / name)]))
        assert 0 < np.abs(found[-1] - exact).max() <= 7
    assert (found[0] != found[1]).any()


def test_the_file_holds_what_the_terminal_shows(said, here):
    words = said(*CENSUS, "--margin", "[age]", "--epsilon", "1", "-o", "age.csv")
    rows = read(here / "age.csv")
    assert list(rows[0]) == ["age", "count", "standard_error", "lower_95", "upper_95"]
    for row in rows:
        assert f"{int(row['count']):,} ±3" in words
        assert int(row["upper_95"]) - int(row["count"]) == 3
    assert words.endswith("Wrote age.csv")


def test_without_a_bound_the_promise_is_pure(said):
    words = said(*CENSUS)
    assert "Promise: ε = 1, for one person" in words
    assert "δ" not in words


def test_a_minimum_is_told_with_its_bias(said, here):
    words = said(*CENSUS, "--epsilon", "1.5", "--bound", "7", "--minimum", "0", "-o", "t.csv")
    assert min(int(row["count"]) for row in read(here / "t.csv")) == 0
    law = tb.perturb.Laplace(1.5, bound=7)
    assert "below 0 are published as 0. This costs no privacy" in words
    assert f"an original 0 is published as {law.bias(0, minimum=0):.2f}, 1 as" in words
    assert "Unbiased" not in words


def test_normal_says_the_smaller_epsilon_that_is_true(said):
    words = said(*CENSUS, "--family", "normal", "--bound", "12")
    law = tb.perturb.Normal(1, bound=12)
    told = float(re.search(r"already holds at ε = ([\d.]+)", words)[1])
    assert law.delta_at(told) <= law.delta * (1 + 1e-9)
    assert told == pytest.approx(law.epsilon_at(law.delta), abs=1e-4)


def test_every_family_is_drawn_and_described(said):
    words = said(*CENSUS, "--margin", "age", "--family", "hellinger", "--epsilon", "4")
    assert "Promise: ε = 4, for one" in words
    assert "Biased: on average an original 0 is published as" in words
    words = said(*CENSUS, "--family", "max-entropy", "--variance", "2", "--bound", "5", "--epsilon", "2")
    delta = tb.perturb.MaxEntropy(2, bound=5).delta_at(2)
    told = float(re.search(r"Promise: ε = 2, δ = ([\d.e-]+), for", words)[1])
    assert delta <= told <= delta * 1.00001


def test_the_eight_wishes_are_reported_with_and_without_a_table(said):
    law = ("--family", "normal", "--epsilon", "1", "--bound", "10")
    for words in (said("perturb", "--properties", *law), said(*CENSUS, "--properties", *law)):
        for name in ("threshold", "maximal entropy", "sparse-table rule", "non-negative integers"):
            assert f"{name}: " in words
        for name in ("structural zeros", "unbiased", "bounded variance", "truncated"):
            assert f"{name}: holds" in words
        assert "δ = 0.001054 at ε = 1" in words
        assert "Contradictions" in words


def test_alone_it_shows_its_help(said):
    words = said("perturb")
    assert "perturb [OPTIONS]" in words
    assert "Examples: tabulary perturb --dataset uk-census --epsilon 1.5 --bound 7" in words
    assert "--seed" not in words


def test_the_figure_is_drawn_to_svg_and_png(said, here):
    words = said("perturb", "--compare", "--repetitions", "5")
    assert "Picture: risk-utility/risk-utility.svg" in words
    assert "Picture: risk-utility/risk-utility.png" in words
    svg = (here / "risk-utility" / "risk-utility.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "Laplace, Cramér's V (m = 7)" in svg
    assert "perturbed 5 times" in svg
    png = (here / "risk-utility" / "risk-utility.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert "0.25763" in words
    for bound in (8, 10, 12, 13, 14):
        assert f"normal │ {bound} │" in words
    assert "laplace │ 7 │ 0.047" in words


def test_a_figure_is_drawn_anew_where_one_was_and_nowhere_else(said, here):
    letters = here / "letters"
    letters.mkdir()
    (letters / "love.txt").write_text("dear")
    words = said("perturb", "--compare", "-o", "letters", code=2)
    assert "letters is not empty and contains no earlier figure" in words
    assert [file.name for file in letters.iterdir()] == ["love.txt"]
    for _ in range(2):
        said("perturb", "--compare", "--repetitions", "1", "-o", "figure", "--dataset", "hair-eye-gene")
    assert {file.name for file in (here / "figure").iterdir()} == {
        ".tabulary-figure",
        "risk-utility.svg",
        "risk-utility.png",
    }


def test_a_figure_of_a_margin_of_a_larger_table(said):
    words = said(
        *("perturb", "--compare", "--dataset", "rochdale", "--margin", "[A H]", "--repetitions", "1"),
        *("--bound", "4"),
    )
    assert "rochdale, A by H" in words
    assert "laplace │ 4 │" in words


@pytest.mark.parametrize(
    ("arguments", "place", "remedy"),
    [
        ((*CENSUS, "--bound", "0"), "--bound 0", "positive whole number"),
        ((*CENSUS, "--bound", "-3"), "--bound -3", "positive whole number"),
        ((*CENSUS, "--bound", "1.5"), "--bound", "integer"),
        ((*CENSUS, "--bound", "40000"), "--bound 40000", "Leave the bound out"),
        ((*CENSUS, "--family", "normal"), "needs --bound", "--bound 10"),
        ((*CENSUS, "--epsilon", "-1"), "--epsilon -1", "must be positive"),
        ((*CENSUS, "--epsilon", "0"), "--epsilon 0", "must be positive"),
        ((*CENSUS, "--epsilon", "much"), "--epsilon much", "a decimal such as 0.5"),
        ((*CENSUS, "--epsilon", "nan"), "--epsilon nan", "a decimal such as 0.5"),
        ((*CENSUS, "--epsilon", "1e-7"), "--epsilon 1e-7", "Give a bound"),
        ((*CENSUS, "--variance", "2"), "--variance", "Leave it out"),
        ((*CENSUS, "--family", "max-entropy", "--bound", "5"), "needs --variance", "--variance 2"),
        ((*CENSUS, "--family", "max-entropy", "--variance", "2"), "needs --bound", "--bound 10"),
        (
            (*CENSUS, "--family", "max-entropy", "--variance", "99", "--bound", "5"),
            "--variance 99",
            "between 0 and 25",
        ),
        ((*CENSUS, "--family", "hellinger", "--bound", "5"), "--bound", "Leave it out"),
        ((*CENSUS, "--family", "cauchy"), "--family", "'laplace'"),
        ((*CENSUS, "--minimum", "-1"), "--minimum", "0"),
        ((*CENSUS, "--margin", "[planet]"), "'planet'", "'age', 'occupation'"),
        ((*CENSUS, "--margin", "[age][occupation]"), "--margin", "names several margins"),
        ((*CENSUS, "--repetitions", "5"), "--repetitions does not go with --dataset", "which takes --bound"),
        ((*CENSUS, "-o", "nowhere/t.csv"), "nowhere/t.csv", "Make it first"),
        (("perturb", "--dataset", "atlantis"), "'atlantis'", "'uk-census'"),
        (("perturb", "--epsilon", "1"), "needs a table to perturb", "--dataset uk-census"),
        (("perturb", "--properties", "-o", "t.csv"), "--output does not go with --properties", "--bound"),
        (("perturb", "--compare", "--epsilon", "1"), "--epsilon does not go with --compare", "which takes"),
        (("perturb", "--compare", "--bound", "0"), "--bound 0", "positive whole number"),
        (("perturb", "--compare", "--repetitions", "0"), "--repetitions", "1"),
        (("perturb", "--compare", "--dataset", "rochdale"), "two attributes", '--margin "[A B]"'),
    ],
)
def test_bad_input_is_refused_with_its_place_and_a_remedy_and_nothing_is_written(
    said, here, arguments, place, remedy
):
    words = said(*arguments, code=2)
    assert "Error: " in words
    assert place in words
    assert remedy in words
    assert "Traceback" not in words
    assert list(here.iterdir()) == []


def test_a_file_is_never_overwritten(said, here):
    (here / "table.csv").write_text("mine")
    words = said(*CENSUS, "-o", "table.csv", code=2)
    assert "table.csv already exists" in words
    assert (here / "table.csv").read_text() == "mine"


PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
from = "years"
bins = [0, 15, 65]
[privacy]
epsilon = 1
[tables]
margins = "[sex age][sex][age]"
"""


@pytest.fixture
def custody(here):
    """A plan file, its records, and a ledger of ε = 3 and δ = 0.5."""
    (here / "plan.toml").write_text(PLAN)
    people = "".join(f"{'FM'[i % 2]},{i % 90}\n" for i in range(600))
    (here / "people.csv").write_text(f"sex,years\n{people}")
    with tb.Ledger.create(here / "ledger.sqlite") as ledger:
        ledger.create_account("people", tb.ApproxDP(3, "1/2"), tb.Neighbours())
    return here


PAYER = ("--ledger", "ledger.sqlite", "--account", "people")


def spent(folder):
    with tb.Ledger.open(folder / "ledger.sqlite", read_only=True) as ledger:
        return ledger.account("people").spent()


def test_the_tables_of_a_plan_file_are_perturbed_paid_for_and_described(said, custody):
    words = said("perturb", "plan.toml", "--minimum", "0", "-o", "out", *PAYER)
    assert "3 tables with laplace perturbations at ε = 1 (add-remove), d = 3" in words
    assert "[sex age] 6 1/3 4.22" in words
    assert "These 3 tables together are ε-differentially private with ε = 1." in words
    assert "Negative numbers were then published as zero" in words
    assert "Paid ε = 1 from account 'people'" in words
    assert spent(custody).epsilon == 1
    tables = custody / "out" / "tables"
    assert {file.name for file in tables.iterdir()} == {"sex.csv", "age.csv", "sex-by-age.csv"}
    rows = read(tables / "sex.csv")
    assert [row["sex"] for row in rows] == ["F", "M"]
    # Within seventeen standard errors of the truth, and hardly ever all equal to it.
    assert all(abs(int(row["count"]) - 300) < 80 for row in rows)
    described = json.loads((custody / "out" / "perturbation.json").read_text(encoding="utf-8"))
    assert [table["epsilon"] for table in described["tables"]] == ["1/3"] * 3
    assert described["minimum"] == "0"
    assert "ε = 1" in described["statement"]


def test_weights_of_a_plan_file_decide_who_gets_how_much(said, custody):
    weighed = PLAN.replace('"[sex age][sex][age]"', '"[sex age][sex][age]"\nweights = { "[age]" = 100 }')
    (custody / "plan.toml").write_text(weighed)
    said("perturb", "plan.toml", "-o", "out", *PAYER)
    described = json.loads((custody / "out" / "perturbation.json").read_text(encoding="utf-8"))
    shares = {" ".join(t["attributes"]): float(Fraction(t["epsilon"])) for t in described["tables"]}
    assert shares["age"] > 2 * shares["sex age"] > 2 * shares["sex"]
    assert 0.9999 < spent(custody).epsilon <= 1


def test_additive_tables_add_up(said, custody):
    words = said("perturb", "plan.toml", "--additive", "-o", "out", *PAYER)
    assert "a margin is the sum of its cells" in words
    both, ages = (read(custody / "out" / "tables" / name) for name in ("sex-by-age.csv", "age.csv"))
    for row in ages:
        cells = [float(cell["count"]) for cell in both if cell["age"] == row["age"]]
        assert sum(cells) == pytest.approx(float(row["count"]), abs=1e-6)


def test_a_bound_is_paid_for_with_a_delta_that_the_file_allows(said, custody):
    (custody / "plan.toml").write_text(PLAN.replace("epsilon = 1", 'epsilon = 1\ndelta = "1/5"'))
    words = said("perturb", "plan.toml", "--bound", "6", "-o", "out", *PAYER)
    paid = spent(custody)
    assert paid.epsilon == 1
    law = tb.perturb.Laplace("1/3", bound=6)
    assert float(paid.delta) == pytest.approx(1 - (1 - law.delta) ** 3, rel=1e-4)
    assert f"Paid {paid} from account" in words


@pytest.mark.parametrize(
    ("text", "options", "place", "remedy"),
    [
        (PLAN, ("--bound", "6"), "with --bound 6 these tables have δ", "choose a larger bound"),
        (PLAN.replace("epsilon", "rho"), (), "[privacy] rho", "need `epsilon`"),
        (PLAN.replace("epsilon", "contribution = 2\nepsilon"), (), "one record per person", "use tb.plan"),
        (PLAN, ("--family", "normal"), "needs --bound", "--bound 10"),
        (PLAN, ("--family", "hellinger"), "--family hellinger", "laplace or normal"),
        (PLAN, ("--additive", "--minimum", "0"), "contradict each other", "Keep negative counts"),
        (PLAN, ("--epsilon", "2"), "--epsilon does not go with a plan file", "which takes"),
        (PLAN, ("--dataset", "uk-census"), "--dataset does not go with a plan file", "which takes"),
        (PLAN, ("--bound", "0"), "bound", "positive whole number"),
        (PLAN.replace("people.csv", "nobody.csv"), (), "nobody.csv", ""),
        (PLAN.replace("[0, 15, 65]", "[50, 65]"), (), "'age'", ""),
        (PLAN.replace("epsilon = 1", "epsilon = 4"), (), "'people'", ""),
    ],
)
def test_a_plan_file_that_cannot_be_followed_costs_nothing_and_writes_nothing(
    said, custody, text, options, place, remedy
):
    (custody / "plan.toml").write_text(text)
    words = said("perturb", "plan.toml", "-o", "out", *PAYER, *options, code=2)
    assert place in words
    assert remedy in words
    assert spent(custody) is None
    assert not (custody / "out").exists()
    assert not list(custody.glob(".tabulary-staging-*"))


def test_a_plan_file_needs_a_folder_that_is_not_there_yet_and_a_whole_payer(said, custody):
    assert "name it with -o" in said("perturb", "plan.toml", code=2)
    (custody / "out").mkdir()
    said("perturb", "plan.toml", "-o", "out", *PAYER, code=2)
    words = said("perturb", "plan.toml", "-o", "new", "--ledger", "ledger.sqlite", code=2)
    assert "--ledger and --account need each other" in words
    assert spent(custody) is None
    assert not (custody / "new").exists()


def test_without_a_ledger_the_custodian_is_told(custody, capsys):
    assert run(["perturb", "plan.toml", "-o", "out"]) == 0
    assert "No ledger is named" in capsys.readouterr().err


def test_the_commands_of_the_page_do_what_it_says(here, capsys):
    page = "docs/how-to/perturb-a-table.md"
    (here / "census.toml").write_text(blocks(page, "toml")[0])
    (here / "people.csv").write_text("sex,age_in_years\n" + "F,3\nM,40\nF,70\nM,20\n" * 50)
    commands = lines_of(page, "tabulary")
    assert len(commands) == 6
    for command in commands:
        assert run(command.split()[1:]) == 0, command
    assert {path.name for path in here.iterdir()} >= {"risk-utility", "perturbed-2026", "additive-2026"}
    with tb.Ledger.open(here / "ledger.sqlite", read_only=True) as ledger:
        assert ledger.account("people").spent() == tb.PureDP(2)
