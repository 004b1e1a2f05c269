"""What a table builder answers when it refuses, as the error that the same question would raise at home."""

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

# Only what speaks of the question; a service that names another error speaks of itself.
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
# What is not there, or not for this method, is another service; what is late or too much is one that is busy.
_OTHER_SERVICE = (404, 405, 408, 429)
_LONGEST = 4_000


def problem_error(url: str, status: int, problem: object) -> PublicError:
    """Return the error for a problem document (RFC 9457): of the same kind, in the words of the service.

    Where the kind says nothing, the status does: what needs a token, or another one, is refused; a request that cannot
    be understood is invalid; and all else is a service that does not answer, or is no table builder.

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
    """Return text that a terminal shows as it is, whoever sent it."""
    return "".join(c if c.isprintable() else " " for c in text[:_LONGEST]).strip()
