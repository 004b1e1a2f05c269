"""The cheapest pattern of classical suppression beside a compact integer program: `python -m bench.suppress`.

Both solve the model of Fischetti & Salazar for a two-way table whose sums are published: the cheapest set of suppressed
cells such that an attacker's interval for each sensitive cell reaches its protection levels. Ours is
`tb.suppress.classical`, branch and cut, with the attacker's linear program as a last check. The peer is one mixed
integer program for HiGHS, as it can be written down at once: a 0-1 variable for each cell, and for each sensitive cell
and direction a table of deviations whose lines sum to zero, within what is suppressed. Its bounds are as tight as they
can be, no room being above the level that is asked for.

Processor seconds of one process with one thread. The peer stops after `--peer-seconds`; then its line says so,
`theirs` is what it took until then, and `ratio` is what ours is faster by at least. Its bounds must hold our optimum
between them either way.

First, simulatable suppression beside what may be waited for: 3 × 3 groups of 80 to 200 people in ten seconds, and a
10 × 10 table with 10,000 people, drawn as Nabar & Mishra, section 6, say, in five minutes; seconds on the clock.
"""

import argparse
import time
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from bench.report import line
from tabulary import datasets
from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.suppress.classical_method.classical import Suppression, classical
from tabulary.suppress.classical_method.rules import ProtectionLevels, Threshold
from tabulary.suppress.classical_method.suppression_problem import lines
from tabulary.suppress.simulatable_method.simulatable import SimulatableTable, simulatable
from tabulary_papers.datasets.carriers import carriers

LIMIT = 5
SHARE = 0.1
TARGET = 10
PEER = "one compact integer program in HiGHS"


def counts(side: int, seed: int = 0) -> Table:
    """A square table: a tenth of its cells count 1 to 5 people, the others 6 to 499."""
    generator = np.random.default_rng(seed)
    values = generator.integers(LIMIT + 1, 500, (side, side))
    small = generator.choice(values.size, round(SHARE * values.size), replace=False)
    values.reshape(-1)[small] = generator.integers(1, LIMIT + 1, small.size)
    return Table(Domain({"row": range(side), "column": range(side)}), values)


def levels(table: Table) -> ProtectionLevels:
    """Nobody is to tell that a small cell is small, nor that it is not empty."""
    return ProtectionLevels(lower=table.counts, upper=np.maximum(LIMIT + 1 - table.counts, 0))


def compact(table: Table, cost: NDArray[np.float64], seconds: float) -> dict[str, Any]:
    """The peer: the whole model in one mixed integer program."""
    required = levels(table)
    small = np.flatnonzero(table.counts <= LIMIT)
    size = table.counts.size
    values = table.counts.reshape(-1).astype(np.float64)
    solver = highspy.Highs()
    for name, value in {
        "output_flag": False,
        "threads": 1,
        "time_limit": seconds,
        "mip_rel_gap": 0.0,
    }.items():
        solver.setOptionValue(name, value)
    fixed = np.zeros(size)
    fixed[small] = 1.0
    every = np.arange(size, dtype=np.int32)
    solver.addVars(size, fixed, np.ones(size))
    solver.changeColsCost(size, every, cost.reshape(-1))
    solver.changeColsIntegrality(size, every, np.full(size, highspy.HighsVarType.kInteger))
    straight = [np.array(cells, dtype=np.int32) for cells in lines(table.shape)]
    for cell in small:
        for level in (required.upper.reshape(-1)[cell], -required.lower.reshape(-1)[cell]):
            start = solver.getNumCol()
            rise, fall = np.full(size, abs(level)), np.minimum(values, abs(level))
            lowest, highest = -fall, rise.copy()
            lowest[cell] = highest[cell] = level
            solver.addVars(size, lowest, highest)
            for cells in straight:
                solver.addRow(0.0, 0.0, cells.size, cells + start, np.ones(cells.size))
            others = np.delete(every, cell)
            for room, sign in ((rise, -1.0), (fall, 1.0)):
                # room · x - d ≥ 0 and room · x + d ≥ 0
                number = others.size
                solver.addRows(
                    number,
                    np.zeros(number),
                    np.full(number, highspy.kHighsInf),
                    2 * number,
                    np.arange(0, 2 * number, 2, dtype=np.int32),
                    np.stack([others, others + start], axis=1).reshape(-1),
                    np.stack([room[others], np.full(number, sign)], axis=1).reshape(-1),
                )
    solver.run()
    information = solver.getInfo()
    finished = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert finished or solver.getModelStatus() == highspy.HighsModelStatus.kTimeLimit, solver.getModelStatus()
    return {
        "finished": finished,
        "best": information.objective_function_value,
        "bound": information.mip_dual_bound,
        "columns": solver.getNumCol(),
    }


def ours(table: Table, cost: str) -> Suppression:
    return classical(table, Threshold(LIMIT), protection=levels(table), cost=cost, method="exact")


def compare(side: int, cost: str, seconds: float) -> None:
    """The cheapest pattern of one table, both ways, and the same optimum."""
    table = counts(side)
    prices = np.ones(table.shape) if cost == "cells" else table.counts.astype(np.float64)
    start = time.process_time()
    made = ours(table, cost)
    mine = time.process_time() - start
    assert made.optimal
    start = time.process_time()
    peer = compact(table, prices, seconds)
    theirs = time.process_time() - start
    if peer["finished"]:
        assert round(peer["best"], 6) == made.cost, (peer, made.cost)
    assert peer["bound"] - 1e-6 <= made.cost <= peer["best"] + 1e-6, (peer, made.cost)
    line(
        f"suppress: the cheapest pattern of {side} × {side} cells, a tenth of them sensitive, by {cost}",
        PEER,
        mine,
        theirs,
        TARGET,
        unit="s of processor time",
        optimum=made.cost,
        peer_finished=peer["finished"],
        peer_best=peer["best"] if np.isfinite(peer["best"]) else None,
        peer_bound=round(peer["bound"], 3) if np.isfinite(peer["bound"]) else None,
        peer_columns=peer["columns"],
    )


def patterns(seconds: float) -> None:
    # Compiled before the clock starts, as in every process after the first.
    ours(counts(6), "cells")
    # The peer finishes the first two.
    for side, cost in ((10, "cells"), (15, "counts"), (30, "cells"), (30, "counts")):
        compare(side, cost, seconds)


def decisions() -> None:
    """Print how long it takes to decide all cells of two tables, beside what may be waited for."""
    small, large = datasets.describe("hair-eye-gene"), carriers()
    # Compiled before the clock starts, as in every process after the first.
    decided(small)
    for data, allowed, waited in ((small, 10.0, "ten seconds"), (large, 300.0, "five minutes")):
        started = time.perf_counter()
        made = decided(data)
        seconds = time.perf_counter() - started
        shape = " × ".join(map(str, data.table.shape))
        line(
            f"simulatable suppression, {shape}",
            f"what may be waited for, {waited}",
            seconds,
            allowed,
            1,
            unit="seconds on the clock",
            people=int(data.people.total),
            decisions=len(made.decisions),
            suppressed=int(made.suppressed.sum()),
            delta=round(made.promised_delta, 5),
        )


def decided(data: datasets.Dataset) -> SimulatableTable:
    """Return the released table at ε = 0.5 and δ = 0.2."""
    return simulatable(data.people, data.table, data.probability, 0.5, 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-seconds", type=float, default=900.0, help="after which the peer stops")
    given = parser.parse_args()
    decisions()
    patterns(given.peer_seconds)


if __name__ == "__main__":
    main()
