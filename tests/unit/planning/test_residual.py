"""Plans of residuals: what they measure, what they expect, what they refuse, and when they are chosen."""

import json
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.core.residuals import add_up, component
from tabulary.errors import InvalidDomain, InvalidPlan, PublicError, TooManyCells, UnknownMargin
from tabulary.mechanisms import measure
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler
from tabulary.planning import Part, Plan, Residuals, plan_from_description
from tests.entropy import SeededEntropy

PEOPLE = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]})
ZEROS = tb.Domain(dict(zip(PEOPLE.attributes, PEOPLE.levels, strict=True)), [{"age": "0-14", "job": "paid"}])
MIXED = tb.Domain({"a": range(2), "b": range(3), "c": range(4), "d": range(1)})
EVERY = ("cells", "margins", "fourier", "efron-stein", "residual")


def _subsets(margin):
    return [s for k in range(len(margin) + 1) for s in combinations(margin, k)]


def _plan_of(domain, work, parts, *, laplace=True):
    """A plan of the given parts (margin, centred) and scales, with a loss that is large enough for all."""
    measured = tuple(
        Part(Residuals(m, b), DiscreteLaplace(s) if laplace else DiscreteGaussian(s))
        for (m, b), s in parts.items()
    )
    loss = tb.PureDP(10**9) if laplace else tb.ZCDP(10**9)
    return Plan(domain, tb.Workload.parse(work, domain), loss, loss, tb.Neighbours(), "residual", measured)


@st.composite
def any_parts(draw):
    """Arbitrary parts with arbitrary scales that determine a workload of a small domain."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    domain = tb.Domain({f"x{i}": range(size) for i, size in enumerate(sizes)})
    every = [(m, b) for m in _subsets(domain.attributes) for b in _subsets(m)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    wanted = draw(st.lists(st.sampled_from(_subsets(domain.attributes)), min_size=1, max_size=3, unique=True))
    # What the chosen parts may not tell, the wanted tables themselves do.
    chosen = list(dict.fromkeys([*chosen, *((m, ()) for m in wanted)]))
    scales = draw(st.lists(st.fractions("1/2", 20), min_size=len(chosen), max_size=len(chosen)))
    return domain, tb.Workload(domain, wanted), dict(zip(chosen, scales, strict=True))


@st.composite
def requests(draw, zeros=True):
    """A small random domain, weighted workload and promise."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    names = [f"x{i}" for i in range(len(sizes))]
    impossible = (
        draw(st.lists(st.dictionaries(st.sampled_from(names), st.just(0), min_size=1), max_size=1))
        if zeros
        else []
    )
    try:
        domain = tb.Domain(dict(zip(names, map(range, sizes), strict=True)), impossible)
    except InvalidDomain:
        assume(False)
    chosen = draw(st.lists(st.sampled_from(_subsets(domain.attributes)), min_size=1, max_size=5, unique=True))
    weights = draw(st.lists(st.integers(1, 20), min_size=len(chosen), max_size=len(chosen)))
    return {
        "domain": domain,
        "workload": tb.Workload(domain, chosen, weights),
        "privacy": draw(st.sampled_from([tb.PureDP("1/3"), tb.ApproxDP(2, 1e-6), tb.ZCDP("1/8")])),
        "neighbours": draw(st.sampled_from(["add-remove", "replace"])),
        "contribution": draw(st.integers(1, 3)),
    }


def _plan_or_none(request, **options):
    try:
        return tb.plan(**request, **options)
    except InvalidPlan:
        return None  # Nothing that one person could change, or noise in impossible cells.


def _weights(plan, margin):
    """Every draw's weight in the first cell of a table, part by part, by measuring one unit at a time."""
    levels = dict(zip(plan.domain.attributes, plan.domain.shape, strict=True))
    shape = plan.domain.shape_of(margin)
    for part, v in zip(plan.measured, plan.estimator.noise_variances, strict=True):
        sides = plan.domain.shape_of(part.margin)
        centred = [part.margin.index(a) for a in part.query.centred]
        found = []
        for unit in np.eye(math.prod(plan.shape_of(part))):
            told = {}
            for r in (r for r in _subsets(margin) if set(part.query.centred) <= set(r) <= set(part.margin)):
                onto = [part.margin.index(a) for a in r]
                own = v * math.prod(levels[a] for a in part.margin if a not in r)
                own *= math.prod(1 / 2 if levels[a] == 2 else levels[a] ** -2 for a in part.query.centred)
                values = unit.reshape(plan.shape_of(part))
                told[tuple(margin.index(a) for a in r)] = (
                    plan.residual_variances[r] / own * component(values, sides, centred, onto)
                )
            found.append(add_up(told, shape).reshape(-1)[0] if told else 0.0)
        yield part.noise, np.array(found)


@given(any_parts())
@settings(max_examples=60)
def test_the_law_of_a_cell_is_that_of_its_weighted_draws(asked):
    domain, work, parts = asked
    plan = _plan_of(domain, str(work), parts)
    for margin in work:
        law = plan.error_of(margin)
        weights = list(_weights(plan, margin))
        variance = sum(noise.variance * (w**2).sum() for noise, w in weights)
        cumulant = sum(noise.fourth_cumulant * (w**4).sum() for noise, w in weights)
        assert law.standard_errors == pytest.approx(math.sqrt(variance))
        assert law.kurtosis == pytest.approx(cumulant / variance**2)


def test_tails_are_bounded_where_there_are_too_many_sets_to_add_them_up(monkeypatch):
    parts = {(("a", "b"), ()): Fraction(3), (("c",), ()): Fraction(1)}
    exact = _plan_of(MIXED, "[a b][c]", parts).error_of(("a", "b")).kurtosis
    monkeypatch.setattr("tabulary.planning.residual_errors.MOST_PAIRS", 2)
    bounded = _plan_of(MIXED, "[a b][c]", parts).error_of(("a", "b")).kurtosis
    assert (bounded >= exact).all()


def test_gaussian_noise_has_no_tails_to_correct_for():
    plan = tb.plan(MIXED, "[a b][b c d]", privacy=tb.ZCDP("1/10"), mechanism="residual")
    assert not plan.error_of(("a", "b")).kurtosis.any()


@given(requests())
@settings(max_examples=40)
def test_auto_is_never_worse_than_a_mechanism_that_is_there(asked):
    for objective in ("rmse", "max"):
        chosen = _plan_or_none(asked, objective=objective)
        if chosen is None:
            continue
        for mechanism in EVERY:
            alone = _plan_or_none(asked, mechanism=mechanism, objective=objective)
            # A reconstruction that nobody asked for is not chosen: its error is not known beforehand.
            if alone is not None and alone.reconstruct == "none":
                errors = [p.expected_max if objective == "max" else p.expected_rmse for p in (chosen, alone)]
                assert errors[0] <= errors[1] * (1 + 1e-8), (objective, mechanism)


@given(requests(zeros=False))
@settings(max_examples=40)
def test_residuals_are_never_worse_than_plain_counts(asked):
    plan = _plan_or_none(asked, mechanism="residual")
    assume(plan is not None)
    for mechanism in ("cells", "margins"):
        assert plan.expected_rmse <= tb.plan(**asked, mechanism=mechanism).expected_rmse * (1 + 1e-8)


@given(requests(zeros=False))
@settings(max_examples=40)
def test_a_plan_costs_no_more_than_its_loss_and_survives_its_description(asked):
    plan = _plan_or_none(asked, mechanism="residual")
    assume(plan is not None)
    allowed = plan.loss.epsilon if isinstance(plan.loss, tb.PureDP) else plan.loss.rho
    assert plan.cost() == allowed
    again = plan_from_description(json.loads(json.dumps(plan.describe())))
    assert again == plan
    assert again.digest() == plan.digest()


def test_a_tie_goes_to_the_mechanism_that_is_easier_to_explain():
    for privacy in (tb.PureDP(1), tb.ZCDP(1)):
        assert tb.plan(PEOPLE, "[sex age]", privacy=privacy).mechanism == "cells"


def test_many_tables_of_attributes_of_many_levels_are_measured_as_residuals():
    domain = tb.Domain({f"x{i}": range(10) for i in range(6)})
    work = tb.Workload.all_up_to(domain, 2)
    for privacy in (tb.PureDP(1), tb.ZCDP("1/8")):
        chosen = tb.plan(domain, work, privacy=privacy, reconstruct="none")
        assert chosen.mechanism == "residual"
        assert (
            chosen.expected_rmse
            < 0.9 * tb.plan(domain, work, privacy=privacy, mechanism="margins").expected_rmse
        )


def test_the_largest_error_is_smaller_where_that_is_the_objective():
    work = tb.Workload.parse("[sex][age job][sex age job]", PEOPLE).weighted({("sex",): 40})
    asked = {"privacy": tb.ZCDP("1/10"), "mechanism": "residual"}
    least, even = (tb.plan(PEOPLE, work, **asked, objective=o) for o in ("rmse", "max"))
    assert even.expected_max < least.expected_max
    assert least.expected_rmse < even.expected_rmse


def test_the_expected_maximum_is_that_of_the_worst_table_by_its_weight():
    work = tb.Workload.parse("[sex][age]", PEOPLE).weighted({("sex",): 9})
    plan = tb.plan(PEOPLE, work, privacy=tb.PureDP(1), mechanism="margins")
    rows = {row.margin: row.standard_error for row in plan.expected_error()}
    assert plan.expected_max == pytest.approx(max(3 * rows["sex",], rows["age",]))


def test_what_is_centred_is_described_for_residuals_alone():
    residual = tb.plan(PEOPLE, "[sex age]", privacy=tb.ZCDP(1), mechanism="residual").describe()
    margins = tb.plan(PEOPLE, "[sex age]", privacy=tb.ZCDP(1), mechanism="margins").describe()
    assert all("centred" in part for part in residual["measured"])
    assert not any("centred" in part for part in margins["measured"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"centred": ["job"]}, "does not name its attributes in the domain's order"),
        ({"centred": ["age", "sex"]}, "does not name its attributes in the domain's order"),
        ({"centred": ["sex", "sex"]}, "does not name its attributes in the domain's order"),
        ({"attributes": ["age", "sex"]}, "does not name its attributes in the domain's order"),
        ({"query": "counts"}, "does not measure what this plan lists"),
        ({"query": "contrasts"}, "does not measure what this plan lists"),
    ],
    ids=str,
)
def test_a_description_of_parts_that_cannot_be_is_refused(change, reason):
    described = _plan_of(PEOPLE, "[sex age]", {(("sex", "age"), ()): 3}).describe()
    described["measured"][0].update(change)
    with pytest.raises(PublicError, match=reason):
        plan_from_description(described)


def test_a_description_without_what_is_centred_is_refused():
    described = _plan_of(PEOPLE, "[sex age]", {(("sex", "age"), ()): 3}).describe()
    del described["measured"][0]["centred"]
    with pytest.raises(InvalidPlan, match="claims something that does not follow"):
        plan_from_description(described)


def test_counts_that_claim_to_be_centred_are_refused():
    described = tb.plan(PEOPLE, "[sex]", privacy=tb.PureDP(1), mechanism="margins").describe()
    described["measured"][0]["centred"] = ["sex"]
    with pytest.raises(InvalidPlan, match="claims something that does not follow"):
        plan_from_description(described)


def test_a_part_that_is_listed_twice_is_refused():
    described = _plan_of(PEOPLE, "[sex age]", {(("sex", "age"), ()): 3}).describe()
    described["measured"] *= 2
    with pytest.raises(InvalidPlan, match="twice"):
        plan_from_description(described)


def test_a_table_that_the_parts_do_not_determine_is_refused():
    with pytest.raises(UnknownMargin, match="residual of"):
        _plan_of(
            PEOPLE, "[sex age]", {((), ()): 1, (("sex",), ("sex",)): 1, (("sex", "age"), ("sex", "age")): 1}
        )
    with pytest.raises(UnknownMargin, match=r"every residual of \[sex job\]"):
        _plan_of(PEOPLE, "[sex age]", {(("sex", "age"), ()): 1}).error_of(("sex", "job"))


def test_only_the_largest_measured_tables_are_counted():
    plan = tb.plan(PEOPLE, "[sex][sex age][age job]", privacy=tb.ZCDP(1), mechanism="residual")
    assert set(plan.counted) == {("sex", "age"), ("age", "job")}


def test_impossible_cells_are_not_among_those_that_can_be_wrong():
    asked = {"privacy": tb.ZCDP(1), "mechanism": "residual"}
    assert (
        tb.plan(ZEROS, "[age job]", **asked, reconstruct="none")
        .error_of(("age", "job"))
        .standard_errors.min()
        == 0
    )
    assert tb.plan(ZEROS, "[age job]", **asked).reconstruct == "shrink"
    assert tb.plan(ZEROS, "[age job]", **asked, reconstruct="lp").expected_error()["age", "job"].cells == 5


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"reconstruct": "shift"}, "'fourier' or 'efron-stein'"),
        ({"objective": "shrink", "mechanism": "margins"}, "'residual'"),
        ({"reconstruct": "shrink", "rounding": "nearest", "objective": "rmse"}, "'controlled'"),
        ({"reconstruct": "none", "rounding": "controlled"}, "rounding needs"),
        ({"objective": "beauty"}, "objective must be one of"),
        ({"records": 0}, "records must be"),
        ({"neighbours": "replace", "sensitive": ["sex"]}, "sensitive attributes use 'fourier'"),
    ],
    ids=str,
)
def test_options_that_do_not_go_together_are_refused(options, why):
    asked = {"privacy": tb.ZCDP(1), "mechanism": "residual"} | options
    with pytest.raises(InvalidPlan, match=why):
        tb.plan(PEOPLE, "[sex age]", **asked)


def test_shrinking_makes_auto_choose_residuals():
    asked = {"privacy": tb.ZCDP(1), "reconstruct": "shrink"}
    plan = tb.plan(PEOPLE, "[sex age]", **asked)
    assert (plan.mechanism, plan.reconstruct, plan.records) == ("residual", "shrink", 100_000)
    assert tb.plan(PEOPLE, "[sex age]", **asked, objective="rmse").records is None
    assert plan_from_description(plan.describe()) == plan


def test_a_closure_that_is_too_large_is_refused_with_the_alternative():
    work = tb.Workload.k_way(tb.Domain(dict.fromkeys("ABCDEF", "01")), 4)
    with pytest.raises(TooManyCells, match=r"closure.*cap of 40.*'margins'"):
        tb.plan(work.domain, work, privacy=tb.PureDP(1), mechanism="residual", max_cells=40)


def test_noise_that_is_hardly_ever_drawn_does_not_divide_by_zero():
    plan = tb.plan(PEOPLE, "[sex age][job]", privacy=tb.PureDP(5000), mechanism="residual")
    assert plan.expected_rmse < 1e-9
    assert math.isfinite(plan.expected_error()["sex", "age"].half_width)


def test_a_set_on_one_level_needs_no_measurement():
    plan = tb.plan(MIXED, "[a d][d]", privacy=tb.ZCDP(1), mechanism="residual")
    assert plan.residual_variances["a", "d"] == plan.residual_variances["d",] == 0
    assert all(math.prod(plan.shape_of(part)) for part in plan.measured)


@pytest.mark.parametrize("mechanism", ["cells", "margins", "fourier", "efron-stein", "residual"])
def test_every_mechanism_knows_how_well_it_knows_each_residual(mechanism):
    domain = tb.Domain({"a": "xy", "b": "xyz", "c": "wxyz"})
    plan = tb.plan(domain, "[a b][b c]", privacy=tb.ZCDP(1), mechanism=mechanism, reconstruct="none")
    table = tb.Table(domain, np.zeros(domain.shape, dtype=np.int64))
    tally, draws = Tally.from_table(table, plan.counted), 400
    squares = dict.fromkeys(plan.estimator.covered, 0.0)
    for seed in range(draws):
        measured = measure(tally, plan, ExactSampler(SeededEntropy(seed)))
        for s, residual in plan.estimator.residuals(measured.values.__getitem__).items():
            squares[s] += float((residual**2).sum()) / draws
    for s, found in squares.items():
        # The trace of σ² P is σ² Π (k - 1). Of 400 means of squares none is off by two fifths.
        expected = plan.residual_variances[s] * math.prod(k - 1 for k in domain.shape_of(s))
        assert found == pytest.approx(expected, rel=0.4), s


@pytest.mark.slow
@pytest.mark.parametrize(("attributes", "levels", "order"), [(30, 10, 2), (20, 2, 3)])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/10"), tb.ApproxDP(1, 1e-9)], ids=str)
def test_thousands_of_tables_are_planned_and_described(attributes, levels, order, privacy):
    domain = tb.Domain({f"x{i}": range(levels) for i in range(attributes)})
    work = tb.Workload.k_way(domain, order)
    # The table of all attributes is out of reach, as it would be with more of them.
    plan = tb.plan(domain, work, privacy=privacy, max_cells=2**19, reconstruct="none")
    assert plan.mechanism == "residual"
    assert len(plan.expected_error()) == len(work)
    assert plan_from_description(plan.describe()).digest() == plan.digest()


def test_every_plan_for_replaced_records_makes_use_of_their_public_number():
    domain = tb.Domain({"A": range(4), "B": range(4), "C": range(16)})
    work = tb.Workload.k_way(domain, 2)
    made = tb.plan(domain, work, privacy=tb.PureDP(1), neighbours="replace", mechanism="residual")
    (total,) = (part for part in made.measured if part.margin == ())
    assert 1_000 * total.noise.scale <= min(part.noise.scale for part in made.measured if part.margin)
    assert made.loss == tb.PureDP(1)


@pytest.mark.slow
def test_the_full_table_is_considered_beyond_twelve_attributes():
    domain = tb.Domain({f"a{i}": "01" for i in range(14)})
    triples = tb.Workload.k_way(domain, 3)
    errors = {
        name: tb.plan(
            domain, triples, privacy=tb.PureDP(1), mechanism=name, reconstruct="none"
        ).expected_error()
        for name in ("residual", "cells")
    }
    for ours, cells in zip(errors["residual"], errors["cells"], strict=True):
        assert ours.standard_error <= cells.standard_error * (1 + 1e-9)
