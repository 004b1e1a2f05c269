"""The linear program beside HiGHS's simplex method on the whole matrix: `python -m bench.lp`.

People with k binary attributes that lean on one hidden trait; all coefficients of order two and less, with
Laplace noise of scale |B| / ε, ε = 1. The peer is given the program as the papers print it, every cell a
column and every coefficient two rows, through the package that solves our restricted programs, `highspy`.

- 14 attributes: processor time of both in one process, and the same optimum.
- 16 attributes: peak memory, each in a process of its own, above that of the same process with the
  coefficients at hand and nothing solved. The peer stops after `--peer-seconds`, which its line tells.
- 20 attributes, a million cells: seconds and memory of a process of its own, interpreter and all.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from bench.report import line
from tabulary.planning.queries import ContrastMap
from tabulary.planning.queries.hadamard import HadamardMap
from tabulary.reconstruct.lp import solve_program

PEOPLE = 5000
GAP = 1e-3
ALLOWED_SECONDS = 120.0
ALLOWED_GB = 1.0


def sets_of(attributes: int) -> tuple[tuple[int, ...], ...]:
    """All sets of at most two attributes: the coefficients B of the two-way margins."""
    return tuple(s for order in range(3) for s in combinations(range(attributes), order))


def program(attributes: int, people: int, seed: int = 0) -> tuple[ContrastMap, NDArray[np.float64]]:
    """The coefficients of a sparse table of people, with noise."""
    generator = np.random.default_rng(seed)
    likely = generator.uniform(0.05, 0.5, attributes)
    trait = generator.random((people, 1))
    records = generator.random((people, attributes)) < 2 * likely * trait
    table = np.zeros((2,) * attributes)
    np.add.at(table, tuple(records.T.astype(np.intp)), 1.0)
    sets = sets_of(attributes)
    noise = np.round(generator.laplace(0, len(sets), len(sets)))
    return ContrastMap(table.shape, sets), HadamardMap(table.shape, sets).forward(table) + noise


def whole_matrix(linear_map: ContrastMap, measured: NDArray[np.float64], seconds: float) -> dict[str, Any]:
    """The peer: the program as printed, in one call of HiGHS."""
    cells, rows = int(np.prod(linear_map.shape)), linear_map.size
    signs = np.empty((cells, rows))
    index = np.arange(cells)
    for column, s in enumerate(linear_map.sets):
        odd = np.zeros(cells, dtype=np.int64)
        for axis in s:
            odd ^= (index >> (len(linear_map.shape) - 1 - axis)) & 1
        signs[:, column] = 1.0 - 2.0 * odd
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = cells + 1, 2 * rows
    model.col_cost_ = np.append(np.zeros(cells), 1.0)
    model.col_lower_ = np.zeros(cells + 1)
    model.col_upper_ = np.full(cells + 1, highspy.kHighsInf)
    infinite = np.full(rows, highspy.kHighsInf)
    model.row_lower_ = np.concatenate([measured, -infinite])
    model.row_upper_ = np.concatenate([infinite, measured])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(cells + 2, dtype=np.int32) * 2 * rows
    model.a_matrix_.index_ = np.tile(np.arange(2 * rows, dtype=np.int32), cells + 1)
    worst = np.concatenate([np.ones(rows), -np.ones(rows)])
    model.a_matrix_.value_ = np.append(np.concatenate([signs, signs], axis=1).reshape(-1), worst)
    del signs
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("time_limit", seconds)
    solver.passModel(model)
    del model
    built = peak_megabytes()
    solver.run()
    finished = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return {"b": solver.getObjectiveValue() if finished else None, "finished": finished, "built": built}


def alone(attributes: int, people: int, who: str, seconds: float) -> dict[str, Any]:
    """Run one side in a process of its own; tell its seconds, its peak and the peak before it began."""
    _, measured = program(attributes, people)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.npy"
        np.save(file, measured)
        command = [sys.executable, "-m", "bench.lp", "--alone", who, "--peer-seconds", str(seconds)]
        start = time.perf_counter()
        ran = subprocess.run(
            [*command, "--attributes", str(attributes), "--measured", str(file)],
            check=True,
            capture_output=True,
            text=True,
        )
        wall = time.perf_counter() - start
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return {**told, "wall": wall}


def peak_megabytes() -> float:
    """The most memory this process has held. `ru_maxrss` would tell that of its parent, if it was more."""
    status = Path("/proc/self/status").read_text("utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def one_side(attributes: int, file: Path, who: str, seconds: float) -> None:
    linear_map, measured = ContrastMap((2,) * attributes, sets_of(attributes)), np.load(file)
    before = peak_megabytes()
    if who == "ours":
        found = solve_program(linear_map, measured, gap=GAP)
        told: dict[str, Any] = {"b": found.b, "gap": found.gap, "finished": True, "support": found.support}
        told |= {"rounds": found.rounds, "feasible": found.feasible}
    else:
        told = whole_matrix(linear_map, measured, seconds)
    print(json.dumps({**told, "before": before, "peak": peak_megabytes()}))


def speed(attributes: int, seconds: float) -> None:
    linear_map, measured = program(attributes, PEOPLE)
    # Compiled before the clock starts, as in every process after the first.
    solve_program(linear_map, measured, gap=0.5)
    start = time.process_time()
    found = solve_program(linear_map, measured, gap=GAP)
    ours = time.process_time() - start
    start = time.process_time()
    peer = whole_matrix(linear_map, measured, seconds)
    theirs = time.process_time() - start
    if peer["finished"]:
        slack = 1e-6 * np.abs(measured).max()
        assert found.lower_bound - slack <= peer["b"] <= found.b + slack, (found, peer)
    line(
        f"linear program, {attributes} binary attributes",
        "HiGHS simplex on the whole matrix",
        ours,
        theirs,
        10,
        unit="seconds of processor",
        b=round(found.b, 3),
        peer_b=peer["b"] and round(peer["b"], 3),
        peer_finished=peer["finished"],
        gap=float(f"{found.gap:.1e}"),
        positive_cells=found.support,
        measured=linear_map.size,
    )


def memory(attributes: int, seconds: float) -> None:
    ours = alone(attributes, PEOPLE, "ours", seconds)
    theirs = alone(attributes, PEOPLE, "peer", seconds)
    line(
        f"linear program, {attributes} binary attributes: memory",
        "HiGHS simplex on the whole matrix",
        ours["peak"] - ours["before"],
        theirs["peak"] - theirs["before"],
        10,
        unit="MB above the process before it solves",
        peer_before_its_first_step=round(theirs["built"] - theirs["before"]),
        peer_finished=theirs["finished"],
        peer_seconds_allowed=seconds,
        seconds=round(ours["wall"], 1),
        peer_seconds=round(theirs["wall"], 1),
    )


def million(people: int) -> None:
    ours = alone(20, people, "ours", ALLOWED_SECONDS)
    told = {"gap": float(f"{ours['gap']:.1e}"), "b": round(ours["b"], 3), "rounds": ours["rounds"]}
    told |= {"people": people, "positive_cells": ours["support"]}
    name = "linear program, a million cells"
    line(name, "two minutes", ours["wall"], ALLOWED_SECONDS, 1, unit="seconds of the whole process", **told)
    line(name, "one gigabyte", ours["peak"] / 1024, ALLOWED_GB, 1, unit="GB of the whole process", **told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-seconds", type=float, default=300.0)
    parser.add_argument("--alone", choices=["ours", "peer"], help=argparse.SUPPRESS)
    parser.add_argument("--attributes", type=int, default=16, help=argparse.SUPPRESS)
    parser.add_argument("--measured", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        one_side(given.attributes, given.measured, given.alone, given.peer_seconds)
        return
    speed(14, given.peer_seconds)
    memory(16, given.peer_seconds)
    # Few people leave the table sparse and b above zero; with many it is zero, which takes longer.
    for people in (PEOPLE, 200_000):
        million(people)


if __name__ == "__main__":
    main()
