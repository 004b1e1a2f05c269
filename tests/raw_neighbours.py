"""Sources that differ in one person's raw rows, what becomes of such a row, and what the difference costs."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from tabulary.confidential.coding import Coding
from tabulary.confidential.dropping import counted_neighbours, dropping
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.core.domain import Domain
from tabulary.core.privacy import Neighbours, PureDP, Relation
from tabulary.core.workload import Workload
from tabulary.errors import ImpossibleRecord, InvalidColumn, UnknownLevel
from tabulary.mechanisms import measure
from tabulary.planning import Measurement, Plan
from tests.samplers import ConstantSampler

Row = tuple[Any, ...]
"""The raw values of a record, in the order of a survey's columns."""

REFUSED, DROPPED = "refused", "dropped"
"""What becomes of a source with a row in it, or of the row; anything else is the row's cell."""

REFUSALS = (UnknownLevel, ImpossibleRecord, InvalidColumn)

RULES = [
    ("error", "error"),
    ("drop", "error"),
    ("error", "drop"),
    ("drop", "drop"),
    ("level", "level"),
    ("drop", "level"),
]
"""What unknown values of the two attributes mean."""

_UNREAD = {"id": (pa.string(), ["p1", "p2"]), "w": (pa.float64(), [1.0, 1e300])}


@dataclass(frozen=True)
class Column:
    """A column of a source: its type, what a file could hold in it, and the level of each known value."""

    kind: pa.DataType
    values: tuple[Any, ...]
    level: Callable[[Any], str | None]


def _listed(*levels: str) -> Callable[[Any], str | None]:
    return lambda value: value if value in levels else None


def _binned(value: Any) -> str | None:
    if value is None or not math.isfinite(value) or value < 0:
        return None
    return "0-14" if value < 15 else "15-64" if value < 65 else "65+"


COLUMNS = {
    "sex": Column(pa.string(), ("F", "M", "?", "", None), _listed("F", "M")),
    "hiv": Column(pa.string(), ("no", "yes", "NaN", " yes", None), _listed("no", "yes")),
    "years": Column(pa.float64(), (3.0, 40.0, 70.5, -1.0, math.nan, math.inf, None), _binned),
    "code": Column(pa.int64(), (1, 2, 3, 9, None), {1: "none", 2: "paid", 3: "own"}.get),
}
_CODED: dict[str, dict[str, Any]] = {
    "age": {"column": "years", "bins": [0, 15, 65]},
    "job": {"column": "code", "mapping": {1: "none", 2: "paid", 3: "own"}},
}


@dataclass(frozen=True)
class Survey:
    """A domain of two attributes, the rule for unknown values of each, and everybody but one person.

    Two columns stand beside those that are read: who the person is, and a weight.
    """

    domain: Domain
    rules: tuple[str, str]

    @property
    def codings(self) -> dict[str, Coding]:
        """How the attributes are read."""
        found = {}
        for attribute, rule in zip(self.domain.attributes, self.rules, strict=True):
            unknown = f"level:{self.domain.levels_of(attribute)[0]}" if rule == "level" else rule
            found[attribute] = Coding(**_CODED.get(attribute, {}), unknown=unknown)
        return found

    @property
    def columns(self) -> list[str]:
        """The names of the columns that are read."""
        return [self.codings[a].column or a for a in self.domain.attributes]

    def rows(self) -> Iterator[Row]:
        """Yield every raw row that a person could have; what is not read stays the same, and changes once."""
        for values in product(*(COLUMNS[name].values for name in self.columns)):
            yield (*values, "p1", 1.0)
        known = tuple(COLUMNS[name].values[0] for name in self.columns)
        yield from ((*known, "p2", 1.0), (*known, "p1", 1e300))

    def others(self) -> list[Row]:
        """Return the rows of everybody else: every possible cell once, and a row that is left out if one can be."""
        kept = [
            (x, y, "p0", 2.0)
            for x, y in product(*(COLUMNS[name].values for name in self.columns))
            if self.outcome((x, y)) not in (REFUSED, DROPPED)
        ]
        left_out = [(None, kept[0][1], "p0", 2.0)] if self.rules[0] == "drop" else []
        return kept[:6] + left_out

    def outcome(self, row: Row) -> str | tuple[str, ...]:
        """Return what must become of a row: the source is refused, the row is dropped, or it has a cell."""
        cell, dropped = [], False
        for attribute, rule, name, value in zip(
            self.domain.attributes, self.rules, self.columns, row, strict=False
        ):
            level = COLUMNS[name].level(value)
            level = level if level in self.domain.levels_of(attribute) else None
            if level is None and rule == "error":
                return REFUSED
            dropped = dropped or (level is None and rule == "drop")
            cell.append(self.domain.levels_of(attribute)[0] if level is None else level)
        if dropped:
            return DROPPED
        place = tuple(
            self.domain.code(a, level) for a, level in zip(self.domain.attributes, cell, strict=True)
        )
        return REFUSED if self.domain.impossible(self.domain.attributes)[place] else tuple(cell)

    def table(self, *rows: Row) -> pa.Table:
        """Return the source with these rows in it."""
        everybody = [*self.others(), *rows]
        kinds = {name: COLUMNS[name].kind for name in self.columns} | {n: k for n, (k, _) in _UNREAD.items()}
        return pa.table(
            {
                name: pa.array([row[i] for row in everybody], kind)
                for i, (name, kind) in enumerate(kinds.items())
            }
        )

    def records(self, *rows: Row) -> Records:
        """Return the records of the source with these rows in it."""
        return Records.from_arrow(self.table(*rows), self.domain, self.codings)


def every_margin(domain: Domain) -> Workload:
    """Return all margins of a domain, the total included."""
    return Workload(domain, [(), *Workload.all_up_to(domain, len(domain.attributes))])


def tallied(open_records: Callable[[], Records], domain: Domain) -> Tally | None:
    """Return all counts of a source; None if it is refused, so that nothing is measured."""
    try:
        with open_records() as records:
            return records.tally(every_margin(domain))
    except REFUSALS:
        return None


def near(relation: Relation, codings: Mapping[str, Coding], **given: Any) -> Neighbours:
    """Return what one person can change in a source that is read like this."""
    return counted_neighbours(Neighbours(relation, **given), dropping(codings))


def bare(tally: Tally, plan: Plan) -> Measurement:
    """Return what a plan measures, without noise."""
    return measure(tally, plan, ConstantSampler())


def cost(plan: Plan, before: Measurement, after: Measurement) -> Fraction | float:
    """Return the loss between two measurements in the plan's currency; infinite if an exact number differs."""
    noisy = len(plan.measured)
    changes = [a - b for a, b in zip(after.values, before.values, strict=True)]
    if any(np.any(change) for change in changes[noisy:]):
        return math.inf
    total = Fraction(0)
    for part, change in zip(plan.measured, changes[:noisy], strict=True):
        noise: Any = part.noise
        if isinstance(plan.loss, PureDP):
            total += int(np.abs(change).sum()) / noise.scale
        else:
            total += int((change**2).sum()) / (2 * noise.variance_parameter)
    return total


def check_costs(plan: Plan, pairs: Sequence[tuple[Measurement, Measurement]]) -> None:
    """Fail if two neighbouring sources are further apart than the plan's loss says."""
    claimed = plan.loss.epsilon if isinstance(plan.loss, PureDP) else plan.loss.rho
    # One cost for each way in which the integers can differ.
    found = {id(a): a for pair in pairs for a in pair}
    names = {key: tuple(v.tobytes() for v in m.values) for key, m in found.items()}
    distinct = {(names[id(a)], names[id(b)]): (a, b) for a, b in pairs}
    largest = max((cost(plan, a, b) for a, b in distinct.values()), default=Fraction(0))
    assert largest <= claimed, f"one row costs {float(largest):g}, and the plan claims {float(claimed):g}"
