"""Written answers: the bytes of a response, kept in the cache of the service."""

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from tabulary.core.cache import Cache, CacheSection
from tabulary.release.exchange import document_bytes

# The memory of a body besides its bytes: the headers, the tag, the name of a file.
_HEADERS = 512


@dataclass(frozen=True)
class Body:
    """A written answer: its bytes, their media type, and the tag by which a caller recognises them.

    `signed` are the headers with the signer and the signature.

    >>> Body.of(b"{}", "application/json").tag
    '"44136fa355b3678a1146ad16f7e8649e"'
    """

    content: bytes
    media_type: str
    tag: str
    file_name: str | None = None
    signed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: bytes, media_type: str, file_name: str | None = None) -> "Body":
        """Return the body, tagged with a digest of its bytes: the same bytes have the same tag on every worker."""
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return cls(content, media_type, tag, file_name)

    @classmethod
    def json(cls, document: Mapping[str, object]) -> "Body":
        """Return the body of a JSON document."""
        return cls.of(document_bytes(document), "application/json")

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


class BodyQuestion(Protocol):
    """A parsed question whose answer is a body. Questions with the same `key` have the same body for every payer."""

    @property
    def key(self) -> Hashable:
        """Everything that the body depends on: the dataset, its version, and the whole question."""
        ...

    @property
    def payer(self) -> str | None:
        """The account that pays for the answer; None if it is free."""
        ...

    @property
    def is_test(self) -> bool:
        """Whether a hypothesis is tested: tests have their own threads."""
        ...

    def body(self) -> Body:
        """Return the answer, written. May count, may debit, may take seconds."""
        ...


class Bodies:
    """The bodies that a worker keeps, in a section of its cache. Safe from several threads."""

    def __init__(self, cache: Cache) -> None:
        self._held: CacheSection[Hashable, Body] = CacheSection(
            cache, bytes_of=lambda body: len(body.content) + _HEADERS
        )

    def find(self, key: Hashable) -> Body | None:
        """Return the stored body of this key, if there is one."""
        return self._held.find(key)

    def made(self, question: BodyQuestion) -> Body:
        """Return the body of a question: the stored one, or a new one, which is then stored.

        Two callers at the same time both make it: a refusal of one payer must not reach the other.
        """
        if (kept := self.find(question.key)) is not None:
            return kept
        body = question.body()
        self._held.put(question.key, body)
        return body

    def clear(self) -> None:
        """Forget all bodies."""
        self._held.clear()


def _tags(header: str) -> list[str]:
    """Return the tags of an If-None-Match header; a weak one names the same bytes."""
    return [tag.strip().removeprefix("W/") for tag in header.split(",")]
