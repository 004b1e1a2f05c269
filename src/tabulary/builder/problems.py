"""Every error of the service as `application/problem+json` (RFC 9457), and who may read which part.

A caller reads the message of a `PublicError` about the question, and a fixed sentence for every other error. The log
gets the kind of an unexpected error and its place in the code, never its message, which may hold the value of a record.
"""

import json
import logging
import re
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tabulary.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidDomain,
    InvalidNoise,
    InvalidPlan,
    InvalidPrivacy,
    InvalidTable,
    InvalidWorkload,
    LedgerError,
    NotCertified,
    PublicError,
    ServiceError,
    TableRefused,
    TooManyCells,
    UnknownDataset,
    UnknownMargin,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5
"""The seconds that a caller should wait if the ledger or the state does not answer."""

_LOG = logging.getLogger("tabulary.builder")

# Errors about the question: the caller reads their message.
_QUESTION: dict[type[PublicError], int] = {
    UnknownDataset: 404,
    UnknownMargin: 404,
    InvalidDomain: 422,
    InvalidWorkload: 422,
    InvalidTable: 422,
    InvalidArgument: 422,
    InvalidPlan: 422,
    InvalidPrivacy: 422,
    InvalidNoise: 422,
    NotCertified: 422,
    TableRefused: 403,
    TooManyCells: 403,
    BudgetExceeded: 403,
}
# Errors about the service: their messages name files and servers, so only the custodian's log gets them.
_SERVICE: dict[type[PublicError], str] = {
    LedgerError: "The ledger does not answer, and without a debit nothing is measured. Nothing was spent that is not "
    "in the ledger. Ask again later.",
    ServiceError: "The service cannot answer at the moment. Ask again later.",
}
_SENTENCES = {
    400: "The body of the request cannot be read. Nothing was counted.",
    404: "There is nothing at this address. The description of all addresses is at /api/openapi.json.",
    405: "This address does not take that method. The header Allow names those that it takes.",
    500: "The service could not answer. The custodian's log names the place; nothing of the data is told here.",
}
# The messages of type checks quote no value from the request, except for these few kinds.
_QUOTING = frozenset({"value_error", "assertion_error", "union_tag_invalid", "json_invalid"})
_LONGEST_DETAIL = 2_000
_LONGEST_NAME = 80


class HTTPProblem(HTTPException):
    """A problem as the answer to a request: a status, the name of its kind, and a sentence that anyone may read.

    >>> HTTPProblem(415, "unsupported-media-type", "Send JSON.").detail
    'Send JSON.'
    """

    def __init__(self, status: int, name: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.name = name


def problem(
    path: str, status: int, name: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a problem as a response: `type` names its kind, `instance` is the path of the request.

    >>> json.loads(problem("/api/datasets/x", 404, "unknown-dataset", "There is none.").body)["type"]
    'unknown-dataset'
    """
    document = {
        "type": name,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]} …",
        "instance": path,
    }
    # ASCII, because the path may hold half a character, which no encoding accepts.
    body = json.dumps(document).encode()
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Make every error of the application a problem."""
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(PublicError, _public_problem)


class Unexpected:
    """Pure ASGI: answers an unexpected error with a problem that reveals nothing, and logs its kind and place.

    It surrounds everything that may read a record, and is inside the checks that every request passes. The server would
    log an error that reached it together with its message.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            # The caller has left.
            return
        except Exception as error:
            _LOG.error("a request failed: %s at %s", type(error).__name__, place_of(error))
            if started:
                # Break the connection, so that the caller sees that the body is not complete.
                raise RuntimeError("an answer was cut short") from None
            await problem(_path(scope), 500, "unexpected", _SENTENCES[500])(scope, receive, send)


def place_of(error: BaseException) -> str:
    """Return the place of an error in the code, as `file:line`, without its message.

    >>> try:
    ...     int("seven")
    ... except ValueError as error:
    ...     place_of(error)
    '<doctest ...>:2'
    """
    frames = list(traceback.extract_tb(error.__traceback__))
    own = [frame for frame in frames if "tabulary" in Path(frame.filename).parts] or frames
    if not own:
        return "an unknown place"
    # The path inside the package: nobody needs to know where the service is installed.
    parts = Path(own[-1].filename).parts
    start = max((i for i, part in enumerate(parts) if part == "tabulary"), default=len(parts) - 1)
    return f"{'/'.join(parts[start:])}:{own[-1].lineno}"


def kind_of(error: type[Exception]) -> str:
    """Return the name of a kind of error as a problem's type.

    >>> kind_of(BudgetExceeded)
    'budget-exceeded'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", error.__name__).lower()


def _path(scope: Scope) -> str:
    return str(scope.get("path", ""))


async def _public_problem(request: Request, error: Exception) -> Response:
    for kind in type(error).__mro__:
        if kind in _QUESTION:
            return problem(request.url.path, _QUESTION[kind], kind_of(type(error)), str(error))
        if kind in _SERVICE:
            _LOG.error("%s: %s", type(error).__name__, error)
            waiting = {"Retry-After": str(RETRY_AFTER)}
            return problem(request.url.path, 503, kind_of(type(error)), _SERVICE[kind], waiting)
    # Public, but not about a caller's request: as unexpected as any other error.
    raise error


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, status = request.url.path, error.status_code
    if isinstance(error, HTTPProblem):
        return problem(path, status, error.name, str(error.detail), error.headers)
    phrase = HTTPStatus(status).phrase
    sentence = _SENTENCES.get(status, f"The request cannot be served: {phrase.lower()}.")
    headers = dict(error.headers or {})
    if status == 405:
        headers["Allow"] = ", ".join(_allowed(request))
    return problem(path, status, phrase.lower().replace(" ", "-"), sentence, headers)


async def _validation_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    said = "; ".join(dict.fromkeys(_complaint(found) for found in error.errors()[:12]))
    return problem(request.url.path, 422, "invalid-request", f"{said}. Nothing was counted.")


def _complaint(found: Mapping[str, Any]) -> str:
    """Return the error in one part of a request: the name of the part, never its value."""
    place, *names = found["loc"]
    name = ".".join(str(part) for part in names)[:_LONGEST_NAME]
    where = f"{place} parameter {name!r}" if place != "body" else f"field {name!r} of the body"
    if found["type"] == "extra_forbidden":
        return f"the {where} is not known"
    if found["type"] == "json_invalid" or not names:
        return "the body is not the JSON object that is asked for"
    said = "it is not valid" if found["type"] in _QUOTING else str(found["msg"])
    return f"the {where}: {said[0].lower()}{said[1:]}"


def _allowed(request: Request) -> list[str]:
    """Return the methods that the address of a request accepts."""
    # Several routes share an address, but the router names the methods of only one.
    methods = [
        method
        for method in ("GET", "POST", "DELETE")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.router.routes
        )
    ]
    return ["GET", "HEAD", *methods[1:]] if "GET" in methods else methods
