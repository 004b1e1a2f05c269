import math
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning, SingularMatrixWarning

import tabulary as tb
from tabulary import Domain, Table, datasets
from tabulary.errors import InvalidArgument, InvalidWorkload, NotCertified
from tabulary.infer import fitting, loglinear
from tabulary.infer.models import LogLinearModel


def poisson_regression(table, model):
    """The same fit by statsmodels on the possible cells, dummy-coded by itself."""
    parsed = LogLinearModel.parse(model, table.domain)
    cells = np.flatnonzero(~table.domain.impossible(table.domain.attributes))
    levels = np.unravel_index(cells, table.shape)
    columns = []
    for term in parsed.terms:
        axes = [table.domain.position(a) for a in term]
        for chosen in np.ndindex(*(table.shape[axis] - 1 for axis in axes)):
            at = [levels[axis] == level + 1 for axis, level in zip(axes, chosen, strict=True)]
            columns.append(np.all(at, axis=0) if at else np.ones(cells.size, dtype=bool))
    design = np.stack(columns, axis=1).astype(float)
    counts = table.counts.reshape(-1)[cells]
    with warnings.catch_warnings():
        # It warns when a model fits exactly, as a saturated one does, and when zeros leave a parameter open.
        for warning in (PerfectSeparationWarning, SingularMatrixWarning, RuntimeWarning):
            warnings.simplefilter("ignore", warning)
        fit = sm.GLM(counts, design, family=sm.families.Poisson()).fit(tol=1e-14, maxiter=200)
    fitted = np.zeros(table.domain.size)
    fitted[cells] = fit.fittedvalues
    return fitted.reshape(table.shape), fit


@st.composite
def positive_tables(draw):
    shape = draw(st.tuples(st.integers(1, 3), st.integers(2, 3), st.integers(2, 3)))
    size = int(np.prod(shape))
    counts = draw(st.lists(st.integers(1, 60), min_size=size, max_size=size))
    domain = Domain({a: range(k) for a, k in zip("ABC", shape, strict=True)})
    return Table(domain, np.reshape(counts, shape))


every_model = pytest.mark.parametrize(
    "model", ["[AB][AC][BC]", "[AB][BC]", "[A][B][C]", "[AC][B]", "[ABC]", "[AB]", "[A]", "[]"]
)


@every_model
@settings(max_examples=25, deadline=None)
@given(table=positive_tables())
def test_the_fit_is_that_of_poisson_regression(table, model):
    ours = loglinear(table, model)
    fitted, theirs = poisson_regression(table, model)
    np.testing.assert_allclose(ours.fitted.counts, fitted, rtol=1e-8)
    assert ours.g2 == pytest.approx(theirs.deviance, rel=1e-8, abs=1e-8)
    assert ours.x2 == pytest.approx(theirs.pearson_chi2, rel=1e-8, abs=1e-8)
    assert ours.degrees_of_freedom == ours.nominal_degrees_of_freedom == theirs.df_resid
    assert ours.log_likelihood == pytest.approx(theirs.llf, rel=1e-10)
    assert ours.aic == pytest.approx(theirs.aic, rel=1e-10)


@settings(max_examples=25, deadline=None)
@given(positive_tables())
def test_structural_zeros_are_left_out_of_the_fit_and_of_the_degrees_of_freedom(table):
    assume(table.shape[0] > 1)
    domain = Domain(
        {a: table.domain.levels_of(a) for a in "ABC"}, [{"A": "0", "B": "0"}, {"A": "1", "B": "1", "C": "1"}]
    )
    cut = Table(domain, np.where(domain.impossible(domain.attributes), 0, table.counts))
    ours = loglinear(cut, "[AC][BC]")
    fitted, theirs = poisson_regression(cut, "[AC][BC]")
    assume(np.linalg.matrix_rank(theirs.model.exog) == theirs.model.exog.shape[1])
    np.testing.assert_allclose(ours.fitted.counts, fitted, rtol=1e-7, atol=1e-9)
    assert ours.degrees_of_freedom == theirs.df_resid
    assert not ours.boundary.any()


@pytest.mark.parametrize("model", ["[AB][BC]", "[A][B][C]", "[AC][B]", "[AB]", "[]"])
@settings(max_examples=25, deadline=None)
@given(table=positive_tables())
def test_the_closed_form_is_what_proportional_fitting_converges_to(table, model):
    parsed = LogLinearModel.parse(model, table.domain)
    assert parsed.decomposable
    counts, everywhere = table.counts.astype(float), np.ones(table.shape, dtype=bool)
    closed = fitting.fitted_counts(parsed, counts, everywhere)
    np.testing.assert_allclose(fitting.proportional_counts(parsed, counts, everywhere), closed, rtol=1e-9)


def test_the_criteria_are_those_of_akaike_and_schwarz():
    table = datasets.load("autoworkers")
    fit = loglinear(table, "[BF][ADE][ABCE]")
    assert fit.parameters == 22
    assert fit.aic == pytest.approx(44 - 2 * fit.log_likelihood)
    assert fit.bic == pytest.approx(22 * math.log(1841) - 2 * fit.log_likelihood)
    # Differences between models are those of G² on its degrees of freedom.
    other = loglinear(table, "[AB][CDEF]")
    assert fit.aic - other.aic == pytest.approx(
        (fit.g2 - 2 * fit.degrees_of_freedom) - (other.g2 - 2 * other.degrees_of_freedom)
    )


def test_cells_on_the_boundary_are_reported_with_both_degrees_of_freedom():
    domain = Domain({"A": "xy", "B": "xy", "C": "xy"})
    fit = loglinear(Table(domain, [[[0, 3], [4, 5]], [[6, 7], [8, 0]]]), "[AB][AC][BC]")
    assert (fit.degrees_of_freedom, fit.nominal_degrees_of_freedom) == (0, 1)
    assert (fit.g2, fit.x2, fit.p_value) == (0, 0, 1)
    assert np.argwhere(fit.boundary).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert "(1 before zeros)" in str(fit)
    assert "2 cells zero in the fit" in str(fit)
    assert any("zero counts" in sentence for sentence in fit.assumed)


def test_negative_counts_are_taken_as_zero_and_that_is_said():
    domain = Domain({"A": "xy", "B": "xy"})
    fit = loglinear(Table(domain, [[10, -3], [4, 7]]), "[A][B]")
    same = loglinear(Table(domain, [[10, 0], [4, 7]]), "[A][B]")
    assert fit.g2 == same.g2
    assert set(fit.assumed) - set(same.assumed) == {"negative released counts are taken as 0"}


@every_model
@pytest.mark.parametrize("counts", [[0] * 8, [-1] * 8, [0, 0, 0, 5, 0, 0, 0, 0], [0, 0, 0, 0, 1, 2, 3, 4]])
def test_no_table_gives_a_number_that_is_none(model, counts):
    domain = Domain({"A": "xy", "B": "xy", "C": "xy"})
    fit = loglinear(Table(domain, np.reshape(counts, (2, 2, 2))), model)
    numbers = [fit.g2, fit.x2, fit.p_value, fit.aic, fit.bic, *fit.fitted.counts.reshape(-1)]
    assert np.isfinite(numbers).all()
    assert fit.degrees_of_freedom >= 0
    assert np.isfinite(fit.distribution.counts).all()
    assert fit.distribution.total == pytest.approx(1)


def test_an_empty_table_has_p_one_and_says_why():
    fit = loglinear(Table(Domain({"A": "xy", "B": "xy"}), [[0, 0], [0, 0]]), "[A][B]")
    assert (fit.g2, fit.degrees_of_freedom, fit.p_value) == (0, 0, 1)
    assert "the table is empty, so nothing can be tested" in fit.assumed


def test_one_row_has_nothing_to_test():
    fit = loglinear(Table(Domain({"A": "x", "B": "xyz"}), [[3, 4, 5]]), "[A][B]")
    assert (fit.degrees_of_freedom, fit.p_value) == (0, 1)


def test_the_model_without_attributes_spreads_people_evenly():
    fit = loglinear(Table(Domain({"A": "xy"}), [1, 5]), "[]")
    assert fit.fitted.counts.tolist() == [3, 3]
    assert fit.degrees_of_freedom == 1


def test_wrong_requests_are_refused_before_anything_is_fitted():
    table = Table(Domain({"A": "xy", "B": "xy"}), [[1, 2], [3, 4]])
    with pytest.raises(InvalidArgument, match="Nothing was fitted"):
        loglinear(table, "[A][B]", method="exact")
    with pytest.raises(InvalidWorkload, match="no attribute 'C'"):
        loglinear(table, "[A][C]")


def test_fitting_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(fitting, "SWEEPS", 1)
    monkeypatch.setattr(fitting, "FEWEST_SWEEPS", 1)
    rng = np.random.default_rng(1)
    table = Table(Domain({"A": "xyz", "B": "xyz", "C": "xyz"}), rng.integers(1, 9, (3, 3, 3)))
    with pytest.raises(NotCertified, match="did not converge in 1 sweeps"):
        loglinear(table, "[AB][AC][BC]")


def test_nested_models_differ_by_a_statistic_on_the_freedom_they_lose():
    table = datasets.load("fungus")
    larger, smaller = loglinear(table, "[AD][AB][BCE][CF]"), loglinear(table, "[AD][AB][BE][CE][CF]")
    test = smaller.against(larger)
    assert test.statistic == pytest.approx(smaller.g2 - larger.g2)
    assert test.degrees_of_freedom == smaller.degrees_of_freedom - larger.degrees_of_freedom > 0
    assert test.hypothesis == f"{smaller.model} within {larger.model}"


def test_the_public_name_is_the_function():
    assert tb.infer.loglinear is loglinear
