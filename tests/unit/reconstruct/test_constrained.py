"""The full table behind a plan: what was measured of it, and what it is summed to."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.noise import ExactSampler
from tabulary.planning.queries import ContrastMap, Contrasts, Counts, MarginMap, ResidualMap, Residuals
from tabulary.reconstruct.constrained import FullTable, measured_vector
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"], "unused": range(7)},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
COUNTS = np.arange(84).reshape(2, 3, 2, 7) + 1
COUNTS[DOMAIN.impossible(DOMAIN.attributes)] = 0
TABLE = tb.Table(DOMAIN, COUNTS)

every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
# On cells alone the linear program is refused.
PAIRS = [(m, r) for m in sorted(MECHANISMS) for r in ("lp", "least-squares") if (m, r) != ("cells", "lp")]
every_pair = pytest.mark.parametrize(("mechanism", "reconstructor"), PAIRS)


def plan_of(mechanism, **options):
    options = {"privacy": tb.PureDP(1), "reconstruct": "least-squares", **options}
    return tb.plan(DOMAIN, "[sex age][age job]", mechanism=mechanism, **options)


@every_mechanism
def test_the_full_table_spans_what_the_workload_names_and_nothing_else(mechanism):
    unknown = FullTable(plan_of(mechanism))
    assert unknown.attributes == ("sex", "age", "job")
    bits = mechanism == "fourier"
    assert unknown.linear_map.shape == ((2, 2, 2, 2) if bits else (2, 3, 2))
    kinds = {Contrasts: ContrastMap, Counts: MarginMap, Residuals: ResidualMap}
    assert isinstance(unknown.linear_map, kinds[unknown.plan.query])
    # Two cells nobody can be in; as bits, four codes of no age as well.
    assert unknown.impossible.sum() == (2 + 4 if bits else 2)


@every_mechanism
def test_the_map_takes_the_true_table_to_what_is_measured_without_noise(mechanism):
    plan = plan_of(mechanism)
    exact = measure(Tally.from_table(TABLE, plan.counted), plan, ConstantSampler())
    unknown = FullTable(plan)
    full = TABLE.project(unknown.attributes).counts.astype(np.float64)
    if plan.encoding == "bits":
        padded = np.zeros((2, 4, 2))
        padded[:, :3] = full
        full = padded.reshape(unknown.linear_map.shape)
    assert (unknown.linear_map.forward(full) == measured_vector(exact)).all()


@every_mechanism
def test_wanted_tables_are_sums_of_the_full_one(mechanism):
    unknown = FullTable(plan_of(mechanism))
    full = TABLE.project(("sex", "age", "job")).counts
    found = unknown.tables(full)
    assert list(found) == [("sex", "age"), ("age", "job")]
    for margin, counts in found.items():
        assert (counts == TABLE.project(margin).counts).all()


@every_pair
def test_a_solution_comes_with_its_certificate(mechanism, reconstructor):
    plan = plan_of(mechanism, reconstruct=reconstructor)
    unknown = FullTable(plan)
    measurement = measure(Tally.from_table(TABLE, plan.counted), plan, ConstantSampler(3))
    full, facts = unknown.solve(measured_vector(measurement), SeededEntropy(0))
    assert full.shape == (2, 3, 2)
    assert (full >= 0).all()
    if reconstructor == "lp":
        assert facts["lower_bound"] <= facts["b"] + 1e-6
        assert facts["feasible"] in (True, False)
    else:
        assert 0 <= facts["gap"] <= 1e-6 * max(1, facts["objective"])


def test_rounding_says_how_far_it_went():
    plan = plan_of("margins", rounding="controlled")
    unknown = FullTable(plan)
    measurement = measure(Tally.from_table(TABLE, plan.counted), plan, ConstantSampler(1))
    full, facts = unknown.solve(measured_vector(measurement), SeededEntropy(0))
    assert full.dtype == np.int64
    assert 0 <= facts["largest_rounding"] < 3


def test_the_spread_of_the_noise_is_in_the_order_of_what_is_measured():
    work = tb.Workload.parse("[sex][age]", DOMAIN).weighted({("sex",): 3})
    plan = tb.plan(DOMAIN, work, privacy=tb.PureDP(1), mechanism="margins", reconstruct="lp")
    spread = FullTable(plan).spread(lambda noise: float(noise.scale))
    assert spread == pytest.approx([4 / 3] * 2 + [4] * 3)


@every_pair
@pytest.mark.parametrize("people", [10**5, 10**8])
def test_a_table_of_many_people_is_reconstructed_as_surely_as_one_of_few(mechanism, reconstructor, people):
    plan = plan_of(mechanism, reconstruct=reconstructor)
    table = tb.Table(DOMAIN, COUNTS * (people // int(COUNTS.sum())))
    measurement = measure(Tally.from_table(table, plan.counted), plan, ExactSampler(SeededEntropy(1)))
    unknown = FullTable(plan)
    full, _ = unknown.solve(measured_vector(measurement), SeededEntropy(0))
    for margin, counts in unknown.tables(full).items():
        errors = plan.error_of(margin).standard_errors
        assert (np.abs(counts - table.project(margin).counts) <= 12 * errors + 1e-9).all()


@pytest.mark.parametrize(("mechanism", "reconstructor"), [("margins", "lp"), ("cells", "least-squares")])
@pytest.mark.parametrize("epsilon", [20, 1000])
def test_a_measurement_with_hardly_any_noise_is_reconstructed_too(mechanism, reconstructor, epsilon):
    plan = plan_of(mechanism, privacy=tb.PureDP(epsilon), reconstruct=reconstructor)
    measurement = measure(Tally.from_table(TABLE, plan.counted), plan, ConstantSampler())
    unknown = FullTable(plan)
    full, _ = unknown.solve(measured_vector(measurement), SeededEntropy(0))
    for margin, counts in unknown.tables(full).items():
        assert counts == pytest.approx(TABLE.project(margin).counts, abs=0.01)
