"""The host names of a service. A request with another name is refused: the name appears in links and citations."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from tabulary.builder.problems import problem
from tabulary.errors import InvalidSettings

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""The loopback names of this machine. They are always allowed, with any port."""

# A browser leaves out these ports: a name without a port means that name with one of them.
_USUAL_PORTS = ("", "80", "443")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_LONGEST = 300


@dataclass(frozen=True)
class Hosts:
    """The names that the header Host may hold: those in `named`, the loopback names, and the address `listening`.

    A name in `named` without a port is allowed without a port; a name with a port, with that port. Loopback names are
    allowed with any port, and so is `listening`, unless it means every address of the machine.

    >>> hosts = Hosts(("tables.example",))
    >>> [hosts.allow(name) for name in ("tables.example", "Tables.example:443", "localhost:8000", "[::1]:8000")]
    [True, True, True, True]
    >>> [hosts.allow(name) for name in ("tables.example:8443", "elsewhere.example", "tables.example.", "")]
    [False, False, False, False]
    """

    named: tuple[str, ...] = ()
    listening: str = "127.0.0.1"

    def __post_init__(self) -> None:
        names: tuple[Any, ...] = self.named
        for name in names:
            if not isinstance(name, str) or _split(name) is None:
                raise InvalidSettings(
                    f"hosts holds names such as 'tables.example' or 'tables.example:8443', not {name!r}. A name has "
                    "no scheme, no path and no '*'; an IPv6 address stands in brackets."
                )

    def allow(self, told: str) -> bool:
        """Return whether a request may use this host name."""
        found = _split(told)
        if found is None:
            return False
        name, port = found
        if name in LOOPBACK or name == _specific(self.listening):
            return True
        return any(
            name == own_name and (port == own_port or (not own_port and port in _USUAL_PORTS))
            for own_name, own_port in filter(None, map(_split, self.named))
        )


class AllowedHosts:
    """Pure ASGI: answers a request with a wrong host name with 400.

    The answer does not repeat the name. Only the header Host counts: X-Forwarded-Host is never trusted.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http":
            told = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if len(told) != 1 or not self.hosts.allow(told[0]):
                refusal = problem(
                    scope["path"],
                    400,
                    "unknown-host",
                    "This service is not called by that name. Nothing was asked, nothing was spent. Use the address "
                    "that its custodian gave you; the custodian names it under [server] hosts of the service file.",
                )
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _split(told: str) -> tuple[str, str] | None:
    """Return a name and its port, empty if it has none; None for an invalid text."""
    found = _HOST.fullmatch(told.lower()) if len(told) <= _LONGEST else None
    return None if found is None else (found["name"], found["port"] or "")


def _specific(address: str) -> str | None:
    """Return an address in the form of the header Host; None if it means every address of the machine."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address.lower()
    if known.is_unspecified:
        return None
    return f"[{known}]" if known.version == 6 else str(known)
