"""Answers that were written once: kept as bytes within a bound, and made once however many ask at a time."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.working import Asker, Pool

# What a body costs besides its bytes, so that a million empty ones are bounded too.
_OVERHEAD = 1_024


@dataclass(frozen=True)
class Body:
    """A written answer: its bytes, what they are, and the tag by which a caller knows them again.

    `signed` are the headers that say who signed the bytes, and the signature.

    >>> Body.of(b"{}", "application/json").tag
    '"44136fa355b3678a1146ad16f7e8649e"'
    """

    content: bytes
    media_type: str
    tag: str
    file_name: str | None = None
    signed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        content: bytes,
        media_type: str,
        file_name: str | None = None,
        signed: Mapping[str, str] | None = None,
    ) -> "Body":
        """Return the body, tagged with a digest of its bytes: the same bytes, the same tag on every worker."""
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return cls(content, media_type, tag, file_name, signed or {})

    def response(self, request: Request, *, cache_control: str, vary: str) -> Response:
        """Return the answer to a request: the bytes, or 304 if the caller has them already."""
        headers = {
            "ETag": self.tag,
            "Cache-Control": cache_control,
            **self.signed,
            **({"Vary": vary} if vary else {}),
        }
        known = request.headers.get("if-none-match")
        if (
            request.method == "GET"
            and known is not None
            and (known.strip() == "*" or self.tag in _tags(known))
        ):
            return Response(status_code=304, headers=headers)
        if self.file_name is not None:
            headers["Content-Disposition"] = f'attachment; filename="{self.file_name}"'
        return Response(self.content, headers=headers, media_type=self.media_type)


class Bodies:
    """The bodies of a worker: the least recently asked for are forgotten once they fill more than `most_bytes`.

    Safe from several threads and event loops. A body that several ask for at once is made once, in a thread of the pool
    that is for its kind, so that the loop goes on serving those that are kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held = 0
        self._bodies: OrderedDict[Hashable, Body] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """How many bytes are kept now."""
        return self._held

    def find(self, key: Hashable) -> Body | None:
        """Return the body if it is kept."""
        with self._lock:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
            return body

    async def made(
        self, key: Hashable, make: Callable[[], Body], pool: Pool, asker: Asker, *, by: str | None = None
    ) -> Body:
        """Return the kept body, or make it; those who ask meanwhile with the same `by` wait for the same making.

        `by` names who pays: one asker's refusal is not another's.
        """
        if (body := self.find(key)) is not None:
            return body
        return await pool.done((key, by), lambda: self._make(key, make), asker)

    def clear(self) -> None:
        """Forget all bodies."""
        with self._lock:
            self._bodies.clear()
            self._held = 0

    def _make(self, key: Hashable, make: Callable[[], Body]) -> Body:
        # Somebody else's may have been kept since it was looked for.
        if (body := self.find(key)) is not None:
            return body
        body = make()
        self._keep(key, body)
        return body

    def _keep(self, key: Hashable, body: Body) -> None:
        size = len(body.content) + _OVERHEAD
        with self._lock:
            if key in self._bodies or size > self._most:
                return
            self._bodies[key] = body
            self._held += size
            while self._held > self._most:
                _, oldest = self._bodies.popitem(last=False)
                self._held -= len(oldest.content) + _OVERHEAD


def _tags(header: str) -> list[str]:
    """Return the tags of an If-None-Match header; a weak one names the same bytes."""
    return [tag.strip().removeprefix("W/") for tag in header.split(",")]
