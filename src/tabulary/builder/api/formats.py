"""The formats of tables, and the choice of the one that a caller asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from tabulary.builder.problems import HTTPProblem
from tabulary.release import writers
from tabulary.release.exchange import document_bytes
from tabulary.release.publication import Publication

# No honest client sends a header with more entries than this.
_MOST_WISHES = 32


class WritableTable(Protocol):
    """A table to be written: as the document that names the question, or as a publication."""

    def document(self) -> Mapping[str, object]:
        """Return the table as plain data."""
        ...

    def publication(self, *, for_people: bool = False) -> Publication:
        """Return the table with the labels of its dataset, and for people with its totals."""
        ...


@dataclass(frozen=True)
class AnswerFormat:
    """A format of tables, with its names in a path, in a header and on a page.

    `writer` writes the file; None for JSON, whose document itself names the question, the dataset and its version.
    `suffix` is the suffix of the file that a browser stores; without a suffix the browser shows the table.
    """

    name: str
    title: str
    media_type: str
    suffix: str = ""
    writer: writers.Format | None = None

    def refuse(self, cells: int) -> None:
        """Raise if a table of this size cannot be written, before anything is counted or spent."""
        if self.writer is not None:
            self.writer.refuse(cells)

    def write(self, table: WritableTable) -> bytes:
        """Return the bytes of the table."""
        if self.writer is None:
            return document_bytes(table.document())
        return self.writer.write(table.publication(for_people=self.writer.for_people))


FORMATS: Mapping[str, AnswerFormat] = MappingProxyType(
    {
        each.name: each
        for each in (
            AnswerFormat("json", "JSON", "application/json"),
            # Offer only formats that work here: a format may need a package that is not installed.
            *(
                AnswerFormat(form.name, form.title, form.media_type, form.suffix, form)
                for form in writers.FORMATS.values()
                if form.is_installed
            ),
        )
    }
)
"""Every format by its name, which is its suffix in a path. The first is the default."""


def format_named(suffix: str) -> AnswerFormat:
    """Return the format of a suffix, or raise a problem.

    >>> format_named("csv").media_type
    'text/csv'
    """
    try:
        return FORMATS[suffix]
    except KeyError:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise HTTPProblem(
            404, "unknown-format", f"There is no such format. A table is given as {known}."
        ) from None


@lru_cache(maxsize=256)
def format_accepted(accept: str) -> AnswerFormat:
    """Return the format that an Accept header prefers (RFC 9110, section 12.5.1), or raise a problem.

    A full type takes precedence over `text/*`, and `text/*` over `*/*`; ties go to the first of `FORMATS`.

    >>> format_accepted("text/csv;q=0.9, */*;q=0.1").name
    'csv'
    >>> format_accepted("").name
    'json'
    """
    wishes = [_wish(part) for part in accept.split(",")[:_MOST_WISHES]] if accept.strip() else [("*/*", 1.0)]
    best = max(FORMATS.values(), key=lambda each: _liking(each.media_type, wishes))
    if _liking(best.media_type, wishes) <= 0:
        known = ", ".join(each.media_type for each in FORMATS.values())
        raise HTTPProblem(
            406, "not-acceptable", f"A table is given as {known}, and the header Accept takes none."
        )
    return best


def _wish(part: str) -> tuple[str, float]:
    """Return a media range and its weight; the weight is zero if it cannot be parsed."""
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
