"""What a test says: a number, how surprising it is, and what was assumed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tabulary.errors import InvalidTable


@dataclass(frozen=True)
class TestResult:
    """A statistic, its degrees of freedom and its p-value; none of them is ever NaN.

    `assumed` says in words what the p-value rests on, one sentence each. A hypothesis with no degrees of freedom
    cannot be wrong: its statistic is 0 and its p-value 1.

    >>> TestResult("independence", 12.5, 6, 0.0517, "naive", ("the counts are exact",))
    TestResult(hypothesis='independence', statistic=12.5, degrees_of_freedom=6, p_value=0.0517, method='naive', assumed=('the counts are exact',))
    """  # noqa: E501  (the line that is printed)

    # What pytest finds in a test module and calls Test is not always one.
    __test__: ClassVar[bool] = False

    hypothesis: str
    statistic: float
    degrees_of_freedom: int
    p_value: float
    method: str
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.statistic) and self.statistic >= 0 and 0 <= self.p_value <= 1):
            raise InvalidTable(
                f"no test of {self.hypothesis} can be made of these counts: its statistic has no finite value."
            )
        if self.degrees_of_freedom < 0:
            raise InvalidTable(f"a test of {self.hypothesis} must not have negative degrees of freedom.")

    def rejects(self, level: float = 0.05) -> bool:
        """Return whether the hypothesis is rejected at this level.

        >>> TestResult("independence", 12.5, 6, 0.0517, "naive").rejects(0.1)
        True
        """
        return self.p_value <= level

    def __str__(self) -> str:
        return (
            f"{self.hypothesis}, {self.method}: statistic {self.statistic:.2f} on {self.degrees_of_freedom} "
            f"degrees of freedom, p = {self.p_value:.3g}"
        )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number: those up to α err together with probability α at most.

    Holm's step-down rule, which needs no independence: the k-th smallest of n is multiplied by n - k + 1, and none is
    smaller than one before it.

    >>> holm([0.04, 0.01, 0.5])
    [0.08, 0.03, 0.5]
    """
    adjusted = [1.0] * len(p_values)
    reached = 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        reached = max(reached, min(1.0, (len(p_values) - done) * p_values[place]))
        adjusted[place] = reached
    return adjusted
