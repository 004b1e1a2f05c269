"""`tabulary study perturbation`: what two laws do to three tables, and to the tests that are made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tabulary import Table
from tabulary.datasets import load
from tabulary.errors import InvalidArgument, NotCertified
from tabulary.infer import cramers_v, independence
from tabulary.perturb import Laplace, Normal, PerturbedTable
from tabulary.studies import BOUND, EPSILONS, Lab, Row, Sheets, Task, compared_laws, measured
from tabulary_papers.datasets.two_way import independent_table
from tabulary_papers.paper_study import PaperStudy
from tabulary_papers.perturbation.printed import ORIGINALS, PRINTED_DELTAS, TABLE_2, ranges

Law = Laplace | Normal

CENSUS, SMALL, LARGE = "UK census", "small", "large"


@dataclass(frozen=True)
class PerturbationStudy(PaperStudy):
    """Table 2 and Figures 1 to 3 of Rinott et al. (2018), with tests that know the noise beside those that do not.

    `repetitions` perturbations of the census table and of two tables without association, for each law. The noise-aware
    test of the large table takes half a second, so only `aware` of its perturbations get it. Then new tables without
    association, `fresh_small` and `fresh_large` of them, each perturbed once by each law: how often is a true
    hypothesis rejected?

    The paper says neither how its 1,000 cells are arranged nor how uneven its margins are. Of what was tried, 10 × 100
    cells and a concentration of 3 keep every box within the axes of its Figure 3; squarer tables have a smaller V.
    """

    name: ClassVar[str] = "perturbation"
    title: ClassVar[str] = "What Laplace and Normal perturbation do to tables, and to tests of independence"
    source: ClassVar[str] = (
        "Rinott, O'Keefe, Shlomo & Skinner (2018), Confidentiality and Differential Privacy in the "
        "Dissemination of Frequency Tables: Table 2 and Figures 1 to 3"
    )

    counts: ClassVar[tuple[str, ...]] = ("repetitions", "fresh_small", "fresh_large")

    epsilons: tuple[str, ...] = EPSILONS
    repetitions: int = 100
    aware: int = 30
    fresh_small: int = 500
    fresh_large: int = 100
    people: int = 10_000
    small: tuple[int, int] = (10, 10)
    large: tuple[int, int] = (10, 100)
    concentration: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.aware < 1 or not self.epsilons:
            raise InvalidArgument(
                "the study needs an ε, and a table to test with the noise known. Nothing was done."
            )

    @classmethod
    def quick(cls) -> "PerturbationStudy":
        """Return a small grid: three ε, few repetitions, and a large table of 96 cells, a small one of 24."""
        return cls(
            epsilons=("0.5", "1", "3"),
            repetitions=10,
            aware=4,
            fresh_small=10,
            fresh_large=5,
            people=960,
            small=(4, 6),
            large=(6, 16),
        )

    @property
    def about(self) -> str:
        """What is done, for somebody who has not read the paper."""
        return (
            "Each count of a table is changed by a small random number. Laplace changes are at most ±7; "
            "Normal ones have the bound that gives them most nearly the same δ at the same ε. Negative "
            f"counts are published as zero. Three tables are perturbed {self.repetitions:,} times by each "
            f"law: a census table of 132 cells and 5,784 people, and two made-up tables of {self.people:,} "
            f"people without association, {_cells(self.small)} and {_cells(self.large)} cells. Then "
            "independence is tested, as if the published counts were exact (Pearson's χ²: naive), and by the "
            "likelihood that knows the law of the noise (noise-aware)."
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """What makes the numbers what they are."""
        return {
            "epsilons": list(self.epsilons),
            "repetitions": self.repetitions,
            "repetitions of the large table with the noise-aware test": self.aware,
            "fresh small tables": self.fresh_small,
            "fresh large tables": self.fresh_large,
            "people": self.people,
            "small table": list(self.small),
            "large table": list(self.large),
            "concentration of the margins": self.concentration,
            "bound of Laplace": BOUND,
        }

    def tasks(self) -> Sequence[Task]:
        """Return the pieces of work, those with the large table first."""
        laws = compared_laws(self.epsilons)
        found = []
        for size in (LARGE, SMALL):
            wanted, batch = (self.fresh_large, 5) if size == LARGE else (self.fresh_small, 50)
            for start in range(0, wanted, batch):
                count = min(batch, wanted - start)
                found.append(
                    Task(f"fresh {size} {start}", fresh_tables, (size, self._shape(size), start, count, self))
                )
            found += [Task(f"{size} {_named(law)}", perturbed, (size, law, self)) for law in laws]
        found += [Task(f"{CENSUS} {_named(law)}", perturbed, (CENSUS, law, self)) for law in laws]
        return [*found, Task("laws", laws_and_tables, (self,))]

    def material(self) -> Mapping[str, Table]:
        """Return the three tables."""
        made = {
            size: independent_table(self._shape(size), self.people, concentration=self.concentration)
            for size in (SMALL, LARGE)
        }
        return {CENSUS: load("uk-census"), **made}

    def fits(self, table: str, repetition: int) -> bool:
        """Return whether the noise-aware test is made of a perturbation of a table."""
        # The association of the census table is beyond doubt for every test, as the paper says.
        return table == SMALL or (table == LARGE and repetition < self.aware)

    def _shape(self, size: str) -> tuple[int, int]:
        return self.small if size == SMALL else self.large


def perturbed(lab: Lab, name: str, law: Law, study: PerturbationStudy) -> Sheets:
    """Return what one law did to one table, again and again."""
    table: Table = lab.material[name]
    sampler = lab.sampler()
    rows: list[Row] = []
    for repetition in range(study.repetitions):
        published = law.apply(table, minimum=0, sampler=sampler)
        rows.append(
            {
                "table": name,
                **_law(law),
                "repetition": repetition,
                **{str(measure): value for measure, value in measured(table, published.table).items()},
                "naive_p": independence(published, "naive", statistic="x2").p_value,
                "aware_p": _aware(published) if study.fits(name, repetition) else None,
            }
        )
    return {"perturbed": rows}


def fresh_tables(
    lab: Lab, size: str, shape: tuple[int, int], start: int, count: int, study: PerturbationStudy
) -> Sheets:
    """Return the p-values of new tables without association: exact, and perturbed once by each law."""
    rows: list[Row] = []
    for number in range(start, start + count):
        seed = lab.number("table", str(number))
        table = independent_table(shape, study.people, concentration=study.concentration, seed=seed)
        exact = independence(table, "naive", statistic="x2").p_value
        for law in compared_laws(study.epsilons):
            published = law.apply(table, minimum=0, sampler=lab.sampler(str(number), _named(law)))
            rows.append(
                {
                    "table": size,
                    **_law(law),
                    "number": number,
                    "exact_p": exact,
                    "naive_p": independence(published, "naive", statistic="x2").p_value,
                    "aware_p": _aware(published),
                }
            )
    return {"fresh": rows}


def laws_and_tables(lab: Lab, study: PerturbationStudy) -> Sheets:
    """Return what needs no draw: the tables as they are, the privacy of the laws, and Table 2."""
    tables: list[Row] = [
        {
            "table": name,
            "rows": table.shape[0],
            "columns": table.shape[1],
            "people": int(table.total),
            "empty_cells": int((table.counts == 0).sum()),
            "cramers_v": cramers_v(table),
            "p": independence(table, "naive", statistic="x2").p_value,
        }
        for name, table in lab.material.items()
    ]
    laws: list[Row] = [
        {
            **_law(law),
            "delta_printed": PRINTED_DELTAS.get(law),
            "delta_at_the_edge": law.truncation_delta,
            "delta": law.delta,
            "epsilon_with_this_delta": law.epsilon_at(law.delta),
            "delta_at_half_epsilon": law.delta_at(law.epsilon / 2),
        }
        for law in dict.fromkeys([*compared_laws(study.epsilons), *TABLE_2])
    ]
    ours: list[Row] = []
    for law, printed in TABLE_2.items():
        values = iter(printed.split())
        for original, shown in enumerate(ORIGINALS):
            for reach, chance in enumerate(ranges(law, original)):
                ours.append(
                    {
                        **_law(law),
                        "original": shown,
                        "within": reach,
                        "probability": chance,
                        "printed": float(next(values)),
                    }
                )
    return {"tables": tables, "laws": laws, "table-2": ours}


def _aware(published: PerturbedTable) -> float | None:
    try:
        return independence(published).p_value
    except NotCertified:
        return None


def _law(law: Law) -> Row:
    return {"family": law.family, "epsilon": float(law.epsilon), "bound": law.bound}


def _named(law: Law) -> str:
    return f"{law.family} {float(law.epsilon):g}"


def _cells(shape: tuple[int, int]) -> str:
    return f"{shape[0]} × {shape[1]}"
