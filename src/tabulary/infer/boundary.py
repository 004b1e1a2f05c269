"""Where a log-linear fit can be positive, and what is left to estimate there.

A table with zeros may have no maximum likelihood estimate inside the model: some expected counts then fall to
zero however the rest is chosen. The estimate exists on the boundary, on the cells that stay positive (its
facial set), and there it is an ordinary one, with fewer cells and fewer parameters. Fienberg & Rinaldo (2012),
"Maximum likelihood estimation in log-linear models".
"""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, axes_outside
from tabulary.errors import NotCertified
from tabulary.infer.models import LogLinearModel

Mask = NDArray[np.bool_]

# The program is solved to this; its answers are 0 or 1.
_TOLERANCE = 1e-9


def positive_cells(model: LogLinearModel, counts: Floats) -> Mask:
    """Return which cells are positive in the fit of the model to these counts, zeros possibly among them.

    A possible cell is, if and only if some non-negative table with the same margins has it positive. Nothing but the
    pattern of zeros decides. Where a margin is zero, all its cells are; in a decomposable model no others are, and
    beyond that a linear program tells.

    >>> from tabulary.core.domain import Domain
    >>> model = LogLinearModel.parse("[AB][AC][BC]", Domain({"A": "xy", "B": "xy", "C": "xy"}))
    >>> counts = np.array([[[0.0, 3], [4, 5]], [[6, 7], [8, 0]]])
    >>> int(positive_cells(model, counts).sum())
    6
    """
    domain = model.domain
    possible = ~domain.impossible(domain.attributes)
    observed = counts > 0
    margins = model.margins
    # A cell whose margins are all positive is met by as many observed margins as there are generators.
    met = margins.adjoint((margins.forward(observed.astype(np.float64)) > 0).astype(np.float64))
    candidates: Mask = possible & (met == len(model.generators))
    undecided = candidates & ~observed
    if not undecided.any() or model.decomposable:
        return candidates
    candidates[undecided] = ~_falls(model, np.flatnonzero(observed), np.flatnonzero(undecided))
    return candidates


def degrees_of_freedom(model: LogLinearModel, positive: Mask) -> int:
    """Return how many cells are positive less how many parameters they let one estimate.

    The number of parameters is the rank of the design on these cells. In a decomposable model it is
    the number of positive cells of the generators less that of their separators.
    """
    return int(positive.sum()) - _parameters(model, positive)


def _parameters(model: LogLinearModel, positive: Mask) -> int:
    if positive.all():
        return model.parameters
    if not positive.any():
        return 0
    if model.decomposable:
        return sum(
            _cells(model, positive, generator)
            - (0 if separator is None else _cells(model, positive, separator))
            for generator, separator in model.junction or ()
        )
    design = model.design(np.flatnonzero(positive))
    # Of the smaller of the two matrices of inner products: whole numbers, whose eigenvalues are far from zero or zero.
    products = design @ design.T if len(design) < design.shape[1] else design.T @ design
    return int(np.linalg.matrix_rank(products, hermitian=True))


def _cells(model: LogLinearModel, positive: Mask, margin: tuple[str, ...]) -> int:
    return int(np.count_nonzero(positive.any(axis=axes_outside(model.domain.attributes, margin))))


def _falls(model: LogLinearModel, observed: NDArray[np.intp], undecided: NDArray[np.intp]) -> Mask:
    """Return which of the undecided cells must be zero.

    They are the cells where some function y in the model is positive that is zero on the observed cells and nowhere
    negative: y adds up to zero over a table with the same margins, as it does over the observed one, and then
    so does every term. Going far against y costs the likelihood nothing. The program is: the largest Σ s with
    s ≤ y and s ≤ 1 on the undecided cells. A sum of such functions is another, and so is a multiple, so all cells
    that fall reach s = 1 at once, and no cell is left in between.
    """
    # Loaded only where a table has zeros.
    import highspy

    from tabulary.linear_solver import simplex_solver

    margins = _places(model, np.concatenate([observed, undecided]))
    generators, functions = margins.shape[1], int(margins.max()) + 1
    falls = undecided.size
    # y = 0 is feasible, so the primal simplex method (strategy 4) has a start.
    solver = simplex_solver(
        simplex_strategy=4, primal_feasibility_tolerance=_TOLERANCE, dual_feasibility_tolerance=_TOLERANCE
    )
    infinite = highspy.kHighsInf
    solver.addVars(functions, np.full(functions, -infinite), np.full(functions, infinite))
    solver.addVars(falls, np.zeros(falls), np.ones(falls))
    solver.changeColsCost(
        falls, np.arange(functions, functions + falls, dtype=np.int32), np.full(falls, -1.0)
    )
    zeros = np.zeros(observed.size)
    solver.addRows(
        observed.size,
        zeros,
        zeros,
        observed.size * generators,
        np.arange(0, observed.size * generators, generators, dtype=np.int32),
        margins[: observed.size].reshape(-1),
        np.ones(observed.size * generators),
    )
    rows = np.concatenate(
        [margins[observed.size :], np.arange(functions, functions + falls, dtype=np.int32)[:, None]], axis=1
    )
    values = np.ones(rows.shape)
    values[:, -1] = -1.0
    solver.addRows(
        falls,
        np.zeros(falls),
        np.full(falls, infinite),
        rows.size,
        np.arange(0, rows.size, generators + 1, dtype=np.int32),
        rows.reshape(-1),
        values.reshape(-1),
    )
    solver.run()
    found = np.asarray(solver.getSolution().col_value)[functions:]
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal or np.any((found > 1e-3) & (found < 1 - 1e-3)):
        raise NotCertified(
            f"which cells of the model {model} are positive could not be decided: the linear program ended with "
            f"{solver.modelStatusToString(status)!r}. Nothing was fitted. Take a smaller model, or a decomposable one."
        )
    return np.asarray(found > 0.5)


def _places(model: LogLinearModel, cells: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return where each cell adds to in the table of each generator, all tables counted through in order."""
    shape = model.domain.shape
    levels = np.unravel_index(cells, shape)
    columns, start = [], 0
    for margin in model.margins.margins:
        sides = tuple(shape[axis] for axis in margin)
        place = np.ravel_multi_index(tuple(levels[axis] for axis in margin), sides) if margin else 0 * cells
        columns.append(start + place)
        start += int(np.prod(sides))
    return np.stack(columns, axis=1).astype(np.int32)
