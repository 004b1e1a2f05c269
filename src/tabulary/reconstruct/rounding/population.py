"""A population of whole records whose tables are near to given ones, for any number of people.

Every table is counted from the same records, so all tables agree with each other, even if the given ones do not. No
record is ever impossible, so structural zeros stay zero.

A nation is not moved person by person. The first records each represent many people, and are moved towards the
tables. In the next round a record represents half as many people: some people of each kind are split into such
records, which are moved towards what the others leave missing, and so on, until a record is one person. Time and
memory depend on the number of cells, and on the number of people only through the number of rounds.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tabulary.core.arrays import Floats, Integers, axes_outside, sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.reconstruct.rounding.first_records import Block, Codes, Uniform, first_records
from tabulary.reconstruct.rounding.record_search import RecordSearch

MOST_VISITS = 10_000_000_000
"""The number of cells that a search visits at most; about 3·10⁸ take a second."""

# For each phase of the search: power of the weights, patience, and the share of changed records that ends it, while
# a record is many people, and when it is one.
_PHASES = ((0.5, 0.5, 0.01, 0.01), (0.25, 1.0, 0.001, 0.0))
# A round has about so many records for each cell of the tables, but not fewer or more than these numbers. Where too
# few people may stay as they are, there are more records, up to the last number.
_RECORDS_PER_CELL = 16
_FEWEST_RECORDS = 50_000
_RECORDS = 200_000
_MOST_RECORDS = 1_000_000
# People stay as they are only where at least so many records are still missing in each of their cells.
_SLACK = 8.0
# Margins of single attributes that are wrong by one or more weigh so many times as much as all tables of an attribute.
_HEAVY = 4


def tables_of_population(
    domain: Domain,
    real: Mapping[Margin, Floats],
    bounds: Mapping[str, tuple[Integers, Integers]],
    total: int,
    uniform: Uniform,
) -> tuple[dict[Margin, Integers], dict[str, float | int | str]]:
    """Return the tables of one population of `total` people, moved towards the real ones, and facts of the search.

    `bounds` are the least and the largest count of each level of each attribute. The search keeps to them where
    structural zeros allow it. It ends when no tried change helps, or after `MOST_VISITS`. At most a million records
    are moved at a time. The result is a function of the arguments and of the numbers from `uniform`.
    """
    names = tuple(a for a in domain.attributes if any(a in margin for margin in real))
    singles = [(a,) for a in names]
    # Margins of single attributes have no weight until the end, unless they are tables of their own.
    wanted = {single: _mean_margin(real, single) for single in singles} | dict(real)
    blocks = _blocks_on(domain, names)
    search = RecordSearch(names, domain.shape_of(names), tuple(wanted), blocks)
    base = {margin: np.zeros(domain.shape_of(margin), dtype=np.int64) for margin in wanted}
    if not total:
        return {margin: base[margin] for margin in real}, {"sweeps": 0, "settled": "yes"}
    cells = sum(table.size for table in real.values())
    records = min(_RECORDS, max(_FEWEST_RECORDS, _RECORDS_PER_CELL * cells))
    shift = 0
    while total >> shift > records:
        shift += 1
    scaled = {margin: table / (1 << shift) for margin, table in real.items()}
    codes = first_records(domain, scaled, names, blocks, total >> shift, uniform)
    others, people = codes[:0], np.zeros(0, dtype=np.int64)
    settled = True
    while True:
        order = np.argsort(uniform(len(codes)), kind="stable")
        missing = {m: (wanted[m] - base[m]) / (1 << shift) for m in wanted}
        for phase, (power, patience, *until) in enumerate(_PHASES):
            # A phase takes at most twice its share of the visits that are left; the last one takes all.
            phases = len(_PHASES) * (shift + 1) - phase
            most = search.visited + 2 * (MOST_VISITS - search.visited) // (phases + 1)
            weights = {m: np.zeros(table.shape) for m, table in wanted.items()}
            weights |= {m: _weights(table / (1 << shift), power) for m, table in real.items()}
            ended = search.improve(
                codes, order, missing, weights, patience=patience, until=until[shift == 0], most=most
            )
            settled = settled and ended
        if shift == 0:
            break
        kinds, people = _kinds(
            np.concatenate([others, codes]), np.concatenate([people, np.full(len(codes), 1 << shift)])
        )
        # Halves, and not smaller parts: with eighths, tables that nearly determine the number of each kind are missed
        # by thousands, because too few people of a kind can still move.
        shift -= 1
        # The people whom no record of the round before represented.
        people[np.argmax(people)] += (total >> shift) % 2 << shift
        moving = _moving(search, kinds, people >> shift, wanted, shift, records, uniform)
        people -= moving << shift
        others, people = kinds[people > 0], people[people > 0]
        base = {m: search.counted(others, m, people) for m in wanted}
        codes = np.repeat(kinds, moving, axis=0)
    heavy = float(_HEAVY << max(sum(a in m for m in real) for a in names).bit_length())
    for single in singles:
        now = base[single] + search.counted(codes, single)
        aim = nearest_within(now, *bounds[single[0]], total)
        missing[single] = (aim - base[single]).astype(np.float64)
        weights[single] = np.full(aim.shape, heavy)
    ended = search.improve(codes, order, missing, weights, patience=1.0, until=0.0, most=MOST_VISITS)
    found = {m: base[m] + search.counted(codes, m) for m in real}
    return found, {"sweeps": search.sweeps, "settled": "yes" if settled and ended else "no"}


def nearest_within(counts: Integers, low: Integers, high: Integers, total: int) -> Integers:
    """Return whole numbers near to `counts`, from `low` to `high`, with the sum `total` if there are such numbers.

    >>> nearest_within(np.array([5, 2, 3]), np.array([3, 3, 3]), np.array([4, 4, 4]), 10).tolist()
    [4, 3, 3]
    """
    found = np.clip(counts, low, high)
    short = total - int(found.sum())
    room = high - found if short > 0 else found - low
    steps = np.minimum(room, np.maximum(0, abs(short) - (np.cumsum(room) - room)))
    return np.asarray(found + (steps if short > 0 else -steps))


def _weights(real: Floats, power: float) -> Floats:
    """Return the weights (1 + real)^-power of the squared distance.

    Chosen by measurement: 64 three-way tables of 14 attributes, 48,817 records, a million cells, every search with
    the same stopping rule. With equal weights the search gets stuck, because records neither enter nor leave a large
    full cell (root mean square 0.22, largest move 4); with power 1 large cells drift (0.20, 37); 1/4 gives 0.16 and
    4, 1/2 gives 0.14 and 6. First 1/2 and then 1/4 gives 0.14 and 4, in half the time.
    """
    return np.asarray((1 + real) ** -power)


def _kinds(codes: Codes, people: Integers) -> tuple[Codes, Integers]:
    """Return the different records, sorted, and the number of people of each kind."""
    by_levels = np.lexsort(codes.T)
    ordered = codes[by_levels]
    first = np.ones(len(codes), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[first], np.add.reduceat(people[by_levels], np.flatnonzero(first))


def _moving(
    search: RecordSearch,
    kinds: Codes,
    counts: Integers,
    wanted: Mapping[Margin, Floats],
    shift: int,
    records: int,
    uniform: Uniform,
) -> Integers:
    """Return how many records of each kind move in this round, about `records` in all.

    A cell that holds more people than it should can be corrected only if they move. So people stay only where many
    more are missing in each of their cells. Every record that must move for this reason is one of the last records
    of some cell: there are at most `_SLACK` times as many as cells, whatever the number of people. If they are still
    too many, the slack is given up. Of each kind some records move, if there are few kinds: tables that nearly
    determine the number of each kind could not be met otherwise.
    """
    order = np.argsort(uniform(len(kinds)), kind="stable")
    missing = {m: table / (1 << shift) for m, table in wanted.items()}
    # At most half of all records that move.
    twins = records // (2 * len(kinds))
    steps = ((twins, _SLACK, records), (0, 0.0, _MOST_RECORDS), (0, -np.inf, _MOST_RECORDS))
    return counts - search.staying(kinds, counts, order, missing, steps)


def _mean_margin(real: Mapping[Margin, Floats], single: Margin) -> Floats:
    sums = [sum_onto(table, margin, single) for margin, table in real.items() if single[0] in margin]
    return np.asarray(np.mean(sums, axis=0), dtype=np.float64)


def _blocks_on(domain: Domain, names: Sequence[str]) -> list[Block]:
    """Return the domain's zeros on the named attributes, in groups that share no attribute."""
    found = []
    for attributes, mask in domain.zero_blocks:
        shown = tuple(a for a in attributes if a in names)
        left = np.asarray(mask.all(axis=axes_outside(attributes, shown)))
        if left.any():
            found.append((shown, left))
    return found
