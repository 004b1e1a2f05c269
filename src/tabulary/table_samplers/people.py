"""The people of a table: their number in each cell, and their priors."""

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
    """The number of people of each kind in each cell of a domain, and their prior. All of it is public.

    `number` and `probability` have the shape of the domain and one axis more, the kinds of person. A person's kind is
    what is publicly known about them beyond their cell; `probability` is their prior of the private attribute.

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
        number, prior = _whole(self.number), _numbers(self.probability, "a probability")
        if number.ndim != len(self.domain.shape) + 1 or number.shape[:-1] != self.domain.shape:
            raise InvalidTable(
                f"the domain's shape is {self.domain.shape} but the people's is {number.shape}, "
                "whose last axis is the kinds of person."
            )
        if prior.shape != number.shape:
            raise InvalidTable(
                f"the people have shape {number.shape} but the probabilities have {prior.shape}."
            )
        if (number < 0).any():
            raise InvalidTable("a number of people is below zero.")
        if not ((prior > 0) & (prior < 1))[number > 0].all():
            raise InvalidTable(
                "a prior probability is not strictly between 0 and 1. People whose value is certain before the "
                "publication cannot be protected: leave them out of the table."
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
        number, prior = _whole(people), _numbers(probability, "a probability")
        if number.ndim == len(domain.shape):
            number = number[..., None]
            prior = prior[..., None] if prior.ndim else prior
        try:
            prior = np.broadcast_to(prior, number.shape)
        except ValueError:
            raise InvalidTable(
                f"the people have shape {number.shape[:-1]} and {number.shape[-1]} kinds, but the probabilities have "
                f"shape {np.shape(probability)}. Give one probability, one for each cell or one for each kind."
            ) from None
        return cls(domain, number, prior)

    @property
    def shape(self) -> tuple[int, ...]:
        """The domain's shape."""
        return self.domain.shape

    @property
    def in_cells(self) -> NDArray[np.int64]:
        """The number of people in each cell, over all kinds."""
        return np.asarray(self.number.sum(axis=-1))

    def count_law(self, block: tuple[Range, ...]) -> PoissonBinomial:
        """Return the people of a block of cells, one range of levels for each attribute."""
        if block not in self._count_laws:
            here = tuple(slice(*levels) for levels in block)
            self._count_laws[block] = PoissonBinomial(
                self.number[here].ravel(), self.probability[here].ravel()
            )
        return self._count_laws[block]


class PeopleByKind:
    """Rows grouped by cell and prior. The n-th kind of person of a cell has its n-th smallest prior.

    `cells` has one cell for each row, as a flat index into the domain. Without a `prior` each cell has one kind.

    >>> domain = Domain({"eye": ["blue", "brown"]})
    >>> kinds = PeopleByKind(domain, np.array([0, 1, 0, 0]), np.array([0.3, 0.5, 0.1, 0.3]))
    >>> kinds.summed(np.ones(4)).tolist(), kinds.probability.tolist()
    ([[1, 2], [1, 0]], [[0.1, 0.3], [0.5, 0.5]])
    """

    def __init__(self, domain: Domain, cells: NDArray[np.int64], prior: NDArray[np.float64] | None) -> None:
        keys = np.stack([cells, np.zeros(len(cells)) if prior is None else prior])
        found, row = np.unique(keys, axis=1, return_inverse=True)
        self._row = row.reshape(-1)
        self._cells = found[0].astype(np.int64)
        self._kind = np.arange(len(self._cells)) - np.searchsorted(self._cells, self._cells)
        self._shape = (domain.size, int(self._kind.max(initial=0)) + 1)
        self._full = (*domain.shape, self._shape[1])
        self.number = len(self._cells)
        """How many pairs of a cell and a kind occur."""
        self.probability: NDArray[np.float64] | None = None
        """The prior of each cell and kind; 0.5 for a kind without people, where any prior will do."""
        if prior is not None:
            priors = np.full(self._shape, 0.5)
            priors[self._cells, self._kind] = found[1]
            self.probability = priors.reshape(self._full)

    def summed(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the sum of a value over the rows, by cell and kind."""
        sums = np.zeros(self._shape)
        sums[self._cells, self._kind] = np.bincount(self._row, weights=values, minlength=self.number)
        return sums.reshape(self._full).astype(np.int64)


def _whole(values: ArrayLike) -> NDArray[np.int64]:
    array = _numbers(values, "a number of people")
    if not np.isfinite(array).all() or (array != np.round(array)).any():
        raise InvalidTable("a number of people is not whole.")
    return array.astype(np.int64)


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTable(f"{name} is not a number.") from None
