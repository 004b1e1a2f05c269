"""Least squares onto margins, against a quadratic program solved by somebody else."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from tabulary.reconstruct.projection import nearest
from tabulary.reconstruct.proportional import Projections


def led(table, variances, least, targets, *, sweeps=3_000, tolerance=1e-11):
    places = Projections().without_one(table.shape)
    return nearest(table, variances, least, places, targets, sweeps=sweeps, tolerance=tolerance)


@st.composite
def problems(draw):
    shape = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=3)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    truth = generator.gamma(draw(st.sampled_from([0.2, 1.0])), 5, shape) + 0.01
    axes = range(len(shape))
    targets = [
        truth.sum(axis=tuple(i for i in axes if i not in kept))
        for kept in itertools.combinations(axes, len(shape) - 1)
    ]
    noisy = truth + generator.normal(0, draw(st.sampled_from([0.1, 3.0])), shape)
    variances = generator.gamma(1, 1, shape) + 0.05
    return noisy, variances, np.full(shape, 1e-3), targets


@given(problems())
@settings(max_examples=40)
def test_the_nearest_table_has_the_margins_and_nothing_below_the_least(problem):
    table, variances, least, targets = problem
    found = led(table, variances, least, targets)
    assert (found >= least).all()
    axes = range(table.ndim)
    for kept, target in zip(itertools.combinations(axes, table.ndim - 1), targets, strict=True):
        rest = tuple(i for i in axes if i not in kept)
        # Where many cells are held by their bounds the last digits take long.
        before = np.abs(np.maximum(table, least).sum(axis=rest) - target).max()
        assert np.abs(found.sum(axis=rest) - target).max() <= 0.01 * before + 1e-9


def test_no_other_table_with_the_margins_is_nearer():
    generator = np.random.default_rng(1)
    truth = np.array([[9.0, 0.5, 0.0], [0.0, 6.0, 1.0]])
    table = truth + generator.normal(0, 2, truth.shape)
    variances = generator.uniform(0.5, 3, truth.shape)
    targets = [truth.sum(axis=1), truth.sum(axis=0)]
    found = led(table, variances, np.zeros_like(truth), targets)
    rows = np.vstack([np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))])
    solved = minimize(
        lambda x: ((x - table.ravel()) ** 2 / variances.ravel()).sum(),
        truth.ravel(),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: rows[:-1] @ x - np.concatenate(targets)[:-1]},
        options={"maxiter": 1_000, "ftol": 1e-14},
        method="SLSQP",
    )
    assert found.ravel() == pytest.approx(solved.x, abs=1e-4)
    # Where no bound is felt, plain least squares say the same.
    free = lsq_linear(np.vstack([np.eye(6), 1e6 * rows]), np.r_[table.ravel(), 1e6 * np.concatenate(targets)])
    unbounded = led(table, np.ones_like(truth), np.full_like(truth, -1e9), targets)
    assert unbounded.ravel() == pytest.approx(free.x, abs=1e-4)


def test_what_empty_cells_gained_is_not_taken_from_one_large_cell():
    # A row of noise about zero and one large cell: as much is taken from each cell that is left.
    row = np.array([[1_000.0, 3.0, -3.0, 2.0, -2.0]])
    targets = [np.array([1_000.0]), np.array([1_000.0, 0, 0, 0, 0])]
    places = Projections().without_one((1, 5))[:1]
    found = nearest(row, np.ones((1, 5)), np.zeros((1, 5)), places, targets[:1], sweeps=50, tolerance=1e-12)
    assert found[0] == pytest.approx([1_000 - 5 / 3, 4 / 3, 0, 1 / 3, 0])


def test_cells_without_variance_stay():
    table = np.array([[5.0, 1.0], [1.0, 5.0]])
    variances = np.array([[0.0, 1.0], [1.0, 1.0]])
    found = led(table, variances, np.zeros((2, 2)), [np.array([7.0, 6.0]), np.array([6.0, 7.0])])
    assert found == pytest.approx(np.array([[5.0, 2.0], [1.0, 5.0]]))
    still = led(table, np.zeros((2, 2)), np.zeros((2, 2)), [np.array([7.0, 6.0]), np.array([6.0, 7.0])])
    assert (still == table).all()


def test_few_free_cells_do_not_make_it_jump():
    generator = np.random.default_rng(0)
    table = np.where(np.eye(30) > 0, 1e8, generator.normal(0, 40, (30, 30)))
    truth = np.where(np.eye(30) > 0, 1e8, 0.0)
    found = led(
        table,
        np.full((30, 30), 1600.0),
        np.full((30, 30), 1e-3),
        [truth.sum(axis=1) + 5, truth.sum(axis=0) + 5],
        sweeps=10,
        tolerance=1e-3,
    )
    assert np.abs(found - truth).max() < 500
