"""The folder of a study: what is done so far, and at the end its numbers, its pictures and its page.

study.json      which study with which settings: another one is never mixed in
journal.jsonl   what each piece of work found, a line each, on the disk before the next is counted as done
numbers/        every number as CSV
tables/         the tables of the page as CSV
figures/        every figure as SVG and PNG, and what it shows as CSV
index.html      what it says
"""

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulary.errors import StudyError
from tabulary.file_locks import locked_folder
from tabulary.studies.study import Row, Sheets, Value

_IDENTITY, _JOURNAL = "study.json", "journal.jsonl"
_MADE = ("numbers", "tables", "figures", "index.html")
_PARTIAL = ".partial"
_WARNING = "CONFIDENTIAL.txt"
_CONFIDENTIAL = (
    b"CONFIDENTIAL: everything in this folder is computed from exact counts, and exact counts can be\n"
    b"worked out from it. It is not protected, and must not be published.\n"
)


@dataclass(frozen=True)
class StudyFolder:
    """A folder that belongs to one study; `confidential` keeps it from other users of the machine."""

    path: Path
    confidential: bool = False

    @contextmanager
    def opened(self, identity: Mapping[str, Any], *, fresh: bool) -> Iterator[dict[str, Sheets]]:
        """Yield what is done already, and keep other processes out until the end. `fresh` forgets it.

        A folder that holds anything else, or a study of another identity, is not touched.
        """
        if self.path.exists() and not self.path.is_dir():
            raise self._not_ours()
        with _writing(self.path):
            self.path.mkdir(mode=0o700 if self.confidential else 0o777, parents=True, exist_ok=True)
        # Alone before anything is read or forgotten; what is locked must outlive both.
        with _alone(self.path):
            with _writing(self.path):
                # As it is read back: a tuple comes back as a list.
                self._claim(json.loads(json.dumps(identity)), fresh)
                if self.confidential:
                    # Each time: a folder that was copied or unpacked has other rights than the one it was.
                    self.path.chmod(0o700)
                    self.write(_WARNING, _CONFIDENTIAL)
                done = self._journal()
            yield done

    def add(self, key: str, sheets: Sheets) -> None:
        """Write down what a piece of work found; on the disk once this has returned."""
        line = json.dumps({"task": key, "sheets": sheets}, ensure_ascii=False) + "\n"
        with _writing(self.path), (self.path / _JOURNAL).open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def write(self, name: str, content: bytes) -> Path:
        """Return the path of a file of the folder that now has this content, and never half of it."""
        path = self.path / name
        with _writing(self.path):
            path.parent.mkdir(exist_ok=True)
            partial = path.with_name(f".{path.name}{_PARTIAL}")
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            _flush(path.parent)
        return path

    def _claim(self, identity: Mapping[str, Any], fresh: bool) -> None:
        mark = self.path / _IDENTITY
        if mark.exists():
            held = _parsed(mark.read_bytes())
            if held is None or "study" not in held:
                raise StudyError(f"{mark} is damaged. Nothing was done. Choose another folder.")
            if held == identity and not fresh:
                return
            if not fresh:
                different = [key for key in (*identity, *held) if held.get(key) != identity.get(key)]
                raise StudyError(
                    f"{self.path} holds the study {held['study']!r}, which differs in its {different[0]}. Nothing was "
                    "done. Choose another folder, or start again with `fresh`."
                )
        elif any(not path.name.endswith(_PARTIAL) for path in self.path.iterdir()):
            raise self._not_ours()
        # What was found goes before the mark changes: found by one study, it must never stand under another's mark.
        self._forget()
        self.write(_IDENTITY, json.dumps(identity, ensure_ascii=False, indent=1).encode() + b"\n")

    def _forget(self) -> None:
        for path in (*(self.path / name for name in (*_MADE, _JOURNAL)), *self.path.glob(f".*{_PARTIAL}")):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _not_ours(self) -> StudyError:
        return StudyError(
            f"{self.path} already exists and holds no study. Nothing was done. Choose another folder."
        )

    def _journal(self) -> dict[str, Sheets]:
        path = self.path / _JOURNAL
        if not path.exists():
            self.write(_JOURNAL, b"")
        lines = path.read_bytes().split(b"\n")
        # A process that was killed leaves half a line; what comes after it must not be glued to it.
        if lines[-1]:
            with path.open("r+b") as file:
                file.truncate(sum(len(line) + 1 for line in lines[:-1]))
        done: dict[str, Sheets] = {}
        for number, line in enumerate(lines[:-1], start=1):
            entry = _parsed(line)
            if entry is None or "task" not in entry or "sheets" not in entry:
                raise StudyError(
                    f"line {number} of {path} is damaged. Nothing was done. Remove that line, or start again with "
                    "`fresh`."
                )
            done[entry["task"]] = entry["sheets"]
        return done


def csv_text(heads: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    r"""Return a table as CSV.

    >>> csv_text(["table", "epsilon"], [("fungus", 0.5)])
    'table,epsilon\nfungus,0.5\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return text.getvalue()


def csv_of_rows(rows: Sequence[Row]) -> str:
    """Return rows as CSV, with the columns of the first one; one that has others is an error."""
    heads = list(rows[0]) if rows else []
    if any(list(row) != heads for row in rows):
        raise ValueError("all rows of a CSV file have the same columns in the same order")
    return csv_text(heads, (list(row.values()) for row in rows))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise StudyError(
            f"{folder} cannot be written: {problem.strerror}. What was done before is kept there. Check the disk and "
            "run the study again, or choose another folder."
        ) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder."""
    with ExitStack() as held:
        with _writing(folder):
            try:
                held.enter_context(locked_folder(folder, wait=False))
            except BlockingIOError:
                raise StudyError(
                    f"another process is working in {folder}. Nothing was done. Wait for it, or choose another folder."
                ) from None
        yield


def _flush(folder: Path) -> None:
    """Put the names of a folder's files on the disk, where the system can."""
    if os.name != "posix":
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
