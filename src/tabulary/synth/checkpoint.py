"""The measurements and fits of a run of RAP so far, on the disk. All of it is noisy and paid for, so it is public."""

import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import ReleaseError, UnusableCheckpoint
from tabulary.file_locks import lock
from tabulary.release.folder import sync_folder

_FORMAT = "tabulary-rap-1"


@dataclass(frozen=True, eq=False)
class Progressed:
    """The progress of a run: `measured` rounds of answers; `projected` of them are fitted by the relaxed rows.

    `request` is the digest of the whole request, `run` a random name that links the run to its entry in a ledger.
    `people` is the number of people that counts are divided by, 0 before it is known.
    """

    request: str
    run: str
    measured: int = 0
    projected: int = 0
    people: int = 0
    cells: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    answers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    logits: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))


@dataclass(frozen=True)
class Checkpoint:
    """A file that always holds one whole state: the state before a write or after it, never a part.

    With None as the path, nothing is kept.
    """

    path: Path | None

    def load(self, request: str) -> Progressed | None:
        """Return the state of the requested run, None before its first; refuse the state of another run."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                if str(held["format"]) != _FORMAT:
                    raise ValueError
                state = Progressed(
                    request=str(held["request"]),
                    run=str(held["run"]),
                    measured=int(held["measured"]),
                    projected=int(held["projected"]),
                    people=int(held["people"]),
                    cells=held["cells"],
                    answers=held["answers"],
                    logits=held["logits"],
                )
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
            raise UnusableCheckpoint(
                f"{self.path.name!r} is not a checkpoint of RAP, or it is damaged. Nothing was measured. Name "
                "another file to begin anew, which spends the budget anew."
            ) from None
        if state.request != request:
            raise UnusableCheckpoint(
                f"the checkpoint {self.path.name!r} belongs to a run with another request. Nothing was "
                "measured. Repeat that request, or name another file."
            )
        return state

    def save(self, state: Progressed) -> None:
        """Replace the state; the new one is on the disk when this returns."""
        if self.path is None:
            return
        held = io.BytesIO()
        np.savez(held, format=np.array(_FORMAT), **vars(state))
        partial = self.path.with_name(f".{self.path.name}.partial")
        try:
            with partial.open("wb") as file:
                file.write(held.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as problem:
            partial.unlink(missing_ok=True)
            raise ReleaseError(
                f"the checkpoint {self.path.name!r} could not be written: {problem.strerror}. The previous "
                "state is unchanged. Solve the problem of the disk and start again; the run continues from "
                "there."
            ) from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Prevent other processes from continuing from the same state, which would measure twice for one debit."""
        if self.path is None:
            yield
            return
        try:
            file = self.path.with_name(f".{self.path.name}.lock").open("wb")
        except OSError as problem:
            raise ReleaseError(
                f"the checkpoint {self.path.name!r} cannot be stored there: {problem.strerror}. Nothing was "
                "measured."
            ) from None
        with file:
            try:
                lock(file.fileno(), wait=False)
            except OSError:
                raise UnusableCheckpoint(
                    f"another process uses the checkpoint {self.path.name!r}. Nothing was measured. Wait "
                    "for that process, or name another file."
                ) from None
            yield
