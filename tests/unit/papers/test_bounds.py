"""The bounds: what they accept, and that the one from the noise is neither exceeded too often nor idle."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidArgument, UnknownMargin
from tabulary.noise import ExactSampler
from tabulary.planning import Measurement
from tabulary.planning.queries import ContrastMap
from tabulary.reconstruct.linear import linear_estimates
from tabulary.reconstruct.lp import solve_program
from tabulary_papers.bounds import (
    dmt_theorem_5_bound,
    published_quantile_bound,
    quantile_bound,
    yfr_theorem_1_bound,
    yfr_theorem_3_bound,
)
from tabulary_papers.published import published_efron_stein
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"A": range(2), "B": range(3), "C": range(4)})
BINARY = tb.Domain(dict.fromkeys("ABC", "01"))


def plan_of(domain, margins, **options):
    chosen = {"mechanism": "efron-stein", "reconstruct": "none"} | options
    return tb.plan(domain, margins, privacy=tb.PureDP(1), **chosen)


def errors_of(plan, margin, repetitions, seed):
    """The L1 error of the linear estimate of one margin, over and over: it does not depend on the data."""
    sampler = ExactSampler(SeededEntropy(seed))
    for _ in range(repetitions):
        drawn = tuple(sampler.draw(part.noise, plan.shape_of(part)) for part in plan.measured)
        yield np.abs(linear_estimates(Measurement(plan, drawn))[margin]).sum()


@pytest.mark.parametrize(
    ("domain", "margins", "margin"), [(DOMAIN, "[AB][BC]", ("B", "C")), (BINARY, "[AB][BC]", ("A", "B"))]
)
def test_the_error_of_the_linear_estimate_exceeds_its_bound_no_more_often_than_promised(
    domain, margins, margin
):
    plan = plan_of(domain, margins)
    errors = np.array(list(errors_of(plan, margin, 1000, seed=5)))
    assert np.mean(errors > quantile_bound(plan, margin, failure=0.2)) <= 0.2
    # The bound is not idle: a third of it is exceeded more often than that.
    assert np.mean(errors > quantile_bound(plan, margin, failure=0.2) / 3) > 0.2


def test_no_noise_within_the_quantile_takes_a_solution_of_the_program_beyond_the_bound():
    plan = plan_of(BINARY, "[A][B][C]", reconstruct="lp", rounding="none")
    linear_map = ContrastMap((2, 2, 2), ((), (0,), (1,), (2,)))
    bound = quantile_bound(plan, ("A",), failure=0.1)
    reach = plan.measured[0].noise.half_width(0.9 ** (1 / 4))
    errors = []
    for truth in reach * np.array([np.zeros(8), 10 * np.eye(8)[0], np.arange(8) % 3]).reshape(3, 2, 2, 2):
        for noise in product((-reach, 0, reach), repeat=4):
            found = solve_program(linear_map, linear_map.forward(truth) + np.array(noise)).table
            errors.append(np.abs((found - truth).sum(axis=(1, 2))).sum())
    # Some go well beyond what the noise alone explains, so the deviation of the program must be counted too.
    assert 0.6 * bound < max(errors) <= bound


def test_no_noise_within_the_quantile_takes_the_program_of_a_published_mechanism_beyond_the_bound():
    domain = tb.Domain({"A": range(3), "B": range(2)})
    truth = tb.Table(domain, [[400, 0], [90, 210], [0, 0]])
    drawn = published_efron_stein(truth, "[AB]", 1, sampler=ExactSampler(SeededEntropy(1)))
    bound = published_quantile_bound(drawn, ("A", "B"), failure=0.1)
    reach = drawn.noise.half_width(0.9 ** (1 / drawn.values.size))
    exact = drawn.linear_map.forward(truth.counts.astype(float))
    signs = np.random.default_rng(3).choice([-1, 0, 1], size=(300, drawn.values.size))
    errors = []
    for noise in reach * signs:
        found = replace(drawn, values=np.round(exact + noise).astype(np.int64)).solve()
        errors.append(np.abs(found.table.counts - truth.counts).sum())
    assert bound / 5 < max(errors) <= bound


def test_for_the_total_the_quantile_is_that_of_one_draw():
    plan = plan_of(BINARY, "[]")
    assert quantile_bound(plan, (), failure=0.05) == plan.measured[0].noise.half_width(0.95)


def test_margins_may_be_named_in_any_order():
    work = tb.Workload.parse("[AB]", BINARY)
    plan = plan_of(BINARY, "[AB]")
    assert quantile_bound(plan, tuple("BA"), failure=0.1) == quantile_bound(plan, tuple("AB"), failure=0.1)
    for bound in (yfr_theorem_1_bound, dmt_theorem_5_bound, yfr_theorem_3_bound):
        assert bound(work, tuple("BA"), 1, failure=0.1) == bound(work, tuple("AB"), 1, failure=0.1)


def test_rounding_a_vertex_adds_half_a_person_for_each_coefficient():
    real, whole = (plan_of(BINARY, "[AB]", reconstruct="lp", rounding=r) for r in ("none", "nearest"))
    assert quantile_bound(whole, tuple("AB"), failure=0.1) - quantile_bound(
        real, tuple("AB"), failure=0.1
    ) == pytest.approx(2)


def test_what_no_theorem_covers_is_refused():
    work = tb.Workload.parse("[AB]", DOMAIN)
    for bound in (yfr_theorem_1_bound, dmt_theorem_5_bound):
        with pytest.raises(InvalidArgument, match="binary"):
            bound(work, tuple("AB"), 1, failure=0.1)
    with pytest.raises(UnknownMargin, match=r"does not ask for the margin \[AC\]"):
        yfr_theorem_3_bound(work, tuple("AC"), 1, failure=0.1)
    for failure in (0, 1, float("nan")):
        with pytest.raises(InvalidArgument, match="failure"):
            yfr_theorem_3_bound(work, tuple("AB"), 1, failure=failure)


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "margins"},
        {"reconstruct": "least-squares"},
        {"reconstruct": "lp", "rounding": "controlled"},
    ],
)
def test_plans_without_a_known_quantile_are_refused(options):
    with pytest.raises(InvalidArgument, match="bound is known"):
        quantile_bound(plan_of(DOMAIN, "[AB]", **options), tuple("AB"), failure=0.1)


def test_a_margin_that_the_plan_does_not_measure_is_refused():
    with pytest.raises(UnknownMargin, match=r"every coefficient of \[AC\]"):
        quantile_bound(plan_of(DOMAIN, "[AB]"), tuple("AC"), failure=0.1)
