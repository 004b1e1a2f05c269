"""The artifacts of a table builder: plans and releases, kept so that every start and every worker serve the same.

All of it is public, and none of it is needed: it is made again, the same, where it is missing. A plan is kept because
another version of the software might plan otherwise, a reconstruction because it takes seconds or minutes.

Nobody has to trust the folder. Each artifact carries a seal, HMAC-SHA-256 under a key that is derived from the
custodian's secret for this alone, over what it is, whose it is and all its bytes. What was changed, moved or put there
by somebody without the key is found before it is read, named in a warning, and made anew.
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
from tabulary.release.folder import STAGING_PREFIX, read_plain_file
from tabulary.release.manifest import MANIFEST

Warn = Callable[[str], None]
"""Called with a sentence about what was found wrong."""

_PLAN, _RELEASE, _SEAL = "plan.json", "release", "seal"
# What is damaged again as soon as it was made is the fault of the disk, or of somebody who is still at it.
_TRIES = 3

_Content = TypeVar("_Content")


class _Unsound(Exception):
    """What is wrong with an artifact, as the end of a sentence."""


@dataclass(frozen=True)
class _Kind(Generic[_Content]):
    """One kind of artifact: which file vouches for all of it, how it is written, and how it is read from there."""

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
    # The seal vouches for the manifest, so whatever size it states is the service's own.
    lambda place, manifest: Release.load(
        place / _RELEASE, expected_digest=json.loads(manifest)["digest"], max_cells=sys.maxsize
    ),
)


@dataclass(frozen=True)
class Artifacts:
    """What is kept for one edition of a dataset, `purpose` being the words of the ledger entry that pays for it.

    `key` is that of the seals (`seal_key`). Without a folder nothing is kept. Of many processes that keep the same
    artifact at once, the first keeps its own, and the others serve that.
    """

    folder: Path | None
    key: bytes = field(repr=False)
    purpose: str
    warn: Warn

    def plan(self, declared: str, make: Callable[[], Plan]) -> Plan:
        """Return the plan that is kept for what was declared; `make` and keep it if there is none.

        `make` refuses a plan that is not the one that was paid for. It is called before a damaged one is removed.
        """
        if self.folder is None:
            return make()
        return self._artifact(_PLANS, declared, self.folder, make, 0)

    def release(self, plan: Plan, make: Callable[[], Release]) -> Release:
        """Return the release of a plan that is kept; `make` and keep it if there is none.

        Without a folder it is kept for a moment, since what is read back may differ from what was made in the last
        digit of an interval.
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
    """One artifact: a folder with its content and its seal, named and sealed for one context."""

    def __init__(self, kind: _Kind[_Content], folder: Path, key: bytes, context: tuple[str, ...]) -> None:
        self._kind, self._folder, self._key, self._context = kind, folder, key, context
        self.place = folder / f"{kind.name}-{derived_key(key, 'name', *context).hex()[:16]}"

    def read(self) -> _Content:
        """Return what is kept; raise _Unsound unless it carries the seal of this very artifact and is whole."""
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
        """Write it with its seal, whole or not at all; leave what another process has kept since."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with suppress(ReleaseExists), staged_folder(self.place, expected_bytes=room) as staged:
            self._kind.write(staged, made)
            staged.write(_SEAL, self._seal(staged.read(self._kind.vouching)))

    def set_aside(self) -> bool:
        """Remove what is unsound; return whether there was anything left to remove."""
        aside = self._folder / f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        # Looked at again while nobody else may remove: another process may have made it anew by now.
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
