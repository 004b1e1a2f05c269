"""Every mechanism side by side: the same choice as the planner's, and reasons that are true."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidPlan, PublicError, TooManyCells
from tabulary.planning.comparison import (
    candidate_names,
    compare_plans,
    request_of,
    show_error,
    shrunk_name,
)
from tabulary.planning.face import Face
from tabulary.planning.request import Request

PEOPLE = tb.Domain({"sex": ["F", "M"], "age": range(8), "job": range(5), "region": range(10)})
ZEROS = tb.Domain({"sex": ["F", "M"], "age": range(3), "job": range(2)}, [{"age": 0, "job": 1}])
BINARY = tb.Domain({f"x{i}": range(2) for i in range(6)})
LARGE = tb.Domain({f"x{i}": range(9) for i in range(12)})
SPARSE = tb.Domain({f"x{i}": range(30) for i in range(8)})
PROMISES = [tb.PureDP(1), tb.ApproxDP(1, 1e-9), tb.ZCDP("1/8")]


def _request(work, privacy=PROMISES[0], *, relation="add-remove", contribution=1, sensitive=(), **options):
    near = tb.Neighbours(relation, contribution, sensitive)
    face = Face.named(options.pop("reconstruct", "auto"), "auto")
    return Request(work, privacy, near, face=face, **options)


def _plan(request, **options):
    return tb.plan(
        request.domain,
        request.workload,
        privacy=request.privacy,
        neighbours=request.neighbours,
        # The official face is what "auto" means.
        reconstruct="auto" if request.face.reconstruct == "shrink" else request.face.reconstruct,
        rounding=request.face.rounding,
        objective=request.objective,
        max_cells=request.max_cells,
        **options,
    )


def _assert_the_same(row, plan):
    assert row.mechanism == plan.mechanism
    assert row.noise == ("Laplace" if plan.norm == "L1" else "Gaussian")
    assert row.values == sum(part.query.draws(plan.measured_domain) for part in plan.measured)
    if not row.modelled:
        assert row.error == plan.expected_rmse


@pytest.mark.parametrize("privacy", PROMISES, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "max"},
        {"reconstruct": "shrink", "objective": "shrink"},
        {"reconstruct": "least-squares"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "work",
    [
        tb.Workload.all_up_to(PEOPLE, 2),
        tb.Workload.k_way(BINARY, 2).weighted({("x0", "x1"): 9}),
        tb.Workload.parse("[sex][age job]", ZEROS),
    ],
    ids=["levels", "binary", "zeros"],
)
def test_the_chosen_one_is_what_the_planner_chooses(work, privacy, options):
    request = _request(work, privacy, **options)
    _assert_the_same(compare_plans(request).chosen, _plan(request))


@st.composite
def requests(draw):
    """A small random domain, weighted workload and promise."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    domain = tb.Domain({f"x{i}": range(size) for i, size in enumerate(sizes)})
    every = list(tb.Workload.all_up_to(domain, len(sizes)).margins)
    margins = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    weights = draw(st.lists(st.integers(1, 20), min_size=len(margins), max_size=len(margins)))
    return _request(
        tb.Workload(domain, margins, weights),
        draw(st.sampled_from(PROMISES)),
        relation=draw(st.sampled_from(["add-remove", "replace"])),
        contribution=draw(st.integers(1, 3)),
        objective=draw(st.sampled_from(["rmse", "max"])),
    )


@settings(max_examples=30)
@given(requests())
def test_the_chosen_one_is_what_the_planner_chooses_for_any_request(request):
    try:
        planned = _plan(request)
    except PublicError as refusal:
        with pytest.raises(type(refusal), match=re.escape(str(refusal))):
            compare_plans(request, shrunk=False)
        return
    compared = compare_plans(request, shrunk=False)
    _assert_the_same(compared.chosen, planned)
    best = min(row.aim(request.objective) for row in compared.candidates)
    assert compared.chosen.aim(request.objective) == pytest.approx(best, rel=1e-8)
    assert compared == compare_plans(
        request_of(planned, objective=request.objective), planned=planned, shrunk=False
    )


@pytest.mark.parametrize("privacy", PROMISES, ids=str)
def test_a_row_says_what_its_own_plan_says(privacy):
    request = _request(tb.Workload.all_up_to(PEOPLE, 2), privacy)
    compared = compare_plans(request)
    for row in compared.best():
        options = {"objective": "shrink"} if row.modelled else {"objective": "rmse"}
        alone = tb.plan(PEOPLE, request.workload, privacy=privacy, mechanism=row.mechanism, **options)
        _assert_the_same(row, alone)
        assert row.whole == alone.face.whole(alone)
        if not row.modelled:
            largest = max(alone.error_of(m).standard_errors.max() for m in alone.workload)
            assert row.largest == pytest.approx(largest)
            assert row.worst == alone.expected_max


def test_only_margins_of_their_own_do_not_agree():
    official = compare_plans(_request(tb.Workload.k_way(BINARY, 2))).best()
    assert all(row.agree for row in official)
    rows = compare_plans(_request(tb.Workload.k_way(BINARY, 2), reconstruct="none")).best()
    assert {row.mechanism for row in rows if not row.agree} == {"margins"}
    alone = compare_plans(_request(tb.Workload.parse("[x0 x1]", BINARY))).best()
    assert all(row.agree for row in alone)


def test_both_families_of_noise_are_there_where_the_promise_leaves_a_choice():
    compared = compare_plans(_request(tb.Workload.all_up_to(PEOPLE, 2), tb.ApproxDP(1, 1e-9)))
    for row in compared.best():
        other = compared.other_noise(row)
        assert other.mechanism == row.mechanism
        assert {other.noise, row.noise} == {"Laplace", "Gaussian"}
        assert other.error >= row.error
    pure = compare_plans(_request(tb.Workload.all_up_to(PEOPLE, 2)))
    assert all(pure.other_noise(row) is None for row in pure.best())


def test_what_is_refused_says_why():
    compared = compare_plans(_request(tb.Workload.k_way(LARGE, 2)))
    reasons = {refusal.name: refusal.reason for refusal in compared.refusals}
    assert reasons.keys() == {"cells", "fourier"}
    assert "more than the cap" in reasons["cells"]
    shifted = compare_plans(
        _request(tb.Workload.parse("[age job]", ZEROS), reconstruct="shift"), shrunk=False
    )
    assert "needs the mechanism 'fourier'" in {r.name: r.reason for r in shifted.refusals}["residual"]


def test_each_mechanism_stands_among_the_candidates_or_among_the_refusals():
    for domain in (PEOPLE, ZEROS, LARGE):
        compared = compare_plans(_request(tb.Workload.k_way(domain, 1)))
        rows, refused = {row.name for row in compared.best()}, {refusal.name for refusal in compared.refusals}
        assert rows | refused == set(candidate_names())
        assert not rows & refused


def test_sensitive_attributes_leave_only_contrasts():
    work = tb.Workload.parse("[sex age][age job]", PEOPLE)
    request = _request(work, relation="replace", sensitive=("job",), reconstruct="none")
    compared = compare_plans(request)
    assert compared.chosen.mechanism == _plan(request).mechanism == "efron-stein"
    assert {refusal.name for refusal in compared.refusals} == {
        "cells",
        "margins",
        "fourier",
        "residual",
        "residual, shrunk",
    }


def test_nothing_that_can_be_done_is_refused_as_the_planner_refuses_it():
    work = tb.Workload.parse("[sex age]", PEOPLE)
    with pytest.raises(TooManyCells, match="more than the cap of 3"):
        compare_plans(_request(work, max_cells=3))
    with pytest.raises(InvalidPlan, match="no person can change any of these tables"):
        compare_plans(_request(tb.Workload.parse("[]", PEOPLE), relation="replace"))


def test_a_mechanism_asked_for_by_name_is_the_chosen_one_whatever_it_costs():
    work = tb.Workload.all_up_to(PEOPLE, 2)
    planned = tb.plan(PEOPLE, work, privacy=tb.PureDP(1), mechanism="margins")
    compared = compare_plans(request_of(planned), planned=planned)
    assert compared.chosen.mechanism == "margins"
    assert "'margins' was asked for" in compared.reason
    assert f"instead of {show_error(planned.expected_rmse)} a cell" in compared.reason


def test_the_reason_names_the_next_best_and_what_makes_it_dear():
    reason = compare_plans(_request(tb.Workload.k_way(LARGE, 2), tb.ApproxDP(1, 1e-9))).reason
    assert reason.startswith("'residual' has the smallest expected error")
    assert "'margins', the next" in reason
    assert "pays for 66 tables" in reason


def test_of_mechanisms_that_are_alike_the_reason_is_that_one_is_easier_to_explain():
    compared = compare_plans(_request(tb.Workload.parse("[sex]", PEOPLE)))
    assert compared.chosen.mechanism == "cells"
    assert "'cells' is the easiest to explain" in compared.reason


def test_an_error_of_zero_has_a_reason_too():
    # So much budget that a double holds no variance as small as that of the noise.
    domain = tb.Domain({"a": "wxyz", "b": "xy", "c": "xy"})
    best = tb.plan(domain, "[a b]", privacy=tb.ZCDP(1_000), mechanism="margins", reconstruct="lp")
    assert best.expected_rmse == 0
    assert ", not zero: " in compare_plans(request_of(best), planned=best).reason


def test_the_only_possible_mechanism_needs_no_other_reason():
    work = tb.Workload.parse("[sex age][age job]", PEOPLE)
    compared = compare_plans(
        _request(work, relation="replace", sensitive=("job",), reconstruct="none"), shrunk=False
    )
    assert compared.reason == "'efron-stein' is the only mechanism that can answer this request."


def test_what_a_model_expects_of_shrunk_tables_is_marked_and_not_chosen_for_another_objective():
    work = tb.Workload.k_way(LARGE, 2)
    compared = compare_plans(_request(work, tb.ApproxDP(1, 1e-9)))
    shrunk = next(row for row in compared.best() if row.modelled)
    assert shrunk.name == shrunk_name("residual")
    assert shrunk.error < compared.chosen.error
    assert math.isnan(shrunk.largest)
    assert not compared.chosen.modelled
    asked = compare_plans(_request(work, tb.ApproxDP(1, 1e-9), reconstruct="shrink", objective="shrink"))
    assert asked.chosen == shrunk
    assert "for about 100,000 records the planning model expects" in asked.reason
    assert f"by 'residual', has {show_error(compared.chosen.error)}" in asked.reason


@pytest.mark.parametrize("privacy", PROMISES, ids=str)
@pytest.mark.parametrize(
    "domain", [PEOPLE, ZEROS, BINARY, SPARSE], ids=["levels", "zeros", "binary", "sparse"]
)
def test_where_all_is_open_shrunk_tables_are_chosen_as_the_planner_does(domain, privacy):
    request = _request(tb.Workload.k_way(domain, 2), privacy, objective="auto")
    planned = _plan(request)
    compared = compare_plans(request)
    _assert_the_same(compared.chosen, planned)
    assert compared.chosen.reconstruct == planned.reconstruct
    again = compare_plans(request_of(planned), planned=planned)
    assert again.chosen == compared.chosen
    assert again.reason == compared.reason


def test_all_that_is_open_is_sometimes_shrunk_and_sometimes_not():
    few, many = tb.Workload.k_way(PEOPLE, 1), tb.Workload.k_way(SPARSE, 2)
    assert not compare_plans(_request(few, objective="auto")).chosen.modelled
    assert compare_plans(_request(many, tb.ApproxDP(1, 1e-9), objective="auto")).chosen.modelled


def test_a_smaller_error_of_shrunk_tables_that_was_not_taken_is_explained():
    sparse = compare_plans(_request(tb.Workload.k_way(SPARSE, 2), objective="rmse")).reason
    assert "without a bias" in sparse
    assert "if the budget is divided for them: objective = 'shrink' asks for that" in sparse
    domain = tb.Domain({"region": range(8), "sex": range(2), "age": range(18), "education": range(8)})
    small = compare_plans(_request(tb.Workload.all_up_to(domain, 2), tb.ZCDP("0.02"), objective="auto"))
    assert not small.chosen.modelled
    shrunk = next(row for row in small.best() if row.modelled)
    assert ("too small a gain for worse" in small.reason) is (shrunk.error < small.chosen.error)


def test_the_number_of_records_changes_what_the_model_expects_and_no_linear_estimate():
    work = tb.Workload.k_way(LARGE, 2)
    few = compare_plans(_request(work, tb.ApproxDP(1, 1e-9), records=1_000))
    many = compare_plans(_request(work, tb.ApproxDP(1, 1e-9), records=10_000_000))
    for one, other in zip(few.candidates, many.candidates, strict=True):
        assert (one.error == other.error) is not one.modelled


def test_the_worst_table_of_shrunk_ones_is_in_no_model():
    compared = compare_plans(_request(tb.Workload.k_way(PEOPLE, 2), objective="max"))
    assert not any(row.modelled for row in compared.candidates)
    assert "a cell in the worst table" in compared.reason


def test_progress_begins_at_nothing_and_comes_to_an_end():
    seen = []
    compare_plans(_request(tb.Workload.k_way(PEOPLE, 1)), progress=lambda *said: seen.append(said))
    assert [done for _, done, _ in seen] == list(range(len(candidate_names()) + 1))
    assert {total for _, _, total in seen} == {len(candidate_names())}
