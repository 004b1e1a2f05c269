"""What is measured, part by part, and what left through a mechanism: noisy whole numbers, public from then on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from tabulary.core.arrays import Integers
from tabulary.core.domain import Margin
from tabulary.errors import InvalidPlan
from tabulary.noise import IntegerNoise
from tabulary.planning.queries.query import Query

if TYPE_CHECKING:
    from tabulary.planning.plan import Plan

Asked = TypeVar("Asked", bound=Query, covariant=True)


@dataclass(frozen=True)
class Part(Generic[Asked]):
    """A query and its noise: every value gets an independent draw of the same law."""

    query: Asked
    noise: IntegerNoise

    @property
    def margin(self) -> Margin:
        """The attributes of the query."""
        return self.query.margin

    def describe(self) -> dict[str, object]:
        """Return the part as plain data."""
        return {**self.query.describe(), "noise": dict(self.noise.describe())}


@dataclass(frozen=True, eq=False)
class Measurement:
    """A plan and the integers that it asks for, one array for each query: the noisy ones, then the exact ones."""

    plan: "Plan"
    values: tuple[Integers, ...]

    def __post_init__(self) -> None:
        shapes = self.plan.shapes()
        if [v.shape for v in self.values] != shapes or any(v.dtype != np.int64 for v in self.values):
            raise InvalidPlan("a measurement holds one array of whole numbers for each measured part.")
        for values in self.values:
            values.flags.writeable = False
