"""The cost of a plan, computed again from single records."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

import tabulary as tb
from tabulary.mechanisms import MECHANISMS
from tabulary.noise import DiscreteLaplace
from tabulary.workflows.auditing import cost
from tabulary.workflows.auditing.cost import change_between, check_cost
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"a": "xy", "b": "xyz", "c": "uv"}, [{"a": "x", "c": "v"}])
every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))


def forged(plan, factor):
    """The same plan with less noise than its loss allows, past the plan's own check."""
    thin = tuple(replace(part, noise=part.noise.narrowed(Fraction(factor))) for part in plan.measured)
    object.__setattr__(plan, "measured", thin)
    return plan


def a_plan(mechanism="cells", relation="add-remove", domain=DOMAIN, privacy=None, **options):
    reconstruct = "none" if mechanism in ("cells", "margins") else "least-squares"
    return tb.plan(
        domain,
        "[a b][b c]",
        privacy=privacy or tb.PureDP(1),
        neighbours=relation,
        mechanism=mechanism,
        reconstruct=reconstruct,
        **options,
    )


@every_mechanism
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/8"), tb.ApproxDP(1, 1e-6)], ids=str)
def test_all_possible_records_of_a_small_domain_are_compared_and_cost_the_loss(mechanism, relation, privacy):
    plan = a_plan(mechanism, relation, privacy=privacy, contribution=2)
    checked = check_cost(plan, SeededEntropy(1))
    assert checked.every_pair
    assert checked.records == 9
    assert checked.pairs == (9 if relation == "add-remove" else 36)
    assert checked.problems == ()
    assert checked.found <= checked.certificate


@every_mechanism
def test_noise_that_is_too_small_for_the_loss_is_found_without_a_draw(mechanism):
    checked = check_cost(forged(a_plan(mechanism), "7/10"), SeededEntropy(1))
    assert checked.found == pytest.approx(1 / 0.7)
    assert any("more than the plan's loss" in problem for problem in checked.problems)


def test_a_loss_that_does_not_imply_the_promise_is_found():
    plan = a_plan()
    object.__setattr__(plan, "privacy", tb.PureDP("1/2"))
    assert any("does not imply" in problem for problem in check_cost(plan, SeededEntropy(1)).problems)


def test_a_certificate_that_is_too_small_is_found_by_a_pair_of_records(monkeypatch):
    plan = a_plan()
    monkeypatch.setattr(type(plan), "cost", lambda self: Fraction(1, 2))
    assert any("own bound" in problem for problem in check_cost(plan, SeededEntropy(1)).problems)


def test_a_number_released_exactly_that_differs_between_neighbours_is_found():
    domain = tb.Domain({"a": "xy", "b": "xy", "c": "xy"})
    plan = tb.plan(domain, "[a b][c]", privacy=tb.PureDP(1), neighbours="replace", sensitive=["b"])
    assert plan.exact
    assert check_cost(plan, SeededEntropy(1)).problems == ()
    object.__setattr__(plan, "neighbours", tb.Neighbours("replace"))
    problems = check_cost(plan, SeededEntropy(1)).problems
    assert "a number that is released without noise differs between neighbours" in problems


def test_a_mechanism_that_is_not_additive_is_found(monkeypatch):
    plan = a_plan()
    real = cost.measured

    def squared(plan, records, sampler=None):
        return real(plan, {record: times**2 for record, times in records.items()}, sampler)

    monkeypatch.setattr(cost, "measured", squared)
    assert any("not sums" in problem for problem in check_cost(plan, SeededEntropy(1)).problems)


@pytest.mark.parametrize("mechanism", ["margins", "fourier", "efron-stein", "residual"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_domain_beyond_all_tables_is_bounded_from_both_sides(mechanism, relation):
    domain = tb.Domain({f"x{i}": "yn" for i in range(50)})
    work = tb.Workload(domain, [[f"x{i}", f"x{i + 1}"] for i in range(8)])
    plan = tb.plan(domain, work, privacy=tb.PureDP(1), mechanism=mechanism, neighbours=relation)
    checked = check_cost(plan, SeededEntropy(1))
    assert not checked.every_pair
    assert checked.certificate / 2 < checked.found <= checked.certificate <= 1
    assert checked.problems == ()


def test_a_record_that_may_be_left_out_is_compared_with_nothing():
    plan = a_plan(relation=tb.Neighbours("replace", may_drop=True))
    checked = check_cost(plan, SeededEntropy(1))
    assert checked.pairs == 36 + 9
    assert checked.problems == ()


def test_the_worst_pair_is_one_that_costs_what_was_found():
    plan = a_plan("efron-stein", "replace")
    checked = check_cost(plan, SeededEntropy(1))
    change, start, total = change_between(plan, checked.worst), 0, Fraction(0)
    for part in plan.measured:
        assert isinstance(part.noise, DiscreteLaplace)
        size = math.prod(plan.shape_of(part))
        total += int(abs(change[start : start + size]).sum()) / part.noise.scale
        start += size
    assert total == checked.found
