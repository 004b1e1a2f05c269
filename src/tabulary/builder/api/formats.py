"""The formats in which a table is given, and which of them a caller asks for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from tabulary.builder.problems import Problem
from tabulary.release import writers
from tabulary.release.exchange import document_bytes
from tabulary.release.publication import Publication

# A header with more wishes than these is nobody's honest wish.
_MOST_WISHES = 32


@dataclass(frozen=True)
class Given:
    """A table that is to be written: what makes its document, and what makes its publication.

    Makers, for a format that does not need one of them should not wait for it.
    """

    document: Callable[[], Mapping[str, object]]
    publication: Callable[[], Publication]


@dataclass(frozen=True)
class Format:
    """A way to write a table: what it is called in a path, in a header and on a page, and how it is written.

    `suffix` ends the name of the file as which a browser should keep it; without one it is shown. `refuse` raises if a
    table of so many cells cannot be written, before anything is counted or spent.
    """

    name: str
    title: str
    media_type: str
    write: Callable[[Given], bytes]
    suffix: str = ""
    refuse: Callable[[int], None] = lambda cells: None


def _written(form: writers.Format) -> Format:
    return Format(
        form.name,
        form.title,
        form.media_type,
        lambda given: form.write(given.publication()),
        form.suffix,
        form.refuse,
    )


DOCUMENT = "json"
"""The format of the document that says by itself what was asked, and of which version of which dataset."""

_JSON = Format(DOCUMENT, "JSON", "application/json", lambda given: document_bytes(given.document()))

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        each.name: each
        # Only what can be written here is offered: a format may need a package that is not installed.
        for each in (_JSON, *(_written(form) for form in writers.FORMATS.values() if form.is_installed))
    }
)
"""Every format by its name, which is its suffix in a path; the first is given to a caller who has no wish."""


def format_named(suffix: str) -> Format:
    """Return the format of a suffix, or raise a problem.

    >>> format_named("csv").media_type
    'text/csv'
    """
    try:
        return FORMATS[suffix]
    except KeyError:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise Problem(
            404, "unknown-format", f"There is no such format. A table is given as {known}."
        ) from None


@lru_cache(maxsize=256)
def format_accepted(accept: str) -> Format:
    """Return the format that an Accept header likes best (RFC 9110, section 12.5.1), or raise a problem.

    A type that is named counts more than `text/*`, and that more than `*/*`; ties go to the first of `FORMATS`.

    >>> format_accepted("text/csv;q=0.9, */*;q=0.1").name
    'csv'
    >>> format_accepted("").name
    'json'
    """
    wishes = [_wish(part) for part in accept.split(",")[:_MOST_WISHES]] if accept.strip() else [("*/*", 1.0)]
    best = max(FORMATS.values(), key=lambda each: _liking(each.media_type, wishes))
    if _liking(best.media_type, wishes) <= 0:
        known = ", ".join(each.media_type for each in FORMATS.values())
        raise Problem(
            406, "not-acceptable", f"A table is given as {known}, and the header Accept takes none."
        )
    return best


def _wish(part: str) -> tuple[str, float]:
    """Return a media range and how much it is liked; what cannot be read is not liked at all."""
    media, *parameters = (piece.strip() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
    return media.lower(), quality if 0 <= quality <= 1 else 0.0


def _liking(media_type: str, wishes: list[tuple[str, float]]) -> float:
    plain = media_type.split(";")[0]
    for meant in (plain, f"{plain.split('/')[0]}/*", "*/*"):
        found = [quality for media, quality in wishes if media == meant]
        if found:
            return max(found)
    return 0.0
