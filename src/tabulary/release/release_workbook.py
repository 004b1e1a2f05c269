"""The workbook of a whole release: its tables with their totals, who is counted, and what is promised."""

import datetime
from dataclasses import replace
from typing import TYPE_CHECKING

from tabulary.release.promise import promise_of, protection_words
from tabulary.release.table_sheet import ErrorPlace
from tabulary.release.totals import can_have_totals
from tabulary.release.who_is_counted import who_is_counted
from tabulary.release.wording import (
    afterwards_words,
    bias_words,
    content_words,
    mechanism_words,
    rounding_words,
)
from tabulary.release.workbook import HOW_TO_READ, PROMISE, Chapter, workbook_bytes

if TYPE_CHECKING:
    from tabulary.release.manifest import Imprint
    from tabulary.release.release import Release

WORKBOOK = "tables.xlsx"
"""The file of the workbook in the folder of a release."""


def workbook_of(release: "Release", imprint: "Imprint", errors: ErrorPlace) -> bytes:
    """Return the workbook of a release that is published with this imprint, in the release's default language."""
    plan, labels = release.plan, release.labels
    named = [labels.name(a) for a in plan.domain.attributes if any(a in m for m in release.margins)]
    return workbook_bytes(
        [release.publication(m, totals=can_have_totals(release[m].domain)) for m in release.margins],
        title=labels.title or labels.heading(named),
        about=[
            *filter(None, [labels.description]),
            f"{content_words(release, imprint)} {protection_words(plan.privacy, plan.neighbours)}",
            *labels.notes,
        ],
        promise=_promise(release),
        date=datetime.date.fromisoformat(imprint.date),
        errors=errors,
    )


def _promise(release: "Release") -> list[Chapter]:
    # The words are those of the published face, which may be another than the plan's.
    face, facts = release.face.face, release.face.facts
    plan = replace(release.plan, reconstruct=face.reconstruct, rounding=face.rounding)
    promise = promise_of(plan)
    made = (
        mechanism_words(plan),
        afterwards_words(plan),
        rounding_words(plan, facts),
        bias_words(plan, facts),
    )
    return [
        Chapter(PROMISE, (promise.statement, *promise.meaning)),
        Chapter("Who is protected", (promise.protected,)),
        Chapter("Who is counted", who_is_counted(release)),
        Chapter("On what it depends", promise.conditions),
        Chapter("What is not promised", promise.not_promised),
        Chapter("How the numbers were made", tuple(filter(None, made))),
        HOW_TO_READ,
    ]
