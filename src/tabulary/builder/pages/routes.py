"""The addresses of pages: the datasets, the choice of variables, the table, and the files that pages load."""

import json
from collections.abc import Hashable
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tabulary.builder.api.answering import Answering
from tabulary.builder.api.answers import answer_to
from tabulary.builder.api.asking import refuse_unknown
from tabulary.builder.api.bodies import Body
from tabulary.builder.api.formats import format_named
from tabulary.builder.api.hypotheses import HypothesisQuestion
from tabulary.builder.api.tables import table_response
from tabulary.builder.pages.building import TableForecast, build_page, dataset_line
from tabulary.builder.pages.choices import Choices, from_form, is_form
from tabulary.builder.pages.rendering import MEDIA_TYPE, PAGE_POLICY, Site, html_response, static
from tabulary.builder.pages.sessions import REFERRER_POLICY, SessionGate, SignedIn, form
from tabulary.builder.pages.table_page import (
    NOT_TESTABLE,
    HypothesisOutcome,
    Payer,
    ask_page,
    outcome_in_words,
    table_page,
    tested,
)
from tabulary.builder.problems import HTTPProblem
from tabulary.builder.service import ServedDataset
from tabulary.workflows.answering.answers import ProtectionMethod

# A browser stores it and checks it each time; the check costs an answer without a body.
_ASKED_AGAIN = "no-cache"


def add_pages(app: FastAPI, answering: Answering, site: Site, sessions: SessionGate | None) -> None:
    """Add the addresses of pages. The description of the API leaves them out."""
    pages = _Pages(answering, site, sessions)
    for path, endpoint, method in (
        ("/", pages.datasets, "GET"),
        ("/datasets/{name}", pages.build, "GET"),
        ("/datasets/{name}/table", pages.table, "GET"),
        ("/datasets/{name}/table", pages.pay, "POST"),
        ("/datasets/{name}/table.{suffix}", pages.file, "GET"),
        ("/static/{file:path}", static, "GET"),
    ):
        app.router.routes.append(Route(path, endpoint, methods=[method], include_in_schema=False))


class _Pages:
    def __init__(self, answering: Answering, site: Site, sessions: SessionGate | None) -> None:
        self._answering = answering
        self._site = site
        self._sessions = sessions

    async def datasets(self, request: Request) -> Response:
        """Show the list of datasets."""
        refuse_unknown(request.query_params.multi_items(), ())
        lines = [dataset_line(dataset) for dataset in self._answering.service.datasets.values()]
        return self._kept(request, Body.of(self._site.html("datasets.html.j2", datasets=lines), MEDIA_TYPE))

    async def build(self, request: Request) -> Response:
        """Show the variables of a dataset, the choices so far and the expected accuracy."""
        dataset = self._answering.dataset(request.path_params["name"])
        domain, items = dataset.answers.domain, request.query_params.multi_items()
        if is_form(items):
            return RedirectResponse(from_form(domain, items).build_url(dataset.name), 303)
        chosen = Choices.of(domain, items)
        dataset = dataset.in_language(chosen.language)
        content = await self._answering.done(request, self._build, dataset, chosen)
        return self._kept(request, Body.of(content, MEDIA_TYPE))

    async def table(self, request: Request) -> Response:
        """Show a table, or its price. This spends nothing."""
        dataset = self._answering.dataset(request.path_params["name"])
        domain, items = dataset.answers.domain, request.query_params.multi_items()
        if is_form(items):
            return RedirectResponse(from_form(domain, items).url(dataset.name), 303)
        chosen = Choices.of(domain, items)
        if len(items) != len(chosen.items()):
            # The form sent empty fields: redirect to the address without them.
            return RedirectResponse(chosen.url(dataset.name), 303)
        dataset = dataset.in_language(chosen.language)
        dataset.answers.allowed_tables.refuse(chosen.question(domain).margin(domain))
        # For the citation and the API call. Also in the key, so that no caller gets a page with another origin.
        origin = str(request.base_url).rstrip("/")
        if dataset.answers.method is ProtectionMethod.interactive:
            return await self._paid_table(request, dataset, chosen, origin)
        outcome = await self._outcome(request, dataset, chosen, None)
        page = PageQuestion(self._site, dataset, chosen, origin, outcome=outcome)
        return self._kept(request, await self._answering.body(request, page))

    async def pay(self, request: Request) -> Response:
        """Ask a question that costs, with the form of a page, and show the table."""
        dataset, chosen, analyst = await self._asked_by_analyst(request)
        await form(request, analyst.form_token)
        question = chosen.question(dataset.answers.domain)
        await self._answering.done(request, answer_to, dataset, question, analyst.payer)
        return RedirectResponse(chosen.url(dataset.name), 303)

    async def file(self, request: Request) -> Response:
        """Give a paid table as a file to an analyst who signed in."""
        written = format_named(request.path_params["suffix"])
        dataset, chosen, analyst = await self._asked_by_analyst(request)
        question = chosen.question(dataset.answers.domain)
        if dataset.answers.price(question.margin(dataset.answers.domain)) is not None:
            raise HTTPProblem(
                403,
                "not-paid",
                "This table was not asked for yet, and looking spends nothing. Open its page first.",
            )
        return await table_response(self._answering, request, dataset, question, written, payer=analyst.payer)

    async def _asked_by_analyst(self, request: Request) -> tuple[ServedDataset, Choices, SignedIn]:
        """Return the question of an analyst who may ask it; refuse anyone else, and a free dataset."""
        dataset = self._answering.dataset(request.path_params["name"])
        domain = dataset.answers.domain
        if dataset.answers.method is not ProtectionMethod.interactive:
            raise HTTPProblem(
                403, "free", "Tables of this dataset cost nothing: load the page, or ask the API."
            )
        who = await self._signed_in(request)
        if who is None or who.payer is None:
            raise HTTPProblem(403, "forbidden", "Sign in with an analyst's token first. Nothing was spent.")
        chosen = Choices.of(domain, request.query_params.multi_items())
        dataset.answers.allowed_tables.refuse(chosen.question(domain).margin(domain))
        return dataset.in_language(chosen.language), chosen, who

    async def _paid_table(
        self, request: Request, dataset: ServedDataset, chosen: Choices, origin: str
    ) -> Response:
        # Refuses a public total, which the rules of the allowed tables do not cover.
        margin = chosen.question(dataset.answers.domain).margin(dataset.answers.domain)
        await self._answering.done(request, dataset.answers.plan_of, margin)
        who = await self._signed_in(request)
        asker = None
        if who is not None and (payer := who.payer) is not None:
            left = await self._answering.done(request, self._left, payer)
            asker = Payer(payer, left, who.form_token)
        forecast = await self._answering.done(request, TableForecast.of, dataset, chosen)
        # Only a page with a form needs the referrer.
        headers = None if asker is None else REFERRER_POLICY
        if asker is not None and forecast.free:
            outcome = await self._outcome(request, dataset, chosen, asker.account)
            shown = PageQuestion(self._site, dataset, chosen, origin, asker, outcome)
            return html_response(await self._answering.done(request, shown.html), headers=headers)
        page = ask_page(dataset, chosen, forecast, origin, asker)
        return self._site.response("ask.html.j2", headers=headers, **page)

    async def _signed_in(self, request: Request) -> SignedIn | None:
        return None if self._sessions is None else await self._sessions.signed_in(request)

    def _left(self, account: str) -> str:
        """Return what an account may still spend."""
        ledger = self._answering.service.ledger
        assert ledger is not None, "what is paid for is in a ledger"
        left = ledger.account(account).remaining()
        return "nothing" if left is None else str(left)

    async def _outcome(
        self, request: Request, dataset: ServedDataset, chosen: Choices, payer: str | None
    ) -> HypothesisOutcome | None:
        """Return the result of a test on the page. It comes from the API's own test, in the same threads."""
        test = tested(dataset, chosen, payer)
        if not isinstance(test, HypothesisQuestion):
            return test
        try:
            body = await self._answering.body(request, test)
        except NOT_TESTABLE as refusal:
            return HypothesisOutcome.refused(refusal)
        return outcome_in_words(dataset, chosen, json.loads(body.content))

    def _build(self, dataset: ServedDataset, chosen: Choices) -> bytes:
        return self._site.html("build.html.j2", **build_page(dataset, chosen))

    def _kept(self, request: Request, body: Body) -> Response:
        response = body.response(request, cache_control=_ASKED_AGAIN, vary="")
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        return response


@dataclass(frozen=True, eq=False)
class PageQuestion:
    """The page of a table; `asker` is the analyst who signed in and pays, `outcome` the result of a test."""

    site: Site
    dataset: ServedDataset
    chosen: Choices
    origin: str
    asker: Payer | None = None
    outcome: HypothesisOutcome | None = None

    @property
    def key(self) -> Hashable:
        """Everything that the body depends on. Only free pages are stored."""
        return "page", self.dataset.name, self.dataset.answers.version, self.chosen, self.origin

    @property
    def payer(self) -> str | None:
        """The account that pays for the table."""
        return None if self.asker is None else self.asker.account

    @property
    def is_test(self) -> bool:
        """False: the test on the page was made before."""
        return False

    def html(self) -> bytes:
        """Return the page. May count, may debit, may take seconds."""
        page = table_page(self.dataset, self.chosen, self.origin, self.asker, self.outcome)
        return self.site.html("table.html.j2", **page)

    def body(self) -> Body:
        """Return the page as a body."""
        return Body.of(self.html(), MEDIA_TYPE)
