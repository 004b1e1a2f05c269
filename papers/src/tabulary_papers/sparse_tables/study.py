"""The study: which tables, in which ways, at which ε and how often."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, get_args

from tabulary.errors import InvalidArgument, listed
from tabulary.studies import Task
from tabulary_papers.paper_study import PaperStudy
from tabulary_papers.sparse_tables.methods import Name
from tabulary_papers.sparse_tables.printed import TABLES, comparisons
from tabulary_papers.sparse_tables.trials import trials

GRID = ("0.005", "0.01", "0.02", "0.03", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2")
"""From 0.005 to 2 in nearly equal ratios: what happens happens at small ε, where equal differences leave gaps."""

PAPER_GRID = tuple(f"{(5 + 10 * step) / 1000:.3f}" for step in range(200))
"""The paper's grid, in steps of 0.01."""


@dataclass(frozen=True)
class SparseTables(PaperStudy):
    """Perturbs tables in several ways and measures sample size, margins, G², MLEs and the linear program.

    >>> len(SparseTables.quick().tasks())
    31
    """

    name: ClassVar[str] = "sparse-tables"
    title: ClassVar[str] = "Private margins of sparse tables, as published and today"
    source: ClassVar[str] = (
        "Yang, Fienberg & Rinaldo, Differential privacy for protecting multi-dimensional contingency table "
        "data (YFR), section 4: Figures 1–6, Tables 7–8"
    )
    about: ClassVar[str] = (
        "The margins of a log-linear model are published with noise, and from them a table that has no "
        "negative cells and margins as near as can be. How many people does it count, how far are its "
        "margins from the true ones, does the model fit it as it fitted the original, and is the fit the "
        "same? The paper asks this for four tables and ε from 0.005 to 2, and finds the mechanism unsuitable "
        "for large sparse tables. Here are its mechanisms as published, the same with exactly the noise that "
        "their ε needs, and three ways of today: the margins measured as the planner sees fit and led to a "
        "table by least squares, the same with shrinkage, and the model fitted to noisy cells by somebody "
        "who is aware of the noise. All at the same label ε for neighbours in which one record is replaced; what "
        "the noise as published really promises is told below. "
        "Only noise differs between repetitions; the tables are in print."
    )

    tables: tuple[str, ...] = TABLES
    methods: tuple[Name, ...] = get_args(Name)
    epsilons: tuple[str, ...] = GRID
    repetitions: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self.tables if name not in TABLES]
        if unknown or not self.tables:
            raise InvalidArgument(
                f"the study is about {listed(TABLES)}, not {unknown[0] if unknown else 'nothing'!r}. Nothing was done."
            )

    @classmethod
    def quick(cls) -> "SparseTables":
        """Return the study on a small grid: one binary table and the other one."""
        return cls(tables=("fungus", "journey-to-work"), epsilons=("0.3", "1", "2"), repetitions=3)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The grid."""
        return asdict(self)

    def tasks(self) -> Sequence[Task]:
        """Return one piece of work for each table, method and ε; the largest tables first."""
        return [
            Task("tables", comparisons, (self.tables,)),
            *(
                Task(f"{table}, {method}, ε = {epsilon}", trials, (table, method, epsilon, self.repetitions))
                for table in reversed(self.tables)
                for method in self.methods
                for epsilon in self.epsilons
            ),
        ]
