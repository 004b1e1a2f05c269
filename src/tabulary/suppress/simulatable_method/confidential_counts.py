"""The confidential counts: they answer a question only after the suppressor has decided to ask it."""

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable
from tabulary.suppress.simulatable_method.suppressor import Block
from tabulary.table_samplers.people import People


class ConfidentialCounts:
    """The confidential counts of a table, one for each cell. What it prints is their shape.

    >>> from tabulary.core.domain import Domain
    >>> people = People.of(Domain({"eye": "ab", "hair": "ab"}), [[5, 5], [5, 5]], 0.5)
    >>> hidden = ConfidentialCounts(people, np.array([[1, 2], [3, 0]]))
    >>> hidden, hidden.answer(((0, 1), (0, 2)))
    (<ConfidentialCounts of 2 × 2 cells>, 3)
    """

    def __init__(self, people: People, counts: NDArray[np.int64]) -> None:
        if counts.shape != people.shape:
            raise InvalidTable(
                f"the people have {_by(people.shape)} cells but the counts have {_by(counts.shape)}. "
                "Nothing was released."
            )
        if (counts < 0).any() or (counts > people.in_cells).any():
            raise InvalidTable(
                "a count is below zero or above the number of people in its cell. Nothing was released. A count is "
                "the number of people in the cell who have the private attribute."
            )
        self._counts = counts

    def answer(self, block: Block) -> int:
        """Return how many people of a block of cells have the private attribute. Confidential until it is released."""
        return int(self._counts[tuple(slice(*levels) for levels in block)].sum())

    def __repr__(self) -> str:
        return f"<ConfidentialCounts of {_by(self._counts.shape)} cells>"


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))
