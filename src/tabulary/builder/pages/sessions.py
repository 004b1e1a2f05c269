"""Signing in to pages: a token, once, for a session that a cookie names, and forms that nobody else can send.

The cookie is out of reach of scripts, is sent along from pages of this service alone, and where the service is reached
by HTTPS over nothing else. It opens pages and never the API, so what a program may do does not depend on a browser.
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
"""Of a page with a form: under the policy of all other answers a browser would not say where the form comes from."""

_SESSION, _VISITOR = "tabulary-session", "tabulary-visitor"
# A form has a few fields, each of which names something.
_MOST_FIELDS = 20
_LOOKING_AT_ONCE = 8
# What a session is for, and the only places that anyone is sent to after signing in.
_PLACES = ("/custodian", "/datasets/")


@dataclass(frozen=True)
class SignedIn:
    """Whoever signed in: the token, and what every form of theirs has to carry in its field `FORM_TOKEN`."""

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
    """Looks at the session that a request shows, begins one and ends it.

    A page that needs someone calls `signed_in`, and sends whoever is not to `sign_in_url`. A form that changes
    something, or that spends, is read by `form`, which refuses one that was not sent from a page of this session.
    """

    def __init__(self, state: State) -> None:
        self._sessions = state.sessions
        # Threads of its own: a state that hangs must not take those that make tables.
        self._threads = CapacityLimiter(_LOOKING_AT_ONCE)

    async def signed_in(self, request: Request) -> SignedIn | None:
        """Return who signed in; None where nobody did, where the session has ended, or where the token has."""
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

        The session that the request came with is ended: whoever knew its name knows nothing of the new one.
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
    """Return the fields of a form, without the form token; refuse a form that was not sent from a page of ours.

    `expected` is the form token of whoever sends it. What a browser says about where a form comes from is looked at
    as well: either would do.
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
    """Return what the forms of a session carry: only who knows the session's name can tell, and it tells no name.

    >>> len(form_token("5f3a")), form_token("5f3a") == form_token("5f3b")
    (64, False)
    """
    return hmac.new(name.encode(errors="replace"), b"form", hashlib.sha256).hexdigest()


def visitor_form_token(request: Request) -> str | None:
    """Return what the form to sign in has to carry when it comes back; None from who was not given one."""
    name = _cookie(request, _VISITOR)
    return form_token(name) if name else None


def welcome(request: Request) -> tuple[str, str | None]:
    """Return the form token of someone who has no session, and the name to be set by `remember_visitor` if it is new.

    Signing in needs it too, or another site could sign somebody in as somebody else.
    """
    if name := _cookie(request, _VISITOR):
        return form_token(name), None
    name = secrets.token_hex(32)
    return form_token(name), name


def remember_visitor(response: Response, request: Request, name: str) -> None:
    """Set the cookie that the form to sign in belongs to; it opens nothing."""
    _set(response, request, _VISITOR, name)


def remember_session(response: Response, request: Request, name: str) -> None:
    """Set the cookie of a session, for as long as the browser runs; when the session ends is for the service to say."""
    _set(response, request, _SESSION, name)
    _forget(response, request, _VISITOR)


def forget_session(response: Response, request: Request) -> None:
    """Take the cookie of a session back."""
    _forget(response, request, _SESSION)


def sign_in_url(place: str) -> str:
    """Return the address at which to sign in, and from there to a place of this service.

    >>> sign_in_url("/datasets/survey/table?rows=age")
    '/sign-in?to=%2Fdatasets%2Fsurvey%2Ftable%3Frows%3Dage'
    """
    return f"{SIGN_IN}?{urlencode({'to': place})}"


def place_after(wanted: str, token: Token | None) -> str:
    """Return where somebody goes who signed in: where they wanted to, if that is here and for them.

    >>> place_after("https://elsewhere.example", None), place_after("//elsewhere.example", None)
    ('/custodian', '/custodian')
    """
    analyst = token is not None and token.role is Role.analyst
    places = _PLACES[1:] if analyst else _PLACES
    # Printable: a header holds nothing else.
    if wanted.startswith(places) and wanted.isascii() and wanted.isprintable():
        return wanted
    return "/" if analyst else "/custodian"


def _refuse_from_elsewhere(request: Request) -> None:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    # The first is said by every browser of today where the connection is safe, the second by those before as well.
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
    # The prefix keeps other hosts of the same domain from setting it; browsers want HTTPS for it.
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
