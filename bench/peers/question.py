"""What every system is asked, and what it answers. Needs numpy alone: peers read this in their own environments."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Table = NDArray[Any]


class CannotAnswer(Exception):
    """A peer that is not installed, or has no such privacy, or ran out of time; the text says which."""


@dataclass(frozen=True)
class Question:
    """Tables of these margins, from these records, at (ε, δ) for neighbours that add or remove one record.

    `levels` are the attributes in the order of the columns of `codes`; δ = 0 is pure ε.
    """

    levels: dict[str, int]
    codes: NDArray[np.int64]
    margins: tuple[tuple[str, ...], ...]
    epsilon: float
    delta: float
    seed: int

    def shape_of(self, margin: tuple[str, ...]) -> tuple[int, ...]:
        """Return the number of levels of each attribute of a margin."""
        return tuple(self.levels[name] for name in margin)

    def counts(self, margin: tuple[str, ...], codes: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the exact table of the records, or of others in the same columns.

        >>> asked = Question({"a": 2, "b": 2}, np.array([[0, 1], [0, 1], [1, 0]]), (), 1, 0, seed=0)
        >>> asked.counts(("a", "b")).tolist()
        [[0, 2], [1, 0]]
        """
        records = self.codes if codes is None else codes
        columns = list(self.levels)
        shape = self.shape_of(margin)
        cells = np.ravel_multi_index(tuple(records[:, columns.index(name)] for name in margin), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)

    def write(self, folder: Path) -> None:
        """Put the question into a folder, for a program to read."""
        np.save(folder / "codes.npy", self.codes)
        told = {"levels": self.levels, "margins": self.margins, "epsilon": self.epsilon, "delta": self.delta}
        (folder / "question.json").write_text(json.dumps({**told, "seed": self.seed}), "utf-8")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the question in a folder."""
        told = json.loads((folder / "question.json").read_text("utf-8"))
        told["margins"] = tuple(tuple(margin) for margin in told["margins"])
        return cls(codes=np.load(folder / "codes.npy"), **told)


@dataclass(frozen=True)
class Answer:
    """One table for each margin of the question, and what they took."""

    tables: tuple[Table, ...]
    seconds: float
    cpu_seconds: float

    def write(self, folder: Path) -> None:
        """Put the answer beside its question."""
        np.savez(folder / "answer.npz", *self.tables, seconds=self.seconds, cpu_seconds=self.cpu_seconds)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the answer in a folder."""
        with np.load(folder / "answer.npz") as kept:
            tables = tuple(kept[f"arr_{i}"] for i in range(len(kept.files) - 2))
            return cls(tables, float(kept["seconds"]), float(kept["cpu_seconds"]))


def timed(make: Callable[[], list[Table]]) -> Answer:
    """Return the tables that a function makes, with the clock's time and that of all threads of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    tables = make()
    return Answer(tuple(tables), time.perf_counter() - wall, time.process_time() - cpu)
