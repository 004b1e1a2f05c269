"""Expected errors are promises about simulations: within 2 %, and the intervals cover."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.reconstruct import linear_estimates
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain(
    {"a": range(60), "b": range(60), "c": range(3)},
    structural_zeros=[{"a": 0, "c": 1}, {"a": [0, 1], "b": [3, 4]}],
)
# Contrasts and residuals as they are measured put noise in every cell. All cells of a table share that of its
# lower orders, so many cells are no help: only repetitions bring a simulation within 2 %.
WHOLE = tb.Domain({"a": range(9), "b": range(8), "c": range(2), "d": range(3)})


def _errors(plan, repetitions):
    """Simulated errors of the possible cells of every margin, one row a repetition."""
    domain = plan.domain
    table = tb.Table(domain, np.where(domain.impossible(domain.attributes), 0, 50))
    tally = Tally.from_table(table, plan.counted)
    truth = {m: table.project(m).counts for m in plan.workload}
    possible = {m: ~domain.impossible(m) for m in plan.workload}
    sampler = ExactSampler(SeededEntropy(20))
    runs = [linear_estimates(measure(tally, plan, sampler)) for _ in range(repetitions)]
    return {m: np.array([(run[m] - truth[m])[possible[m]] for run in runs]) for m in plan.workload}


def _agree(plan, repetitions):
    expected = plan.expected_error()
    for margin, errors in _errors(plan, repetitions).items():
        observed = np.sqrt(np.mean(errors.astype(float) ** 2))
        assert observed == pytest.approx(expected[margin].standard_error, rel=0.02), margin
        law = plan.error_of(margin)
        widths = law.half_widths(0.95)[~plan.domain.impossible(margin)]
        # The half-width is a whole number, so it covers a little more than it must.
        assert 0.945 <= np.mean(np.abs(errors) <= widths) <= 0.975, margin


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["cells", "margins"])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/50")], ids=str)
def test_expected_error_agrees_with_simulation_within_two_percent(mechanism, privacy):
    _agree(tb.plan(DOMAIN, "[a b][a c][b][a]", privacy=privacy, mechanism=mechanism), 2_000)


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["efron-stein", "residual"])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/50"), tb.ApproxDP(1, 1e-9)], ids=str)
def test_expected_error_of_what_is_combined_agrees_with_simulation_within_two_percent(mechanism, privacy):
    work = tb.Workload.parse("[a b][a c][b c d][b]", WHOLE).weighted({("b",): 5})
    _agree(tb.plan(WHOLE, work, privacy=privacy, mechanism=mechanism), 20_000)


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["fourier", "residual"])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/50")], ids=str)
def test_expected_error_of_binary_tables_agrees_with_simulation_within_two_percent(mechanism, privacy):
    domain = tb.Domain(dict.fromkeys("ABCDE", "01"))
    _agree(tb.plan(domain, "[A B C][C D][D E][A]", privacy=privacy, mechanism=mechanism), 20_000)


def test_expected_error_of_one_table_agrees_with_simulation_within_two_percent():
    plan = tb.plan(DOMAIN, "[a b]", privacy=tb.PureDP("1/2"))
    _agree(plan, 40)
    noise = plan.measured[0].noise
    errors = _errors(plan, 40)["a", "b"]
    width = noise.half_width(0.95)
    promised = float(noise.cdf(width) - noise.cdf(-width - 1))
    assert promised >= 0.95
    assert np.mean(np.abs(errors) <= width) == pytest.approx(promised, abs=0.004)
