"""Curves of the errors of published tables: one for every set, a function of the measurement, near the exact law."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.planning import Face
from tabulary.reconstruct import reconstruct
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain(
    {"a": range(4), "b": range(5), "c": range(3), "d": range(2)}, structural_zeros=[{"a": 0, "b": [1, 2]}]
)
TRIPLES = list(itertools.combinations("abcd", 3))
CLOSURE = {s for order in range(4) for s in itertools.combinations("abcd", order)}
FACES = [Face("shrink", "none"), Face("shrink", "controlled"), Face("least-squares", "controlled")]


def people(records=5_000):
    generator = np.random.default_rng(0)
    shares = generator.gamma(1.0, 1.0, DOMAIN.shape)
    shares[DOMAIN.impossible(DOMAIN.attributes)] = 0
    counts = generator.multinomial(records, (shares / shares.sum()).ravel()).reshape(DOMAIN.shape)
    return tb.Table(DOMAIN, counts)


def measured(seed=1, workload=TRIPLES, records=5_000, **options):
    options = {"privacy": tb.ZCDP("1/50"), "mechanism": "residual", **options}
    plan = tb.plan(DOMAIN, tb.Workload(DOMAIN, workload), **options)
    return measure(Tally.from_table(people(records), plan.counted), plan, ExactSampler(SeededEntropy(seed)))


@pytest.mark.parametrize("face", FACES, ids=str)
def test_every_set_of_the_closure_has_a_curve(face):
    assert set(reconstruct(measured(), face).curves) == CLOSURE


@pytest.mark.parametrize("face", FACES, ids=str)
def test_curves_are_a_function_of_the_measurement(face):
    one, two = (reconstruct(measured(), face).curves for _ in range(2))
    assert one == two


@pytest.mark.parametrize("face", FACES, ids=str)
@pytest.mark.parametrize("mechanism", ["cells", "margins", "residual"])
def test_an_impossible_cell_is_exact_and_no_other_is(mechanism, face):
    made = reconstruct(measured(workload=[("a", "b"), ("b", "c")], mechanism=mechanism), face)
    for margin in (("a", "b"), ("b", "c"), ("b",), ()):
        law = made.errors(margin)
        impossible = DOMAIN.impossible(margin)
        assert ((law.standard_errors == 0) == impossible).all()
        assert ((law.half_widths(0.95) == 0) == impossible).all()
        assert np.isfinite(law.half_widths(0.95)).all()


@pytest.mark.parametrize("records", [0, 1])
def test_a_release_of_nobody_has_errors_too(records):
    made = reconstruct(measured(records=records))
    for margin in TRIPLES:
        widths = made.errors(margin).half_widths(0.95)
        assert (widths[~DOMAIN.impossible(margin)] >= 1).all()
        assert np.isfinite(widths).all()


@pytest.mark.parametrize("face", FACES, ids=str)
def test_where_cells_are_large_the_curve_is_near_the_exact_law(face):
    # With many people and a large budget shrinkage keeps everything, and no cell is near zero.
    made = reconstruct(measured(records=500_000, privacy=tb.ZCDP("1/2")), face)
    for margin, curve in made.curves.items():
        if len(margin) < 3 and not DOMAIN.impossible(margin).any():
            exact = np.sqrt(np.mean(np.square(made.plan.error_of(margin).half_widths(0.95))))
            assert 0.8 * exact < curve.high < 1.25 * exact + 2, margin


def test_the_total_has_the_exact_law():
    made = reconstruct(measured(), Face("shrink", "none"))
    curve = made.curves[()]
    assert curve.low == curve.high
    assert curve.high == pytest.approx(float(made.plan.error_of(()).half_widths(0.95)), rel=0.02)


def test_more_noise_means_wider_curves():
    wider = [reconstruct(measured(privacy=tb.ZCDP(rho))).curves for rho in ("1", "1/50", "1/1000")]
    for margin in CLOSURE:
        assert wider[0][margin].high < wider[1][margin].high < wider[2][margin].high


def test_an_empty_cell_has_three_quarters_of_the_largest_half_width():
    for margin, curve in reconstruct(measured()).curves.items():
        if margin:
            assert curve.low == pytest.approx(0.75 * curve.high)


def test_rounding_adds_its_own_error():
    measurement = measured(privacy=tb.ZCDP("1/2"))
    real, whole = (reconstruct(measurement, face).curves for face in FACES[:2])
    for margin in TRIPLES:
        assert whole[margin].high > real[margin].high


def test_a_cell_that_nothing_moves_may_be_off_by_one():
    made = reconstruct(measured(privacy=tb.ZCDP("1000000")), Face("shrink", "none"))
    assert {replace(curve, reach=1.0) for curve in made.curves.values()} == {
        replace(made.curves[()], low=1.0, high=1.0, reach=1.0)
    }
