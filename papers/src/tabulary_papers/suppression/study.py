"""`tabulary study suppression`: tables with cells left out beside tables with noise, on the paper's own examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tabulary import Domain
from tabulary.datasets import Dataset, describe
from tabulary.errors import InvalidArgument
from tabulary.studies import Lab, Row, Sheets, Task
from tabulary.suppress import SuppressedTable, Threshold, attack, simulatable
from tabulary_papers.datasets.carriers import carriers
from tabulary_papers.paper_study import PaperStudy
from tabulary_papers.suppression.distortion import far_off
from tabulary_papers.suppression.methods import METHODS, noisy_tables
from tabulary_papers.suppression.printed import FIGURE_1

GENES, CARRIERS = "hair and eyes", "carriers"
EPSILON, DELTA = "0.5", 0.2

# Figure 1: all six cells are left out, and the sums are these. The paper says of the people only that 100 of those with
# brown hair have other eyes than blue; the other numbers do not matter.
_SUMS: dict[tuple[str, ...], list[int]] = {("eye",): [110, 105], ("hair",): [55, 105, 55]}
_PEOPLE = [[120, 130, 90], [80, 100, 70]]
_THRESHOLD = 5


@dataclass(frozen=True)
class SuppressionStudy(PaperStudy):
    """Figures 1 and 3 to 5 of Nabar & Mishra (2010).

    Suppression is decided once for each ε, since it draws nothing that is private: for the paper's table at each of
    `suppressor_epsilons`, for `small` by `small` carriers likewise, and for `large` by `large` at ε = 0.5 alone, which
    takes minutes. Every way of adding noise makes `repetitions` tables at each of `noise_epsilons`.
    """

    name: ClassVar[str] = "suppression"
    title: ClassVar[str] = "Cells left out, or noise: what is left of a table"
    source: ClassVar[str] = (
        "Nabar & Mishra (2010), Releasing Private Contingency Tables: Figures 1 and 3 to 5"
    )
    about: ClassVar[str] = (
        "A table counts who carries a gene, in groups whose sizes and chances are public. Simulatable "
        "suppression leaves out cells whose exact count might tell too much about a person, and decides so "
        "without looking at the counts. The ways with noise publish every cell, none of them exact. "
        "Compared are the share of cells that is left out, and the share that is published and off by more "
        "than a quarter. The two ε are not the same promise, so no point of one curve belongs to a point of "
        "the other: that of suppression bounds what somebody who knows the chances and nobody's value "
        "learns of a person; that of noise, what somebody learns who knows everybody else."
    )

    suppressor_epsilons: tuple[str, ...] = (
        "0.1",
        "0.2",
        "0.3",
        "0.35",
        "0.4",
        "0.45",
        "0.5",
        "0.6",
        "0.8",
        "1",
    )
    noise_epsilons: tuple[str, ...] = ("0.1", "0.2", "0.5", "1", "2", "5")
    repetitions: int = 50
    small: int = 5
    large: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if EPSILON not in self.suppressor_epsilons or EPSILON not in self.noise_epsilons:
            raise InvalidArgument(
                f"the paper's own ε, {EPSILON}, must be among those that are tried. Nothing was done."
            )

    @classmethod
    def quick(cls) -> "SuppressionStudy":
        """Return a study with few ε, few repetitions and small tables of carriers."""
        return cls(
            suppressor_epsilons=("0.2", "0.4", "0.5"),
            noise_epsilons=("0.5", "2"),
            repetitions=5,
            small=2,
            large=3,
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """What makes the numbers what they are."""
        return {
            "ε of suppression": list(self.suppressor_epsilons),
            "δ of suppression": DELTA,
            "ε of noise": list(self.noise_epsilons),
            "repetitions": self.repetitions,
            "carriers": [self.small, self.large],
        }

    def tasks(self) -> Sequence[Task]:
        """Return the pieces of work, the large table's suppression first."""
        small, large = (f"{CARRIERS} {side} × {side}" for side in (self.small, self.large))
        found = [Task(f"suppress {large} at {EPSILON}", suppressed, (large, EPSILON))]
        found += [
            Task(f"suppress {data} at {epsilon}", suppressed, (data, epsilon))
            for data in (small, GENES)
            for epsilon in self.suppressor_epsilons
        ]
        found += [
            Task(f"{data}, {way} at {epsilon}", perturbed, (data, way, epsilon, self.repetitions))
            for data in (large, GENES)
            for way in METHODS
            for epsilon in self.noise_epsilons
        ]
        return [*found, Task("the attack of Figure 1", attacked)]

    def material(self) -> Mapping[str, Dataset]:
        """Return the tables."""
        sides = dict.fromkeys((self.small, self.large))
        return {
            GENES: describe("hair-eye-gene"),
            **{f"{CARRIERS} {side} × {side}": carriers(side, side) for side in sides},
        }


def suppressed(lab: Lab, name: str, epsilon: str) -> Sheets:
    """Return which cells of a table are left out at one ε, and what was decided on the way."""
    data: Dataset = lab.material[name]
    assert data.people is not None, "both tables say who is in them"
    assert data.probability is not None, "and how likely each is counted"
    found = simulatable(data.people, data.table, data.probability, epsilon, DELTA)
    # Where not even the sums are safe, the table comes out with fewer cells than it has.
    whole = found.counts.shape == data.table.shape
    left_out = int(found.suppressed.sum()) if whole else data.table.domain.size
    row: Row = {
        "data": name,
        "epsilon": float(epsilon),
        "delta": DELTA,
        "outcome": found.outcome,
        "cells": data.table.domain.size,
        "left_out": left_out,
        "decisions": len(found.decisions),
        "promised_delta": found.promised_delta,
    }
    decisions: list[Row] = [
        {
            "data": name,
            "epsilon": float(epsilon),
            "asked": decision.asked,
            "released": decision.released,
            "reason": decision.reason,
            "unsafe": decision.unsafe,
            "limit": decision.limit,
        }
        for decision in found.decisions
    ]
    return {"suppressed": [row], "decisions": decisions}


def perturbed(lab: Lab, name: str, way: str, epsilon: str, repetitions: int) -> Sheets:
    """Return how far noise puts the cells and the sums of a table off, and the first table that came out."""
    data: Dataset = lab.material[name]
    truth, attributes = data.table, data.table.domain.attributes
    made = METHODS[way].plan(truth, epsilon)
    rows: list[Row] = []
    first: list[Row] = []
    for repetition in range(repetitions):
        sampler = lab.sampler("noise", str(repetition))
        tables = noisy_tables(truth, made, sampler)
        counts = np.asarray(tables[attributes], dtype=np.float64)
        errors = counts - truth.counts
        sums = np.concatenate([errors.sum(axis=1), errors.sum(axis=0)])
        rows.append(
            {
                "data": name,
                "way": way,
                "epsilon": float(epsilon),
                "repetition": repetition,
                "cells": truth.domain.size,
                "far_off": int(far_off(errors, truth.counts).sum()),
                "rmse": float(np.sqrt(np.mean(errors**2))),
                "rmse_of_sums": float(np.sqrt(np.mean(sums**2))),
            }
        )
        if not first and epsilon == EPSILON:
            first = [
                {
                    "data": name,
                    "way": way,
                    "row": str(truth.domain.levels_of(attributes[0])[i]),
                    "column": str(truth.domain.levels_of(attributes[1])[j]),
                    "true": int(truth.counts[i, j]),
                    "published": float(counts[i, j]),
                }
                for i, j in np.ndindex(truth.shape)
            ]
    return {"noise": rows, "first-tables": first}


def attacked(lab: Lab) -> Sheets:
    """Return what follows for each cell of Figure 1, as printed and by whoever knows more and more.

    From the sums alone, as the paper has it; from the sums and how many people a cell has; and from these under each
    set of sensitive cells that the rule allows.
    """
    domain = Domain({"eye": ["blue", "not blue"], "hair": ["blonde", "brown", "black"]})
    sums = {margin: np.array(values, dtype=np.float64) for margin, values in _SUMS.items()}
    hidden = np.full((2, 3), np.nan)
    alone = attack(SuppressedTable(domain, hidden, sums))
    found = attack(SuppressedTable(domain, hidden, sums, np.array(_PEOPLE)), rule=Threshold(_THRESHOLD))
    rows: list[Row] = []
    for number, (i, j) in enumerate(np.ndindex(2, 3), start=1):
        row: dict[str, Any] = {
            "cell": number,
            "eye": domain.levels_of("eye")[i],
            "hair": domain.levels_of("hair")[j],
            "people": _PEOPLE[i][j],
            "least_printed": FIGURE_1[i][j][0],
            "most_printed": FIGURE_1[i][j][1],
        }
        for known, attacker in (("sums", alone), ("people", found)):
            whole = attacker.intervals[number - 1].whole
            assert whole is not None, "the sums bound every cell"
            row |= {f"least_{known}": int(whole[0]), f"most_{known}": int(whole[1])}
        for place, possible in enumerate(found.primary_sets[0].sets, start=1):
            row |= {
                f"set_{place}": " ".join(map(str, possible.numbers)),
                f"least_{place}": int(possible.lower[i, j]),
                f"most_{place}": int(possible.upper[i, j]),
            }
        rows.append(row)
    return {"attack": rows}
