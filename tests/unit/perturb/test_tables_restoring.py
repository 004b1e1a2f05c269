"""Additive margins by weighted least squares: against the textbook formula, cell by cell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidArgument, TooManyCells
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, Truncated
from tabulary.perturb.restoring import ByResiduals, Projected, fit_of
from tabulary.perturb.tables import Tables
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler
from tests.unit.core.small_domains import counted, domains, margins_of, possible_cells

small = domains(max_attributes=3, max_levels=3).filter(lambda d: len(possible_cells(d)) <= 14)
laws = st.sampled_from(
    [
        DiscreteLaplace("1/2"),
        DiscreteLaplace(3),
        DiscreteLaplace(20),
        Truncated(DiscreteLaplace(2), 5),
        Truncated(DiscreteGaussian(9), 4),
    ]
)


@st.composite
def lists(draw, domain_strategy=small):
    domain = draw(domain_strategy)
    margins = draw(st.lists(margins_of(domain), min_size=1, max_size=4, unique=True))
    return domain, {margin: draw(laws) for margin in margins}


def design(domain, margins):
    """The matrix that sums a full table, on its possible cells, to all tables."""
    columns = [
        np.concatenate([counted(domain, m, [cell]).ravel() for m in margins])
        for cell in possible_cells(domain)
    ]
    return np.array(columns, dtype=float).T


def published(domain, margins, seed):
    """Tables that do not agree, zero in impossible cells."""
    words = np.random.default_rng(seed)
    return {m: np.where(domain.impossible(m), 0, words.integers(-9, 30, domain.shape_of(m))) for m in margins}


def joined(tables):
    return np.concatenate([np.ravel(table) for table in tables.values()])


def textbook(domain, noises):
    """The linear map of weighted least squares, and the variances, with impossible cells left out."""
    matrix = design(domain, noises)
    variances = np.concatenate([np.full(domain.cells(m), noise.variance) for m, noise in noises.items()])
    scaled = matrix / np.sqrt(variances)[:, None]
    smoother = matrix @ np.linalg.pinv(scaled) / np.sqrt(variances)
    return smoother, variances


@settings(max_examples=80, deadline=None)
@given(lists(), st.integers(0, 2**32))
def test_the_fit_is_weighted_least_squares(made, seed):
    domain, noises = made
    given_tables = published(domain, noises, seed)
    smoother, variances = textbook(domain, noises)
    fit = fit_of(domain, noises)
    assert joined(fit.tables(given_tables)) == pytest.approx(smoother @ joined(given_tables), abs=1e-7)
    possible = np.concatenate([~domain.impossible(m).ravel() for m in noises])
    covariance = smoother @ np.diag(np.where(possible, variances, 0.0)) @ smoother.T
    deviations = np.concatenate([fit.errors(m).standard_errors.ravel() for m in noises])
    assert deviations == pytest.approx(np.sqrt(np.maximum(np.diag(covariance), 0)), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(lists(domains(max_attributes=3, max_levels=3, max_zeros=0)), st.integers(0, 2**32))
def test_both_ways_to_fit_are_the_same_where_every_cell_is_possible(made, seed):
    domain, noises = made
    one, other = ByResiduals(domain, noises), Projected(domain, noises)
    tables = published(domain, noises, seed)
    assert joined(one.tables(tables)) == pytest.approx(joined(other.tables(tables)), abs=1e-7)
    for margin in noises:
        here, there = one.errors(margin), other.errors(margin)
        assert here.standard_errors == pytest.approx(there.standard_errors, rel=1e-6)
        assert here.kurtosis == pytest.approx(there.kurtosis, rel=1e-5, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(lists(), st.integers(0, 2**32))
def test_fitted_tables_add_up_and_impossible_cells_stay_empty(made, seed):
    domain, noises = made
    fitted = fit_of(domain, noises).tables(published(domain, noises, seed))
    for one in fitted:
        assert not np.any(fitted[one][domain.impossible(one)])
        for other in fitted:
            shared = set(one) & set(other)
            sums = [
                fitted[m].sum(axis=tuple(i for i, a in enumerate(m) if a not in shared)) for m in (one, other)
            ]
            assert sums[0] == pytest.approx(sums[1], abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(lists(), st.integers(0, 2**32))
def test_tables_that_add_up_already_are_not_changed(made, seed):
    domain, noises = made
    cells = possible_cells(domain)
    people = [cells[i] for i in np.random.default_rng(seed).integers(0, len(cells), 40)]
    exact = {m: counted(domain, m, people) for m in noises}
    assert joined(fit_of(domain, noises).tables(exact)) == pytest.approx(joined(exact), abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(lists())
def test_no_cell_is_known_worse_after_the_fit(made):
    domain, noises = made
    fit = fit_of(domain, noises)
    for margin, noise in noises.items():
        assert (fit.errors(margin).standard_errors <= noise.variance**0.5 * (1 + 1e-9)).all()


@pytest.mark.parametrize("zeros", [[], [{"a": "x", "b": "x"}]])
@pytest.mark.parametrize("noise", [DiscreteLaplace(2), Truncated(DiscreteLaplace(2), 9)])
def test_the_tails_of_a_table_by_itself_are_those_of_its_noise(noise, zeros):
    domain = tb.Domain({"a": "xy", "b": "xy"}, zeros)
    errors = fit_of(domain, {("a", "b"): noise}).errors(("a", "b"))
    k = np.arange(-400, 401)
    excess = float(noise.pmf(k) @ k**4.0) / noise.variance**2 - 3
    assert excess > 0.5
    assert errors.kurtosis[1] == pytest.approx(np.full(2, excess))


ZEROS = tb.Domain({"age": range(3), "job": range(2), "sex": "FM"}, [{"age": 0, "job": 1}])


def test_restored_tables_of_a_list_agree_and_know_their_errors():
    tables = Tables(ZEROS, "[age job][age sex][job][]", epsilon=1)
    counts = np.where(ZEROS.impossible(ZEROS.attributes), 0, 50)
    made = tables.apply(tb.Table(ZEROS, counts), margins="restored", sampler=ExactSampler(SeededEntropy(5)))
    assert made["age", "job"].counts.sum(axis=0) == pytest.approx(made["job"].counts)
    assert made["age", "sex"].counts.sum() == pytest.approx(made[()].counts)
    assert made["age", "job"].counts[0, 1] == made["age", "job"].standard_errors[0, 1] == 0
    expected = tables.standard_deviations()
    for margin in tables.margins:
        errors = made[margin].standard_errors
        assert np.sqrt((errors[errors > 0] ** 2).mean()) == pytest.approx(expected[margin].restored)
        assert expected[margin].restored < expected[margin].direct


def test_restoring_is_unbiased_and_moves_nothing_without_noise():
    table = tb.Table(ZEROS, np.where(ZEROS.impossible(ZEROS.attributes), 0, 7))
    made = Tables(ZEROS, "[age job][age sex][sex]", epsilon=1).apply(
        table, margins="restored", sampler=ConstantSampler()
    )
    for margin in made.design.margins:
        assert made[margin].counts == pytest.approx(table.project(margin).counts)
        assert made.bias(margin, 0) == 0


def test_a_minimum_and_additive_margins_contradict_each_other():
    table = tb.Table(ZEROS, np.zeros(ZEROS.shape, dtype=int))
    with pytest.raises(InvalidArgument, match="contradict"):
        Tables(ZEROS, "[age][sex]", epsilon=1).apply(table, minimum=0, margins="restored")


def test_a_list_with_structural_zeros_that_is_too_large_to_restore_is_refused_before_anything_is_drawn():
    domain = tb.Domain({"a": range(50), "b": range(50)}, [{"a": 0, "b": 0}])
    tables = Tables(domain, "[a b][a]", epsilon=1)
    table = tb.Table(domain, np.zeros(domain.shape, dtype=int))
    with pytest.raises(TooManyCells, match="2,549 possible cells"):
        tables.apply(table, margins="restored", sampler=None)
    assert tables.standard_deviations()["a", "b"].restored is None
    assert tables.apply(table)["a"].shape == (50,)
