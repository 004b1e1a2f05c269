"""Problems as pages: a program reads JSON; a person reads sentences and a link to go on."""

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tabulary.builder.pages.rendering import MEDIA_TYPE, PAGE_POLICY, Site
from tabulary.builder.problems import MEDIA_TYPE as PROBLEM

_HEADINGS = {
    400: "This cannot be answered",
    401: "Please sign in",
    403: "This cannot be given",
    404: "There is nothing here",
    405: "This cannot be done here",
    413: "That is too large",
    422: "This cannot be asked",
    429: "Too many requests",
    503: "The service cannot answer now",
}
_HEADING = "Something went wrong"
_REPLACED = (b"content-type", b"content-length", b"content-security-policy")


class ProblemPages:
    """Pure ASGI: shows a problem as a page to callers who ask for HTML, at every address outside the API.

    It surrounds everything that may refuse, so that no refusal reaches a browser as JSON.
    """

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["path"].startswith("/api/") or not _wants_html(scope):
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        said = bytearray()

        async def shown(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_problem(message):
                start = message
            elif start is None:
                await send(message)
            else:
                said.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    await self._send_page(scope, start, json.loads(said), send)

        await self.app(scope, receive, shown)

    async def _send_page(self, scope: Scope, start: Message, problem: dict[str, Any], send: Send) -> None:
        status = int(problem["status"])
        page = self.site.html(
            "error.html.j2",
            heading=_HEADINGS.get(status, _HEADING),
            detail=_sentence(problem["detail"]),
            status=status,
            back=_way_back(scope, status),
        )
        kept = [header for header in start["headers"] if header[0].lower() not in _REPLACED]
        written = {
            b"content-type": MEDIA_TYPE.encode(),
            b"content-length": str(len(page)).encode(),
            b"content-security-policy": PAGE_POLICY.encode(),
            b"vary": b"Accept",
        }
        await send({**start, "headers": [*kept, *written.items()]})
        await send({"type": "http.response.body", "body": page})


def _wants_html(scope: Scope) -> bool:
    # Browsers name HTML; programs that accept anything do not.
    return any(name == b"accept" and b"text/html" in value.lower() for name, value in scope["headers"])


def _is_problem(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value == PROBLEM.encode() for name, value in start["headers"]
    )


def _sentence(detail: str) -> str:
    return detail[:1].upper() + detail[1:]


def _way_back(scope: Scope, status: int) -> tuple[str, str]:
    """Return the address of the next page for the reader, and the text of the link."""
    chosen = bool(scope["query_string"]) and status != 404
    match scope["path"].split("/")[1:]:
        # Do not pass on a query that the page of the choices cannot read either.
        case ["datasets", _, "table"] if chosen and status != 422:
            place = scope["path"].removesuffix("/table")
            return f"{place}?{scope['query_string'].decode('latin-1')}", "Change the choices"
        case ["datasets", name, *_] if chosen:
            return f"/datasets/{name}", "Choose anew"
        case ["custodian", *_]:
            return "/custodian", "To the custodian's pages"
        case _:
            return "/", "To the datasets"
