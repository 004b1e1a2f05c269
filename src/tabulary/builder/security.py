"""The checks of tokens, the limit on the size of requests, and the security headers of answers."""

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

# An answer of the API is data: it loads nothing, appears in no frame, and only pages of this service may use it. A page
# that needs more sets its own headers, and these take precedence.
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
    # Nobody stores an answer unless the answer itself allows it.
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
# FastAPI uses it only for the description of the API; the gate reads the header itself.
_Shown = Annotated[HTTPAuthorizationCredentials | None, Security(_SCHEME)]


def protect(app: FastAPI, service: "Service") -> None:
    """Add the checks of the service to its application. Checks that are added later run earlier.

    From the outside in: the security headers, the host names, the count of requests, the limit on their number, the
    limit on their size.
    """
    limits = service.limits
    state = service.state
    app.state.gate = None
    if state is not None:
        throttle = Throttle(limits.requests_a_minute, burst=limits.burst)
        app.state.gate = Gate(state.tokens, throttle, Waits(), Failures(state.log))
    app.add_middleware(BodyLimit, most=limits.body_bytes)
    app.add_middleware(RateLimit, throttle=Throttle(limits.requests_a_minute, burst=limits.burst))
    if state is not None:
        app.add_middleware(CountRequests, counter=state.counter, datasets=service.datasets)
    app.add_middleware(AllowedHosts, hosts=service.hosts)
    app.add_middleware(SecurityHeaders)


class Gate:
    """Checks the token of a request.

    The gate slows down guesses: after an invalid token, all requests with a token from that address must wait, twice as
    long each time. Requests without a token do not wait. The gate checks all guesses of the same moment, but the limit
    on requests limits their number.
    """

    def __init__(self, tokens: Tokens, throttle: Throttle, waits: Waits, failures: Failures) -> None:
        self._tokens = tokens
        self._throttle = throttle
        self._waits = waits
        self._failures = failures
        # Its own threads: a state that hangs must not block the threads that make tables.
        self._threads = CapacityLimiter(_LOOKING_AT_ONCE)

    async def token_of(self, request: Request) -> Token | None:
        """Return the token of a request, None if it has none; refuse an invalid one."""
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
        """Return the token with this text; refuse an invalid one, and slow down an address that guesses."""
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
        # An owner of an expired token does not guess, so others at the same address need not wait.
        if token is None or not self._tokens.is_good(token):
            await to_thread.run_sync(self._failures.note, token, address, limiter=self._threads)
            raise _unauthorized(
                "This token is not known, or it has expired or was revoked. Ask the custodian.", failed=True
            )
        # One token counts as one client, even from many addresses.
        refuse_too_often(self._throttle, f"token {token.id}")
        return token


async def optional_caller(request: Request, shown: _Shown = None) -> Token | None:
    """Return the token of a public request; None without one.

    Public requests are answered even while the state does not answer; the caller is then unknown. So this never decides
    whether a question is paid for: use `analyst` for that.
    """
    try:
        return await _token_of(request)
    except ServiceError:
        return None


async def analyst(request: Request, shown: _Shown = None) -> Token:
    """Return the token of an analyst, whose `account` pays; refuse anyone else."""
    return await _in_the_role(request, Role.analyst)


async def custodian(request: Request, shown: _Shown = None) -> Token:
    """Return the token of a custodian; refuse anyone else."""
    return await _in_the_role(request, Role.custodian)


async def _in_the_role(request: Request, role: Role) -> Token:
    token = await _token_of(request)
    if token is None:
        raise _unauthorized(f"This needs a token of the role {role}.")
    if token.role is not role:
        raise HTTPProblem(
            403, "forbidden", f"This needs a token of the role {role}, and yours is of another."
        )
    return token


async def _token_of(request: Request) -> Token | None:
    # Without a state there are no tokens, and a service of releases asks nobody for one.
    gate: Gate | None = request.app.state.gate
    return None if gate is None else await gate.token_of(request)


def _unauthorized(detail: str, *, failed: bool = False) -> HTTPProblem:
    # RFC 6750: without a token, the answer only says how to send one; with a bad token, it says that the token is bad.
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
    """Pure ASGI: answers a request of more than `most` bytes with 413, before any other code reads it.

    No endpoint reads the body of a GET, and the server stops reading a body that no endpoint reads.
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
                # The rest of the body stays unread, so the connection cannot be used again.
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
        """Return the body, or enough of it to see that it is too large; None if the caller has left."""
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
    # Do not parse more digits than a real length has: that alone would take a while.
    return int(declared[0][:20]) if declared else 0
