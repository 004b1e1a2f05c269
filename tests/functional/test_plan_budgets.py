"""`tabulary plan --epsilon` and `--target`: what is printed, drawn and refused. No record is read, nothing is spent."""

import re

import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.planning.budgets import Target, smallest_budget
from tabulary.workflows import read_plan_file

PLAN = """
[data]
source = "nobody.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
bins = [0, 15, 65]
[domain.job]
levels = ["none", "paid"]
[privacy]
epsilon = 1
[tables]
margins = "[sex age][age job]"
[mechanism]
reconstruct = "none"
"""
LEDGER = '[ledger]\nfile = "ledger.sqlite"\naccount = "people"\n'


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def said_by(capsys, *words, code=0):
    assert run(["plan", *map(str, words)]) == code
    captured = capsys.readouterr()
    return " ".join((captured.err if code else captured.out).split())


def test_budgets_are_shown_side_by_side(plan_file, capsys):
    said = said_by(capsys, plan_file, "--epsilon", "0.1,0.5,1,2,4")
    planned = read_plan_file(plan_file)
    for epsilon in ("0.1", "0.5", "1", "2", "4"):
        assert f"ε = {epsilon} " in said
        for row in planned.planner(privacy=tb.PureDP(epsilon)).expected_error():
            assert f"±{row.half_width:,}" in said
    assert "exact" in said
    assert "unbiased estimates" in said
    assert "━" in said


def test_a_list_may_also_be_given_in_parts(plan_file, capsys):
    once = said_by(capsys, plan_file, "--epsilon", "2,1/2")
    assert said_by(capsys, plan_file, "--epsilon", "0.5", "--epsilon", "2") == once


@pytest.mark.parametrize("target", ["±10", "+-10", "10", "1% of cells of 1000"])
def test_the_smallest_budget_for_a_target_is_told_with_the_table_that_decides(plan_file, target, capsys):
    said = said_by(capsys, plan_file, "--target", target)
    planned = read_plan_file(plan_file)
    found = smallest_budget(planned.planner, planned.plan.privacy, Target.parse(target))
    assert f"● {found.privacy} is the smallest ε for {Target.parse(target)}." in said
    assert f"The table [{' '.join(found.worst.margin)}] decides" in said


def test_a_target_for_one_table_shows_that_table_alone(plan_file, capsys):
    said = said_by(capsys, plan_file, "--target", "10", "--table", "[age job]")
    assert "The table [age job] decides" in said
    assert "[sex age]" not in said


def test_rho_varies_where_the_plan_file_promises_one(plan_file, capsys):
    plan_file.write_text(PLAN.replace("epsilon = 1", "rho = 0.1"))
    assert "ρ = 0.2 " in said_by(capsys, plan_file, "--rho", "0.1,0.2")
    assert "is the smallest ρ for ±10" in said_by(capsys, plan_file, "--target", "10")
    assert "Give amounts of ρ" in said_by(capsys, plan_file, "--epsilon", "1", code=2)


def test_what_a_budget_costs_is_compared_with_what_is_left_and_nothing_is_spent(plan_file, capsys):
    plan_file.write_text(PLAN + LEDGER)
    book = plan_file.parent / "ledger.sqlite"
    with tb.Ledger.create(book) as ledger:
        account = ledger.create_account("people", tb.PureDP(4), tb.Neighbours())
        account.debit(tb.PureDP(2), tb.Neighbours(), purpose="before", plan_digest="5f3a")
    said = said_by(capsys, plan_file, "--epsilon", "0.5,1,4", "--target", "1")
    assert "25 %" in said
    assert "200 %" in said
    assert "more than what is left, ε = 2 in account 'people'" in said
    with tb.Ledger.open(book) as ledger:
        assert len(ledger.account("people").entries()) == 1


def test_a_ledger_that_does_not_exist_yet_is_no_obstacle(plan_file, capsys):
    plan_file.write_text(PLAN + LEDGER)
    assert run(["plan", str(plan_file), "--epsilon", "1,2"]) == 0
    captured = capsys.readouterr()
    assert "There is no account 'people'" in captured.err
    assert "cost" not in captured.out
    assert not (plan_file.parent / "ledger.sqlite").exists()


def test_shrunk_tables_are_told_as_what_a_model_expects(plan_file, capsys):
    plan_file.write_text(PLAN.replace('"none"\n', '"shrink"\nrecords = 3000\n'))
    said = said_by(capsys, plan_file, "--target", "20")
    assert "which the planning model expects" in said
    assert "about 3,000 records; it is not a guarantee" in said
    assert "exact" not in said


@pytest.mark.parametrize(
    ("suffix", "begin"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")]
)
def test_a_picture_of_error_against_the_budget_is_drawn(plan_file, suffix, begin, capsys):
    picture = plan_file.parent / f"budgets.{suffix}"
    said_by(capsys, plan_file, "--target", "10", "--picture", picture)
    drawn = picture.read_bytes()
    assert drawn.startswith(begin)
    if suffix == "svg":
        assert b"target \xc2\xb110" in drawn
        assert b"sex by age" in drawn
    if suffix == "html":
        assert not re.search(rb"<(?:script|link)[^>]+(?:src|href)=.http", drawn)


def test_the_picture_of_many_tables_has_one_curve_per_number_of_attributes(plan_file, capsys):
    wide = "".join(f"[domain.x{i}]\nlevels = [0, 1]\n" for i in range(6))
    plan_file.write_text(
        PLAN.replace("[domain.sex]", f"{wide}[domain.sex]").replace("margins =", "k_way = [1, 2] #")
    )
    said_by(capsys, plan_file, "--epsilon", "1,2", "--picture", plan_file.parent / "many.svg")
    drawn = (plan_file.parent / "many.svg").read_text()
    assert "1 attribute, largest of 9" in drawn
    assert "2 attributes, largest of 36" in drawn


def test_the_budgets_fit_a_terminal_of_eighty_columns(plan_file, capsys):
    assert run(["plan", str(plan_file), "--epsilon", ",".join(f"0.0{i}" for i in range(1, 10))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    assert all(any(f"ε = 0.0{i} " in line for line in lines) for i in range(1, 10))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--epsilon", "0.1,,2"], "--epsilon has an empty place in its list"),
        (["--epsilon", "0"], "epsilon must be positive, not 0"),
        (["--epsilon", "1,-1"], "epsilon must be positive, not -1"),
        (["--epsilon", "one"], "epsilon must be a whole number"),
        (["--rho", "1"], "amounts of ρ are given, but the plan promises ε = 1"),
        (["--target", "small"], "the target 'small' is not understood"),
        (["--target", "0"], "a target must be above zero"),
        (["--target", "10", "--table", "[sex]"], "the plan has no table [sex]"),
        (["--target", "10", "--table", "[shoe]"], "the domain has no attribute 'shoe'"),
        (["--compare", "--target", "10"], "Use --compare alone"),
        (["--picture", "plan.gif"], "must end in .svg, .png or .html"),
        (["--picture", "nowhere/plan.svg"], "its folder does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_remedy(plan_file, words, reason, capsys):
    assert reason in said_by(capsys, plan_file, *words, code=2)


def test_a_picture_never_replaces_a_file(plan_file, capsys):
    taken = plan_file.parent / "taken.svg"
    taken.write_text("mine")
    assert "already exists" in said_by(capsys, plan_file, "--picture", taken, code=2)
    assert taken.read_text() == "mine"
