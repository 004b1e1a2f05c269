"""The covariance of the cells of a table, against the explicit map from draws to cells and against the mechanisms."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.errors import InvalidPlan, InvalidTable, TooManyCells
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler
from tabulary.planning import CellErrors, Measurement, StatedErrors, WeightedErrors
from tabulary.planning.covariance import MOST_CELLS, CellCovariance, ContrastNoise, CountNoise
from tabulary.reconstruct.linear import linear_estimates
from tests.entropy import SeededEntropy
from tests.releases import release_of

every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))


@st.composite
def requests(draw):
    """A small domain, some of its margins, and what is promised."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda s: math.prod(s) <= 24))
    names = [f"x{i}" for i in range(len(sizes))]
    domain = tb.Domain(dict(zip(names, map(range, sizes), strict=True)))
    every = list(tb.Workload.all_up_to(domain, len(sizes)).margins)
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    return {
        "domain": domain,
        "workload": tb.Workload(domain, chosen),
        "privacy": draw(st.sampled_from([tb.PureDP(1), tb.ZCDP("1/4"), tb.ApproxDP(1, "1e-6")])),
        "neighbours": draw(st.sampled_from(["add-remove", "replace"])),
    }


def planned(request, mechanism):
    try:
        return tb.plan(**request, mechanism=mechanism, reconstruct="none")
    except InvalidPlan:
        # Nothing that one person could change, or codes without a level.
        assume(False)


def draws_to_cells(plan):
    """For each table, how much each draw moves each cell; and the noise of each draw."""
    shapes = plan.shapes()
    columns = {margin: [] for margin in plan.workload}
    noises = []
    for number, part in enumerate(plan.measured):
        for place in range(math.prod(shapes[number])):
            values = [np.zeros(shape, dtype=np.int64) for shape in shapes]
            # A large unit, so that it is a whole number and its effect a float.
            values[number].flat[place] = 1
            for margin, table in linear_estimates(Measurement(plan, tuple(values))).items():
                columns[margin].append(np.asarray(table, dtype=np.float64).reshape(-1))
            noises.append(part.noise)
    return {margin: np.array(found).T for margin, found in columns.items()}, noises


@every_mechanism
@settings(max_examples=40)
@given(request=requests(), seed=st.integers(0, 2**32))
def test_it_is_the_covariance_of_the_explicit_map_for_every_plan(mechanism, request, seed):
    plan = planned(request, mechanism)
    maps, noises = draws_to_cells(plan)
    variances = np.array([noise.variance for noise in noises])
    fourths = np.array([noise.fourth_cumulant for noise in noises])
    for margin in plan.workload:
        covariance = plan.error_of(margin).covariance
        dense = (maps[margin] * variances) @ maps[margin].T
        size = max(1.0, float(np.abs(dense).max()))
        np.testing.assert_allclose(covariance.dense(), dense, atol=1e-9 * size)
        weights = np.random.default_rng(seed).normal(size=covariance.shape)
        on_draws = weights.reshape(-1) @ maps[margin]
        assert covariance.variance_of(weights) == pytest.approx(variances @ on_draws**2, rel=1e-9, abs=1e-30)
        drawn = covariance.draws_of(weights)
        assert sum(d.variance for d in drawn) == pytest.approx(variances @ on_draws**2, rel=1e-9, abs=1e-30)
        heavy = sum(d.copies * d.noise.fourth_cumulant * np.sum(d.weights**4) for d in drawn)
        assert heavy == pytest.approx(fourths @ on_draws**4, rel=1e-9, abs=1e-30)


@every_mechanism
@settings(max_examples=15)
@given(request=requests())
def test_it_has_the_standard_errors_of_the_cells(mechanism, request):
    plan = planned(request, mechanism)
    for margin in plan.workload:
        law = plan.error_of(margin)
        deviations = np.sqrt(np.diag(law.covariance.dense()))
        assert deviations == pytest.approx(law.standard_errors.reshape(-1), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@every_mechanism
def test_it_is_what_the_mechanism_does(mechanism):
    domain = tb.Domain({"a": range(4), "b": range(2), "c": range(2)})
    plan = tb.plan(domain, "[a b][b c]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="none")
    table = tb.Table(domain, np.arange(16).reshape(4, 2, 2))
    tally, sampler = Tally.from_table(table, plan.counted), ExactSampler(SeededEntropy(5))
    covariance = plan.error_of(("a", "b")).covariance
    weights = np.array([[1, 1], [1, 1], [-1, 0], [0, 0]])
    truth = np.sum(weights * table.project("a", "b").counts)
    errors = [
        np.sum(weights * linear_estimates(measure(tally, plan, sampler))["a", "b"]) - truth
        for _ in range(4_000)
    ]
    # The variance of a sample variance of 4,000 numbers of Laplace's kurtosis or less: 3.5 % at most.
    ratio = np.mean(np.square(errors)) / covariance.variance_of(weights)
    assert ratio == pytest.approx(1, abs=0.11)


def test_cells_that_share_their_noise_are_not_taken_as_if_they_did_not():
    # With neighbours that replace a record the total is public: hardly an error is left in the sum of all cells.
    domain = tb.Domain({"a": range(5), "b": range(4)})
    plan = tb.plan(
        domain,
        "[a b]",
        privacy=tb.ZCDP("1/8"),
        mechanism="residual",
        reconstruct="none",
        neighbours="replace",
    )
    law = plan.error_of(("a", "b"))
    assert law.covariance.variance_of(np.ones((5, 4))) < 0.1
    assert float(np.sum(law.standard_errors**2)) > 100


def test_a_plan_whose_public_total_has_hardly_any_noise_has_errors_all_the_same():
    plan = tb.plan(
        tb.Domain({"a": range(2)}), "[a]", privacy=tb.PureDP(1), mechanism="residual", neighbours="replace"
    )
    law = plan.error_of(("a",))
    assert law.covariance.variance_of([1, 1]) == pytest.approx(0, abs=1e-30)
    assert np.isfinite(law.half_widths(0.95)).all()


@every_mechanism
def test_it_follows_the_table_through_files_transposition_and_slices(mechanism, tmp_path):
    domain = tb.Domain({"a": range(4), "b": range(2), "c": range(2)})
    plan = tb.plan(domain, "[a b c]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="none")
    counts = linear_estimates(Measurement(plan, tuple(np.full(s, 7, dtype=np.int64) for s in plan.shapes())))
    release_of(plan, counts).save(tmp_path / "out")
    released = tb.Release.load(tmp_path / "out")["a", "b", "c"]
    dense = plan.error_of(("a", "b", "c")).covariance.dense()
    np.testing.assert_allclose(released.covariance.dense(), dense)
    places = np.arange(16).reshape(4, 2, 2)
    for view, kept in (
        (released.transpose(["c", "a", "b"]), places.transpose(2, 0, 1)),
        (released.slice(b=1), places[:, 1]),
        (released.transpose(["c", "a", "b"]).slice(a=2), places.transpose(2, 0, 1)[:, 2]),
        (released.slice(a=3).slice(c=0).slice(b=0), places[3, 0, 0]),
    ):
        flat = kept.reshape(-1)
        assert view.covariance.shape == view.shape
        np.testing.assert_allclose(view.covariance.dense(), dense[np.ix_(flat, flat)], atol=1e-12)


def test_impossible_cells_have_no_error_and_share_none():
    domain = tb.Domain({"a": range(3), "b": range(2)}, [{"a": 0, "b": 1}])
    for mechanism in ("cells", "residual", "efron-stein"):
        plan = tb.plan(
            domain, "[a b]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="least-squares"
        )
        dense = plan.error_of(("a", "b")).covariance.dense()
        assert not dense[1].any()
        assert not dense[:, 1].any()
        assert np.all(np.diag(dense)[[0, 2, 3, 4, 5]] > 0)


def test_coefficients_that_are_released_exactly_add_no_error():
    domain = tb.Domain({"a": range(2), "b": range(3), "c": range(2)})
    plan = tb.plan(
        domain,
        "[a b][a c]",
        privacy=tb.PureDP(1),
        mechanism="efron-stein",
        neighbours="replace",
        sensitive=["c"],
    )
    maps, noises = draws_to_cells(plan)
    variances = np.array([noise.variance for noise in noises])
    for margin in plan.workload:
        explicit = (maps[margin] * variances) @ maps[margin].T
        np.testing.assert_allclose(plan.error_of(margin).covariance.dense(), explicit, atol=1e-9)
    # What b tells within each a is public.
    exact = plan.error_of(("a", "b")).covariance.variance_of([[1, -1, 0], [0, 0, 0]])
    assert exact == pytest.approx(0, abs=1e-9)


def test_a_law_that_nobody_described_has_no_covariance():
    noise, terms = DiscreteLaplace(3), np.array([1, 2])
    assert CellErrors(noise, terms, 0.5).covariance is None
    assert WeightedErrors(np.ones(2), np.zeros(2)).covariance is None
    table = tb.Table(tb.Domain({"a": range(2)}), [1, 2])
    assert tb.ReleasedTable(table, StatedErrors(np.ones(2), np.ones(2))).covariance is None
    assert CellErrors(noise, terms).covariance.dense().tolist() == np.diag(noise.variance * terms).tolist()


def test_it_is_refused_where_it_would_fill_the_memory_and_its_sums_are_not():
    side = 65
    assert side**2 > MOST_CELLS
    noise = DiscreteGaussian.from_sigma(10)
    sets = [(), ("a",), ("b",), ("a", "b")]
    large = CellCovariance(ContrastNoise(("a", "b"), (side, side), dict.fromkeys(sets, noise)))
    with pytest.raises(TooManyCells, match="4,225 cells"):
        large.dense()
    assert large.variance_of(np.ones((side, side))) == pytest.approx(noise.variance)
    assert large.at(np.s_[:2, :2]).dense().shape == (4, 4)


@pytest.mark.parametrize("weights", [[1.0], [[1.0, 2.0]], [1.0, math.nan], [math.inf, 0.0]])
def test_weights_that_do_not_fit_are_refused(weights):
    covariance = CellCovariance(CountNoise(DiscreteLaplace(3), np.array([1, 1])))
    with pytest.raises(InvalidTable, match="one finite weight for each"):
        covariance.variance_of(weights)
