"""Signing in to pages: a token begins a session, a cookie names the session, and nobody else can send its forms.

Scripts cannot read the cookie. The browser sends it only from pages of this service and, if the service uses HTTPS,
only over HTTPS. The cookie opens pages and never the API, so a program's rights do not depend on a browser.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.counting import CALLER
from tabulary.builder.problems import HTTPProblem
from tabulary.builder.security import Gate
from tabulary.builder.state import Role, State, Token
from tabulary.builder.throttle import address_of

FORM_TOKEN = "form_token"
"""The hidden field of every form."""

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"

REFERRER_POLICY = {"Referrer-Policy": "same-origin"}
"""For a page with a form: under the policy of all other answers a browser would hide the origin of the form."""

_SESSION, _VISITOR = "tabulary-session", "tabulary-visitor"
# A form has only a few fields.
_MOST_FIELDS = 20
_LOOKING_AT_ONCE = 8
# The pages that a session is for. After signing in, a redirect goes only to these.
_PLACES = ("/custodian", "/datasets/")


@dataclass(frozen=True)
class SignedIn:
    """A person who signed in: their token, and the value that each of their forms needs in the field `FORM_TOKEN`."""

    token: Token
    form_token: str

    @property
    def is_custodian(self) -> bool:
        """Whether the custodian's pages are open to them."""
        return self.token.role is Role.custodian

    @property
    def payer(self) -> str | None:
        """The account that pays for an analyst's questions; None for a custodian."""
        return self.token.account


class SessionGate:
    """Checks the session of a request, begins sessions and ends them.

    A page that needs a session calls `signed_in`, and sends everyone else to `sign_in_url`. `form` reads a form that
    changes or spends something, and refuses one that does not come from a page of this session.
    """

    def __init__(self, state: State) -> None:
        self._sessions = state.sessions
        # Its own threads: a state that hangs must not block the threads that make tables.
        self._threads = CapacityLimiter(_LOOKING_AT_ONCE)

    async def signed_in(self, request: Request) -> SignedIn | None:
        """Return who signed in; None if nobody did, or if the session or the token has ended."""
        name = _cookie(request, _SESSION)
        if not name:
            return None
        token = await to_thread.run_sync(self._sessions.find, name, limiter=self._threads)
        if token is None:
            return None
        request.scope[CALLER] = token
        return SignedIn(token, form_token(name))

    async def sign_in(self, request: Request, text: str) -> tuple[Token, str]:
        """Return the token of this text and the name of a new session; refuse and slow down as the API does.

        The old session of the request ends, so its name does not help anyone who knew it.
        """
        gate: Gate = request.app.state.gate
        address = address_of(request.scope)
        token = await gate.look_at(text, address)
        request.scope[CALLER] = token
        await self.sign_out(request)
        return token, await to_thread.run_sync(self._sessions.begin, token, address, limiter=self._threads)

    async def sign_out(self, request: Request) -> None:
        """End the session of a request, if it has one."""
        if name := _cookie(request, _SESSION):
            await to_thread.run_sync(
                self._sessions.end, name, address_of(request.scope), limiter=self._threads
            )


async def form(request: Request, expected: str | None) -> dict[str, str]:
    """Return the fields of a form, without the form token; refuse a form from a page of another site.

    `expected` is the form token of the sender. The browser's statement about the origin of the form is checked too;
    either check would be enough.
    """
    _refuse_from_elsewhere(request)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise HTTPProblem(415, "unsupported-media-type", "Send the fields of the form as a form does.")
    try:
        fields = dict(
            parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        )
    except ValueError:
        raise HTTPProblem(400, "bad-request", "The form cannot be read. Nothing was changed.") from None
    shown = fields.pop(FORM_TOKEN, "")
    if expected is None or not hmac.compare_digest(shown.encode(errors="replace"), expected.encode()):
        raise HTTPProblem(
            403,
            "stale-form",
            "This form is not of your session: it was left open too long, or was sent from elsewhere. Nothing was "
            "changed. Load the page again.",
        )
    return fields


def form_token(name: str) -> str:
    """Return the form token of a session. It needs the session's name, and does not reveal the name.

    >>> len(form_token("5f3a")), form_token("5f3a") == form_token("5f3b")
    (64, False)
    """
    return hmac.new(name.encode(errors="replace"), b"form", hashlib.sha256).hexdigest()


def visitor_form_token(request: Request) -> str | None:
    """Return the form token that the sign-in form must send back; None if the caller has none."""
    name = _cookie(request, _VISITOR)
    return form_token(name) if name else None


def welcome(request: Request) -> tuple[str, str | None]:
    """Return the form token of a visitor without a session, and the name for `remember_visitor` if it is new.

    The sign-in form needs it too: otherwise another site could sign a visitor in as somebody else.
    """
    if name := _cookie(request, _VISITOR):
        return form_token(name), None
    name = secrets.token_hex(32)
    return form_token(name), name


def remember_visitor(response: Response, request: Request, name: str) -> None:
    """Set the cookie for the sign-in form; it opens nothing."""
    _set(response, request, _VISITOR, name)


def remember_session(response: Response, request: Request, name: str) -> None:
    """Set the cookie of a session until the browser closes. The service decides when the session ends."""
    _set(response, request, _SESSION, name)
    _forget(response, request, _VISITOR)


def forget_session(response: Response, request: Request) -> None:
    """Remove the cookie of a session."""
    _forget(response, request, _SESSION)


def sign_in_url(place: str) -> str:
    """Return the address of the sign-in page, which then leads to a place of this service.

    >>> sign_in_url("/datasets/survey/table?rows=age")
    '/sign-in?to=%2Fdatasets%2Fsurvey%2Ftable%3Frows%3Dage'
    """
    return f"{SIGN_IN}?{urlencode({'to': place})}"


def place_after(wanted: str, token: Token | None) -> str:
    """Return the place after signing in: the requested one, if it is in this service and open to them.

    >>> place_after("https://elsewhere.example", None), place_after("//elsewhere.example", None)
    ('/custodian', '/custodian')
    """
    analyst = token is not None and token.role is Role.analyst
    places = _PLACES[1:] if analyst else _PLACES
    # Printable: a header may hold nothing else.
    if wanted.startswith(places) and wanted.isascii() and wanted.isprintable():
        return wanted
    return "/" if analyst else "/custodian"


def _refuse_from_elsewhere(request: Request) -> None:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    # Every current browser sends the first over a secure connection; older ones send the second.
    if site is not None:
        ours = site in ("same-origin", "none")
    else:
        ours = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if not ours:
        raise HTTPProblem(
            403,
            "form-from-elsewhere",
            "This form was not sent from a page of this service. Nothing was changed.",
        )


def _cookie(request: Request, kind: str) -> str:
    return request.cookies.get(_named(request, kind), "")


def _named(request: Request, kind: str) -> str:
    # With the prefix, other hosts of the same domain cannot set the cookie; browsers require HTTPS for it.
    return f"__Host-{kind}" if _is_secure(request) else kind


def _set(response: Response, request: Request, kind: str, name: str) -> None:
    response.set_cookie(
        _named(request, kind), name, secure=_is_secure(request), httponly=True, samesite="strict"
    )


def _forget(response: Response, request: Request, kind: str) -> None:
    response.delete_cookie(
        _named(request, kind), secure=_is_secure(request), httponly=True, samesite="strict"
    )


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"
