"""A folder that appears whole or not at all, and the careful reading of one that may come from anywhere."""

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tabulary.errors import ReleaseDamaged, ReleaseError, ReleaseExists
from tabulary.release.measurements import MEASUREMENTS

MANIFEST = "manifest.json"
"""What every release folder holds, beside its measurements."""

STAGING_PREFIX = ".tabulary-staging-"
"""How a folder in the making is named: hidden, beside its target, never mistaken for a release."""

_PIECE = 1 << 20
_NOT_WRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_IN_THE_WAY = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR}


@dataclass
class StagedFolder:
    """A private folder beside `target` that becomes it in one rename."""

    target: Path
    published: bool = False
    _content: Path = field(default=Path(), repr=False)
    _written: list[Path] = field(default_factory=list, repr=False)

    def below(self, name: str) -> "StagedFolder":
        """Return the folder `name` within this one, to write into; it is published with this one."""
        return StagedFolder(self.target / name, _content=self._content / name, _written=self._written)

    def write(self, name: str, data: bytes) -> None:
        """Write one file, under a name such as "tables/sex.csv", and sync it to the disk."""
        path = self._content / name
        with _clear_errors(self.target):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                write_bytes(file.fileno(), data)
                os.fsync(file.fileno())
        self._written.append(path)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file that was written."""
        with _clear_errors(self.target):
            return (self._content / name).read_bytes()

    def publish(self) -> None:
        """Make everything written so far visible at `target`, immediately and permanently."""
        with _clear_errors(self.target):
            for folder in (*{path.parent for path in self._written}, self._content):
                sync_folder(folder)
            # A rename onto an empty folder succeeds silently, hence this check. An empty folder that appears between
            # the check and the rename is replaced; a folder with content never is.
            if os.path.lexists(self.target):
                raise _exists(self.target)
            try:
                self._content.rename(self.target)
            except OSError as problem:
                if problem.errno in _IN_THE_WAY:
                    raise _exists(self.target) from problem
                raise
        self.published = True
        try:
            sync_folder(self.target.parent)
        except OSError as problem:
            raise ReleaseError(
                f"the release is at {self.target}, but the disk did not confirm it: {problem.strerror}. "
                "Verify the release before you rely on it."
            ) from problem


@contextmanager
def staged_folder(path: str | os.PathLike[str], *, expected_bytes: int = 0) -> Iterator[StagedFolder]:
    """Yield a folder to write into; at the end of the block it appears at `path`, complete.

    Enter it before any budget is spent: it finds everything that would prevent writing later, such as an existing
    `path`, a missing or read-only parent, or too little room for `expected_bytes`. When the block raises, or writes
    nothing, nothing is published and the staging folder is removed. A process that is killed leaves either no release
    or a whole one, and at most a hidden folder named `.tabulary-staging-…` that may be deleted.
    """
    target = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow a link at the target
    if os.path.lexists(target):
        raise _exists(target)
    if not target.parent.is_dir():
        raise ReleaseError(
            f"the release cannot be written to {target}: there is no folder {target.parent}. "
            "Nothing was written. Make that folder first."
        )
    refuse_inside_release(target, "Nothing was written.")
    with _clear_errors(target):
        free = shutil.disk_usage(target.parent).free
        if free < expected_bytes:
            raise ReleaseError(
                f"the release needs about {expected_bytes:,} bytes and {target.parent} has {free:,} free. "
                "Nothing was written. Free some space or choose another disk."
            )
        staging = target.parent / f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        staging.mkdir(mode=0o700)
    try:
        staged = StagedFolder(target, _content=staging / "release")
        with _clear_errors(target):
            # Inside the private folder, so that it has the user's own permissions once it is out.
            staged._content.mkdir()
        yield staged
        if staged._written:
            staged.publish()
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_inside_release(path: Path, state: str) -> None:
    """Refuse a place inside a release folder: one more file there, and the release is not as it was published."""
    parent = Path(os.path.realpath(path.parent))
    for folder in (parent, *parent.parents):
        if (folder / MANIFEST).is_file() and (folder / MEASUREMENTS).is_file():
            raise ReleaseError(
                f"{path} is inside the release {folder}, and with one more file that release is no longer as it was "
                f"published. {state} Choose a place beside it."
            )


def write_bytes(descriptor: int, data: bytes) -> None:
    """Write all of `data`; every byte of a release is written here."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def list_folder(root: Path, subfolder: str, *, most: int) -> tuple[set[str], list[str]]:
    """Return the plain files of `root` and of its one `subfolder`, and the names of everything else.

    Links are not followed: a link counts as something else, even if it points to a plain file. At most `most` entries
    are read.
    """
    files: set[str] = set()
    others: list[str] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(root / below) as entries:
            for entry in entries:
                if len(files) + len(others) >= most:
                    raise ReleaseDamaged(
                        f"the folder {root} contains more than {most:,} files, more than its manifest "
                        "lists. Nothing of it was used. Download the release again from its publisher."
                    )
                name = f"{below}{entry.name}"
                if name == subfolder and entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    files.add(name)
                else:
                    others.append(name)
    return files, sorted(others)


@contextmanager
def plain_file(path: Path) -> Iterator[tuple[BinaryIO, int] | None]:
    """Yield a plain file, open, and its length; None if it is anything else: a link, a pipe, a device, a folder."""
    before = os.lstat(path)
    if not stat.S_ISREG(before.st_mode):
        yield None
        return
    # These flags neither follow a link nor wait for a pipe that has replaced the file since.
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    with os.fdopen(os.open(path, flags), "rb") as file:
        now = os.fstat(file.fileno())
        # Check that it is the same file; a pipe in its place may have the same number.
        same = os.path.samestat(before, now) and stat.S_ISREG(now.st_mode)
        yield (file, before.st_size) if same else None


def read_plain_file(path: Path, *, most: int) -> bytes | None:
    """Return the bytes of a plain file of at most `most` bytes; None if it is anything else, or longer.

    A file that is too long is not read, so it costs nothing; a file that grows meanwhile is too long.
    """
    with plain_file(path) as opened:
        if opened is None or opened[1] > most:
            return None
        data = opened[0].read(most + 1)
    return data if len(data) <= most else None


def hash_plain_file(path: Path, *, length: int) -> str | None:
    """Return the SHA-256 of a plain file, read piece by piece; None if it is anything else, or has another length."""
    digest, read = hashlib.sha256(), 0
    with plain_file(path) as opened:
        if opened is None or opened[1] != length:
            return None
        while piece := opened[0].read(min(_PIECE, length + 1 - read)):
            read += len(piece)
            digest.update(piece)
    return digest.hexdigest() if read == length else None


@contextmanager
def _clear_errors(target: Path) -> Iterator[None]:
    """Turn an error of the operating system into advice."""
    try:
        yield
    except OSError as problem:
        asked = f"the release cannot be written to {target}"
        reason = os.strerror(problem.errno) if problem.errno else str(problem)
        if problem.errno in _NOT_WRITABLE:
            raise ReleaseError(
                f"{asked}: {target.parent} is not writable ({reason}). Nothing was published. "
                "Choose a folder you may write to."
            ) from problem
        if problem.errno in _NO_SPACE:
            raise ReleaseError(
                f"{asked}: no room is left ({reason}). Nothing was published, and what was written is "
                "removed. Free some space or choose another disk."
            ) from problem
        raise ReleaseError(
            f"{asked}: {reason}. Nothing was published. Choose another place or see to the disk."
        ) from problem


def _exists(target: Path) -> ReleaseExists:
    return ReleaseExists(
        f"{target} already exists, and a release is never overwritten. Nothing was written. "
        "Choose another folder, or move that one away."
    )


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to the disk, as far as its file system can."""
    # Elsewhere a folder cannot be opened, and its entries are as durable as the system makes them.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as problem:
            # Some network and FUSE file systems cannot sync a folder; that is not a failure to write.
            if problem.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)
