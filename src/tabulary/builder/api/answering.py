"""What all routes share: the datasets, who pays for a question, the bodies that are kept, the threads that make them.

A request becomes a parsed question (`asking`). A parsed question can answer itself (`answers`, `hypotheses`), and an
answer is written in a format (`formats`). None of these modules uses this one, which only decides when they work.
"""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.api.bodies import Bodies, Body, BodyQuestion
from tabulary.builder.problems import HTTPProblem
from tabulary.builder.security import analyst, optional_caller
from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.working import Pool, WaitingCaller
from tabulary.errors import UnknownDataset, listed
from tabulary.workflows.answering.answers import ProtectionMethod

PUBLIC = "public, max-age=3600"
"""How long anyone may keep a public answer. The answer never changes, but a new version of the dataset has the same
address: an hour later everybody sees it."""

PRIVATE = "private, no-cache"
"""An answer to a token is private, and the browser must ask again each time: the token may have been revoked."""

_LONGEST_NAME = 80
# More threads than cores: while one question waits for the ledger, the others must go on.
_TABLE_THREADS, _MOST_TABLES = 32, 256
# Each thread keeps a core busy, and tables need cores too.
_TEST_THREADS, _MOST_TESTS = 2, 64

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")


class Answering:
    """The answers of a worker: the stored ones, and those that threads are making.

    Tests have their own threads, so that many tests never delay a table.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._bodies = Bodies(service.cache)
        limits = service.limits
        seconds = limits.answer_seconds
        self._tables = Pool(
            "tables", threads=_TABLE_THREADS, each=limits.tables_a_caller, most=_MOST_TABLES, seconds=seconds
        )
        self._tests = Pool(
            "tests",
            threads=_TEST_THREADS,
            each=limits.tests_a_caller,
            most=max(_MOST_TESTS, limits.tests_a_caller),
            seconds=seconds,
        )

    def close(self) -> None:
        """Stop the work under way, and forget the stored answers."""
        for pool in (self._tables, self._tests):
            pool.close()
        self._bodies.clear()

    def dataset(self, name: str) -> ServedDataset:
        """Return the dataset of that name, or raise UnknownDataset."""
        try:
            return self.service.datasets[name]
        except KeyError:
            raise UnknownDataset(
                f"there is no dataset {name[:_LONGEST_NAME]!r}. There are {listed(self.service.datasets)}."
            ) from None

    async def body(self, request: Request, question: BodyQuestion) -> Body:
        """Return the answer to a question: the stored one, or a new one.

        Others who ask the same meanwhile share this work only if the same account pays: a refusal concerns one payer.
        """
        if (kept := self._bodies.find(question.key)) is not None:
            return kept
        pool = self._tests if question.is_test else self._tables
        work = partial(self._bodies.made, question)
        return await pool.done((question.key, question.payer), work, WaitingCaller(request))

    async def response(
        self, request: Request, question: BodyQuestion, *, vary: tuple[str, ...] = ()
    ) -> Response:
        """Return the answer to a question as a response: private if somebody paid for it."""
        body = await self.body(request, question)
        if question.payer is not None:
            return body.response(request, cache_control=PRIVATE, vary=", ".join((*vary, "Authorization")))
        return body.response(request, cache_control=PUBLIC, vary=", ".join(vary))

    async def done(
        self,
        request: Request,
        work: Callable[Arguments, Made],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Made:
        """Return the result of slow work, done by the threads of tables. The result is not stored."""
        return await self._tables.done(object(), partial(work, *args, **options), WaitingCaller(request))


async def payer_of(request: Request, dataset: ServedDataset) -> str | None:
    """Return the account that pays for a question; None if it is free; raise a problem if nobody can pay.

    This reads only the token, so a refusal costs nothing and reveals nothing about the data.
    """
    if dataset.answers.method is not ProtectionMethod.interactive:
        await optional_caller(request)
        return None
    token = await analyst(request)
    if token.account is None:
        raise HTTPProblem(403, "forbidden", "This token has no account that could pay. Nothing was spent.")
    return token.account
