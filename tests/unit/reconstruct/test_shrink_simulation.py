"""Errors of shrunk tables: as many repetitions as there is time for, a closed form where there is none."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import t as student

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.reconstruct import reconstruct, shrink_simulation
from tabulary.reconstruct.shrink import Shrinkage
from tabulary.reconstruct.shrink_simulation import closed_variances, simulated_shrink_errors, student_quantile
from tests import populations
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain(
    {"a": range(4), "b": range(5), "c": range(3), "d": range(2)}, structural_zeros=[{"a": 0, "b": [1, 2]}]
)
TRIPLES = list(itertools.combinations("abcd", 3))


def people(records=5_000):
    generator = np.random.default_rng(0)
    shares = generator.gamma(1.0, 1.0, DOMAIN.shape)
    shares[DOMAIN.impossible(DOMAIN.attributes)] = 0
    counts = generator.multinomial(records, (shares / shares.sum()).ravel()).reshape(DOMAIN.shape)
    return tb.Table(DOMAIN, counts)


def measured(workload=TRIPLES, seed=1, **options):
    options = {"privacy": tb.ZCDP("1/50"), "mechanism": "residual", "reconstruct": "shrink", **options}
    plan = tb.plan(DOMAIN, tb.Workload(DOMAIN, workload), **options)
    return measure(Tally.from_table(people(), plan.counted), plan, ExactSampler(SeededEntropy(seed)))


def shrunken(**options):
    measurement = measured(**options)
    plan = measurement.plan
    shrinkage = Shrinkage(plan.domain, plan.workload.margins, plan.residual_variances)
    return plan, shrinkage, shrinkage.tables(plan.estimator.residuals(measurement.values.__getitem__))


def errors_of(found, seconds=60.0, seed=0):
    return simulated_shrink_errors(*found, SeededEntropy(seed), seconds=seconds)


@pytest.mark.parametrize("freedom", [5, 6, 10, 20, 55, 1_000])
def test_the_quantile_is_students(freedom):
    assert student_quantile(0.95, freedom) == pytest.approx(student.ppf(0.975, freedom), rel=0.01)


def test_repetitions_are_as_many_as_asked_for(monkeypatch):
    monkeypatch.setattr(shrink_simulation, "REPETITIONS", 12)
    errors, done = errors_of(shrunken())
    assert done == 12
    assert list(errors) == TRIPLES


def test_without_time_the_closed_form_answers():
    found = shrunken()
    errors, done = errors_of(found, seconds=0.0)
    assert done == 0
    plan, shrinkage, tables = found
    for margin, variances in closed_variances(shrinkage, tables, plan.workload.margins).items():
        free = ~DOMAIN.impossible(margin)
        expected = np.maximum(np.sqrt(variances[free]), 0.5)
        assert errors[margin].standard_errors[free] == pytest.approx(expected)


def test_time_is_kept(monkeypatch):
    now = itertools.count(step=1.0)
    monkeypatch.setattr(shrink_simulation.time, "monotonic", lambda: next(now))
    # A clock that moves by a second each time it is looked at: one repetition a second.
    assert errors_of(shrunken(), seconds=7.5)[1] in (6, 7)


def test_the_same_entropy_gives_the_same_errors(monkeypatch):
    monkeypatch.setattr(shrink_simulation, "REPETITIONS", 10)
    found = shrunken()
    one, two, other = (errors_of(found, seed=seed)[0][TRIPLES[0]].standard_errors for seed in (5, 5, 6))
    assert (one == two).all()
    assert (one != other).any()


@pytest.mark.parametrize("seconds", [0.0, 60.0])
@pytest.mark.parametrize("workload", [TRIPLES, [("a",), ("a", "b")], [("c",)]], ids=str)
def test_an_impossible_cell_is_exact_and_no_other_is(workload, seconds, monkeypatch):
    monkeypatch.setattr(shrink_simulation, "REPETITIONS", 3)
    for margin, law in errors_of(shrunken(workload=workload), seconds)[0].items():
        impossible = DOMAIN.impossible(margin)
        assert ((law.standard_errors == 0) == impossible).all()
        assert ((law.half_widths(0.95) == 0) == impossible).all()
        assert np.isfinite(law.half_widths(0.95)).all()


def test_closed_form_and_simulation_speak_of_the_same_errors():
    population = populations.sparse(3, levels=(12, 20, 9), records=3_000)
    domain, _ = population
    pairs = list(itertools.combinations(domain.attributes, 2))
    plan = tb.plan(
        domain,
        tb.Workload(domain, pairs),
        privacy=tb.ZCDP("1/50"),
        mechanism="residual",
        reconstruct="shrink",
    )
    table = tb.Table(domain, populations.true_table(population, domain.attributes))
    measurement = measure(Tally.from_table(table, plan.counted), plan, ExactSampler(SeededEntropy(1)))
    shrinkage = Shrinkage(domain, pairs, plan.residual_variances)
    tables = shrinkage.tables(plan.estimator.residuals(measurement.values.__getitem__))
    squares = {m: np.zeros(domain.shape_of(m)) for m in pairs}
    normal = np.random.default_rng(0).standard_normal
    for _ in range(40):
        error = shrink_simulation.one_error(shrinkage, tables, normal)
        for margin, own in squares.items():
            own += error[margin] ** 2 / 40
    for margin, closed in closed_variances(shrinkage, tables, pairs).items():
        assert 0.6 < math.sqrt(closed.mean() / squares[margin].mean()) < 1.6
        # And they know alike which cells are the less certain ones.
        seen = (closed > 0) & (squares[margin] > 0)
        assert np.corrcoef(np.log(closed[seen]), np.log(squares[margin][seen]))[0, 1] > 0.6


def test_more_noise_means_larger_errors():
    sizes = [
        np.sqrt(np.mean(errors_of(shrunken(privacy=tb.ZCDP(rho)), 0.0)[0][TRIPLES[0]].standard_errors ** 2))
        for rho in ("1", "1/50", "1/1000")
    ]
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "closed form"), (60.0, "simulated")])
def test_the_facts_say_where_the_errors_come_from(seconds, said, monkeypatch):
    monkeypatch.setattr(shrink_simulation, "REPETITIONS", 10)
    facts = reconstruct(measured(), entropy=SeededEntropy(0), simulation_seconds=seconds).facts
    assert facts["errors"] == f"{said}, bias included"
    assert facts["repetitions"] == (10 if seconds else 0)
    assert 0 < facts["bias_share"] < 1
    assert facts["independence_mixed_in"] == 0


def test_rounding_adds_its_own_error():
    real, whole = (
        reconstruct(measured(rounding=rounding), entropy=SeededEntropy(0), simulation_seconds=0.0)
        for rounding in ("none", "controlled")
    )
    for margin in TRIPLES:
        before, after = real.errors[margin].standard_errors, whole.errors[margin].standard_errors
        assert (after[before > 0] > before[before > 0]).all()
        assert not after[before == 0].any()
