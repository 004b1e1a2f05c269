"""From a question to the bytes of its answer: who may ask, what is kept, what is made.

A body depends on the question, the version of the dataset and its noise. Nothing of the call is in it, neither time nor
cost nor asker, so it is the same to the last byte for ever, on every worker.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.api.asking import Asked
from tabulary.builder.api.caching import Bodies, Body
from tabulary.builder.api.formats import DOCUMENT, Format, Given
from tabulary.builder.problems import Problem
from tabulary.builder.security import analyst, optional_caller
from tabulary.builder.service import Dataset, Service
from tabulary.builder.working import Asker, Pool
from tabulary.cellkey import CellKeyTable
from tabulary.errors import UnknownDataset, listed
from tabulary.release.exchange import Provenance, document_bytes, signature_headers, table_document
from tabulary.release.formats import file_stems, plan_facts
from tabulary.release.publication import Publication
from tabulary.workflows.answering.answers import Answer, Method

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

Made = TypeVar("Made")


class Answering:
    """What all routes share: the datasets of the service, the bodies that were written, and the threads that write.

    Tests have threads of their own, so that no number of them keeps a table waiting.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        limits = service.limits
        self._bodies = Bodies(limits.cached_bytes)
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

    def dataset(self, name: str) -> Dataset:
        """Return the dataset of that name, or raise UnknownDataset."""
        try:
            return self.service.datasets[name]
        except KeyError:
            raise UnknownDataset(
                f"there is no dataset {name[:_LONGEST_NAME]!r}. There are {listed(self.service.datasets)}."
            ) from None

    async def table(
        self, request: Request, dataset: Dataset, asked: Asked, form: Format, *, payer: str | None = None
    ) -> Response:
        """Return a table as the response to a request; `payer` is who pays, if that is known already."""
        if payer is None:
            payer = await payer_of(request, dataset)
        key = ("table", dataset.name, dataset.answers.version, asked, form.name)
        body = await self.made(request, key, lambda: self._table(dataset, asked, form, payer), payer=payer)
        return respond(request, body, private=payer is not None, vary=("Accept",))

    def _table(self, dataset: Dataset, asked: Asked, form: Format, payer: str | None) -> Body:
        """Return the body of a table; its document, which says what was asked, is signed where the service has a key.

        The other formats do not say of themselves which question they answer, so a signature would prove little.
        """
        body = _table(dataset, asked, form, payer)
        key = self.service.signing_key
        if key is None or form.name != DOCUMENT:
            return body
        return replace(body, signed=signature_headers(body.content, key))

    async def document(
        self,
        request: Request,
        dataset: Dataset,
        key: Hashable,
        make: Callable[[], dict[str, object]],
        *,
        payer: str | None = None,
    ) -> Response:
        """Return a JSON document about a dataset, written once."""
        body = await self.made(
            request,
            (key, dataset.name, dataset.answers.version),
            lambda: Body.of(document_bytes(make()), "application/json"),
            payer=payer,
        )
        return respond(request, body, private=payer is not None)

    async def made(
        self,
        request: Request,
        key: Hashable,
        make: Callable[[], Body],
        *,
        payer: str | None = None,
        test: bool = False,
    ) -> Body:
        """Return the body of this key, kept or made: a test among tests, everything else among tables."""
        pool = self._tests if test else self._tables
        return await self._bodies.made(key, make, pool, Asker(request), by=payer)

    async def done(self, request: Request, work: Callable[[], Made]) -> Made:
        """Return what some slow work returns that is kept nowhere, made among tables."""
        return await self._tables.done(object(), work, Asker(request))


def respond(request: Request, body: Body, *, private: bool, vary: tuple[str, ...] = ()) -> Response:
    """Return a body with what a cache needs to know of it: of what somebody paid for, that it is theirs."""
    if private:
        return body.response(request, cache_control=PRIVATE, vary=", ".join((*vary, "Authorization")))
    return body.response(request, cache_control=PUBLIC, vary=", ".join(vary))


async def payer_of(request: Request, dataset: Dataset) -> str | None:
    """Return the account that pays for a question: None where nothing is paid; a problem where nobody could.

    It looks at the token alone, so that a refusal costs nothing and tells nothing about the data.
    """
    if dataset.answers.method is not Method.interactive:
        await optional_caller(request)
        return None
    token = await analyst(request)
    if token.account is None:
        raise Problem(403, "forbidden", "This token has no account that could pay. Nothing was spent.")
    return token.account


def answer_to(dataset: Dataset, asked: Asked, payer: str | None) -> Answer:
    """Return the answer to a question, cut to it; may count, may debit, may take seconds."""
    answers = dataset.answers
    answer = answers.answer(asked.question.margin(answers.domain), asker=payer, linear=asked.linear)
    return replace(answer, table=asked.question.cut(answer.table))


def _table(dataset: Dataset, asked: Asked, form: Format, payer: str | None) -> Body:
    # First, since a question may cost: what cannot be written is not asked.
    form.refuse(asked.question.cells(dataset.answers.domain))
    answer = answer_to(dataset, asked, payer)
    (stem,) = file_stems([(dataset.name, *asked.question.by)]).values()
    content = form.write(
        Given(lambda: _document(dataset, asked, answer), lambda: publication_of(dataset, asked, answer, stem))
    )
    return Body.of(content, form.media_type, f"{stem}{form.suffix}" if form.suffix else None)


def publication_of(dataset: Dataset, asked: Asked, answer: Answer, name: str) -> Publication:
    """Return an answer with the words of its dataset, ready to be written in any format."""
    variables = dataset.variables
    labels = {attribute: variable.label for attribute, variable in variables.items()}
    filters = [f"{labels[a]}: {variables[a].level(level)}" for a, level in asked.question.where]
    told = Publication.of(
        answer.table,
        name=name,
        source=dataset.title,
        edition=dataset.answers.version,
        labels=labels,
        level_labels={attribute: variable.levels for attribute, variable in variables.items()},
        notes=(answer.promise.statement,),
        facts={} if answer.plan is None else plan_facts(answer.plan),
    )
    return replace(told, title=f"{told.heading} ({'; '.join(filters)})") if filters else told


def _document(dataset: Dataset, asked: Asked, answer: Answer) -> dict[str, object]:
    provenance = Provenance(
        dataset=dataset.name,
        version=dataset.answers.version,
        method=dataset.answers.method.value,
        promise=answer.promise.statement,
        plan=None if answer.plan is None else answer.plan.digest(),
        reconstructed=answer.reconstructed,
        perturbation=answer.table.ptable if isinstance(answer.table, CellKeyTable) else None,
    )
    labels = {name: variable.label for name, variable in dataset.variables.items()}
    return table_document(answer.table, provenance, asked.question.describe(), labels)
