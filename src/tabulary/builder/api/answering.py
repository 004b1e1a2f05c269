"""What all routes share: the datasets, who pays for a question, the bodies that are kept, the threads that make them.

A request becomes a parsed question (`asking`), a parsed question knows how to answer itself (`answers`, `hypotheses`),
and an answer is written in a format (`formats`). None of them knows of this module: it only decides when they work.
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
"""How long anyone may keep what anyone may ask for. The answer never changes; a new version of the dataset comes under
the same address, and an hour later everybody sees it."""

PRIVATE = "private, no-cache"
"""What was asked for with a token stays with its owner, and is asked for again: the token may have been revoked."""

_LONGEST_NAME = 80
# More than there are cores: a question may wait for the ledger, and others must not wait with it.
_TABLE_THREADS, _MOST_TABLES = 32, 256
# Each of them keeps a core busy, which tables need too.
_TEST_THREADS, _MOST_TESTS = 2, 64

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")


class Answering:
    """The answers of a worker: those that are kept, and those that threads are making.

    Tests have threads of their own, so that no number of them keeps a table waiting.
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
        """Stop what is being made, and forget what was."""
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
        """Return the answer to a question: the kept one, or one that is made now.

        Those who ask meanwhile wait for the same making if the same account pays: one payer's refusal is not another's.
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
        """Return what some slow work returns that is kept nowhere, done by the threads of tables."""
        return await self._tables.done(object(), partial(work, *args, **options), WaitingCaller(request))


async def payer_of(request: Request, dataset: ServedDataset) -> str | None:
    """Return the account that pays for a question: None where nothing is paid; a problem where nobody could.

    It looks at the token alone, so that a refusal costs nothing and tells nothing about the data.
    """
    if dataset.answers.method is not ProtectionMethod.interactive:
        await optional_caller(request)
        return None
    token = await analyst(request)
    if token.account is None:
        raise HTTPProblem(403, "forbidden", "This token has no account that could pay. Nothing was spent.")
    return token.account
