import numpy as np
import pytest

from bench import suppress


@pytest.mark.parametrize("side", [4, 6])
@pytest.mark.parametrize("cost", ["cells", "counts"])
def test_the_compact_program_has_our_optimum(side, cost):
    table = suppress.counts(side)
    prices = np.ones(table.shape) if cost == "cells" else table.counts.astype(float)
    peer = suppress.compact(table, prices, 60.0)
    made = suppress.ours(table, cost)
    assert peer["finished"]
    assert made.optimal
    assert peer["best"] == pytest.approx(made.cost)


def test_a_tenth_of_the_cells_is_sensitive():
    assert (suppress.counts(30).counts <= suppress.LIMIT).sum() == 90


def test_a_peer_that_is_stopped_says_so_and_its_bounds_hold_the_optimum():
    table = suppress.counts(12)
    peer = suppress.compact(table, np.ones(table.shape), 1e-3)
    assert not peer["finished"]
    assert peer["bound"] <= suppress.ours(table, "cells").cost <= peer["best"]
