"""The maximum likelihood fit of a log-linear model: in closed form where there is one, else by proportional fitting."""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, axes_outside
from tabulary.core.domain import Margin
from tabulary.errors import NotCertified
from tabulary.infer.models import LogLinearModel

Mask = NDArray[np.bool_]

# Of the total: how far a margin of the fit may be from that of the counts.
_TOLERANCE = 1e-12
SWEEPS, FEWEST_SWEEPS = 100_000, 100
# Sweeps are fewer on a table with so many cells that they would visit more than this.
_MOST_VISITED = 4_000_000_000


def fitted_counts(model: LogLinearModel, counts: Floats, positive: Mask) -> Floats:
    """Return the expected counts of largest likelihood, zero outside the cells that can be positive.

    They are the one table of the model with the margins of the counts (Birch 1963), the same for Poisson and for
    multinomial sampling. `positive` is what `boundary.positive_cells` says.

    >>> from tabulary.core.domain import Domain
    >>> model = LogLinearModel.parse("[A][B]", Domain({"A": "xy", "B": "xy"}))
    >>> fitted_counts(model, np.array([[1.0, 3], [5, 7]]), np.ones((2, 2), dtype=bool)).tolist()
    [[1.5, 2.5], [4.5, 7.5]]
    """
    if not positive.any():
        return np.zeros(model.domain.shape)
    return _closed_form(model, counts) if model.decomposable else proportional_counts(model, counts, positive)


def _closed_form(model: LogLinearModel, counts: Floats) -> Floats:
    """Return Π margins of the generators / Π margins of the separators; evenly over the attributes in none."""
    domain = model.domain
    uncovered = domain.margin(a for a in domain.attributes if a not in model.attributes)
    fitted = np.full(domain.shape, 1 / domain.cells(uncovered))
    for generator, separator in model.junction or ():
        margin = _margin(model, counts, generator)
        # Shares of the separator, so that no product leaves the range of numbers on its way.
        shared = 1.0 if separator is None else _margin(model, counts, separator)
        fitted *= np.divide(margin, shared, out=np.zeros_like(margin), where=margin > 0)
    return fitted


def _margin(model: LogLinearModel, counts: Floats, margin: Margin) -> Floats:
    return np.asarray(counts.sum(axis=axes_outside(model.domain.attributes, margin), keepdims=True))


def proportional_counts(model: LogLinearModel, counts: Floats, positive: Mask) -> Floats:
    """Return the fitted counts by proportional fitting, which a model without a closed form needs."""
    # Loads a compiler; a closed form needs none.
    from tabulary.reconstruct.proportional import Projections, fit

    margins = model.margins
    projections = Projections()
    places = np.stack([projections.onto(counts.shape, margin) for margin in margins.margins])
    sizes = np.cumsum([int(np.prod([counts.shape[axis] for axis in margin])) for margin in margins.margins])
    wanted = margins.forward(counts)
    targets = np.split(wanted, sizes[:-1])
    total = float(counts.sum())
    sweeps = max(FEWEST_SWEEPS, min(SWEEPS, _MOST_VISITED // places.size))
    fitted = fit(
        positive * (total / positive.sum()), places, targets, sweeps=sweeps, tolerance=_TOLERANCE * total
    )
    left = float(np.abs(margins.forward(fitted) - wanted).max())
    # A sweep ends with what it measured at its start; the last scaling is better than that, or rounding.
    if left > 10 * _TOLERANCE * total * len(targets):
        raise NotCertified(
            f"proportional fitting of the model {model} did not converge in {sweeps:,} sweeps: a margin of the fit is "
            f"still {left / total:.1g} of the total away. Nothing was fitted. Take a smaller model, or a table with "
            "fewer cells that are nearly zero."
        )
    return fitted
