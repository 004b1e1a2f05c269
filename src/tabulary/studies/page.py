"""The page of a study: what it says, its tables and its figures, in one file that needs no other."""

import base64
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from tabulary.release.pages import page_template
from tabulary.studies.study import ReportSection, Study, Summary


def page_html(
    study: Study,
    seed: int,
    sections: Sequence[ReportSection],
    drawn: Mapping[str, str],
    numbers: Mapping[str, int],
    tables: Sequence[str],
) -> str:
    """Return the page.

    `drawn` holds the SVG of every figure, `numbers` how many rows each CSV file of numbers has, and `tables` the CSV
    files of the summaries, in their order on the page.
    """
    # As pictures and not as part of the page: charts name their parts alike, and would borrow each other's.
    pictures = {
        stem: f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}"
        for stem, text in drawn.items()
    }
    left = list(tables)
    parts = []
    for section in sections:
        files, left = left[: len(section.summaries)], left[len(section.summaries) :]
        parts.append((section, list(zip(section.summaries, files, strict=True))))
    page: str = page_template("study.html.j2", "tabulary.studies").render(
        study=study,
        seed=seed,
        parts=parts,
        pictures=pictures,
        numbers=numbers,
        wordy=wordy,
        software=version("tabulary"),
    )
    return page


def wordy(summary: Summary) -> list[bool]:
    """Return which columns of a table hold words, which are set to the left and not broken at each of them.

    >>> wordy(Summary("Errors", ("table", "by", "people"), (("[sex age]", "cells", "7.1 (5 to 9)"),)))
    [True, True, False]
    """
    texts = ["".join(row[number] for row in summary.rows) for number in range(len(summary.heads))]
    # Names have letters, and may have digits; numbers have digits, and may have letters.
    return [
        any(map(str.isalpha, text)) and (number == 0 or not any(map(str.isdigit, text)))
        for number, text in enumerate(texts)
    ]
