"""Who may come in, how much they may carry, and what a browser is told about the answers."""

from typing import TYPE_CHECKING, Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tabulary.builder.counting import CALLER, CountRequests
from tabulary.builder.failures import Failures
from tabulary.builder.hosts import AllowedHosts
from tabulary.builder.problems import HTTPProblem, problem
from tabulary.builder.state import Role, Token
from tabulary.builder.state.tokens import Tokens
from tabulary.builder.throttle import (
    RateLimit,
    Throttle,
    Waits,
    address_of,
    refuse_too_often,
    retry_after,
)
from tabulary.errors import ServiceError

if TYPE_CHECKING:
    from tabulary.builder.service import Service

# An answer of the API is data: it loads nothing, is shown in no frame, and is for the pages of this service alone. A
# page that needs more says so itself, and what an answer says stands.
_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"permissions-policy",
        b"accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), "
        b"microphone=(), midi=(), payment=(), usb=()",
    ),
    # What does not say that it may be kept is not kept.
    (b"cache-control", b"no-store"),
)
_HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")

_LOOKING_AT_ONCE = 8

_SCHEME = HTTPBearer(
    scheme_name="token",
    bearerFormat="tab_…",
    description="The token that the custodian gave you.",
    auto_error=False,
)
# FastAPI reads it for the description of the API; the header itself is read by the gate.
_Shown = Annotated[HTTPAuthorizationCredentials | None, Security(_SCHEME)]


def protect(app: FastAPI, service: "Service") -> None:
    """Add the checks of the service to its application; what is added later runs before them.

    From the outside in: the security headers, the names of the service, the count of requests, the limit on how often,
    the limit on how much.
    """
    limits = service.limits
    app.state.gate = Gate(
        service.state.tokens,
        Throttle(limits.requests_a_minute, burst=limits.burst),
        Waits(),
        Failures(service.state.log),
    )
    app.add_middleware(BodyLimit, most=limits.body_bytes)
    app.add_middleware(RateLimit, throttle=Throttle(limits.requests_a_minute, burst=limits.burst))
    app.add_middleware(CountRequests, counter=service.state.counter, datasets=service.datasets)
    app.add_middleware(AllowedHosts, hosts=service.hosts)
    app.add_middleware(SecurityHeaders)


class Gate:
    """Looks at the token that a request shows.

    Guesses are slowed: after a token that is not good, all that comes with a token from that address waits, twice as
    long each time. What comes without one does not. Guesses made at the same moment are all looked at, no more of
    them than the limit on requests lets through.
    """

    def __init__(self, tokens: Tokens, throttle: Throttle, waits: Waits, failures: Failures) -> None:
        self._tokens = tokens
        self._throttle = throttle
        self._waits = waits
        self._failures = failures
        # Threads of its own: a state that hangs must not take those that make tables.
        self._threads = CapacityLimiter(_LOOKING_AT_ONCE)

    async def token_of(self, request: Request) -> Token | None:
        """Return the token that a request shows, None if it shows none; refuse one that is not good."""
        shown = request.headers.get("authorization")
        if shown is None:
            return None
        if CALLER not in request.scope:
            scheme, _, text = shown.partition(" ")
            if scheme.lower() != "bearer":
                raise _unauthorized("Show the token as `Authorization: Bearer TOKEN`.")
            request.scope[CALLER] = await self.look_at(text, address_of(request.scope))
        found: Token = request.scope[CALLER]
        return found

    async def look_at(self, text: str, address: str) -> Token:
        """Return the token whose text came from an address; refuse one that is not good, and slow down who guesses."""
        if wait := self._waits.left(address):
            raise HTTPProblem(
                429,
                "too-many-failures",
                "Tokens that are not good came from here, so no other is looked at for a while.",
                retry_after(wait),
            )
        token = await to_thread.run_sync(self._tokens.known, text.strip(), limiter=self._threads)
        if token is None:
            self._waits.failed(address)
        # Whoever holds a token that has expired guesses nothing, and nobody beside them has to wait for it.
        if token is None or not self._tokens.is_good(token):
            await to_thread.run_sync(self._failures.note, token, address, limiter=self._threads)
            raise _unauthorized(
                "This token is not known, or it has expired or was revoked. Ask the custodian.", failed=True
            )
        # One token that is used from many addresses is one client all the same.
        refuse_too_often(self._throttle, f"token {token.id}")
        return token


async def optional_caller(request: Request, shown: _Shown = None) -> Token | None:
    """Return whose token a request shows, for what anyone may ask: None without one.

    What anyone may ask is answered even while the state does not answer, and then to nobody in particular. So this
    never decides whether a question is paid for: that takes `analyst`.
    """
    try:
        return await _gate(request).token_of(request)
    except ServiceError:
        return None


async def analyst(request: Request, shown: _Shown = None) -> Token:
    """Return the token of an analyst, whose `account` pays; refuse anyone else."""
    return await _in_the_role(request, Role.analyst)


async def custodian(request: Request, shown: _Shown = None) -> Token:
    """Return the token of a custodian; refuse anyone else."""
    return await _in_the_role(request, Role.custodian)


async def _in_the_role(request: Request, role: Role) -> Token:
    token = await _gate(request).token_of(request)
    if token is None:
        raise _unauthorized(f"This needs a token of the role {role}.")
    if token.role is not role:
        raise HTTPProblem(
            403, "forbidden", f"This needs a token of the role {role}, and yours is of another."
        )
    return token


def _gate(request: Request) -> Gate:
    gate: Gate = request.app.state.gate
    return gate


def _unauthorized(detail: str, *, failed: bool = False) -> HTTPProblem:
    # RFC 6750: a request that shows nothing is only told how; one that shows a bad token is told that it is bad.
    challenge = 'Bearer realm="tabulary"' + (', error="invalid_token"' if failed else "")
    return HTTPProblem(401, "unauthorized", detail, {"WWW-Authenticate": challenge})


class SecurityHeaders:
    """Pure ASGI: adds to every answer the security headers that it does not have yet."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        wanted = (*_HEADERS, _HTTPS_ONLY) if scope.get("scheme") == "https" else _HEADERS

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [header for header in wanted if header[0] not in given]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self.app(scope, receive, adding)


class BodyLimit:
    """Pure ASGI: answers a request that carries more than `most` bytes with 413, before anything looks at it.

    No endpoint reads the body of a GET, and the server stops reading one that nobody reads.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        declared = _declared_length(scope)
        body = await self._read(receive) if declared <= self.most else b""
        if body is None:
            return
        if max(declared, len(body)) > self.most:
            refusal = problem(
                scope["path"],
                413,
                "too-large",
                f"The body of a request may have at most {self.most:,} bytes. Nothing was asked, nothing was spent.",
                # What is left of the body is not read, so that the connection is of no more use.
                {"Connection": "close"},
            )
            await refusal(scope, receive, send)
            return
        whole: Message | None = {"type": "http.request", "body": body, "more_body": False}

        async def again() -> Message:
            nonlocal whole
            message, whole = whole, None
            return await receive() if message is None else message

        await self.app(scope, again, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body, or as much of it as shows that it is too large; None if the caller is gone."""
        body = bytearray()
        more = True
        while more and len(body) <= self.most:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return bytes(body)


def _declared_length(scope: Scope) -> int:
    declared = [value for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    # More digits than any length has are not read: that alone would take a while.
    return int(declared[0][:20]) if declared else 0
