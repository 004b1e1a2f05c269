"""The routes of tables: the tables themselves, and their expected errors."""

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.api.answering import Answering, payer_of
from tabulary.builder.api.answers import TableQuestion, accuracy_of
from tabulary.builder.api.asking import (
    json_only,
    language_in_query,
    question_in_json,
    question_in_query,
    refuse_unknown,
)
from tabulary.builder.api.describing import (
    BAD_BODY,
    NOT_ACCEPTABLE,
    NOT_MODIFIED,
    PAID,
    REFUSED,
    UNKNOWN,
    DatasetName,
    FormatName,
    operation,
)
from tabulary.builder.api.formats import AnswerFormat, format_accepted, format_named
from tabulary.builder.api.models import Accuracy, AskedMargin, AskedTable, TableModel
from tabulary.builder.service import ServedDataset
from tabulary.release.exchange import document_bytes
from tabulary.workflows.answering.questions import Question

TABLE = ("by", "where", "keep", "estimate", "language")
MARGIN = ("by", "where", "keep")


def add_tables(app: FastAPI, answering: Answering) -> None:
    """Add the routes of tables."""

    @app.get(
        "/api/datasets/{id}/tables",
        **operation(
            "tables",
            "get_table",
            "A table",
            TableModel,
            {**PAID, **NOT_MODIFIED, **NOT_ACCEPTABLE},
            query=TABLE,
            other_formats=True,
            priced=True,
        ),
    )
    async def get_table(request: Request, name: DatasetName) -> Response:
        """Give a table in the format that the header Accept prefers; JSON by default.

        The numbers are exact and agree with those of every other table of the dataset.
        """
        dataset, question = _asked(answering, request, name)
        form = format_accepted(request.headers.get("accept", ""))
        return await table_response(answering, request, dataset, question, form)

    @app.get(
        "/api/datasets/{id}/tables.{format}",
        **operation(
            "tables",
            "get_table_as",
            "A table in the format of the suffix",
            TableModel,
            {**PAID, **NOT_MODIFIED},
            query=TABLE,
            other_formats=True,
            priced=True,
        ),
    )
    async def get_table_as(request: Request, name: DatasetName, suffix: FormatName) -> Response:
        """Give a table in the format that the address names."""
        form = format_named(suffix)
        dataset, question = _asked(answering, request, name)
        return await table_response(answering, request, dataset, question, form)

    @app.post(
        "/api/datasets/{id}/tables",
        dependencies=[Depends(json_only)],
        **operation(
            "tables",
            "post_table",
            "A table, asked for in JSON",
            TableModel,
            {**PAID, **BAD_BODY, **NOT_ACCEPTABLE},
            other_formats=True,
            priced=True,
        ),
    )
    async def post_table(request: Request, name: DatasetName, body: AskedTable) -> Response:
        """Give a table, the same as for GET."""
        dataset = answering.dataset(name)
        refuse_unknown(request.query_params.multi_items(), ())
        question = question_in_json(dataset.answers.domain, body)
        form = format_accepted(request.headers.get("accept", ""))
        return await table_response(answering, request, dataset, question, form)

    @app.post(
        "/api/datasets/{id}/tables.{format}",
        dependencies=[Depends(json_only)],
        **operation(
            "tables",
            "post_table_as",
            "A table in the format of the suffix, asked for in JSON",
            TableModel,
            {**PAID, **BAD_BODY},
            other_formats=True,
            priced=True,
        ),
    )
    async def post_table_as(
        request: Request, name: DatasetName, suffix: FormatName, body: AskedTable
    ) -> Response:
        """Give a table in the format that the address names, the same as for GET."""
        form = format_named(suffix)
        dataset = answering.dataset(name)
        refuse_unknown(request.query_params.multi_items(), ())
        question = question_in_json(dataset.answers.domain, body)
        return await table_response(answering, request, dataset, question, form)

    @app.get(
        "/api/datasets/{id}/accuracy",
        **operation(
            "tables",
            "get_accuracy",
            "How accurate a table will be",
            Accuracy,
            {**UNKNOWN, **REFUSED},
            query=MARGIN,
        ),
    )
    async def get_accuracy(request: Request, name: DatasetName) -> Response:
        """Give the expected error and the price of a table. Counts nobody and costs nothing."""
        dataset = answering.dataset(name)
        question = question_in_query(dataset.answers.domain, request.query_params.multi_items(), known=MARGIN)
        return await _accuracy(request, answering, dataset, question)

    @app.post(
        "/api/datasets/{id}/accuracy",
        dependencies=[Depends(json_only)],
        **operation(
            "tables",
            "post_accuracy",
            "How accurate a table will be, asked in JSON",
            Accuracy,
            {**UNKNOWN, **REFUSED, **BAD_BODY},
        ),
    )
    async def post_accuracy(request: Request, name: DatasetName, body: AskedMargin) -> Response:
        """Give the expected error and the price of a table, the same as for GET."""
        dataset = answering.dataset(name)
        refuse_unknown(request.query_params.multi_items(), ())
        return await _accuracy(request, answering, dataset, question_in_json(dataset.answers.domain, body))


def _asked(answering: Answering, request: Request, name: str) -> tuple[ServedDataset, Question]:
    """Return the dataset with its words in the language of the query, and the question."""
    dataset, items = answering.dataset(name), request.query_params.multi_items()
    question = question_in_query(dataset.answers.domain, items, known=TABLE)
    return dataset.in_language(language_in_query(items)), question


async def table_response(
    answering: Answering,
    request: Request,
    dataset: ServedDataset,
    question: Question,
    form: AnswerFormat,
    *,
    payer: str | None = None,
) -> Response:
    """Return a table as the response to a request; `payer` is the account that pays, if it is already known."""
    if payer is None:
        payer = await payer_of(request, dataset)
    asked = TableQuestion(dataset, question, form, payer, answering.service.signing_key)
    return await answering.response(request, asked, vary=("Accept",))


async def _accuracy(
    request: Request, answering: Answering, dataset: ServedDataset, question: Question
) -> Response:
    document = await answering.done(request, accuracy_of, dataset, question)
    # Do not store it: a question becomes free once somebody has paid for it.
    return Response(
        document_bytes(document), headers={"Cache-Control": "no-store"}, media_type="application/json"
    )
