"""The connection to a table builder: HTTP with the standard library, limited in time and size, to one host only."""

import http.client
import ipaddress
import json
import math
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

from tabulary.client.problems import problem_error
from tabulary.errors import ServiceUnreachable
from tabulary.release import PublicKey
from tabulary.release.exchange import SIGNATURE_HEADER, is_signed

MOST_BYTES = 1 << 28
"""The size limit of an answer. A table of ten million cells is smaller."""

MOST_WAITS = 3
"""How often a question is asked again when the service says that it is busy."""

_BUSY = (429, 503)
_PIECE = 1 << 16
_MOST_CONTAINERS = 1_000_000
_LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Transport:
    """One table builder's address, and the token, which is sent only there.

    The token is sent over TLS or to this machine. `insecure` also sends it over plain HTTP, where everybody on the way
    can read and use it. With a `key`, only tables that this key has signed are accepted. Redirects are not followed:
    the caller must choose another host explicitly.

    >>> Transport("http://127.0.0.1:8000", token="tab_1_secret")
    Transport(url='http://127.0.0.1:8000', timeout=30.0, insecure=False)
    """

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    insecure: bool = False
    key: PublicKey | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = _parts(self.url)
        if parts is None:
            raise ServiceUnreachable(
                "the address of a table builder is like 'https://tables.example.org' or 'http://127.0.0.1:8000', "
                f"without a user, a query or a fragment, not {_shown(self.url)}. Nothing was asked."
            )
        # Other characters could end this header and start another.
        if self.token is not None and not _is_plain(self.token):
            raise ServiceUnreachable("this is not a token that a table builder gives out. Nothing was asked.")
        if (
            isinstance(self.timeout, bool)
            or not isinstance(self.timeout, int | float)
            or not 0 < self.timeout < math.inf
        ):
            raise ServiceUnreachable(f"the timeout is a positive number of seconds, not {self.timeout!r}.")
        if (
            self.token is not None
            and parts.scheme == "http"
            and not (self.insecure or _is_loopback(parts.hostname))
        ):
            raise ServiceUnreachable(
                f"a token would go to {self.url} in plain text, where everybody on the way can read it. Nothing was "
                "asked. Use https, or say insecure=True where the way is known to be safe."
            )
        object.__setattr__(self, "url", self.url.rstrip("/"))

    def get(self, path: Iterable[str], query: Iterable[tuple[str, str]] = ()) -> Any:
        """Return the JSON at a path, given by its segments; raise the error that the service answers."""
        asked = urllib.parse.urlencode(list(query))
        return self._asked(f"{self._address(path)}{'?' if asked else ''}{asked}", None)

    def post(self, path: Iterable[str], body: Mapping[str, object], *, signed: bool = False) -> Any:
        """Return the JSON that answers a question; raise the error that the service answers.

        If this transport has a key, it refuses an answer that should be `signed` and lacks that key's signature.
        """
        return self._asked(self._address(path), json.dumps(body).encode(), signed=signed)

    def _address(self, path: Iterable[str]) -> str:
        return "/".join([self.url, "api", *(urllib.parse.quote(segment, safe="") for segment in path)])

    def _asked(self, address: str, body: bytes | None, *, signed: bool = False) -> Any:
        """Ask, and ask again if the service says that it is busy. A repeated question costs nothing."""
        for attempt in range(MOST_WAITS + 1):
            status, headers, data = self._sent(address, body)
            wait = _seconds(headers.get("Retry-After")) if status in _BUSY else None
            if wait is None or wait > self.timeout or attempt == MOST_WAITS:
                break
            time.sleep(wait)
        if 300 <= status < 400:
            self._fail(
                f"redirects to {_shown(headers.get('Location'))}, and a redirect is not followed",
                "If you trust that address, connect to it",
            )
        kind = headers.get_content_type()
        if kind not in ("application/json", "application/problem+json"):
            self._fail(f"answers with {kind} and status {status}, as no table builder does")
        found = self._read(data)
        if kind == "application/problem+json" or status != 200:
            raise problem_error(self.url, status, found)
        if signed and self.key is not None and not is_signed(data, headers.get(SIGNATURE_HEADER), self.key):
            self._fail(
                f"sent a table that the key of {self.key} has not signed, and it was not used",
                "Compare the key with its owner's",
            )
        return found

    def _sent(self, address: str, body: bytes | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        request = urllib.request.Request(address, body, {"Accept": "application/json"})
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if self.token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        deadline = time.monotonic() + self.timeout
        try:
            with self._opener().open(request, timeout=self.timeout) as response:
                return response.status, response.headers, self._body(response, deadline)
        except TimeoutError:
            self._fail(f"did not answer within {self.timeout:g} seconds", "Ask again, or raise the timeout")
        except urllib.error.URLError as problem:
            if isinstance(problem.reason, TimeoutError):
                self._fail(
                    f"did not answer within {self.timeout:g} seconds", "Ask again, or raise the timeout"
                )
            self._fail(f"cannot be reached: {_reason(problem.reason)}")
        except (http.client.HTTPException, OSError) as problem:
            self._fail(f"broke off or answered in no known way: {_reason(problem)}", "Ask again")

    def _opener(self) -> urllib.request.OpenerDirector:
        """Return the opener of addresses: no redirects, cookies, files or FTP, and no proxy for loopback addresses."""
        opener = urllib.request.OpenerDirector()
        direct = _is_loopback(urllib.parse.urlsplit(self.url).hostname)
        for handler in (
            urllib.request.ProxyHandler({} if direct else None),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
        ):
            opener.add_handler(handler)
        return opener

    def _body(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        """Return the whole body; fail if it comes too slowly, never ends or is cut short."""
        pieces: list[bytes] = []
        length = 0
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            length += len(piece)
            if length > MOST_BYTES:
                self._fail(f"sent more than {MOST_BYTES:,} bytes", "Ask for a smaller table")
            if time.monotonic() > deadline:
                raise TimeoutError
        stated = response.headers.get("Content-Length")
        if stated is not None and stated != str(length):
            self._fail("sent an answer that was cut short", "Ask again")
        return b"".join(pieces)

    def _read(self, data: bytes) -> Any:
        # An empty list takes a few bytes in JSON and a hundred in memory.
        if data.count(b"[") + data.count(b"{") > _MOST_CONTAINERS:
            self._fail(
                "sent an answer of a form in which no table builder answers", "Ask for a smaller table"
            )
        try:
            # JSON has no NaN and no infinity, but Python reads them.
            return json.loads(data.decode("utf-8"), parse_constant=_no_number)
        except (ValueError, RecursionError):
            self._fail("sent an answer that is not the JSON it claims to be", "Ask again")

    def _fail(self, what: str, remedy: str = "Check that a table builder runs at this address") -> NoReturn:
        raise ServiceUnreachable(f"{self.url} {what}. {remedy}.") from None


def _parts(url: object) -> urllib.parse.SplitResult | None:
    """Return the parts of a valid table builder address; None for any other address."""
    if not isinstance(url, str) or not _is_plain(url):
        return None
    try:
        parts = urllib.parse.urlsplit(url)
        # `urlsplit` checks a port only when it is read.
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if known and "@" not in parts.netloc and not parts.query and not parts.fragment else None


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _seconds(stated: str | None) -> float | None:
    """Return the waiting time of `Retry-After`, given as seconds or as a date; None without one."""
    if stated is None:
        return None
    if stated.isascii() and stated.isdigit():
        return float(stated)
    try:
        return max(0.0, parsedate_to_datetime(stated).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _reason(problem: object) -> str:
    return _shown(getattr(problem, "strerror", None) or str(problem) or type(problem).__name__)


def _shown(text: object) -> str:
    return repr(text if not isinstance(text, str) else text[:_LONGEST_SHOWN])


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)
