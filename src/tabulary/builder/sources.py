"""What `tabulary serve` can open: a service file, or release folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

from tabulary.builder.listening import Listening
from tabulary.builder.release_folders import ReleaseFolders
from tabulary.builder.service import Service, ServiceLimits
from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument


class ServiceSource(Protocol):
    """A table builder that has not been opened."""

    @property
    def title(self) -> str:
        """The title of the service."""
        ...

    @property
    def listening(self) -> Listening:
        """Where it listens."""
        ...

    @property
    def limits(self) -> ServiceLimits:
        """Its limits on requests."""
        ...

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file or the folders, by which another process opens the same service."""
        ...

    def at(self, listening: Listening) -> Self:
        """Return the same service, to be served elsewhere."""
        ...

    def open(self, *, progress: Progress | None = None) -> Service:
        """Return the service, ready to answer."""
        ...


def read_source(paths: Sequence[Path]) -> ServiceSource:
    """Return the service of one service file or of release folders. Opens neither records nor folders."""
    if missing := [path for path in paths if not path.exists()]:
        raise InvalidArgument(
            f"there is no service file and no release folder {str(missing[0])!r}. Nothing was opened. Check the path."
        )
    if all(path.is_dir() for path in paths):
        return ReleaseFolders.of(paths)
    if len(paths) > 1:
        raise InvalidArgument(
            "give one service file, or only release folders. Nothing was opened. To serve both together, name the "
            'folder in the service file: [dataset.NAME] with release = "FOLDER".'
        )
    # Imported here: only a service file needs the code that reads records.
    from tabulary.builder.configuration import read_service_file

    return read_service_file(paths[0])
