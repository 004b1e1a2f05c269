"""Errors by simulation: how many repetitions, of what, and what is said where nothing moved."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.reconstruct import simulation
from tabulary.reconstruct.constrained import FullTable
from tabulary.reconstruct.simulation import simulated_errors
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]}, structural_zeros=[{"sex": "F", "age": "65+"}]
)
FULL = np.array([[400.0, 500.0, 0.0], [300.0, 200.0, 600.0]])


def unknown_of(**options):
    options = {"mechanism": "cells", "privacy": tb.PureDP(1), "reconstruct": "least-squares", **options}
    return FullTable(tb.plan(DOMAIN, "[sex age]", **options))


def test_repetitions_are_as_many_as_asked_for(monkeypatch):
    monkeypatch.setattr(simulation, "REPETITIONS", 25)
    errors, done = simulated_errors(unknown_of(), FULL, SeededEntropy(0))
    assert done == 25
    assert list(errors) == [("sex", "age")]


def test_without_time_for_twenty_repetitions_nothing_is_said():
    errors, done = simulated_errors(unknown_of(), FULL, SeededEntropy(0), seconds=0.0)
    assert errors == {}
    assert done < simulation.FEWEST


def test_the_same_entropy_gives_the_same_errors(monkeypatch):
    monkeypatch.setattr(simulation, "REPETITIONS", 20)
    one, two = (simulated_errors(unknown_of(), FULL, SeededEntropy(5))[0]["sex", "age"] for _ in range(2))
    assert (one.standard_errors == two.standard_errors).all()
    assert (one.widths == two.widths).all()


@pytest.mark.parametrize("mechanism", ["cells", "margins", "efron-stein", "fourier"])
def test_an_impossible_cell_is_exact_and_no_other_is(mechanism, monkeypatch):
    monkeypatch.setattr(simulation, "REPETITIONS", 20)
    law = simulated_errors(unknown_of(mechanism=mechanism), FULL, SeededEntropy(0))[0]["sex", "age"]
    impossible = FULL == 0
    assert ((law.standard_errors == 0) == impossible).all()
    assert ((law.half_widths(0.9) == 0) == impossible).all()


def test_a_cell_that_no_repetition_moved_may_still_be_off_by_one(monkeypatch):
    monkeypatch.setattr(simulation, "REPETITIONS", 20)
    # At ε = 12 all the noise of twenty repetitions is zero but for one in a thousand.
    law = simulated_errors(unknown_of(privacy=tb.PureDP(12)), FULL / 100, SeededEntropy(0))[0]["sex", "age"]
    assert (law.standard_errors[FULL > 0] == 0.5).all()
    assert (law.widths[FULL > 0] == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["cells", "fourier"])
def test_where_no_cell_is_near_zero_the_simulated_errors_are_at_most_the_linear_ones(mechanism, monkeypatch):
    monkeypatch.setattr(simulation, "REPETITIONS", 200)
    unknown = unknown_of(mechanism=mechanism)
    law = simulated_errors(unknown, FULL, SeededEntropy(1))[0]["sex", "age"]
    linear = unknown.plan.error_of(("sex", "age")).standard_errors
    possible = FULL > 0
    # Knowing that a cell is empty can only help; of cells by themselves it says nothing.
    ratio = np.sqrt(np.mean(law.standard_errors[possible] ** 2) / np.mean(linear[possible] ** 2))
    assert 0.5 < ratio < 1.1
    assert mechanism == "fourier" or ratio > 0.9
