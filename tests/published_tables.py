"""Small tables with suppressed cells, and all that can be known of them by going through every table one by one.

Nothing here shares arithmetic with the package: tables are listed, and looked at.
"""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.suppress.classical_method.rules import Threshold

ATTRIBUTES = "abc"


def hidden(counts, sums=None, **options) -> SuppressedTable:
    """A table of attributes a, b, ... with levels 0, 1, ...; None is a suppressed cell."""
    cells = np.array(counts, dtype=np.float64)
    domain = Domain({name: range(size) for name, size in zip(ATTRIBUTES, cells.shape, strict=False)})
    given = {tuple(margin): np.array(values, dtype=np.float64) for margin, values in (sums or {}).items()}
    return SuppressedTable(domain, cells, given, **options)


def two_way(counts, suppressed, **options) -> SuppressedTable:
    """A two-way table with the sums of its rows and columns, some cells suppressed."""
    values = np.asarray(counts, dtype=np.float64)
    sums = {"a": values.sum(axis=1), "b": values.sum(axis=0)}
    return hidden(np.where(suppressed, np.nan, values), sums, **options)


def projected(joint: NDArray[np.int64], names: tuple[str, ...]) -> NDArray[np.int64]:
    """The sums of a table on a, b, c over what is not named, in the order of the names."""
    axes = [ATTRIBUTES.index(name) for name in names]
    summed = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))
    return np.asarray(summed.transpose([sorted(axes).index(axis) for axis in axes]))


def agrees(joint: NDArray[np.int64], tables: tuple[SuppressedTable, ...]) -> bool:
    """Whether a table on a, b, c has all the published numbers."""
    return all(
        (np.isnan(values) | (values == projected(joint, margin))).all()
        for table in tables
        for margin, values in [(table.domain.attributes, table.counts), *table.sums.items()]
    )


def fillings(total: int, shape: tuple[int, ...]) -> Iterator[NDArray[np.int64]]:
    """Every table with a total."""
    for bars in combinations(range(total + np.prod(shape) - 1), int(np.prod(shape)) - 1):
        ends = np.array([-1, *bars, total + np.prod(shape) - 1])
        yield (np.diff(ends) - 1).reshape(shape)


def crowded(joint: NDArray[np.int64], tables: tuple[SuppressedTable, ...]) -> bool:
    """Whether some people of a, b, c have these counts among them and the published numbers of people."""
    peopled = [table for table in tables if table.people is not None]
    if not peopled:
        return True
    total = int(peopled[0].people.sum())
    return total >= joint.sum() and any(
        all((projected(joint + rest, t.domain.attributes) == t.people).all() for t in peopled)
        for rest in fillings(total - int(joint.sum()), joint.shape)
    )


@st.composite
def several_tables(draw) -> tuple[int, tuple[SuppressedTable, ...]]:
    """A total, and tables of the same people, in which it is published."""
    shape = draw(st.sampled_from([(2, 2, 1), (2, 2, 2), (3, 2, 1)]))
    size = int(np.prod(shape))
    joint = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))).reshape(shape)
    more = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))).reshape(shape)
    # Few enough that all the tables can be listed.
    joint = joint * (joint.cumsum().reshape(shape) <= 5)
    more = more * (more.cumsum().reshape(shape) <= 2)
    total = int(joint.sum())
    tables = []
    for names in draw(
        st.lists(st.sampled_from(["ab", "bc", "ac", "ba", "abc", "a"]), min_size=1, max_size=3)
    ):
        counts = projected(joint, tuple(names)).astype(float)
        kept = draw(st.lists(st.booleans(), min_size=counts.size, max_size=counts.size))
        sums = {}
        for length in range(len(names)):
            for margin in combinations(names, length):
                if draw(st.booleans()):
                    values = projected(joint, margin).astype(float)
                    shown = draw(
                        st.lists(
                            st.sampled_from([True, True, False]), min_size=values.size, max_size=values.size
                        )
                    )
                    sums[margin] = np.where(np.reshape(shown, values.shape), values, np.nan)
        people = projected(joint + more, tuple(names)) if draw(st.booleans()) else None
        domain = Domain({name: range(shape[ATTRIBUTES.index(name)]) for name in names})
        cells = np.where(np.reshape(kept, counts.shape), counts, np.nan)
        tables.append(SuppressedTable(domain, cells, sums, people))
    tables.append(hidden([np.nan] * shape[0], {"": total}))
    return total, tuple(tables)


# ---- the custodian ---------------------------------------------------------------------------------------------------


def same_sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every two-way table with the sums of one, as rows."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    found = [
        table
        for lines in product(*(list(fillings(int(total), (counts.shape[1],))) for total in rows))
        if ((table := np.array(lines)).sum(axis=0) == columns).all()
    ]
    return np.array(found).reshape(len(found), -1)


def patterns(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Every pattern of suppressed cells, as rows, the smallest first."""
    size = int(np.prod(shape))
    every = np.array(list(product([False, True], repeat=size)))
    return every[np.argsort(every.sum(axis=1), kind="stable")]


def smallest_protecting(counts: NDArray[np.int64], primary: NDArray[np.bool_], others: NDArray[np.int64]):
    """The patterns of fewest cells under which no primary cell can be computed, by definition."""
    flat, wanted = counts.ravel(), primary.ravel()
    best: list[NDArray[np.bool_]] = []
    for pattern in patterns(counts.shape):
        if best and pattern.sum() > best[0].sum():
            break
        if (pattern | ~wanted).all():
            possible = others[(others == flat)[:, ~pattern].all(axis=1)]
            if (possible != flat).any(axis=0)[wanted].all():
                best.append(pattern)
    return [pattern.reshape(counts.shape) for pattern in best]


def explanations(
    table: SuppressedTable, rule: Threshold
) -> dict[tuple[int, ...], tuple[list[int], list[int]]]:
    """For each set of sensitive cells under which a custodian may publish a table: the bounds of its cells."""
    rows = [list(fillings(int(total), (table.counts.shape[1],))) for total in table.sums["a",]]
    found: dict[tuple[int, ...], list[NDArray[np.int64]]] = {}
    every = [np.array(lines) for lines in product(*rows)]
    every = [each for each in every if (each.sum(axis=0) == table.sums["b",]).all()]
    others = np.array(every).reshape(len(every), -1)
    shown = ~table.suppressed
    for counts in every:
        primary = rule.sensitive(counts)
        if (counts[shown] == table.counts[shown]).all() and any(
            (pattern == table.suppressed).all() for pattern in smallest_protecting(counts, primary, others)
        ):
            found.setdefault(tuple((np.flatnonzero(primary) + 1).tolist()), []).append(counts.ravel())
    return {
        cells: (np.min(tables, axis=0).tolist(), np.max(tables, axis=0).tolist())
        for cells, tables in found.items()
    }
