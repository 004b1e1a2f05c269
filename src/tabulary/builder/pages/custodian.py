"""The custodian's pages: datasets, accounts and budgets, the ledger in time, tokens, usage and the log.

All are behind a session.

They show and do the same as the custodian's API, with the same refusals: budgets, costs and numbers of requests, and
never a count of people. They load no script.
"""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from fastapi import FastAPI
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tabulary.builder.api.asking import refuse_unknown
from tabulary.builder.api.custodian import held_dataset, make_token, open_account, revoke_token
from tabulary.builder.api.custodian_models import NewAccount, NewToken
from tabulary.builder.pages import sessions
from tabulary.builder.pages.custodian_data import LEDGER, AccountLine, LogLine, Timeline, TokenLine, use_lines
from tabulary.builder.pages.rendering import Site
from tabulary.builder.pages.sessions import SessionGate, SignedIn
from tabulary.builder.pages.sign_in import Fields, SignInPages
from tabulary.builder.problems import HTTPProblem
from tabulary.builder.service import Service
from tabulary.builder.state import Actor, Token
from tabulary.builder.state.tokens import LONGEST_LIFE
from tabulary.builder.throttle import address_of
from tabulary.errors import InvalidArgument
from tabulary.ledger import Account, Ledger
from tabulary.workflows.answering.answers import ProtectionMethod

ROOT = "/custodian"
ACCOUNTS, TOKENS, USAGE, LOG = (f"{ROOT}/{room}" for room in ("accounts", "tokens", "usage", "log"))
DAYS = (7, 30, 90, 365)
"""The periods in days that the page of usage can show."""

_ROOMS = (
    (ROOT, "Overview"),
    (ACCOUNTS, "Accounts"),
    (LEDGER, "Ledger"),
    (TOKENS, "Tokens"),
    (USAGE, "Usage"),
    (LOG, "Log"),
)
_PAGE = 25
_TOKEN_ID = re.compile(r"[0-9a-f]{12}")
_POSITION = re.compile(r"[1-9][0-9]{0,17}")

# The error of a field, in the words of the form. The field itself shows the sent value.
_NAME = "A name has 1 to 200 printable characters, and neither begins nor ends with a space."
_EXACT = "An amount is an exact number: 2, 0.25 or 1/8."
_WRONG = {
    "name": _NAME,
    "epsilon": f"ε: {_EXACT}",
    "delta": f"δ: {_EXACT}",
    "rho": f"ρ: {_EXACT}",
    "relation": "Neighbours are add-remove or replace.",
    "records": "The most records of one person is a whole number, at least 1.",
    "role": "A token is for an analyst or for a custodian.",
    "account": "Choose an account that pays.",
    "days": f"A token is good for 1 to {LONGEST_LIFE:,} days, or until it is revoked.",
}
_NO_ACCOUNT = {
    "name": "",
    "rho": "",
    "epsilon": "",
    "delta": "",
    "relation": "add-remove",
    "records": "1",
}
_NO_TOKEN = {"name": "", "role": "analyst", "account": "", "days": "365"}


def add_custodian_pages(app: FastAPI, service: Service, site: Site) -> None:
    """Add the sign-in pages and the custodian's pages. The description of the API leaves them out."""
    sign_in = SignInPages(site, SessionGate(service.required_state))
    desk = _Desk(service, site)
    read, write = sign_in.shows, sign_in.does
    for method, path, endpoint in (
        ("GET", sessions.SIGN_IN, sign_in.ask_to_sign_in),
        ("POST", sessions.SIGN_IN, sign_in.sign_in),
        ("POST", sessions.SIGN_OUT, sign_in.sign_out),
        ("GET", ROOT, read(desk.overview)),
        ("GET", ACCOUNTS, read(desk.accounts)),
        ("POST", ACCOUNTS, write(desk.open_account)),
        ("GET", LEDGER, read(desk.ledger)),
        ("GET", TOKENS, read(desk.tokens)),
        ("POST", TOKENS, write(desk.make_token)),
        ("GET", f"{TOKENS}/{{id}}", read(desk.token)),
        ("POST", f"{TOKENS}/{{id}}", write(desk.revoke_token)),
        ("GET", USAGE, read(desk.usage)),
        ("GET", LOG, read(desk.log)),
    ):
        app.router.routes.append(Route(path, endpoint, methods=[method], include_in_schema=False))


class _Desk:
    """The pages and actions of a custodian who signed in."""

    def __init__(self, service: Service, site: Site) -> None:
        self._service = service
        self._site = site

    def overview(self, request: Request, who: SignedIn) -> Response:
        """Show the datasets with their promises, and the fingerprint of the key."""
        refuse_unknown(request.query_params.multi_items(), ())
        accounts = {line.name: line for line in self._account_lines()}
        datasets = [
            {
                "held": held_dataset(dataset),
                "promise": dataset.answers.promise.statement,
                "private": dataset.answers.method is not ProtectionMethod.cell_key,
                "account": accounts.get(dataset.account or ""),
            }
            for dataset in self._service.datasets.values()
        ]
        return self._page(
            who,
            "custodian_overview.html.j2",
            ROOT,
            datasets=datasets,
            fingerprint=self._service.key_fingerprint,
            ledger=self._service.ledger.identity if self._service.ledger else None,
        )

    def accounts(self, request: Request, who: SignedIn) -> Response:
        """Show the accounts, and the form that opens one."""
        refuse_unknown(request.query_params.multi_items(), ("opened",))
        return self._accounts(who, opened=request.query_params.get("opened", ""))

    def open_account(self, request: Request, who: SignedIn, fields: Fields) -> Response:
        """Open an account; if that is not possible, show the form again with the errors."""
        ledger = self._service.ledger
        if ledger is None:
            raise HTTPProblem(
                404, "no-ledger", "Nothing costs privacy budget here, so there are no accounts."
            )
        given = _given(fields, _NO_ACCOUNT)
        try:
            budget = {name: given[name] for name in ("rho", "epsilon", "delta") if given[name]}
            neighbours = {name: given[name] for name in ("relation", "records")}
            asked = NewAccount.model_validate(
                {"name": given["name"], "budget": budget, "neighbours": neighbours}
            )
            open_account(self._service, ledger, _actor(request, who), asked)
        except ValidationError as wrong:
            return self._accounts(who, given, _complaints(wrong), 422)
        except HTTPProblem as refusal:
            return self._accounts(who, given, {"": str(refusal.detail)}, refusal.status_code)
        return RedirectResponse(_url(ACCOUNTS, opened=asked.name), 303)

    def ledger(self, request: Request, who: SignedIn) -> Response:
        """Show the debits of an account in time."""
        refuse_unknown(request.query_params.multi_items(), ("account", "before"))
        ledger, timeline, account = self._service.ledger, None, None
        names = [] if ledger is None else [each.name for each in ledger.accounts()]
        wanted = request.query_params.get("account") or (names[0] if names else "")
        if wanted and wanted not in names:
            raise HTTPProblem(404, "no-such-account", "There is no such account in the ledger.")
        if ledger is not None and wanted:
            before = request.query_params.get("before")
            if before is not None and not _POSITION.fullmatch(before):
                raise HTTPProblem(422, "invalid-request", "'before' is the number of an entry.")
            account = ledger.account(wanted)
            timeline = Timeline.of(account, before=None if before is None else int(before), size=_PAGE)
        return self._page(
            who,
            "custodian_ledger.html.j2",
            LEDGER,
            names=names,
            timeline=timeline,
            account=None if account is None else AccountLine.of(account, self._service.datasets.values()),
        )

    def tokens(self, request: Request, who: SignedIn) -> Response:
        """Show the tokens, and the form that makes one."""
        refuse_unknown(request.query_params.multi_items(), ("after", "account", "revoked"))
        asked = request.query_params
        after = asked.get("after")
        if after is not None and not _TOKEN_ID.fullmatch(after):
            raise HTTPProblem(422, "invalid-request", "'after' is the id of a token.")
        given = {**_NO_TOKEN, "account": asked.get("account", "")}
        gone = self._token(asked.get("revoked", ""))
        return self._tokens(
            who, given, after=after, revoked=gone.name if gone is not None and gone.revoked else ""
        )

    def make_token(self, request: Request, who: SignedIn, fields: Fields) -> Response:
        """Make a token and show its text once; if that is not possible, show the form again with the errors."""
        given = _given(fields, _NO_TOKEN)
        try:
            asked = NewToken.model_validate({name: value or None for name, value in given.items()})
            made = make_token(self._service, _actor(request, who), asked)
        except ValidationError as wrong:
            return self._tokens(who, given, _complaints(wrong), 422)
        except InvalidArgument as refusal:
            said = str(refusal)
            return self._tokens(who, given, {"": said[:1].upper() + said[1:]}, 422)
        except HTTPProblem as refusal:
            return self._tokens(who, given, {"": str(refusal.detail)}, refusal.status_code)
        return self._page(who, "custodian_made.html.j2", TOKENS, 201, made=made)

    def token(self, request: Request, who: SignedIn) -> Response:
        """Show one token, and the form that revokes it."""
        refuse_unknown(request.query_params.multi_items(), ())
        found = self._known_token(request)
        return self._page(
            who,
            "custodian_token.html.j2",
            TOKENS,
            line=TokenLine.of(found, datetime.now(UTC)),
            own=found.id == who.token.id,
        )

    def revoke_token(self, request: Request, who: SignedIn, fields: Fields) -> Response:
        """Revoke a token. A custodian who revokes their own token is signed out."""
        token = self._known_token(request)
        revoke_token(self._service, _actor(request, who), token.id)
        return RedirectResponse("/" if token.id == who.token.id else _url(TOKENS, revoked=token.id), 303)

    def usage(self, request: Request, who: SignedIn) -> Response:
        """Show the number of requests by day and dataset."""
        refuse_unknown(request.query_params.multi_items(), ("days",))
        shown = request.query_params.get("days", str(DAYS[1]))
        if shown not in map(str, DAYS):
            raise HTTPProblem(422, "invalid-request", f"'days' is one of {', '.join(map(str, DAYS))}.")
        since = datetime.now(UTC).date() - timedelta(days=int(shown) - 1)
        uses = self._service.required_state.usage.by_day(since.isoformat())
        return self._page(
            who,
            "custodian_usage.html.j2",
            USAGE,
            lines=use_lines(uses, self._service.datasets.values()),
            requests=sum(use.requests for use in uses),
            days=DAYS,
            shown=int(shown),
        )

    def log(self, request: Request, who: SignedIn) -> Response:
        """Show the log of the service, the newest entry first."""
        refuse_unknown(request.query_params.multi_items(), ("before",))
        before = request.query_params.get("before")
        if before is not None and not _POSITION.fullmatch(before):
            raise HTTPProblem(422, "invalid-request", "'before' is the number of an entry.")
        found = self._service.required_state.log.newest(None if before is None else int(before), _PAGE + 1)
        return self._page(
            who,
            "custodian_log.html.j2",
            LOG,
            lines=[LogLine.of(entry) for entry in found[:_PAGE]],
            older_url=_url(LOG, before=str(found[_PAGE - 1].number)) if len(found) > _PAGE else "",
            newest_url=LOG if before is not None else "",
        )

    def _accounts(
        self,
        who: SignedIn,
        given: Fields = _NO_ACCOUNT,
        wrong: Fields | None = None,
        status: int = 200,
        opened: str = "",
    ) -> Response:
        lines = self._account_lines()
        return self._page(
            who,
            "custodian_accounts.html.j2",
            ACCOUNTS,
            status,
            keeps_ledger=self._service.ledger is not None,
            lines=lines,
            opened=opened if opened in {line.name for line in lines} else "",
            given=given,
            wrong=wrong or {},
        )

    def _tokens(
        self,
        who: SignedIn,
        given: Fields,
        wrong: Fields | None = None,
        status: int = 200,
        after: str | None = None,
        revoked: str = "",
    ) -> Response:
        tokens, now = self._service.required_state.tokens, datetime.now(UTC)
        found = tokens.list(after=after, size=_PAGE + 1)
        taken = {dataset.account for dataset in self._service.datasets.values()}
        return self._page(
            who,
            "custodian_tokens.html.j2",
            TOKENS,
            status,
            lines=[TokenLine.of(token, now) for token in found[:_PAGE]],
            next_url=_url(TOKENS, after=found[_PAGE - 1].id) if len(found) > _PAGE else "",
            first_url=TOKENS if after is not None else "",
            payers=[account.name for account in _accounts(self._service.ledger) if account.name not in taken],
            revoked=revoked,
            given=given,
            wrong=wrong or {},
            longest=LONGEST_LIFE,
        )

    def _token(self, id_: str) -> Token | None:
        return self._service.required_state.tokens.get(id_) if _TOKEN_ID.fullmatch(id_) else None

    def _known_token(self, request: Request) -> Token:
        found = self._token(request.path_params["id"])
        if found is None:
            raise HTTPProblem(404, "no-such-token", "There is no token with this id.")
        return found

    def _account_lines(self) -> list[AccountLine]:
        datasets = self._service.datasets.values()
        return [AccountLine.of(account, datasets) for account in _accounts(self._service.ledger)]

    def _page(self, who: SignedIn, template: str, room: str, status: int = 200, **given: object) -> Response:
        return self._site.response(
            template, status, sessions.REFERRER_POLICY, who=who, rooms=_ROOMS, room=room, **given
        )


def _actor(request: Request, who: SignedIn) -> Actor:
    return Actor.of(who.token, address_of(request.scope))


def _accounts(ledger: Ledger | None) -> list[Account]:
    return [] if ledger is None else ledger.accounts()


def _given(fields: Fields, known: Fields) -> dict[str, str]:
    """Return the fields of a form; a missing field is empty."""
    return {name: fields.get(name, "") for name in known}


def _complaints(wrong: ValidationError) -> dict[str, str]:
    """Return the error of each wrong field."""
    fields = [str(found["loc"][-1]) for found in wrong.errors(include_url=False, include_input=False)]
    return {field: _WRONG[field] for field in fields}


def _url(path: str, **asked: str) -> str:
    return f"{path}?{urlencode(asked)}"
