"""The OpenAPI description of every route: its answers, its problems and its parameters."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel
from starlette.responses import Response

from tabulary.builder.api.formats import FORMATS
from tabulary.builder.api.models import ProblemModel
from tabulary.builder.problems import MEDIA_TYPE
from tabulary.builder.service import ServedDataset

DatasetName = Annotated[str, Path(alias="id", description="The name of the dataset, as in the list of them.")]
FormatName = Annotated[
    str, Path(alias="format", description="The format of the table.", json_schema_extra={"enum": [*FORMATS]})
]

Responses = dict[int | str, dict[str, Any]]


def _problem(description: str, *headers: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemModel"}}},
        **({"headers": {name: {"schema": {"type": "string"}} for name in headers}} if headers else {}),
    }


ALWAYS: Responses = {
    400: _problem("The header Host names another service than this one."),
    422: _problem("A parameter is not known, or is not what it should be."),
    429: _problem("Too many requests, too much at a time, or too many wrong tokens.", "Retry-After"),
    500: _problem("An unexpected error. Its cause is not shown."),
    503: _problem(
        "The ledger or the state does not answer, or too much is under way to be done in time.", "Retry-After"
    ),
}
UNKNOWN: Responses = {404: _problem("There is no such dataset, plan or format.")}
NOT_MODIFIED: Responses = {
    304: {"description": "The caller has the answer already: If-None-Match names its tag."}
}
REFUSED: Responses = {403: _problem("The public rules of the dataset do not allow the table.")}
PAID: Responses = {
    **UNKNOWN,
    401: _problem(
        "Questions to this dataset cost privacy budget, and the request names no account that pays.",
        "WWW-Authenticate",
    ),
    403: _problem("The public rules do not allow the table, or the budget cannot pay for it."),
}
BAD_BODY: Responses = {
    400: _problem("The body cannot be read, or the service is not called so."),
    413: _problem("The body is too large."),
    415: _problem("The body is not JSON."),
}
NOT_ACCEPTABLE: Responses = {406: _problem("None of the formats in the header Accept is available.")}

BEARER = "token"
"""The name of the security scheme."""

OPTIONAL_TOKEN: dict[str, Any] = {"security": [{}, {BEARER: []}]}
"""A token is needed only if questions cost."""

_FORMS = {
    "by": "An attribute of the table; as often as needed, in the order in which they are to stand. None: the total.",
    "where": "Only those in this level, as `attribute:level`; once for an attribute.",
    "keep": "A level that is shown of an attribute of the table, as `attribute:level`; as often as needed.",
}
_LANGUAGE = "The language of labels, one of the dataset's; by default its first. PX files hold all languages."
_ESTIMATE = "What the dataset publishes, or the unbiased linear estimate that tests need."


def operation(
    tag: str,
    name: str,
    summary: str,
    answer: type[BaseModel] | None,
    responses: Responses,
    *,
    query: tuple[str, ...] = (),
    other_formats: bool = False,
    priced: bool = False,
) -> dict[str, Any]:
    """Return the description of a route, for FastAPI.

    Our own code writes the answers as bytes and parses the query, so FastAPI has to learn both from here.
    """
    fine: dict[str, Any] = {"description": "The answer."}
    if answer is not None:
        fine["model"] = answer
    if other_formats:
        others = [each.media_type for each in FORMATS.values() if each.media_type != "application/json"]
        fine["content"] = {media: {"schema": _kind(media)} for media in others}
    return {
        "operation_id": name,
        "tags": [tag],
        "summary": summary,
        "response_class": Response,
        "response_model": None,
        "responses": {200: fine, **ALWAYS, **responses},
        "openapi_extra": {
            **({"parameters": [_parameter(each) for each in query]} if query else {}),
            **(OPTIONAL_TOKEN if priced else {}),
        },
    }


def _kind(media_type: str) -> dict[str, Any]:
    """Return the schema of a body: an object if the media type is JSON (RFC 6839), otherwise bytes."""
    return {"type": "object"} if media_type.endswith("+json") else {"type": "string", "format": "binary"}


def _parameter(name: str) -> dict[str, Any]:
    if name == "estimate":
        schema: dict[str, Any] = {"type": "string", "enum": ["published", "linear"], "default": "published"}
        return {"name": name, "in": "query", "required": False, "description": _ESTIMATE, "schema": schema}
    if name == "language":
        schema = {"type": "string"}
        return {"name": name, "in": "query", "required": False, "description": _LANGUAGE, "schema": schema}
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": _FORMS[name],
        "style": "form",
        "explode": True,
        "schema": {"type": "array", "items": {"type": "string"}},
    }


def described(document: dict[str, Any], datasets: Sequence[ServedDataset]) -> dict[str, Any]:
    """Return the description of the service, with two additions: the problem document, and examples that work."""
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {}).setdefault(BEARER, {"type": "http", "scheme": "bearer"})
    components.setdefault("schemas", {})["ProblemModel"] = ProblemModel.model_json_schema(
        ref_template="#/components/schemas/{model}"
    )
    examples = _examples(datasets)
    for path, operations in document["paths"].items():
        if "/datasets/{id}" in path:
            for parameter in (p for each in operations.values() for p in each.get("parameters", ())):
                if found := examples.get(parameter["name"]):
                    parameter["schema"]["examples"] = found
    return document


def _examples(datasets: Sequence[ServedDataset]) -> dict[str, list[Any]]:
    """Return parameters that make a question to the first dataset."""
    if not datasets:
        return {}
    domain = datasets[0].answers.domain
    first, *others = domain.attributes
    filters = [f"{other}:{domain.levels_of(other)[0]}" for other in others[:1]]
    return {
        "id": [dataset.name for dataset in datasets],
        "by": [[first]],
        "where": [filters] if filters else [],
        "keep": [[f"{first}:{domain.levels_of(first)[0]}"]],
    }
