"""Signing in and signing out, for the pages that are not public."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tabulary.builder.api.asking import refuse_unknown
from tabulary.builder.pages import sessions
from tabulary.builder.pages.rendering import Site
from tabulary.builder.pages.sessions import SessionGate, SignedIn
from tabulary.builder.problems import HTTPProblem
from tabulary.builder.state.sessions import IDLE, LONGEST

Fields = Mapping[str, str]
"""The values of a sent form."""

Endpoint = Callable[[Request], Awaitable[Response]]

_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)


class SignInPages:
    """Lets the custodian in, and asks everyone else to sign in."""

    def __init__(self, site: Site, gate: SessionGate) -> None:
        self._site = site
        self._gate = gate

    def shows(self, make: Callable[[Request, SignedIn], Response]) -> Endpoint:
        """Return the handler that serves a page only to a custodian; a thread makes the page."""

        async def serve(request: Request) -> Response:
            who = await self._gate.signed_in(request)
            if who is None or not who.is_custodian:
                return self._closed(request, who)
            return await run_in_threadpool(make, request, who)

        return serve

    def does(self, act: Callable[[Request, SignedIn, Fields], Response]) -> Endpoint:
        """Return the handler that accepts a form only from a custodian, sent from a page of their session."""

        async def serve(request: Request) -> Response:
            who = await self._gate.signed_in(request)
            # Do not even read the fields of a stranger's form.
            if who is None or not who.is_custodian:
                return self._closed(request, who)
            fields = await sessions.form(request, who.form_token)
            return await run_in_threadpool(act, request, who, fields)

        return serve

    async def ask_to_sign_in(self, request: Request) -> Response:
        """Show the form to sign in."""
        refuse_unknown(request.query_params.multi_items(), ("to",))
        who = await self._gate.signed_in(request)
        return self._form(request, request.query_params.get("to", ""), who)

    async def sign_in(self, request: Request) -> Response:
        """Begin a session with a token, and go to the requested page."""
        wanted = ""
        try:
            fields = await sessions.form(request, sessions.visitor_form_token(request))
            wanted = fields.get("to", "")
            token, name = await self._gate.sign_in(request, fields.get("token", ""))
        except HTTPProblem as refusal:
            return self._form(request, wanted, None, refusal)
        response = RedirectResponse(sessions.place_after(wanted, token), 303)
        sessions.remember_session(response, request, name)
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        who = await self._gate.signed_in(request)
        # Without a session, another site cannot end anything.
        if who is not None:
            await sessions.form(request, who.form_token)
            await self._gate.sign_out(request)
        response = RedirectResponse("/", 303)
        sessions.forget_session(response, request)
        return response

    def _closed(self, request: Request, who: SignedIn | None) -> Response:
        # If the session ended before a form was sent, go to the page of the form, which shows the current state.
        query = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
        wanted = f"{request.url.path}{query}"
        if who is None:
            return RedirectResponse(sessions.sign_in_url(wanted), 303)
        return self._form(
            request, wanted, who, HTTPProblem(403, "forbidden", "These pages need a custodian's token.")
        )

    def _form(
        self, request: Request, wanted: str, who: SignedIn | None, refusal: HTTPProblem | None = None
    ) -> Response:
        """Return the sign-in form, with the reason of a refusal if there was one."""
        form_token, visitor = sessions.welcome(request)
        status, error, headers = 200, "", sessions.REFERRER_POLICY
        if refusal is not None:
            status, error = refusal.status_code, str(refusal.detail)
            headers = {**headers, **(refusal.headers or {})}
        response = self._site.response(
            "sign_in.html.j2",
            status,
            headers,
            form_token=form_token,
            wanted=sessions.place_after(wanted, None),
            onward=sessions.place_after(wanted, None if who is None else who.token),
            error=error,
            who=who,
            idle=IDLE // _MINUTE,
            longest=LONGEST // _HOUR,
        )
        if visitor is not None:
            sessions.remember_visitor(response, request, visitor)
        return response
