"""The custodian's part of the HTTP API: accounts, the ledger, tokens, the log, usage, the key and the datasets.

It shows names, budgets, costs and numbers of requests, and never a count of people.
"""

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute

from tabulary.builder.api.asking import json_only
from tabulary.builder.api.custodian_models import (
    AccountList,
    AccountModel,
    EntryList,
    EntryModel,
    EntryPage,
    HeadModel,
    HeldDataset,
    HeldDatasetList,
    KeyModel,
    LogList,
    LogModel,
    LogPage,
    LogPart,
    MadeToken,
    NamedPage,
    NewAccount,
    NewToken,
    TokenId,
    TokenList,
    TokenModel,
    TokenPage,
    UsageList,
    UsageModel,
    UsagePage,
)
from tabulary.builder.api.describing import ALWAYS, BAD_BODY, Responses
from tabulary.builder.api.describing import _problem as problem_answer
from tabulary.builder.api.models import NeighboursModel
from tabulary.builder.counting import CALLER
from tabulary.builder.problems import HTTPProblem
from tabulary.builder.security import custodian
from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.state import Action, Actor
from tabulary.builder.throttle import address_of
from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidPrivacy, LedgerError
from tabulary.ledger import Account, Amount, Entry, Head, Ledger

_Item = TypeVar("_Item")


def _refusals(**more: str) -> Responses:
    """Return the refusals of one route and those that all routes share, each by `_` and its status."""
    refused = {
        "_401": "No token, or one that is not good.",
        "_403": "The token is not a custodian's.",
        **more,
    }
    return {**ALWAYS, **{int(status[1:]): problem_answer(words) for status, words in refused.items()}}


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def actor(request: Request) -> Actor:
    """Return who makes a request, as the log names them. Their token was checked before."""
    return Actor.of(request.scope[CALLER], address_of(request.scope))


def _ledger(request: Request) -> Ledger:
    ledger = _service(request).ledger
    if ledger is None:
        raise HTTPProblem(
            404, "no-ledger", "Nothing costs privacy budget here, so this service keeps no ledger."
        )
    return ledger


_Served = Annotated[Service, Depends(_service)]
_OpenLedger = Annotated[Ledger, Depends(_ledger)]
_By = Annotated[Actor, Depends(actor)]
_NO_LEDGER = "This service keeps no ledger."


class _Guarded(APIRoute):
    """A route that checks the token first: it does not even read the body of a stranger's request."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what serves a request."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            await custodian(request)
            return await handler(request)

        return guarded


# The dependency is for the description of the API. The token has been checked before it runs.
router = APIRouter(
    prefix="/api/custodian", tags=["custodian"], dependencies=[Depends(custodian)], route_class=_Guarded
)


@router.get("/accounts", responses=_refusals(_404=_NO_LEDGER))
def list_accounts(request: Request, ledger: _OpenLedger, page: Annotated[NamedPage, Query()]) -> AccountList:
    """List the accounts: what each may spend, has spent and has left, and the end of its chain."""
    named = {each.name: each for each in ledger.accounts()}
    names, further = _page(request, _after(list(named), page.after), page.size, str)
    return AccountList(items=[_account(named[name]) for name in names], next=further)


@router.post(
    "/accounts",
    status_code=201,
    dependencies=[Depends(json_only)],
    responses={**_refusals(_404=_NO_LEDGER, _409="There is an account of that name."), **BAD_BODY},
)
def open_account(service: _Served, ledger: _OpenLedger, by: _By, asked: NewAccount) -> AccountModel:
    """Open an account, for example for an analyst. Its budget and neighbouring relation never change."""
    try:
        budget = asked.budget.privacy()
        neighbours = Neighbours(asked.neighbours.relation, asked.neighbours.records)
        # The log entry is written first and committed last: without a log entry no account is opened.
        with service.required_state.log.writing() as act:
            act.note(by, Action.account_opened, asked.name)
            return _account(ledger.create_account(asked.name, budget, neighbours))
    except InvalidPrivacy as error:
        raise HTTPProblem(422, "invalid-privacy", f"{error} No account was opened.") from None
    except LedgerError:
        # Checked afterwards: if two callers open the same account at once, the second learns it here.
        if asked.name in _names(ledger):
            raise HTTPProblem(
                409,
                "account-exists",
                f"There is an account {asked.name!r}, and its budget never changes. Choose another name.",
            ) from None
        raise


@router.get("/ledger", responses=_refusals(_404="This service keeps no ledger, or no such account in it."))
def list_entries(request: Request, ledger: _OpenLedger, page: Annotated[EntryPage, Query()]) -> EntryList:
    """List the debits of an account in order, checked against its chain, and the end of the chain."""
    if page.account not in _names(ledger):
        raise HTTPProblem(404, "no-such-account", f"There is no account {page.account!r} in the ledger.")
    account = ledger.account(page.account)
    entries = account.entries()
    shown, further = _page(request, entries[page.after :], page.size, lambda entry: entry.number)
    # From the same moment as the entries: others may add entries in between.
    head = entries[-1].head if entries else Head(account.name, 0, account.digest)
    return EntryList(
        ledger=ledger.identity,
        account=account.name,
        head=_head(head),
        items=[_entry(each) for each in shown],
        next=further,
    )


@router.get("/tokens", responses=_refusals())
def list_tokens(request: Request, service: _Served, page: Annotated[TokenPage, Query()]) -> TokenList:
    """List the tokens in the order of their creation, with expired and revoked ones; never their text."""
    found = service.required_state.tokens.list(after=page.after, size=page.size + 1)
    shown, further = _page(request, found, page.size, lambda token: token.id)
    return TokenList(items=[TokenModel.model_validate(each) for each in shown], next=further)


@router.post(
    "/tokens",
    status_code=201,
    dependencies=[Depends(json_only)],
    responses={**_refusals(), **BAD_BODY},
)
def make_token(service: _Served, by: _By, asked: NewToken) -> MadeToken:
    """Make a token and show its text once. An analyst's token needs an account that pays."""
    if asked.account is not None:
        _refuse_as_payer(service, asked.account)
    token, text = service.required_state.tokens.add(asked.name, asked.role, asked.account, asked.days, by=by)
    return MadeToken(token=TokenModel.model_validate(token), text=text)


@router.delete("/tokens/{id}", status_code=204, responses=_refusals(_404="There is no such token."))
def revoke_token(service: _Served, by: _By, id: TokenId) -> None:  # noqa: A002 - the name in the address
    """Revoke a token, immediately and permanently. The list still shows it and its former role."""
    if not service.required_state.tokens.revoke(id, by=by):
        raise HTTPProblem(404, "no-such-token", "There is no token with this id.")


@router.get("/usage", responses=_refusals())
def list_usage(request: Request, service: _Served, page: Annotated[UsagePage, Query()]) -> UsageList:
    """List the number of requests by day, dataset, kind, outcome and caller."""
    found = service.required_state.usage.read(dataset=page.dataset, after=page.after, size=page.size + 1)
    shown, further = _page(request, found, page.size, lambda row: row.number or 0)
    return UsageList(items=[UsageModel.model_validate(each) for each in shown], next=further)


@router.get("/log", responses=_refusals())
def list_log(request: Request, service: _Served, page: Annotated[LogPage, Query()]) -> LogList:
    """List the entries of the log: who did what and when, with accounts, tokens, versions, sign-ins and starts."""
    found = service.required_state.log.list(after=page.after, size=page.size + 1)
    shown, further = _page(request, found, page.size, lambda entry: entry.number)
    return LogList(items=[LogModel.model_validate(each) for each in shown], next=further)


@router.get(
    "/log.jsonl",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}, **_refusals()},
)
def get_log_lines(service: _Served, part: Annotated[LogPart, Query()]) -> StreamingResponse:
    """Give the whole log, or all entries after a given one, as JSON lines: one entry per line, in order."""
    lines = (f"{entry.line}\n" for entry in service.required_state.log.entries(part.after))
    return StreamingResponse(lines, media_type="application/jsonl")


@router.get("/key", responses=_refusals())
def get_key(service: _Served) -> KeyModel:
    """Give the fingerprint of the secret key. Compare it with your note from the set-up of the service."""
    return KeyModel(fingerprint=service.key_fingerprint)


@router.get("/datasets", responses=_refusals())
def list_held_datasets(
    request: Request, service: _Served, page: Annotated[NamedPage, Query()]
) -> HeldDatasetList:
    """List the datasets: the current version, the plan behind it and the account that pays."""
    names, further = _page(request, _after(list(service.datasets), page.after), page.size, str)
    return HeldDatasetList(items=[held_dataset(service.datasets[name]) for name in names], next=further)


def _refuse_as_payer(service: Service, account: str) -> None:
    if account in {dataset.account for dataset in service.datasets.values()}:
        raise HTTPProblem(
            422,
            "not-a-payer",
            f"The account {account!r} is that of a dataset. An analyst needs an account of their own. No token "
            "was made.",
        )
    if service.ledger is None or account not in _names(service.ledger):
        raise HTTPProblem(
            422,
            "no-such-account",
            f"There is no account {account!r} in the ledger. Open it first. No token was made.",
        )


def _names(ledger: Ledger) -> set[str]:
    # Looked up here: the ledger raises the same error for a missing account and for a missing ledger.
    return {each.name for each in ledger.accounts()}


def _after(names: Sequence[str], after: str | None) -> Sequence[str]:
    if after is None:
        return names
    return names[names.index(after) + 1 :] if after in names else ()


def _page(
    request: Request, found: Sequence[_Item], size: int, place: Callable[[_Item], str | int]
) -> tuple[Sequence[_Item], str | None]:
    """Return a page, and the address of the next page if there are more items.

    The address has no host, because a proxy may use another name for this service.
    """
    page = found[:size]
    if len(found) <= size:
        return page, None
    address = request.url.include_query_params(after=place(page[-1]))
    return page, f"{address.path}?{address.query}"


def _account(account: Account) -> AccountModel:
    balance = account.balance()
    return AccountModel(
        name=account.name,
        budget=_exact(balance.budget),
        spent=_exact(balance.spent),
        remaining=_exact(balance.remaining),
        neighbours=_neighbours(account.neighbours),
        head=_head(account.head()),
    )


def _entry(entry: Entry) -> EntryModel:
    return EntryModel(
        number=entry.number,
        cost=_exact(Amount.of(entry.cost)),
        neighbours=_neighbours(entry.neighbours),
        purpose=entry.purpose,
        plan=entry.plan_digest,
        at=entry.at,
        previous=entry.previous,
        digest=entry.digest,
    )


def held_dataset(dataset: ServedDataset) -> HeldDataset:
    """Return a dataset as the custodian sees it."""
    answers = dataset.answers
    # With other methods, each table has its own plan, or there is none.
    plan = answers.plan_of(()) if answers.method.has_one_plan else None
    return HeldDataset(
        id=dataset.name,
        title=dataset.title,
        method=answers.method.value,
        version=answers.version,
        account=dataset.account,
        plan=None if plan is None else plan.digest(),
    )


def _exact(amount: Amount) -> dict[str, str]:
    exact: dict[str, str] = json.loads(amount.to_text())
    return exact


def _head(head: Head) -> HeadModel:
    return HeadModel(entries=head.entries, digest=head.digest)


def _neighbours(neighbours: Neighbours) -> NeighboursModel:
    return NeighboursModel.model_validate(neighbours.describe())
