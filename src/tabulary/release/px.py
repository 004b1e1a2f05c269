"""PX: the file format of PC-Axis and PxWeb, by the format specification 2013 of Statistics Sweden.

Text in UTF-8: one statement per keyword, then the numbers, one row per cell. The measures of a cell are the content
variable, in the heading. A cell that is not simply estimated has its status beside it (DATANOTECELL); a withheld
number is "..", whose meaning DATASYMBOL2 states.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from tabulary.release.publication import Publication, Status, plain_number, told_apart
from tabulary.release.totals import TOTAL

MEDIA_TYPE = "text/x-pcaxis"
"""What statistical offices send; none is registered."""

# A line of text has at most 256 characters; longer text is cut into quoted pieces well below that.
_PIECE = 200
# This code means all values of a variable, so no value can have it.
_ALL = "*"
# The most decimals that PX allows. With fewer, PX programs would round numbers when they save a file again.
_DECIMALS = 15


def px_bytes(published: Publication) -> bytes:
    """Return the publication as a PX file; the numbers read back to the same floats.

    PX allows no quotation mark within a text: it becomes an apostrophe. Names that become equal are numbered.
    """
    head = "\n".join(_statements(published))
    columns = [published.values(name) for name in published.measures]
    rows = (
        " ".join('".."' if v is None else plain_number(v) for v in cell)
        for cell in zip(*columns, strict=True)
    )
    # The space at the end of a line is what Statistics Sweden recommends.
    return (f"{head}\nDATA=\n" + " \n".join(rows) + ";\n").encode()


def _statements(published: Publication) -> Iterator[str]:
    """Yield every statement before the data, in the recommended order; one further language after the other."""
    first, *others = published.in_languages()
    yield 'CHARSET="ANSI";'
    yield 'AXIS-VERSION="2013";'
    yield 'CODEPAGE="utf-8";'
    if published.words.language:
        yield f"LANGUAGE={_quoted(published.words.language)};"
    if others:
        yield f"LANGUAGES={_listed(each.words.language for each in published.in_languages())};"
    yield f"MATRIX={_quoted(_matrix(published.name))};"
    yield 'SUBJECT-CODE="TAB";'
    yield f"DECIMALS={_DECIMALS};"
    yield f"SHOWDECIMALS={published.decimals('count')};"
    yield from _words(first, "")
    for other in others:
        yield from _words(other, f"[{other.words.language}]")
    if Status.withheld in (marks := published.marks()):
        yield 'DATASYMBOL2="withheld";'
    codes = _codes(published)
    for cell, mark in zip(np.ndindex(*published.domain.shape), marks, strict=True):
        if mark != Status.estimated:
            place = [given[i] for given, i in zip(codes, cell, strict=False)]
            yield f"DATANOTECELL({','.join(map(_quoted, [*place, _ALL]))})={_quoted(mark)};"


def _words(published: Publication, language: str) -> Iterator[str]:
    """Yield the statements that hold words; `language` follows each keyword, in brackets, or is empty."""
    attributes, measures = published.domain.attributes, list(published.measures)
    *stub, heading = told_apart(map(_clean, [*map(published.label, attributes), "Measure"]))
    texts = {
        **{
            variable: [published.level_label(a, level) for level in published.domain.levels_of(a)]
            for variable, a in zip(stub, attributes, strict=True)
        },
        heading: [published.measure_labels[name] for name in measures],
    }
    texts = {variable: told_apart(map(_clean, given)) for variable, given in texts.items()}
    yield f"SUBJECT-AREA{language}={_long(published.words.title or 'Tables')};"
    yield f"TITLE{language}={_long(published.heading)};"
    yield f"CONTENTS{language}={_quoted(published.words.counted())};"
    if stub:
        yield f"STUB{language}={_listed(stub)};"
    yield f"HEADING{language}={_quoted(heading)};"
    yield f"CONTVARIABLE{language}={_quoted(heading)};"
    for variable, given in texts.items():
        yield f"VALUES{language}({_quoted(variable)})={_listed(given)};"
    for variable, attribute in zip(stub, attributes, strict=True):
        yield f"VARIABLECODE{language}({_quoted(variable)})={_quoted(attribute)};"
    for variable, given in zip(texts, _codes(published), strict=True):
        yield f"CODES{language}({_quoted(variable)})={_listed(given)};"
    for variable, attribute in zip(stub, attributes, strict=True):
        # A PX program that leaves a variable out shows its total.
        for level, text in zip(published.domain.levels_of(attribute), texts[variable], strict=True):
            if level == TOTAL:
                yield f"ELIMINATION{language}({_quoted(variable)})={_quoted(text)};"
    for name, text in zip(measures, texts[heading], strict=True):
        if (shown := published.decimals(name)) > published.decimals("count"):
            yield f"PRECISION{language}({_quoted(heading)},{_quoted(text)})={shown};"
    for text in texts[heading]:
        yield f"UNITS{language}({_quoted(text)})={_quoted(published.unit)};"
    if published.origin:
        yield f"SOURCE{language}={_long(published.origin)};"
    # The sign # begins a new line in a note.
    yield f"NOTE{language}={_long('#'.join(published.small_print()))};"


def _codes(published: Publication) -> list[list[str]]:
    """Return the codes of each variable, the measures last."""
    return [
        told_apart(map(_clean, levels), taken=[_ALL])
        for levels in (*published.domain.levels, list(published.measures))
    ]


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text.replace('"', "'"))


def _quoted(text: str) -> str:
    """Return a name in quotes, on one line however long it is: a name is never cut."""
    return f'"{_clean(text)}"'


def _listed(names: Iterable[str]) -> str:
    return ",\n".join(map(_quoted, names))


def _long(text: str) -> str:
    """Return a text in quotes, in pieces that fit a line."""
    return "\n".join(map(_quoted, re.findall(f".{{1,{_PIECE}}}", _clean(text)) or [""]))


def _matrix(name: str) -> str:
    """Return a name of at most twenty letters and digits, as MATRIX allows."""
    return re.sub(r"[^A-Za-z0-9]", "", name)[:20] or "table"
