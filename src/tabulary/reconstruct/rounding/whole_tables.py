"""Whole tables from consistent real ones, where the full table would be too large.

Tables that share attributes must still agree with each other after rounding, so they cannot be rounded one by
one. Up to order two the shared numbers are the one-way margins: these are rounded first, and whole tables with given
whole margins exist unless structural zeros prevent it. From order three on, whole tables with prescribed shared
margins need not exist. There every table is counted from one population of whole records, and a search moves the
population towards the given tables until no single change helps. The coins are the only thing left to chance.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats, Integers, sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.errors import InvalidTable, listed
from tabulary.reconstruct.proportional import Projections, fit
from tabulary.reconstruct.rounding.dependent import UNIT, round_on_graph
from tabulary.reconstruct.rounding.first_records import Uniform
from tabulary.reconstruct.rounding.population import tables_of_population

# Tables may disagree by the error of a solver; a larger difference, absolute or relative to the total, is a mistake
# of the caller.
_DISAGREEMENT = 1e-3
_RELATIVE_DISAGREEMENT = 1e-6
# A sum this close to a whole number counts as whole: the error of a solver, which grows with the total, up to a tenth.
_WHOLE = 1e-6
_RELATIVE_WHOLE = 1e-9
_MOST_WHOLE = 0.1
# Sweeps that scale a table to its margins, where it is further away than the tenth.
_SWEEPS = 20
# Zeros can make a combination of rounded margins impossible; another random choice may work.
_ATTEMPTS = 4
# With equal costs, the path with fewer cells wins.
_STEP = 1e-6


def whole_tables(
    domain: Domain, tables: Mapping[Margin, Floats], *, uniform: Uniform
) -> tuple[dict[Margin, Integers], dict[str, float | int | str]]:
    """Return tables of whole numbers near to `tables` that agree exactly on all margins they share, and the facts.

    `tables` are non-negative, zero where the domain is impossible, and agree with each other up to the accuracy of
    a solver. One may be a margin of another only where some table has more than two attributes. The result is
    non-negative, zero where the domain is impossible, and every two tables have the same sums over the attributes they
    share, the total included.

    "margins" (no table above two attributes): total and one-way margins go to the integer below or above, with the
    real value as expectation (except for zeros that tie attributes together); then each cell is rounded at random to
    the integer below or above, and the table is adjusted to the rounded margins along cheapest paths. Most cells move
    by less than one; a cell can move by more where the margins of its row and column went opposite ways.

    "population" (otherwise, or if zeros leave no table with the rounded margins): all tables are counted from
    whole records, each attribute drawn given those before it. Then records change, in one attribute or in those that
    zeros tie together, until no tried change lowers the weighted squared distance, or until `population.MOST_VISITS`
    cells were visited. Any number of people: a record first represents many, and at the end one. One-way margins move
    by less than one, except where zeros or the bound on visits prevent it. No record is ever impossible.

    A total or one-way margin that is whole up to the error of a solver stays what it is, in both methods with the
    same exceptions. Nothing is promised for single cells, or for whole margins of more attributes: see `largest_move`.

    The facts: `method`, `largest_move` and `rms_move` over all possible cells, `total`, and for a population
    `sweeps` and `settled`: "yes" if the search ended by itself, "no" if the bound on visits ended it. The result
    depends on the arguments alone, never on a clock. Post-processing: reads no data, spends no budget.

    >>> from tabulary.noise import SystemEntropy
    >>> from tabulary.reconstruct.rounding.full_table import uniforms_from
    >>> domain = Domain({"a": "xy", "b": "xy", "c": "xy"})
    >>> half = {("a", "b"): np.full((2, 2), 2.5), ("b", "c"): np.full((2, 2), 2.5)}
    >>> whole, facts = whole_tables(domain, half, uniform=uniforms_from(SystemEntropy()))
    >>> bool((whole["a", "b"].sum(axis=0) == whole["b", "c"].sum(axis=1)).all()), facts["method"]
    (True, 'margins')
    """
    real, impossible = _checked(domain, tables)
    total = _whole_total(real, uniform)
    facts: dict[str, float | int | str] = {}
    found: dict[Margin, Integers] | None = None
    if all(len(margin) <= 2 for margin in real):
        found = _from_margins(domain, real, impossible, total, uniform)
        facts["method"] = "margins"
    if found is None:
        bounds = {a: _around(sums) for a, sums in _one_way(real, total).items()}
        found, searched = tables_of_population(domain, real, bounds, total, uniform)
        facts = {"method": "population", **searched}
    moves = [(found[margin] - real[margin])[~impossible[margin]] for margin in real]
    cells = sum(move.size for move in moves)
    facts["total"] = total
    facts["largest_move"] = max((float(np.abs(move).max(initial=0.0)) for move in moves), default=0.0)
    facts["rms_move"] = math.sqrt(sum(float((move**2).sum()) for move in moves) / max(cells, 1))
    return found, facts


def _checked(
    domain: Domain, tables: Mapping[Margin, Floats]
) -> tuple[dict[Margin, Floats], dict[Margin, NDArray[np.bool_]]]:
    real: dict[Margin, Floats] = {}
    impossible: dict[Margin, NDArray[np.bool_]] = {}
    for margin, table in tables.items():
        array = np.asarray(table, dtype=np.float64)
        if domain.margin(margin) != tuple(margin) or array.shape != domain.shape_of(margin):
            raise InvalidTable(f"the table on {listed(margin)} does not have the shape of its margin.")
        if not (np.isfinite(array).all() and (array >= 0).all() and array.sum() < 2.0**53):
            raise InvalidTable(
                f"the table on {listed(margin)} is not made of non-negative numbers below 2**53. "
                "Nothing was rounded."
            )
        mask = domain.impossible(margin)
        if array[mask].any():
            raise InvalidTable(
                f"the table on {listed(margin)} is not zero in a cell that is impossible. "
                "Reconstruct it with the same zeros."
            )
        real[margin], impossible[margin] = array, mask
    if not real:
        raise InvalidTable("there is no table to round.")
    totals = [float(table.sum()) for table in real.values()]
    allowed = max(_DISAGREEMENT, _RELATIVE_DISAGREEMENT * max(totals))
    apart = max(totals) - min(totals)
    for attribute in {a: None for margin in real for a in margin}:
        sums = np.stack([sum_onto(t, m, (attribute,)) for m, t in real.items() if attribute in m])
        apart = max(apart, float(np.ptp(sums, axis=0).max(initial=0.0)))
    if apart > allowed:
        raise InvalidTable(
            f"the tables disagree by {apart:.2g} on a margin they share, more than {allowed:.2g}. "
            "Make them consistent first. Nothing was rounded."
        )
    return real, impossible


def _whole_total(real: Mapping[Margin, Floats], uniform: Uniform) -> int:
    total = math.fsum(float(table.sum()) for table in real.values()) / len(real)
    coin = float(uniform(1)[0])
    return math.floor(float(_snapped(np.array(total), total)) + coin)


def _from_margins(
    domain: Domain,
    real: Mapping[Margin, Floats],
    impossible: Mapping[Margin, NDArray[np.bool_]],
    total: int,
    uniform: Uniform,
) -> dict[Margin, Integers] | None:
    """Return whole tables of at most two attributes, or None if zeros rule out the margins of every attempt."""
    ones = _one_way(real, total)
    named = sorted(ones, key=lambda a: (ones[a].size, domain.position(a)))
    tied = {margin for margin, mask in impossible.items() if len(margin) == 2 and mask.any()}
    for _ in range(_ATTEMPTS if tied else 1):
        margins = _whole_margins(named, ones, {m: real[m] for m in tied}, impossible, total, uniform)
        found: dict[Margin, Integers] = {}
        # Tables with zeros can fail, so they come first.
        for margin in sorted(real, key=lambda m: m not in tied):
            if not margin:
                found[margin] = np.array(total, dtype=np.int64)
            elif len(margin) == 1:
                found[margin] = margins[margin[0]]
            else:
                rows, columns = (margins[a] for a in margin)
                fitted = _fitted(real[margin], *(ones[a] for a in margin))
                table = _round_two_way(fitted, uniform)
                if not lead_to_margins(fitted, table, ~impossible[margin], rows, columns, columns, _STEP):
                    break
                found[margin] = table
        else:
            return {margin: found[margin] for margin in real}
    return None


def _one_way(real: Mapping[Margin, Floats], total: float) -> dict[str, Floats]:
    """Return the margin of each attribute, averaged over the tables that have it."""
    found: dict[str, list[Floats]] = {}
    for margin, table in real.items():
        for attribute in margin:
            found.setdefault(attribute, []).append(sum_onto(table, margin, (attribute,)))
    return {a: _snapped(np.mean(sums, axis=0, dtype=np.float64), total) for a, sums in found.items()}


def _snapped(sums: Floats, total: float) -> Floats:
    """Return sums of which those are whole that are whole up to the error of a solver.

    A margin that is known exactly was whole before the solver, and stays what it was.
    """
    nearest = np.rint(sums)
    near = min(_MOST_WHOLE, max(_WHOLE, _RELATIVE_WHOLE * total))
    return np.asarray(np.where(np.abs(sums - nearest) <= near, nearest, sums))


def _fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return a two-way table scaled to these margins, if it is so far away that paths would take long."""
    apart = max(np.abs(table.sum(axis=1) - rows).max(), np.abs(table.sum(axis=0) - columns).max())
    if apart <= _MOST_WHOLE:
        return table
    places = Projections().without_one(table.shape)
    return fit(table, places, [rows, columns], sweeps=_SWEEPS, tolerance=_MOST_WHOLE)


def _whole_margins(
    named: Sequence[str],
    ones: Mapping[str, Floats],
    tied: Mapping[Margin, Floats],
    impossible: Mapping[Margin, NDArray[np.bool_]],
    total: int,
    uniform: Uniform,
) -> dict[str, Integers]:
    """Return whole one-way margins with the given total, every number within one.

    Coarse attributes come first. An attribute that zeros tie to an earlier one takes its margin from their common
    table, so that the people of a county belong to its state. Of several such tables, the one with the most zeros is
    used.
    """
    found: dict[str, Integers] = {}
    for attribute in named:
        sources = [m for m in tied if attribute in m and any(a in found for a in m)]
        for margin in sorted(sources, key=lambda m: -float(impossible[m].mean())):
            other = next(a for a in margin if a != attribute)
            upright = margin.index(other) == 0
            table = tied[margin] if upright else tied[margin].T
            mask = impossible[margin] if upright else impossible[margin].T
            counts = _round_two_way(table, uniform)
            low, high = _around(ones[attribute])
            if lead_to_margins(table, counts, ~mask, found[other], low, high, _STEP):
                found[attribute] = counts.sum(axis=0)
                break
        else:
            found[attribute] = _systematic(ones[attribute], total, float(uniform(1)[0]))
    return found


def _around(real: Floats) -> tuple[Integers, Integers]:
    return np.floor(real).astype(np.int64), np.ceil(real).astype(np.int64)


def _systematic(real: Floats, total: int, coin: float) -> Integers:
    """Return the integer below or above each number, with the given sum, by equal steps along their running sum.

    Unbiased over `coin` and over the total, if that is the sum's integer below or above at random.
    """
    floor = np.floor(real)
    running = np.cumsum(np.rint((real - floor) * UNIT).astype(np.int64))
    # Only some starts give this total: those below or above the start at which one more step fits.
    gained = UNIT - int(running[-1]) % UNIT
    up = total - int(floor.sum()) > int(running[-1]) // UNIT
    start = gained + int(coin * (UNIT - gained)) if up else int(coin * gained)
    whole = np.asarray(floor.astype(np.int64) + np.diff((running + start) // UNIT, prepend=0))
    # Rounding of floats may have given the neighbouring total.
    whole[int(np.argmax(real))] += total - int(whole.sum())
    return whole


def _round_two_way(real: Floats, uniform: Uniform) -> Integers:
    """Return the integer below or above each cell, rows, columns and total within one."""
    floor = np.floor(real)
    fractions = real - floor
    whole = np.ascontiguousarray(floor.astype(np.int64))
    left, right = np.nonzero(fractions)
    if left.size:
        whole[left, right] += round_on_graph(left, right, fractions[left, right], uniform)
    return whole


@compiled
def lead_to_margins(
    real: Floats,
    counts: Integers,
    possible: NDArray[np.bool_],
    rows: Integers,
    low: Integers,
    high: Integers,
    step: float,
) -> bool:
    """Change `counts` in place to the sums `rows`, and columns between `low` and `high`; False if there is no way.

    A path raises and lowers cells in turn, from a row that has too few or a column that has too many to a row that
    has too many or a column that has too few. Each path is a cheapest one (Dijkstra): the cost of a cell is the
    growth of its squared distance to `real`, over 1 + real. Only possible cells are raised and none below zero, so a
    failure means that no table of possible cells has these sums: the augmenting paths of a flow.
    """
    n, m = counts.shape
    nodes = n + m
    missing = np.empty(nodes, np.int64)
    spare_high = np.zeros(nodes, np.int64)
    for i in range(n):
        missing[i] = rows[i]
        for j in range(m):
            missing[i] -= counts[i, j]
    for j in range(m):
        total = 0
        for i in range(n):
            total += counts[i, j]
        # For columns: how much is missing to `low`, and how far `high` is above it.
        missing[n + j] = low[j] - total
        spare_high[n + j] = high[j] - low[j]
    distance = np.empty(nodes)
    before = np.empty(nodes, np.int64)
    done = np.empty(nodes, np.bool_)
    while True:
        must = False
        short = False
        for v in range(nodes):
            if v < n:
                must = must or missing[v] > 0
                short = short or missing[v] < 0
            else:
                must = must or missing[v] + spare_high[v] < 0
                short = short or missing[v] > 0
        if not (must or short):
            return True
        for v in range(nodes):
            if v < n:
                source = missing[v] > 0
            elif must:
                source = missing[v] + spare_high[v] < 0
            else:
                source = missing[v] < 0
            distance[v] = 0.0 if source else np.inf
            before[v] = -1
            done[v] = False
        end = -1
        while True:
            v = -1
            best = np.inf
            for w in range(nodes):
                if not done[w] and distance[w] < best:
                    best = distance[w]
                    v = w
            if v < 0:
                return False
            done[v] = True
            if v < n:
                sink = missing[v] < 0
            elif must:
                sink = missing[v] + spare_high[v] > 0
            else:
                sink = missing[v] > 0
            if sink:
                end = v
                break
            if v < n:
                for j in range(m):
                    if possible[v, j] and not done[n + j]:
                        x = real[v, j]
                        grows = (1 + 2 * (counts[v, j] - x)) / (1 + x)
                        reached = best + max(0.0, grows) + step
                        if reached < distance[n + j]:
                            distance[n + j] = reached
                            before[n + j] = v
            else:
                for i in range(n):
                    if counts[i, v - n] > 0 and not done[i]:
                        x = real[i, v - n]
                        grows = (1 - 2 * (counts[i, v - n] - x)) / (1 + x)
                        reached = best + max(0.0, grows) + step
                        if reached < distance[i]:
                            distance[i] = reached
                            before[i] = v
        v = end
        missing[v] += 1 if v < n else -1
        while before[v] >= 0:
            u = before[v]
            if u < n:
                counts[u, v - n] += 1
            else:
                counts[v, u - n] -= 1
            v = u
        missing[v] += -1 if v < n else 1
