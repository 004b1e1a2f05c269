"""Refusals of a table builder, as the errors that the same question would raise locally."""

import re
from collections.abc import Mapping
from http import HTTPStatus

from tabulary.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidDomain,
    InvalidNoise,
    InvalidPlan,
    InvalidTable,
    InvalidWorkload,
    NotCertified,
    PublicError,
    ServiceUnreachable,
    TableRefused,
    TooManyCells,
    UnknownDataset,
    UnknownMargin,
)

# Only errors about the question. All other errors are about the service.
_KINDS: Mapping[str, type[PublicError]] = {
    re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower(): kind
    for kind in (
        BudgetExceeded,
        InvalidDomain,
        InvalidNoise,
        InvalidArgument,
        InvalidPlan,
        InvalidTable,
        InvalidWorkload,
        NotCertified,
        TableRefused,
        TooManyCells,
        UnknownDataset,
        UnknownMargin,
    )
} | {"no-plan": InvalidArgument}
# A missing address or method means another kind of service; a timeout or too many requests, a busy one.
_OTHER_SERVICE = (404, 405, 408, 429)
_LONGEST = 4_000


def problem_error(url: str, status: int, problem: object) -> PublicError:
    """Return the error for a problem document (RFC 9457): the same kind, with the message of the service.

    If the kind is not known, the status decides. A missing or wrong token is a refusal. A request that the service
    cannot understand is invalid. Everything else means that the service does not answer or is not a table builder.

    >>> problem_error("http://127.0.0.1:8000", 403, {"type": "budget-exceeded", "detail": "ε = 1/4 is left."})
    BudgetExceeded('ε = 1/4 is left.')
    >>> problem_error("http://127.0.0.1:8000", 500, {})
    ServiceUnreachable('http://127.0.0.1:8000 answers 500 Internal Server Error. Ask again later, ...')
    """
    told = problem if isinstance(problem, dict) else {}
    kind, detail = told.get("type"), told.get("detail")
    words = _printable(detail) if isinstance(detail, str) else ""
    if words and isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind](words)
    if words and status in (401, 403):
        return TableRefused(words)
    if words and 400 <= status < 500 and status not in _OTHER_SERVICE:
        return InvalidWorkload(words)
    return ServiceUnreachable(
        f"{url} answers {status} {_phrase(status)}{f': {words}' if words else '.'} Ask again later, or tell its "
        "custodian."
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "(unknown)"


def _printable(text: str) -> str:
    """Return text that is safe to show in a terminal, from any sender."""
    return "".join(c if c.isprintable() else " " for c in text[:_LONGEST]).strip()
