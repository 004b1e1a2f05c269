"""The study of a plan: its grid, where its counts come from, and what may be done with its page."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tabulary.confidential.reading.files import find_files
from tabulary.confidential.sources import Source
from tabulary.core.budget import symbol
from tabulary.core.privacy import Privacy
from tabulary.core.progress import Progress
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidArgument, UnreadableSource
from tabulary.planning.comparison import Refusal
from tabulary.release import Release
from tabulary.studies.own_data.counting import (
    Counts,
    counted_margins,
    counts_of_records,
    counts_of_twin,
    public_release,
)
from tabulary.studies.own_data.grid import (
    Asked,
    Series,
    amounts,
    series_of,
    shown_amounts,
)
from tabulary.studies.own_data.measures import Measures
from tabulary.studies.own_data.work import trials
from tabulary.studies.study import ReportSection, Sheets, Task
from tabulary.workflows import PlanFile

REPETITIONS = 20
TARGET = 0.1
_QUICK_REPETITIONS, _QUICK_SERIES = 3, 2


@dataclass(frozen=True)
class PlanStudy:
    """What amounts of privacy and mechanisms do to the tables of a plan, measured on a custodian's own counts.

    Confidential, unless it is made from a `release`: then the counts are those of people made up from it, no record is
    opened, and the study is as public as the release. Nothing of it is released, so no ledger is debited.
    """

    name: ClassVar[str] = "risk-utility"

    planned: PlanFile
    grid: tuple[Privacy, ...]
    series: tuple[Series, ...]
    refusals: tuple[Refusal, ...]
    measures: Measures
    repetitions: int = REPETITIONS
    target: float = TARGET
    release: Release | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        planned: PlanFile,
        *,
        epsilons: Iterable[object] = (),
        rhos: Iterable[object] = (),
        mechanisms: Sequence[str] = (),
        margins: Iterable[str] = (),
        models: Iterable[str] = (),
        tests: Iterable[str] = (),
        repetitions: int | None = None,
        target: float = TARGET,
        public: Path | None = None,
        quick: bool = False,
        progress: Progress | None = None,
    ) -> "PlanStudy":
        """Return the study of a plan file. Reads no record yet.

        Args:
            planned: from `read_plan_file`.
            epsilons: the amounts to compare; an eighth to eight times the plan's own by default. That one is always
                among them.
            rhos: the same for a plan that promises a ρ.
            mechanisms: those to compare, by name; otherwise the plan's own and every other that can answer it.
            margins: tables whose errors count, such as "[sex age]"; all of the plan otherwise.
            models: log-linear models, such as "[sex age][age job]".
            tests: pairs of attributes to be tested for independence, such as "[sex job]".
            repetitions: how often everything is measured with fresh noise.
            target: a relative error; the page says from which amount on it is kept.
            public: the folder of an earlier release, whose synthetic twin takes the place of the records.
            quick: by default three amounts, two mechanisms, three repetitions.
            progress: called with (what, done, total) while mechanisms are compared.
        """
        if not 0 < target < 1:
            raise InvalidArgument(
                f"the target is a relative error between 0 and 1, not {target!r}. Nothing was done."
            )
        often = repetitions if repetitions is not None else _QUICK_REPETITIONS if quick else REPETITIONS
        if often < 2:
            raise InvalidArgument(f"a band needs at least 2 repetitions, not {often!r}. Nothing was done.")
        # Before mechanisms are compared, which may take a while: what is wrong is said at once.
        grid = amounts(planned.plan.privacy, epsilons=epsilons, rhos=rhos, quick=quick)
        measures = Measures.read(planned.plan.workload, margins=margins, models=models, tests=tests)
        release = None if public is None else public_release(public, planned)
        series, refusals = series_of(
            planned, planned.comparison(progress), mechanisms, most=_QUICK_SERIES if quick else None
        )
        return cls(planned, grid, series, refusals, measures, often, target, release)

    @property
    def title(self) -> str:
        """What is compared, as a headline."""
        return f"Risk and utility: {self.planned.title or self.planned.path.name}"

    @property
    def source(self) -> str:
        """Whose data it is about."""
        if self.release is not None:
            return f"People made up from a release at {self.release.plan.privacy}; no record was read"
        return f"The records of {self.planned.path.name}"

    @property
    def about(self) -> str:
        """What is done, in a paragraph."""
        who = "The records were counted once"
        if self.release is not None:
            who = "People were made up whose tables are those of an earlier release, and counted once"
        return (
            f"{who}. Then everything that a release does was done {self.repetitions} times at each of {len(self.grid)} "
            f"amounts of privacy with each of {len(self.series)} mechanisms, with fresh noise, and the tables were "
            f"compared with the {self.truth}. Nothing was released and no ledger was debited."
        )

    @property
    def confidential(self) -> bool:
        """Whether exact counts enter the numbers: unless the people are made up."""
        return self.release is None

    @property
    def truth(self) -> str:
        """What the published tables are compared with, for a reader."""
        return "counts" if self.confidential else "made-up people"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The grid, and what names the plan and its data; no value of theirs."""
        plan = self.planned.plan
        where: dict[str, Any] = (
            {"data": self.planned.source.shown, "reading": self._reading}
            if self.release is None
            else {"release": self.release.digest}
        )
        return {
            "plan": self.planned.path.name,
            "plan digest": plan.digest(),
            **where,
            "privacy": str(plan.privacy),
            symbol(plan.privacy): shown_amounts(self.grid),
            "mechanisms": [
                f"{each.name}: {each.reconstruct}, {each.rounding}, {each.objective}" for each in self.series
            ],
            "tables": [show_margin(margin) for margin in self.measures.margins],
            "models": [str(model) for model in self.measures.models],
            "tests": [show_margin(margin) for margin in self.measures.tests],
            "repetitions": self.repetitions,
            "target": self.target,
        }

    def tasks(self) -> Sequence[Task]:
        """Return one piece of work for each mechanism and amount, those that take longest first."""
        asked = Asked.of(self.planned)
        # A reconstruction takes longer than sums.
        slowest_first = sorted(self.series, key=lambda each: each.reconstruct == "none")
        return [
            Task(
                f"{each.name} at {privacy}",
                trials,
                (asked, each, privacy, self.measures, self.repetitions),
            )
            for each in slowest_first
            for privacy in self.grid
        ]

    def material(self) -> Counts:
        """Return the counts: of the records, read once here and kept in memory, or of the made-up people."""
        margins = counted_margins(
            self.planned.plan.workload,
            (each.mechanism for each in self.series),
            max_cells=self.planned.max_cells,
        )
        if self.release is not None:
            return counts_of_twin(self.release, margins)
        return counts_of_records(self.planned, margins)

    def report(self, sheets: Sheets) -> Sequence[ReportSection]:
        """Return what the numbers say."""
        from tabulary.studies.own_data.report import sections

        return sections(self, sheets)

    @property
    def _reading(self) -> str:
        """A digest of how the records are read: recodings, engine, and size and time of every file."""
        source = self.planned.source
        said = [
            source.shown,
            source.engine,
            _files(source),
            sorted((a, repr(c)) for a, c in self.planned.codings.items()),
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _files(source: Source) -> list[tuple[str, int, int]]:
    """Return the files of a source, each with its size and when it was changed; none of a database or a cluster."""
    if not isinstance(source.place, Path):
        return []
    try:
        _, files = find_files(source.place)
    except UnreadableSource:
        # Said when the records are opened.
        return []
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
