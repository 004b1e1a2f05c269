"""The log-linear models of Yang, Fienberg & Rinaldo on their four tables.

Their Table 7 cannot be had from the counts that they print: G² is 17.26, 44.59, 149.58 and 319.71 where they print
22.96, 48.18, 238.18 and 365.82. Their degrees of freedom are those of a table without zeros (but for Rochdale, 225
where there are 226, and the journey to work, 134 where there are (4 - 1)(4 - 1)(16 - 1) = 135). Three of the four fits
lie on the boundary, so that their degrees of freedom are fewer.
"""

import numpy as np
import pytest

from tabulary import Table, datasets
from tabulary.infer import loglinear, search, utility

# Closed form, G², X², degrees of freedom without and with regard to zeros, cells zero in the fit, L1 from uniform.
TABLE_7 = [
    ("fungus", True, 17.26, 17.17, 52, 37, 16, 1.340),
    ("autoworkers", True, 44.59, 43.94, 42, 42, 0, 0.884),
    ("rochdale", False, 149.58, 195.38, 226, 168, 60, 1.429),
    ("journey-to-work", False, 319.71, 345.19, 135, 12, 166, 1.383),
]


@pytest.mark.parametrize(("name", "closed", "g2", "x2", "nominal", "freedom", "zeros", "distance"), TABLE_7)
def test_the_models_of_table_7(name, closed, g2, x2, nominal, freedom, zeros, distance):
    found = datasets.describe(name)
    fit = loglinear(found.table, found.model)
    assert fit.model.decomposable == closed
    assert round(fit.g2, 2) == g2
    assert round(fit.x2, 2) == x2
    assert (fit.nominal_degrees_of_freedom, fit.degrees_of_freedom) == (nominal, freedom)
    assert fit.boundary.sum() == zeros
    uniform = Table(found.table.domain, np.ones(found.table.shape))
    assert round(utility.distribution_l1(fit.fitted, uniform), 3) == distance


def test_proportional_fitting_alone_comes_near_the_boundary_but_slowly():
    """Scaled from a full table without a look at the zeros: above the maximum still after a thousand sweeps."""
    found = datasets.describe("journey-to-work")
    fit = loglinear(found.table, found.model)
    counts = found.table.counts.astype(float)

    def after(sweeps):
        fitted = np.ones(counts.shape)
        for _ in range(sweeps):
            for axis in range(3):
                wanted, now = counts.sum(axis=axis, keepdims=True), fitted.sum(axis=axis, keepdims=True)
                fitted *= np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
        seen = counts > 0
        return 2 * float((counts[seen] * np.log(counts[seen] / fitted[seen])).sum()), fitted

    (early, _), (late, fitted) = after(100), after(1000)
    # The distance falls as one over the number of sweeps, not by a factor each.
    assert 5 < (early - fit.g2) / (late - fit.g2) < 12
    assert late - fit.g2 > 1
    np.testing.assert_allclose(fitted, fit.fitted.counts, atol=0.2)


def test_elimination_ends_with_the_model_that_edwards_found_for_the_fungus():
    found = datasets.describe("fungus")
    assert search(found.table).model == loglinear(found.table, found.model).model
