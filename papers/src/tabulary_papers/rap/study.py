"""The study: its grid, its pieces of work, and where its words and pictures come from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from tabulary.errors import InvalidArgument, MissingExtra
from tabulary.studies import Task
from tabulary_papers.paper_study import PaperStudy
from tabulary_papers.rap.answering import Fitting, RapQuestion, answer
from tabulary_papers.rap.people import (
    ADULT,
    MADE_UP,
    AdultPeople,
    adult,
    chosen_margins,
    fingerprint,
    made_up_people,
)

# The longest first, so that no process is left alone with one of them at the end.
METHODS_COMPARED = ("graphical", "rap-adaptive", "rap", "release", "mwem", "nothing")

# What takes minutes, and what is the same every time.
_ONCE = ("graphical", "nothing")

# MWEM keeps the table of all attributes in memory.
_MOST_CELLS_OF_MWEM = 8_000_000


@dataclass(frozen=True)
class RapCurves(PaperStudy):
    """The largest error over many tables against ε, and against the number of tables.

    `margins` tables of each of the `ways` are asked for at every one of `epsilons`, and each of `numbers` of them at
    `fixed`. Adaptive RAP has `rounds` of `per_round` queries; `grid` holds the other pairs of these that are tried, at
    `fixed` and on the first of the `ways`, for made-up people. `graphical` are the ε at which a graphical model of
    them, which takes minutes, is made once. `path` names a CSV file of Adult.

    >>> RapCurves.quick().name
    'rap'
    """

    about: ClassVar[str] = (
        "RAP makes synthetic rows whose tables are near to noisy ones, by gradient descent on relaxed rows."
        " In one round it answers all cells of the wanted tables; in several it chooses, each time, the "
        "cells on which the rows are farthest from the records. As in the paper the error is the largest "
        "difference between a share that the rows have and the true one, over all cells of all tables. The "
        "promise is (ε, δ) at δ = 1/n² for neighbours that replace a record. Beside it stand this package's "
        "other ways to answer the same tables at the same promise."
    )

    epsilons: tuple[str, ...] = ("0.05", "0.1", "0.25", "0.5", "1")
    ways: tuple[int, ...] = (3, 5)
    margins: int = 64
    numbers: tuple[int, ...] = (4, 16, 64)
    fixed: str = "0.1"
    people: int = 48_842
    population: int = 2021
    repetitions: int = 2
    rounds: int = 5
    per_round: int = 25
    grid: tuple[tuple[int, int], ...] = (
        (2, 5),
        (2, 25),
        (2, 100),
        (5, 5),
        (5, 100),
        (10, 5),
        (10, 25),
        (10, 100),
        (25, 5),
    )
    graphical: tuple[str, ...] = ("0.1", "1")
    largest: int = 20_000
    relaxed_rows: int = 1_000
    steps: int = 1_000
    steps_a_round: int = 200
    methods: tuple[str, ...] = METHODS_COMPARED
    path: Path | None = None

    name = "rap"
    title = "Relaxed Adaptive Projection, and other ways to the same tables"
    source = "Aydore, Brown, Kearns, Kenthapadi, Melis, Roth & Siva (2021), Table 2 and Figures 2 and 3"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (
            not self.epsilons
            or not self.ways
            or not self.numbers
            or min(self.numbers) < 1
            or self.margins < 1
        ):
            raise InvalidArgument(
                "the study needs ε, orders of tables and numbers of tables. Nothing was done."
            )
        if not {"rap", "nothing"} <= set(self.methods) <= set(METHODS_COMPARED):
            raise InvalidArgument(
                f"the methods are rap, nothing and others of {', '.join(METHODS_COMPARED)}. Nothing was done."
            )

    @classmethod
    def quick(cls, path: Path | None = None) -> "RapCurves":
        """Return the study on a small grid: two ε, a few tables, few steps."""
        return cls(
            epsilons=("0.1", "1"),
            ways=(3,),
            margins=4,
            numbers=(1, 4),
            people=5_000,
            repetitions=2,
            rounds=2,
            per_round=5,
            grid=((2, 10),),
            largest=300,
            relaxed_rows=100,
            steps=60,
            steps_a_round=30,
            methods=("rap-adaptive", "rap", "release", "nothing"),
            path=path,
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """What makes the numbers what they are. A file goes by its content, not by its place."""
        held = asdict(self)
        path = held.pop("path")
        held["grid"] = [f"{rounds} × {per_round}" for rounds, per_round in self.grid]
        return held if path is None else {**held, "adult": fingerprint(path)}

    @cached_property
    def data(self) -> Mapping[str, AdultPeople]:
        """Whose tables are asked for."""
        found = {MADE_UP: made_up_people(self.people, seed=self.population)}
        return found if self.path is None else {**found, ADULT: adult(self.path)}

    def material(self) -> Mapping[str, AdultPeople]:
        """Return the records, which are public or made up."""
        return self.data

    def tasks(self) -> Sequence[Task]:
        """Return the pieces of work, those of the slowest method first."""
        # Before hours of work, and before a folder is made.
        try:
            import jax  # noqa: F401
        except ImportError:
            raise MissingExtra(
                "RAP needs JAX, which is not installed. Nothing was done. Install it: pip install 'tabulary[synth]'."
            ) from None
        found = [task for method in self.methods for task in self._curve_tasks(method)]
        return [*self._grid_tasks(), *found]

    def _curve_tasks(self, method: str) -> Iterator[Task]:
        for question in self._questions():
            whole = question.data == MADE_UP and question.number == self.margins
            if method == "graphical" and not (whole and question.epsilon in self.graphical):
                continue
            if method == "mwem" and self.data[question.data].domain.size > _MOST_CELLS_OF_MWEM:
                continue
            if method == "release":
                # Its plan and the laws of its noise take longer than the tables, and are made once.
                yield self._task(question, method, 1, 1, tuple(range(self.repetitions)))
                continue
            for repetition in range(1 if method in _ONCE else self.repetitions):
                several = (self.rounds, self.per_round) if method == "rap-adaptive" else (1, 1)
                yield self._task(question, method, *several, (repetition,))

    def _grid_tasks(self) -> Iterator[Task]:
        question = RapQuestion(MADE_UP, self.ways[0], self.margins, self.fixed, self.largest)
        for repetition in range(self.repetitions):
            yield self._task(question, "rap-printed", 1, 1, (repetition,))
            for rounds, per_round in self.grid:
                yield self._task(question, "rap-adaptive", rounds, per_round, (repetition,))

    def _questions(self) -> list[RapQuestion]:
        """Return what is asked, each once although both figures have it. Where fewer tables exist, all of them."""
        found = []
        for name, people in self.data.items():
            for way in self.ways:
                # As many as there are, which may be fewer than wanted.
                held = len(chosen_margins(people.domain, way, self.margins, largest=self.largest))
                asked = [(self.margins, epsilon) for epsilon in self.epsilons]
                asked += [(number, self.fixed) for number in self.numbers if number < held]
                asked.append((self.margins, self.fixed))
                found += [RapQuestion(name, way, number, epsilon, self.largest) for number, epsilon in asked]
        return list(dict.fromkeys(found))

    def _task(
        self, question: RapQuestion, method: str, rounds: int, per_round: int, repetitions: tuple[int, ...]
    ) -> Task:
        fitting = Fitting(self.relaxed_rows, self.steps, self.steps_a_round)
        several = f", {rounds} rounds of {per_round}" if method == "rap-adaptive" else ""
        key = (
            f"{question.data}, {question.number} {question.way}-way tables, ε = {question.epsilon}, "
            f"{method}{several}, "
            f"repetition {repetitions[0]}"
        )
        return Task(key, answer, (question, method, fitting, rounds, per_round, repetitions))
