"""One file that a command writes: new, never over another."""

from pathlib import Path

from tabulary.errors import ReleaseError, ReleaseExists


def check_new(path: Path, state: str) -> None:
    """Refuse a path that is taken or has no folder, before anything is done; `state` says that nothing was."""
    if path.exists():
        raise ReleaseExists(
            f"--output {path} is already there, and what was published is never overwritten. Choose another name. "
            f"{state}"
        )
    if not path.absolute().parent.is_dir():
        raise ReleaseError(f"--output {path}: its folder is not there. Make it first. {state}")


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise ReleaseExists(f"--output {path} has appeared meanwhile, and was left as it is.") from None
    except OSError:
        raise ReleaseError(f"--output {path} cannot be written. Choose another place.") from None
