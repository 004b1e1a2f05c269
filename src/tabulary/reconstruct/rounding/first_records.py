"""The first records of a population: each attribute drawn given those before it, as evenly as whole numbers allow."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, Integers, axes_outside, sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.reconstruct.rounding.dependent import UNIT, round_on_graph

Codes = NDArray[np.int32]
Block = tuple[Margin, NDArray[np.bool_]]
Uniform = Callable[[int], Floats]
"""Gives this many independent numbers from [0, 1)."""


def first_records(
    domain: Domain,
    real: Mapping[Margin, Floats],
    names: Margin,
    blocks: Sequence[Block],
    total: int,
    uniform: Uniform,
) -> Codes:
    """Return records whose attributes were drawn one after another, each given those of one table.

    The next attribute is the one that the placed attributes of some table predict best. Records that agree on these
    get its levels in proportion to the table, as evenly as whole numbers allow. A record never gets a level that
    would make it impossible.
    """
    codes = np.zeros((total, len(names)), dtype=np.int32)
    told: dict[tuple[str, Margin], tuple[Margin, float]] = {}
    placed: list[str] = []
    while len(placed) < len(names):
        open_pairs = [(a, m) for m in real for a in m if a not in placed]
        for attribute, margin in open_pairs:
            given = tuple(a for a in margin if a in placed)
            if told.get((attribute, margin), (None, 0.0))[0] != given:
                told[attribute, margin] = given, _information(real[margin], margin, attribute, given)
        attribute, margin = max(open_pairs, key=lambda pair: told[pair][1])
        given = told[attribute, margin][0]
        joint = _given(real[margin], margin, attribute, given)
        group = np.zeros(total, dtype=np.int64)
        for a in given:
            group = group * len(domain.levels_of(a)) + codes[:, names.index(a)]
        rows, which, counts = np.unique(group, return_inverse=True, return_counts=True)
        shares = joint[rows]
        shares[shares.sum(axis=1) == 0] = joint.sum(axis=0)
        shared = _shared_out(shares, counts, uniform)
        at = names.index(attribute)
        levels = np.tile(np.arange(joint.shape[1]), rows.size)
        codes[np.lexsort((uniform(total), which)), at] = np.repeat(levels, shared.reshape(-1))
        placed.append(attribute)
        _keep_possible(codes, names, placed, joint.sum(axis=0), blocks, uniform)
    return codes


def _given(table: Floats, margin: Margin, attribute: str, given: Margin) -> Floats:
    """Return one row per cell of `given`, one column per level of `attribute`."""
    within = tuple(a for a in margin if a == attribute or a in given)
    joint = np.moveaxis(sum_onto(table, margin, within), within.index(attribute), -1)
    return joint.reshape(-1, joint.shape[-1])


def _information(table: Floats, margin: Margin, attribute: str, given: Margin) -> float:
    """Return the mutual information of an attribute and `given`, less its expectation by chance in as many cells."""
    joint = _given(table, margin, attribute, given)
    rows, columns, total = joint.sum(axis=1), joint.sum(axis=0), float(joint.sum())
    if not total:
        return 0.0
    # A share so small that it underflows adds nothing.
    shares = ((x / total)[x / total > 0] for x in (rows, columns, joint))
    entropies = [float(-(p * np.log(p)).sum()) for p in shares]
    used = [int(np.count_nonzero(x >= 0.5)) for x in (rows, columns, joint)]
    # The first correction of Miller (1955).
    return entropies[0] + entropies[1] - entropies[2] - max(0, used[2] - used[0] - used[1] + 1) / (2 * total)


def _shared_out(shares: Floats, counts: Integers, uniform: Uniform) -> Integers:
    """Return each row's count divided in proportion, with cells and column sums within one."""
    wanted = shares * (counts / shares.sum(axis=1))[:, None]
    units = np.rint(wanted * UNIT).astype(np.int64)
    # Rows must be whole to the last unit; the largest cell takes the difference.
    units[np.arange(counts.size), shares.argmax(axis=1)] += counts * UNIT - units.sum(axis=1)
    whole = np.asarray(units // UNIT, dtype=np.int64)
    parts = units % UNIT
    left, right = np.nonzero(parts)
    if left.size:
        whole[left, right] += round_on_graph(left, right, parts[left, right] / UNIT, uniform)
    return whole


def _keep_possible(
    codes: Codes,
    names: Margin,
    placed: Sequence[str],
    shares: Floats,
    blocks: Sequence[Block],
    uniform: Uniform,
) -> None:
    """Give the attribute placed last another level where it made a record impossible."""
    newest = placed[-1]
    for margin, mask in blocks:
        if newest not in margin:
            continue
        shown = tuple(a for a in margin if a in placed)
        zeros = np.asarray(mask.all(axis=axes_outside(margin, placed)))
        zeros = np.moveaxis(zeros, shown.index(newest), -1)
        before = [codes[:, names.index(a)] for a in shown if a != newest]
        wrong = np.flatnonzero(zeros[(*before, codes[:, names.index(newest)])])
        allowed = np.broadcast_to(~zeros[tuple(code[wrong] for code in before)], (wrong.size, shares.size))
        # A level that nobody has is still better than an impossible one.
        chances = np.cumsum(allowed * (shares / shares.sum() + 1e-9), axis=1)
        drawn = uniform(wrong.size) * chances[:, -1]
        codes[wrong, names.index(newest)] = (chances <= drawn[:, None]).sum(axis=1)
