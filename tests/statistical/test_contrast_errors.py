"""Errors of tables made of contrasts: linear ones are promises, simulated ones are honest."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.reconstruct import reconstruct
from tabulary.reconstruct.linear import linear_estimates
from tabulary.workflows.auditing.evidence import NarrowedSampler
from tests.entropy import SeededEntropy

MIXED = tb.Domain({"a": range(16), "b": range(5), "c": range(3)})
BINARY = tb.Domain({letter: range(2) for letter in "ABCDEF"})
PADDED = tb.Domain({"a": range(8), "b": range(4), "c": range(2)})


def dense(domain):
    """A table without small cells."""
    return tb.Table(domain, np.random.default_rng(7).integers(50, 200, domain.shape))


def linear_errors(plan, repetitions, sampler):
    """Errors of the linear estimates, one row a repetition."""
    table = dense(plan.domain)
    tally = Tally.from_table(table, plan.counted)
    truth = {m: table.project(m).counts for m in plan.workload}
    runs = [linear_estimates(measure(tally, plan, sampler)) for _ in range(repetitions)]
    return {m: np.array([run[m] - truth[m] for run in runs]) for m in plan.workload}


def ratio_and_coverage(plan, repetitions, sampler):
    """For each table, the observed over the expected standard error, and how often the half-width held."""
    expected = plan.expected_error()
    found = {}
    for margin, errors in linear_errors(plan, repetitions, sampler).items():
        observed = np.sqrt(np.mean(errors**2))
        covered = np.mean(np.abs(errors) <= plan.error_of(margin).half_widths(0.95) + 1e-9)
        found[margin] = observed / expected[margin].standard_error, covered
    return found


def assert_agrees(plan, repetitions, sampler):
    for margin, (ratio, covered) in ratio_and_coverage(plan, repetitions, sampler).items():
        assert ratio == pytest.approx(1, abs=0.02), margin
        # Whole numbers and the correction for heavy tails err to the wide side.
        assert 0.945 <= covered <= 0.97, margin


def test_expected_error_of_contrasts_agrees_with_simulation_within_two_percent():
    plan = tb.plan(MIXED, "[a b]", privacy=tb.PureDP(1), mechanism="efron-stein")
    assert_agrees(plan, 1_500, ExactSampler(SeededEntropy(1)))
    ratio, covered = ratio_and_coverage(plan, 200, NarrowedSampler(ExactSampler()))["a", "b"]
    assert ratio < 0.9
    assert covered > 0.97


@pytest.mark.audit
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.PureDP(20), tb.ZCDP("1/8")], ids=str)
@pytest.mark.parametrize(
    ("domain", "mechanism", "margins"),
    [
        (MIXED, "efron-stein", "[a b][b c][a]"),
        (BINARY, "fourier", "[A B C][C D][E F A]"),
        (PADDED, "fourier", "[a b][b c]"),
        (PADDED, "efron-stein", "[a b][b c]"),
    ],
    ids=["mixed", "binary", "padded", "padded as levels"],
)
def test_expected_error_agrees_with_simulation_for_every_kind_of_domain(domain, mechanism, margins, privacy):
    plan = tb.plan(domain, margins, privacy=privacy, mechanism=mechanism, reconstruct="none")
    assert_agrees(plan, 6_000, ExactSampler(SeededEntropy(2)))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_every_expected_standard_error_is_that_of_the_explicit_inverse(neighbours):
    domain = tb.Domain({"a": range(4), "b": range(3)})
    plan = tb.plan(domain, "[a b]", privacy=tb.PureDP(1), mechanism="efron-stein", neighbours=neighbours)
    matrices = [
        np.array([[1] * k] + [[1 if x < i else -i if x == i else 0 for x in range(k)] for i in range(1, k)])
        for k in domain.shape
    ]
    inverse = np.linalg.inv(np.kron(*matrices))
    deviations = np.sqrt((inverse**2).sum(axis=1) * plan.measured[0].noise.variance).reshape(domain.shape)
    assert plan.error_of(("a", "b")).standard_errors == pytest.approx(deviations)


def coverage(mechanism, reconstructor, releases, *, factor=1.0):
    """How often the simulated half-widths of a constrained estimate hold the true count, over all cells."""
    domain = tb.Domain({"a": range(3), "b": range(2), "c": range(2)})
    plan = tb.plan(
        domain,
        "[a b][b c]",
        privacy=tb.PureDP(2),
        mechanism=mechanism,
        reconstruct=reconstructor,
    )
    table = dense(domain)
    tally = Tally.from_table(table, plan.counted)
    held = []
    for seed in range(releases):
        measurement = measure(tally, plan, ExactSampler(SeededEntropy(seed)))
        made = reconstruct(measurement)
        for margin in plan.workload:
            errors = np.abs(made.tables[margin] - table.project(margin).counts)
            held.append(np.mean(errors <= factor * made.errors(margin).half_widths(0.95)))
    return float(np.mean(held))


@pytest.mark.audit
@pytest.mark.parametrize(
    ("mechanism", "reconstructor"),
    [
        ("cells", "least-squares"),
        *((m, r) for m in ("margins", "efron-stein", "fourier") for r in ("least-squares", "lp")),
    ],
)
def test_simulated_intervals_of_a_dense_table_hold_and_half_of_them_do_not(mechanism, reconstructor):
    assert coverage(mechanism, reconstructor, 30) >= 0.90
    assert coverage(mechanism, reconstructor, 10, factor=0.5) < 0.90


def test_simulated_intervals_of_least_squares_hold_and_half_of_them_do_not():
    assert coverage("cells", "least-squares", 25) >= 0.90
    assert coverage("cells", "least-squares", 25, factor=0.5) < 0.90
