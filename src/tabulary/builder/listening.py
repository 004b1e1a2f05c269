"""Where a table builder listens: its address, its host names and its number of processes."""

from dataclasses import dataclass

from tabulary.builder.hosts import Hosts
from tabulary.errors import InvalidSettings

MOST_WORKERS = 64


@dataclass(frozen=True)
class Listening:
    """The address of a table builder and its number of processes.

    `proxy` means that callers come through a reverse proxy on this machine. The service then reads the caller's address
    from the proxy's X-Forwarded-For, and ignores that header from anyone else. `named` are its public host names.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    proxy: bool = False
    named: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.host or any(c.isspace() for c in self.host):
            raise InvalidSettings(f"the host is an address such as 127.0.0.1, not {self.host!r}.")
        if not 0 <= self.port <= 65535:
            raise InvalidSettings(
                f"the port is a number from 0, any that is free, to 65535, not {self.port}."
            )
        if not 1 <= self.workers <= MOST_WORKERS:
            raise InvalidSettings(f"there may be 1 to {MOST_WORKERS} workers, not {self.workers}.")
        # Refuses an invalid name.
        Hosts(self.named, self.host)

    @property
    def hosts(self) -> Hosts:
        """The names that a request may give this service."""
        return Hosts(self.named, self.host)
