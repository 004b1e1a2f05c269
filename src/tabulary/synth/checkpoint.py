"""What a run of RAP has measured and fitted so far, on the disk. All of it is noisy, paid for and so public."""

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
    """How far a run is: `measured` rounds of answers, `projected` of them in the free numbers of the relaxed rows.

    `request` is the digest of everything that was asked for, `run` a random name that ties the run to its entry in a
    ledger. `people` is the number of people that counts are divided by, 0 before it is known.
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
    """A file that always holds one whole state: the one before a write or the one after it, never a part.

    None for a path keeps nothing.
    """

    path: Path | None

    def load(self, request: str) -> Progressed | None:
        """Return the state of the run that was asked for, None before its first; refuse another run's."""
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
        """Put a state in the place of the one before; on the disk once this has returned."""
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
        """Keep other processes from going on from the same state, which would measure under one debit twice."""
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
