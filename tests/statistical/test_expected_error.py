"""Expected errors are promises about simulations: within 2 %, and the intervals cover."""

import numpy as np
import pytest

import tabulary as tb

DOMAIN = tb.Domain(
    {"a": range(20), "b": range(20), "c": range(3)},
    structural_zeros=[{"a": 0, "c": 1}, {"a": [0, 1], "b": [3, 4]}],
)
MARGINS = "[a b][a c][b][a]"
TARGET_ERRORS = 100_000


def _errors(plan, margin):
    """Simulated errors of the possible cells of one margin, and the half-widths that go with them."""
    table = tb.Table(DOMAIN, np.where(DOMAIN.impossible(DOMAIN.attributes), 0, 50))
    truth = table.project(margin).counts
    possible = ~DOMAIN.impossible(margin)
    errors, widths = [], []
    for _ in range(max(60, TARGET_ERRORS // int(possible.sum()))):
        released = tb.release(table, plan)[margin]
        errors.append((released.counts - truth)[possible])
        widths.append(released.half_widths(0.95)[possible])
    return np.concatenate(errors), np.concatenate(widths)


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["cells", "margins"])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/50")], ids=str)
def test_expected_error_agrees_with_simulation_within_two_percent(mechanism, privacy):
    plan = tb.plan(DOMAIN, MARGINS, privacy=privacy, mechanism=mechanism)
    expected = plan.expected_error()
    for margin in plan.workload:
        errors, widths = _errors(plan, margin)
        observed = np.sqrt(np.mean(errors.astype(float) ** 2))
        # Draws of one measurement may be summed in several ways, but cells of one margin are independent.
        assert observed == pytest.approx(expected[margin].standard_error, rel=0.02), margin
        coverage = np.mean(np.abs(errors) <= widths)
        assert 0.9475 <= coverage <= 0.975, margin


def test_expected_error_of_one_table_agrees_with_simulation_within_two_percent():
    plan = tb.plan(DOMAIN, "[a b]", privacy=tb.PureDP("1/2"))
    errors, widths = _errors(plan, ("a", "b"))
    observed = np.sqrt(np.mean(errors.astype(float) ** 2))
    assert observed == pytest.approx(plan.expected_error()[("a", "b")].standard_error, rel=0.02)
    noise, width = plan.measured[0].noise, int(widths[0])
    promised = float(noise.cdf(width) - noise.cdf(-width - 1))
    assert promised >= 0.95
    assert np.mean(np.abs(errors) <= widths) == pytest.approx(promised, abs=0.004)
