"""What columns pass on to each other: how likely each sum of the rows over some of them is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabulary.table_samplers.columns import Column, window


@dataclass(frozen=True, eq=False)
class MessageRows:
    """The rows that a message is about, and what all the columns together must bring to each.

    The last row's sum follows from the others and from the sums of the columns; the one with the most values is
    chosen for that. `least` and `most` span the sums that are asked for.
    """

    free: NDArray[np.intp]
    least: NDArray[np.int64]
    most: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Sequence[Column], targets: NDArray[np.int64]) -> "MessageRows":
        """Return the rows of these columns, where one of the targets (one a row of the array) is asked for."""
        spread = sum((column.widths - 1 for column in columns), np.zeros(targets.shape[1], dtype=np.int64))
        free = np.flatnonzero(np.arange(targets.shape[1]) != np.argmax(spread))
        return cls(free, targets[:, free].min(axis=0), targets[:, free].max(axis=0))


@dataclass(frozen=True, eq=False)
class Message:
    """The probability that the rows add up to each value over some columns, given the sums of those columns.

    `mass` has one axis for each free row and begins at `low`. `least` and `most` span what the columns still to come
    can complete to a sum that is asked for. `dropped` bounds the probability of what was left out.
    """

    low: NDArray[np.int64]
    mass: NDArray[np.float64]
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    dropped: float = 0.0

    @classmethod
    def empty(cls, columns: Sequence[Column], rows: MessageRows) -> "Message":
        """Return the message of no column, with all of these to come: every sum is zero."""
        least, most = rows.least.copy(), rows.most.copy()
        for column in columns:
            least -= column.high[rows.free]
            most -= column.low[rows.free]
        return cls(np.zeros_like(least), np.ones((1,) * least.size), least, most)

    def with_column(self, column: Column, rows: MessageRows, *, cut: float) -> "Message":
        """Return the message with one more of the columns.

        What cannot be completed is left out at no price; of what can, at most `cut` on either side of every row.
        """
        from tabulary.table_samplers.column_kernels import spread

        free = rows.free
        shape = tuple(self.mass.shape + column.widths[free] - 1)
        # The array is laid out as the larger one will be, so that a step to other sums is a step in memory.
        padded = np.zeros((*self.mass.shape[:1], *shape[1:]))
        padded[tuple(slice(0, size) for size in self.mass.shape)] = self.mass
        mass = spread(
            padded.ravel()[: int(flat(np.array(self.mass.shape, dtype=np.int64) - 1, shape)) + 1],
            flat(column.cells[:, free], shape),
            column.weights,
            math.prod(shape),
        ).reshape(shape)
        low, least, most = (
            self.low + column.low[free],
            self.least + column.high[free],
            self.most + column.low[free],
        )
        return Message(low, mass, least, most, self.dropped)._completable()._cut(cut)

    def between(self, least: NDArray[np.int64], most: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the mass from one corner to another, zero where there is none."""
        found = np.zeros(tuple(most - least + 1))
        first = np.maximum(least, self.low)
        last = np.minimum(most + 1, self.low + self.mass.shape)
        if (last > first).all():
            here = tuple(slice(*ends) for ends in zip(first - self.low, last - self.low, strict=True))
            there = tuple(slice(*ends) for ends in zip(first - least, last - least, strict=True))
            found[there] = self.mass[here]
        return found

    def at(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the mass at some places, one a row."""
        least, most = places.min(axis=0), places.max(axis=0)
        found = self.between(least, most)
        return found.ravel()[flat(places - least, found.shape)]

    def _completable(self) -> "Message":
        first = np.clip(self.least - self.low, 0, np.array(self.mass.shape) - 1)
        last = np.clip(self.most - self.low, first, np.array(self.mass.shape) - 1)
        here = tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))
        return replace(self, low=self.low + first, mass=self.mass[here])

    def _cut(self, cut: float) -> "Message":
        low, mass, dropped = self.low.copy(), self.mass, self.dropped
        for axis in range(mass.ndim):
            law = mass.sum(axis=tuple(other for other in range(mass.ndim) if other != axis))
            first, last, lost = window(law, cut)
            low[axis] += first
            dropped += lost
            mass = mass[(slice(None),) * axis + (slice(first, last),)]
        return replace(self, low=low, mass=mass, dropped=dropped)


def product(columns: Sequence[Column], rows: MessageRows, *, cut: float) -> Message:
    """Return the message of all the columns."""
    return _added(Message.empty(columns, rows), columns, rows, cut)


def all_but_one(columns: Sequence[Column], rows: MessageRows, *, cut: float) -> list[Message]:
    """Return, for each column, the message of all the others: each half is handed that of the other."""
    return _outside(columns, Message.empty(columns, rows), rows, cut)


def _outside(columns: Sequence[Column], message: Message, rows: MessageRows, cut: float) -> list[Message]:
    if len(columns) <= 1:
        return [message] * len(columns)
    middle = len(columns) // 2
    left, right = columns[:middle], columns[middle:]
    return _outside(left, _added(message, right, rows, cut), rows, cut) + _outside(
        right, _added(message, left, rows, cut), rows, cut
    )


def _added(message: Message, columns: Sequence[Column], rows: MessageRows, cut: float) -> Message:
    for column in columns:
        message = message.with_column(column, rows, cut=cut)
    return message


def flat(places: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return where each place (one a row) lies in an array of this shape laid out in one line."""
    steps = np.ones(len(shape), dtype=np.int64)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    return np.asarray(places @ steps, dtype=np.int64)
