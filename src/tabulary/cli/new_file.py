"""Write one new file for a command; never overwrite a file."""

from pathlib import Path

from tabulary.errors import ReleaseError, ReleaseExists
from tabulary.release.folder import refuse_inside_release


def check_new(path: Path, state: str, *, option: str = "--output") -> None:
    """Refuse a path that exists, has no folder or is inside a release, before any work starts.

    `state` says that nothing was done, and `option` is what names the path on the command line.
    """
    if path.exists():
        raise ReleaseExists(
            f"{option} {path} already exists, and published files are never overwritten. Choose another "
            f"name. {state}"
        )
    if not path.absolute().parent.is_dir():
        raise ReleaseError(f"{option} {path}: its folder does not exist. Make it first. {state}")
    refuse_inside_release(path, state)


def write_new(path: Path, data: bytes, *, option: str = "--output") -> None:
    """Write a file that does not exist yet; `option` is what names it on the command line."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise ReleaseExists(
            f"{option} {path} was created by someone else in the meantime. It was not changed."
        ) from None
    except OSError:
        raise ReleaseError(f"{option} {path} cannot be written. Choose another place.") from None
