"""The artifacts of a table builder: stored plans and releases. All starts and all workers serve the same ones.

Artifacts are public and optional: the service makes a missing artifact again, identically. It stores a plan because
another version of the software might plan differently, and a reconstruction because it takes seconds or minutes.

Nobody has to trust the folder. Each artifact carries a seal: HMAC-SHA-256 over its kind, its context and all its bytes.
The key of the seal is derived from the custodian's secret for this purpose only. The service checks the seal before it
reads an artifact. If somebody without the key changed, moved or added one, the service warns and makes it again.
"""

import hashlib
import hmac
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from tabulary.errors import PublicError, ReleaseExists, ServiceError
from tabulary.file_locks import locked_folder
from tabulary.noise.keyed import derived_key
from tabulary.planning import Plan, plan_from_description
from tabulary.release import Release, StagedFolder, expected_bytes, staged_folder
from tabulary.release.bounds import MOST_MANIFEST_BYTES
from tabulary.release.folder import MANIFEST, STAGING_PREFIX, read_plain_file

Warn = Callable[[str], None]
"""Called with a sentence about what was found wrong."""

_PLAN, _RELEASE, _SEAL = "plan.json", "release", "seal"
# If a new artifact is damaged at once, the disk is at fault, or somebody is still changing the folder.
_TRIES = 3

_Content = TypeVar("_Content")


class _Unsound(Exception):
    """What is wrong with an artifact, as the end of a sentence."""


@dataclass(frozen=True)
class _Kind(Generic[_Content]):
    """One kind of artifact: the file that vouches for all of it, and how to write and read it."""

    name: str
    vouching: str
    write: Callable[[StagedFolder, _Content], object]
    read: Callable[[Path, bytes], _Content]


_PLANS = _Kind[Plan](
    "plan",
    _PLAN,
    lambda staged, made: staged.write(
        _PLAN, json.dumps(made.describe(), ensure_ascii=False, indent=1).encode()
    ),
    lambda place, description: plan_from_description(json.loads(description)),
)

# The manifest vouches for every other file of a release.
_RELEASES = _Kind[Release](
    "tables",
    f"{_RELEASE}/{MANIFEST}",
    lambda staged, made: made.write_into(staged.below(_RELEASE)),
    # The seal vouches for the manifest, so the service itself wrote the size in it.
    lambda place, manifest: Release.load(
        place / _RELEASE, expected_digest=json.loads(manifest)["digest"], max_cells=sys.maxsize
    ),
)


@dataclass(frozen=True)
class Artifacts:
    """The artifacts of one edition of a dataset; `purpose` is the text of the ledger entry that pays for it.

    `key` is the key of the seals (`seal_key`). Without a folder nothing is stored. If several processes store the same
    artifact at once, the first one wins, and the others serve it.
    """

    folder: Path | None
    key: bytes = field(repr=False)
    purpose: str
    warn: Warn

    def plan(self, declared: str, make: Callable[[], Plan]) -> Plan:
        """Return the stored plan for this declaration; `make` and store it if there is none.

        `make` refuses a plan other than the one that was paid for. It runs before a damaged plan is removed.
        """
        if self.folder is None:
            return make()
        return self._artifact(_PLANS, declared, self.folder, make, 0)

    def release(self, plan: Plan, make: Callable[[], Release]) -> Release:
        """Return the stored release of a plan; `make` and store it if there is none.

        Without a folder the release is stored for a moment and read back, because reading may change the last digit of
        an interval.
        """
        if self.folder is None:
            with tempfile.TemporaryDirectory(prefix="tabulary-") as passing:
                return replace(self, folder=Path(passing)).release(plan, make)
        return self._artifact(_RELEASES, plan.digest(), self.folder, make, expected_bytes(plan))

    def _artifact(
        self, kind: _Kind[_Content], of: str, folder: Path, make: Callable[[], _Content], room: int
    ) -> _Content:
        artifact = _Artifact(kind, folder, self.key, (kind.name, self.purpose, of))
        for _ in range(_TRIES):
            problem = ""
            try:
                if os.path.lexists(artifact.place):
                    return artifact.read()
            except _Unsound as found:
                problem = str(found)
            try:
                made = make()
            except ServiceError as refusal:
                if not problem:
                    raise
                raise ServiceError(
                    f"the artifact {str(artifact.place)!r} {problem}, and it cannot be made again: {refusal}"
                ) from None
            if problem and artifact.set_aside():
                self.warn(
                    f"The artifact {str(artifact.place)!r} {problem}. Nothing was served from it. It was made "
                    "again, which costs nothing."
                )
            artifact.keep(made, room)
        raise ServiceError(
            f"the artifact {str(artifact.place)!r} was made again and is damaged again. Nothing was served from it. "
            "Check the disk, and who may write to that folder; then start again."
        )


def seal_key(secret: bytes) -> bytes:
    """Return the key under which artifacts are named and sealed."""
    return derived_key(secret, "kept")


class _Artifact(Generic[_Content]):
    """One artifact: a folder with its content and its seal. Its name and its seal belong to one context."""

    def __init__(self, kind: _Kind[_Content], folder: Path, key: bytes, context: tuple[str, ...]) -> None:
        self._kind, self._folder, self._key, self._context = kind, folder, key, context
        self.place = folder / f"{kind.name}-{derived_key(key, 'name', *context).hex()[:16]}"

    def read(self) -> _Content:
        """Return the stored content; raise _Unsound unless it is complete and carries the seal of this artifact."""
        seal, vouched = self._file(_SEAL), self._file(self._kind.vouching)
        if seal is None:
            raise _Unsound("has no seal")
        if vouched is None:
            raise _Unsound(f"lacks its {self._kind.vouching}")
        if not hmac.compare_digest(seal, self._seal(vouched)):
            raise _Unsound("does not fit its seal: it was changed, or was put there from elsewhere")
        try:
            return self._kind.read(self.place, vouched)
        except (ValueError, PublicError):
            raise _Unsound("is damaged: its files are not those that were sealed") from None

    def keep(self, made: _Content, room: int) -> None:
        """Write it with its seal, completely or not at all; do not replace what another process stored meanwhile."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with suppress(ReleaseExists), staged_folder(self.place, expected_bytes=room) as staged:
            self._kind.write(staged, made)
            staged.write(_SEAL, self._seal(staged.read(self._kind.vouching)))

    def set_aside(self) -> bool:
        """Remove an unsound artifact; return whether there was still one to remove."""
        aside = self._folder / f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        # Check again under the lock: another process may have made it again by now.
        with locked_folder(self._folder):
            try:
                self.read()
                return False
            except _Unsound:
                try:
                    self.place.rename(aside)
                except FileNotFoundError:
                    return False
                except OSError as problem:
                    raise ServiceError(
                        f"the artifact {str(self.place)!r} is damaged and cannot be removed: {problem.strerror}. "
                        "Nothing was served from it. Remove it, and start again."
                    ) from None
        if aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.unlink(missing_ok=True)
        return True

    def _seal(self, vouched: bytes) -> bytes:
        digest = hashlib.sha256(vouched).hexdigest()
        return derived_key(self._key, "seal", *self._context, digest).hex().encode()

    def _file(self, name: str) -> bytes | None:
        try:
            return read_plain_file(self.place / name, most=MOST_MANIFEST_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise ServiceError(
                f"the artifact {str(self.place)!r} cannot be read: {problem.strerror}. Nothing was served from it. "
                "Give the service the right to read and to write there."
            ) from None
