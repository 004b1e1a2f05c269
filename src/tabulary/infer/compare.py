"""Every cell of one released table compared with the same cell of another one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.core.interruption import checkpoint
from tabulary.core.long_form import LongForm, long_columns, value_name
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, InvalidTable, listed
from tabulary.infer.intervals import Level
from tabulary.infer.pairs import Compared, Scale, Sides, Verdict
from tabulary.infer.results import holm
from tabulary.infer.table_noise import GivenNoise
from tabulary.infer.weighted_sums import Target
from tabulary.release import ReleasedTable
from tabulary.release.table import CONFIDENCE

Where = Mapping[str, Level | Sequence[Level]]


@dataclass(frozen=True, eq=False)
class ComparedTable(LongForm):
    """Comparisons of the cells of two tables, in the order of the cells of `domain`.

    The confidence holds for each interval. `verdicts` are for all cells together: the probability that any of them
    calls equal numbers different is at most 1 - confidence (Holm's rule), so that a cell with zero outside its own
    interval may still be "not clear". `compared[i].verdict` is for one cell that was chosen beforehand. A cell that is
    impossible in both tables has None, and so has a percentage of a group that is impossible in one of them.
    """

    domain: Domain
    compared: tuple[Compared | None, ...]
    confidence: float
    target: Target
    scale: Scale

    @cached_property
    def adjusted_p_values(self) -> tuple[float | None, ...]:
        """The p-values adjusted for the number of cells."""
        adjusted = iter(holm([each.p_value for each in self.compared if each is not None]))
        return tuple(None if each is None else next(adjusted) for each in self.compared)

    @property
    def verdicts(self) -> tuple[Verdict | None, ...]:
        """Which cells of the first table are clearly more or clearly less, for all cells together."""
        level = 1 - self.confidence
        return tuple(
            None if each is None or p is None else each.direction if p <= level else "not clear"
            for each, p in zip(self.compared, self.adjusted_p_values, strict=True)
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the comparisons in long form: the attributes, both numbers, and what is known of their difference."""
        values: dict[str, list[Any]] = {
            "first": [each and each.first.estimate for each in self.compared],
            "second": [each and each.second.estimate for each in self.compared],
            self.scale: [each and each.estimate for each in self.compared],
            "lower": [each and each.interval.lower for each in self.compared],
            "upper": [each and each.interval.upper for each in self.compared],
            "p_value": [each and each.p_value for each in self.compared],
            "adjusted_p_value": list(self.adjusted_p_values),
        }
        named = {
            value_name(name, self.domain.attributes): np.array(column, dtype=np.float64)
            for name, column in values.items()
        }
        verdict = value_name("verdict", self.domain.attributes)
        return long_columns(self.domain, named | {verdict: np.array(self.verdicts, dtype=object)})


def compare(
    table: Table | ReleasedTable,
    other: Table | ReleasedTable | None = None,
    *,
    where: Where | None = None,
    other_where: Where | None = None,
    per: Iterable[str] | None = None,
    scale: Scale = "difference",
    confidence: float = CONFIDENCE,
    target: Target = "records",
    noise: GivenNoise | None = None,
    other_noise: GivenNoise | None = None,
) -> ComparedTable:
    """Return every cell of a table less the same cell of another release, or per it with `scale="ratio"`.

    `where={"score": ["Medium", "High"]}` counts the people of these levels only, added up; its attributes are no
    longer in the result. `other_where` says other levels of the same attributes for the other table. Without `other`
    both sides are of one table, such as the women and the men of one year: `where={"sex": "F"}, other_where={"sex":
    "M"}`. The rest is as in `difference`, which this calls for each cell.

    >>> from tabulary.noise import DiscreteLaplace
    >>> ages = Domain({"age": ["0-14", "15-64", "65+"]})
    >>> before, after = Table(ages, [412, 1733, 521]), Table(ages, [395, 1740, 588])
    >>> found = compare(after, before, noise=DiscreteLaplace(5), other_noise=DiscreteLaplace(5))
    >>> [each.estimate for each in found.compared], found.verdicts
    ([-17.0, 7.0, 67.0], ('not clear', 'not clear', 'clearly more'))
    """
    chosen = dict(where or {})
    other_chosen = chosen if other_where is None else dict(other_where)
    if set(chosen) != set(other_chosen):
        raise InvalidArgument(
            "both sides need levels of the same attributes, but one has levels of "
            f"{listed(chosen)} and the other of {listed(other_chosen)}. Nothing was compared."
        )
    if other is None and chosen == other_chosen:
        raise InvalidArgument(
            "both sides of the comparison are the same people. Give a table of another release, or other levels."
        )
    first = table.domain
    second = first if other is None else other.domain
    _check_alike(first, second, set(chosen))
    within = None if per is None else first.margin(per)
    rows = first.project(a for a in first.attributes if a not in chosen)
    sides = Sides.of(table, other, confidence, target, noise, other_noise, most_weights=1)
    possible = _possible(first, chosen, rows) | _possible(second, other_chosen, rows)
    found: list[Compared | None] = []
    for cell in np.ndindex(rows.shape):
        checkpoint()
        if not possible[cell]:
            found.append(None)
            continue
        levels = {a: rows.levels_of(a)[code] for a, code in zip(rows.attributes, cell, strict=True)}
        pair = sides.pair({**levels, **chosen}, {**levels, **other_chosen}, within)
        found.append(pair.compared(scale) if pair.exists else None)
    return ComparedTable(rows, tuple(found), confidence, target, scale)


def _check_alike(one: Domain, other: Domain, summed: set[str]) -> None:
    """Raise unless the cells of two domains mean the same people, but for attributes that are added up."""
    if set(one.attributes) != set(other.attributes):
        raise InvalidTable(
            f"two tables are compared on the same attributes, but one is by {', '.join(one.attributes)} and the other "
            f"by {', '.join(other.attributes)}."
        )
    for a in one.attributes:
        if a not in summed and set(one.levels_of(a)) != set(other.levels_of(a)):
            raise InvalidTable(
                f"the levels of {a!r} differ: {', '.join(one.levels_of(a))} in one table and "
                f"{', '.join(other.levels_of(a))} in the other. Their cells are not the same people. Compare other "
                "attributes."
            )


def _possible(domain: Domain, chosen: Where, rows: Domain) -> NDArray[np.bool_]:
    """Return which rows may have people of the chosen levels."""
    cells: list[Any] = [slice(None)] * len(domain.attributes)
    for a, levels in chosen.items():
        wanted = [levels] if isinstance(levels, str | int) else levels
        cells[domain.position(a)] = [domain.code(a, level) for level in wanted]
    open_cells = ~domain.impossible(domain.attributes)
    for axis, codes in enumerate(cells):
        open_cells = np.asarray(open_cells[(slice(None),) * axis + (codes,)])
    summed = np.asarray(open_cells.any(axis=tuple(domain.position(a) for a in chosen)))
    left = [a for a in domain.attributes if a not in chosen]
    turned = summed.transpose([left.index(a) for a in rows.attributes])
    # The levels of two tables are the same, but may stand in another order.
    return turned[np.ix_(*([domain.code(a, level) for level in rows.levels_of(a)] for a in rows.attributes))]
