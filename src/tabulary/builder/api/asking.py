"""Questions in requests: in the query of an address, or as JSON."""

from collections.abc import Collection

from starlette.requests import Request

from tabulary.builder.api.models import AskedMargin, AskedTable
from tabulary.builder.problems import HTTPProblem
from tabulary.core.domain import Domain
from tabulary.errors import InvalidWorkload, listed
from tabulary.workflows.answering.questions import Question

_LONGEST_NAME = 80


def question_in_json(domain: Domain, body: AskedMargin) -> Question:
    """Return the question of a JSON body; refuse names that the domain does not have."""
    linear = isinstance(body, AskedTable) and body.estimate == "linear"
    return Question.of(domain, body.by, body.where, body.keep, linear=linear)


def question_in_query(
    domain: Domain, items: Collection[tuple[str, str]], *, known: Collection[str]
) -> Question:
    """Return the question of a query: `by`, `where` and `keep` as often as needed, `estimate` once.

    Parsed by hand: this runs for every table, and a library's type checks would take longer than everything else.

    >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"]})
    >>> question_in_query(domain, [("by", "age"), ("where", "sex:F")], known=["by", "where"]).where
    (('sex', 'F'),)
    """
    by: list[str] = []
    where: dict[str, str] = {}
    keep: dict[str, list[str]] = {}
    estimates: list[str] = []
    refuse_unknown(items, known)
    for name, value in items:
        match name:
            case "by":
                by.append(value)
            case "where":
                attribute, level = _pair(domain, name, value)
                if where.setdefault(attribute, level) != level:
                    raise InvalidWorkload(
                        f"'where' names two levels of {attribute!r}, and nobody is in both. Ask for a table by it."
                    )
            case "keep":
                attribute, level = _pair(domain, name, value)
                keep.setdefault(attribute, []).append(level)
            case "estimate":
                estimates.append(value)
            case _:
                # Words have no part in a question: `language_in_query` reads them.
                pass
    if estimates not in ([], ["published"], ["linear"]):
        raise HTTPProblem(
            422,
            "invalid-request",
            "the query parameter 'estimate' is 'published' or 'linear'. Nothing was counted.",
        )
    return Question.of(domain, by, where, keep, linear=estimates == ["linear"])


def language_in_query(items: Collection[tuple[str, str]]) -> str:
    """Return the language of the words that a query asks for; empty for the default language.

    >>> language_in_query([("by", "age"), ("language", "fi")])
    'fi'
    """
    given = [value for name, value in items if name == "language" and value]
    if len(given) > 1:
        raise HTTPProblem(
            422, "invalid-request", "the query parameter 'language' is given twice. Nothing was counted."
        )
    return given[0] if given else ""


def refuse_unknown(items: Collection[tuple[str, str]], known: Collection[str]) -> None:
    """Refuse a query with an unknown parameter: a misspelled filter must not count everybody."""
    for name, _ in items:
        if name not in known:
            raise HTTPProblem(
                422,
                "invalid-request",
                f"the query parameter {name[:_LONGEST_NAME]!r} is not known; {listed(known)} can be. Nothing was "
                "counted.",
            )


def json_only(request: Request) -> None:
    """Refuse a body that does not say that it is JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HTTPProblem(
            415, "unsupported-media-type", "Send the question as JSON, with Content-Type: application/json."
        )


def _pair(domain: Domain, parameter: str, value: str) -> tuple[str, str]:
    """Return the attribute and the level of `attribute:level`; either may hold colons."""
    place = value.find(":")
    while place >= 0:
        if value[:place] in domain.attributes:
            return value[:place], value[place + 1 :]
        place = value.find(":", place + 1)
    raise InvalidWorkload(
        f"{parameter!r} is an attribute and a level with a colon between them, and no attribute is named here. They "
        f"are {listed(domain.attributes)}."
    )
