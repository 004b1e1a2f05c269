"""A mechanism: what it measures for a request, and what there is to say about it.

To add one, write a subclass of `Mechanism` and register an instance of it with `MECHANISMS.register`, or offer the
instance as an entry point of the group `tabulary.mechanisms`. Nothing else has to know of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tabulary.core.domain import Domain
from tabulary.core.privacy import Loss
from tabulary.errors import InvalidPlan
from tabulary.noise import noise_from_description
from tabulary.planning.measurement import Part
from tabulary.planning.queries.query import Query
from tabulary.registry import Registry

if TYPE_CHECKING:
    from tabulary.planning.plan import Plan
    from tabulary.planning.request import Request


class Mechanism(ABC):
    """A planner that lists queries and the shares of the budget that they get.

    Which queries, and with which shares, may depend on the request alone, never on data.
    """

    name: ClassVar[str]
    """Its name, by which a plan requests it. It never changes, so that old releases can be read."""
    query: ClassVar[type[Query]]
    """The one type of query that it measures."""
    rank: ClassVar[int]
    """Its place among all mechanisms, the easiest to explain first: of equally good ones the lowest is chosen."""
    encodings: ClassVar[tuple[str, ...]] = ("levels",)
    """In which names it can measure attributes (`planning.encoding`)."""
    measures_full_table: ClassVar[bool] = False
    """Whether it may measure the table on all wanted attributes, even where nobody wants that table."""
    divides_for_shrinkage: ClassVar[bool] = False
    """Whether it can divide the budget for shrunk tables (objective = "shrink")."""
    refused: ClassVar[Mapping[str, str]] = {}
    """Reconstructions of its queries that it does not allow, with the reason and a remedy."""

    @abstractmethod
    def plan(self, request: "Request", loss: Loss) -> "Plan":
        """Return the plan that answers a request at this loss. Reads no data."""

    @abstractmethod
    def words(self, plan: "Plan") -> str:
        """Return what was measured, in plain words for the report of a release."""

    @abstractmethod
    def burden(self, *, values: int, parts: int, tables: int) -> str:
        """Return why its error is not smaller, as the end of a sentence about a plan for so many tables.

        The plan measures so many values in so many parts.
        """

    def encoding(self, domain: Domain) -> str:
        """Return in which names it measures the attributes of a domain."""
        return "levels"

    def surpasses(self, plan: "Plan", request: "Request", other: "Mechanism") -> bool:
        """Return whether its plan for a request is known to be as good as any plan of another mechanism."""
        return False

    def least_error(self, request: "Request", loss: Loss) -> float:
        """Return a bound that its expected error for a request cannot be below, known without planning."""
        return 0.0

    def part_from_description(self, described: Mapping[str, Any]) -> Part[Query]:
        """Return the part that `Part.describe` wrote; refuse a query of another type."""
        if described["query"] != self.query.kind:
            raise does_not_measure(self.name)
        return Part(self.query.from_description(described), noise_from_description(described["noise"]))


MECHANISMS = Registry[Mechanism]("mechanism", "tabulary.mechanisms")
"""Every mechanism by its name, in the order in which they are tried."""


def simplest_first() -> list[str]:
    """Return the names of all mechanisms, the easiest to explain first.

    >>> simplest_first()
    ['cells', 'margins', 'fourier', 'efron-stein', 'residual']
    """
    return sorted(MECHANISMS, key=lambda name: MECHANISMS[name].rank)


def allowing(reconstruct: str) -> list[str]:
    """Return the names of the mechanisms whose queries a reconstruction can use.

    >>> allowing("shift")
    ['fourier', 'efron-stein']
    """
    return [name for name in simplest_first() if reconstruct in MECHANISMS[name].query.reconstructions]


def dividing_for_shrinkage() -> list[str]:
    """Return the names of the mechanisms that can divide the budget for shrunk tables.

    >>> dividing_for_shrinkage()
    ['residual']
    """
    return [name for name in simplest_first() if MECHANISMS[name].divides_for_shrinkage]


def does_not_measure(name: str) -> InvalidPlan:
    """Return the refusal of parts that a mechanism does not measure."""
    return InvalidPlan(f"mechanism {name!r} does not measure what this plan lists.")
