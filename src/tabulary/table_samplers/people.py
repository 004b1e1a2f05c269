"""The people of a table: how many stand in each cell, and the prior of each."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.table_samplers.poisson_binomial import PoissonBinomial

# From the first of an attribute's levels up to the second, which is not included.
Range = tuple[int, int]


@dataclass(frozen=True, eq=False)
class People:
    """How many people of each kind stand in each cell of a domain, and their prior: all of it public.

    `number` and `probability` have the shape of the domain and one axis more, the kinds of person. A person's kind is
    what is publicly known about him beyond his cell; his `probability` is the prior that he has the private attribute.

    >>> domain = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]})
    >>> people = People.of(domain, [[20, 30], [10, 40]], 0.3)
    >>> people.count_law(((0, 2), (1, 2)))
    <PoissonBinomial of 70 people of 1 kinds>
    """

    domain: Domain
    number: NDArray[np.int64]
    probability: NDArray[np.float64]
    _count_laws: dict[tuple[Range, ...], PoissonBinomial] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        number = _whole(self.number, "a number of people")
        try:
            prior = np.array(self.probability, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidTable("a probability is not a number.") from None
        if number.ndim != len(self.domain.shape) + 1 or number.shape[:-1] != self.domain.shape:
            raise InvalidTable(
                f"the domain's shape is {self.domain.shape} but the people's is {number.shape}, "
                "whose last axis is the kinds of person."
            )
        if prior.shape != number.shape:
            raise InvalidTable(
                f"there are people of shape {number.shape} but probabilities of {prior.shape}."
            )
        if (number < 0).any():
            raise InvalidTable("a number of people is below zero.")
        if not ((prior > 0) & (prior < 1))[number > 0].all():
            raise InvalidTable(
                "a prior probability is not strictly between 0 and 1. Who is certain before anything is published "
                "has no secret to keep; leave those people out of the table."
            )
        for array in (number, prior):
            array.setflags(write=False)
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "probability", prior)

    @classmethod
    def of(cls, domain: Domain, people: ArrayLike, probability: ArrayLike) -> "People":
        """Return people from their number in each cell, or in each cell and kind.

        `probability` is one number, one for each cell, or, where `people` has an axis of kinds, one for each kind; it
        is stretched over the other axes as numpy does.
        """
        number = _whole(people, "a number of people")
        try:
            prior = np.array(probability, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidTable("a probability is not a number.") from None
        if number.ndim == len(domain.shape):
            number = number[..., None]
            prior = prior[..., None] if prior.ndim else prior
        try:
            prior = np.broadcast_to(prior, number.shape)
        except ValueError:
            raise InvalidTable(
                f"there are people of shape {number.shape[:-1]} in {number.shape[-1]} kinds, and probabilities of "
                f"shape {np.shape(probability)}: give one probability, one for each cell or one for each kind."
            ) from None
        return cls(domain, number, prior)

    @property
    def shape(self) -> tuple[int, ...]:
        """The domain's shape."""
        return self.domain.shape

    @property
    def in_cells(self) -> NDArray[np.int64]:
        """How many people stand in each cell, of whatever kind."""
        return np.asarray(self.number.sum(axis=-1))

    def count_law(self, block: tuple[Range, ...]) -> PoissonBinomial:
        """Return the people of a block of cells, one range of levels for each attribute."""
        if block not in self._count_laws:
            here = tuple(slice(*levels) for levels in block)
            self._count_laws[block] = PoissonBinomial(
                self.number[here].ravel(), self.probability[here].ravel()
            )
        return self._count_laws[block]


def _whole(values: ArrayLike, name: str) -> NDArray[np.int64]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTable(f"{name} is not a number.") from None
    if not np.isfinite(array).all() or (array != np.round(array)).any():
        raise InvalidTable(f"{name} is not whole.")
    return array.astype(np.int64)
