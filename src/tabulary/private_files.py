"""Files that only their owner may read: made once, never replaced, and refused where others can read them."""

import os
import stat
from pathlib import Path

from tabulary.errors import PublicError

_LONGEST = 1 << 16


def create_private_file(path: Path, content: bytes, what: str, refused: type[PublicError]) -> None:
    """Write a new file of mode 0600 and see it and its folder to the disk; refuse a path that is taken."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise refused(f"{str(path)!r} already exists, and {what} is never overwritten.") from None
    except OSError as problem:
        raise refused(f"no key can be created at {str(path)!r}: {problem.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as problem:
        # Half a key would be refused wherever it is used.
        path.unlink(missing_ok=True)
        raise refused(f"no key can be created at {str(path)!r}: {problem.strerror}.") from None


def read_private_file(path: Path, what: str, refused: type[PublicError]) -> bytes:
    """Return the content of a file that nobody but its owner may read or change; refuse any other.

    What it refuses it names by the path; of what stands in it, nothing is ever said.
    """
    try:
        # One open file is both looked at and read, so that what was checked is what is used.
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(_LONGEST)
    except FileNotFoundError:
        raise refused(f"there is no {what.removeprefix('the ')} {str(path)!r}. Nothing was opened.") from None
    except OSError as problem:
        raise refused(
            f"{what} {str(path)!r} cannot be read: {problem.strerror}. Nothing was opened."
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise refused(
            f"{what} {str(path)!r} may be read or changed by others than its owner. Nothing was opened. Make it "
            f"private: chmod 600 {path}"
        )
    return content
