"""The study: its grid, its pieces of work, and where its words and pictures come from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tabulary import ApproxDP, PureDP
from tabulary.core import Privacy
from tabulary.errors import InvalidArgument
from tabulary.studies import Task
from tabulary_papers.paper_study import PaperStudy
from tabulary_papers.three_approaches.expected import expected_errors, statements
from tabulary_papers.three_approaches.measured import bounds, measured_errors
from tabulary_papers.three_approaches.shifts import FAILURES, corollary, raised

# Repetitions that one piece of work does: enough to be worth starting, few enough to lose.
_BLOCK = 10


@dataclass(frozen=True)
class ThreeApproaches(PaperStudy):
    """Noise on cells, on margins or on Fourier coefficients, over the number of yes-or-no attributes.

    `sizes` are the numbers of attributes k whose errors are computed from plans, `tried` those that are tried on
    made-up `people`; `ways` are the orders of the tables. `draws` of noise are made for the shift, at a probability
    of `failure` where one is singled out; `coefficients` are the numbers d for which Corollary 1 is checked.

    >>> study = ThreeApproaches.quick()
    >>> study.name, len(study.tasks()) > 10
    ('three-approaches', True)
    """

    sizes: tuple[int, ...] = (*range(2, 17), 18, 20, 23, 26, 30)
    ways: tuple[int, ...] = (1, 2, 3)
    epsilon: str = "1"
    delta: str = "1e-9"
    tried: tuple[int, ...] = (4, 5, 6, 7, 8)
    people: int = 1_000
    repetitions: int = 200
    draws: int = 50_000
    failure: float = 0.05
    coefficients: tuple[int, ...] = (2, 5, 12, 22, 37, 93)

    counts = ("repetitions", "draws")
    name = "three-approaches"
    title = "Noise on cells, on margins or on Fourier coefficients"
    source = "Dwork, McSherry & Talwar (2007), sections 3 to 5"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sizes or not self.tried or not self.ways or min(self.ways) < 1:
            raise InvalidArgument(
                "the study needs numbers of attributes and orders of tables. Nothing was done."
            )
        if max(self.ways) > min(max(self.sizes), max(self.tried)):
            raise InvalidArgument("some tables have more attributes than there are. Nothing was done.")
        if self.failure not in FAILURES:
            raise InvalidArgument(f"the failure is one of {', '.join(map(str, FAILURES))}. Nothing was done.")

    @classmethod
    def quick(cls) -> "ThreeApproaches":
        """Return the study on a small grid: up to eight attributes, six repetitions."""
        return cls(sizes=(2, 5, 8), tried=(3, 5), repetitions=6, draws=2_000, coefficients=(2, 12, 37))

    @property
    def about(self) -> str:
        """What is done, for somebody who has not read the paper."""
        return (
            "A table of yes-or-no attributes can be protected in three ways: noise on every cell of the "
            "full table, noise on every wanted table by itself, or noise on the Fourier coefficients that "
            "the wanted tables share. The paper compares them in words and orders of magnitude. Here all "
            f"three, and this package's planner beside them, measure all tables of {_listed(self.ways)} "
            "attributes with whole-number noise and exact sensitivity, for neighbours that add or remove "
            "one record. Errors come from the plans alone, and are tried on made-up people."
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """What makes the numbers what they are."""
        return asdict(self)

    @property
    def privacies(self) -> tuple[Privacy, ...]:
        """The two promises at which everything is compared."""
        return PureDP(self.epsilon), ApproxDP(self.epsilon, self.delta)

    def tasks(self) -> Sequence[Task]:
        """Return the pieces of work, the largest plans first."""
        found = [
            Task(f"expected, {size} attributes, {way}-way, {privacy}", expected_errors, (size, way, privacy))
            for size in sorted(self.sizes, reverse=True)
            for way in sorted(self.ways, reverse=True)
            if way <= size
            for privacy in self.privacies
        ]
        for size in self.tried:
            for way in (way for way in self.ways if way <= size):
                for privacy in self.privacies:
                    for first in range(0, self.repetitions, _BLOCK):
                        last = min(first + _BLOCK, self.repetitions)
                        found.append(
                            Task(
                                f"measured, {size} attributes, {way}-way, {privacy}, {first} to {last - 1}",
                                measured_errors,
                                (size, self.people, way, privacy, first, last),
                            )
                        )
                found.append(
                    Task(
                        f"bounds, {size} attributes, {way}-way",
                        bounds,
                        (size, way, self.epsilon, self.failure),
                    )
                )
        for way in self.ways:
            size = max(self.tried)
            found.append(
                Task(f"shifts, {size} attributes, {way}-way", raised, (size, way, self.epsilon, self.draws))
            )
        found += [Task(f"corollary, {number}", corollary, (number,)) for number in self.coefficients]
        return [*found, Task("statements", statements, (self.epsilon, self.delta))]


def _listed(ways: Sequence[int]) -> str:
    words = [str(way) for way in ways]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
