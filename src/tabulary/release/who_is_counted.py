"""Who is counted in the tables of a release, as plain sentences that follow from its rules."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tabulary.core.domain import Assignment
from tabulary.core.labels import Labels
from tabulary.planning.words import listed_words
from tabulary.release.table import CONFIDENCE

if TYPE_CHECKING:
    from tabulary.release.release import Release

_MOST_ZEROS, _MOST_LEVELS = 3, 4


def who_is_counted(release: "Release") -> tuple[str, ...]:
    """Return one sentence or a few about each rule that decides who is counted. Public: no count is among them."""
    return tuple(words for rule in RULES if (words := rule(release)))


def _records(release: "Release") -> str:
    records = release.plan.neighbours.records
    if records == 1:
        bound = "A person has one record at most."
    else:
        bound = f"A person may have up to {records:,} records, and each of them is counted."
    return f"The tables count records. {bound} The publisher states this, and the promise depends on it."


def _dropped(release: "Release") -> str:
    if not release.dropping:
        return "No record was left out because a value was missing or unknown."
    named = listed_words([release.labels.name(attribute) for attribute in release.dropping])
    return (
        f"A record whose value of {named} is missing or unknown is left out of every table"
        f"{'' if len(release.dropping) == 1 else ', even if it is one of these values only'}. How many were left out "
        "is not published."
    )


def _weights(_: "Release") -> str:
    return "Every record counts as one: survey weights are not used."


def _total(release: "Release") -> str:
    plan = release.plan
    if plan.neighbours.total_is_public:
        # Some mechanisms measure the public number with noise that is nearly always zero, others not at all.
        if plan.error_of(()).half_widths(CONFIDENCE).max() < 1:
            return "The number of counted records is public, and totals have hardly any error."
        return (
            "The promise does not protect the number of counted records. The tables do not use it: their totals are "
            "estimates like every other number, and have an error too."
        )
    return "The number of counted records is protected like every other number, and has an error too."


def _impossible(release: "Release") -> str:
    zeros = [
        words
        for zero in release.plan.domain.structural_zeros
        if (words := _combination(zero, release.labels))
    ]
    if not zeros:
        return ""
    more = len(zeros) - _MOST_ZEROS
    rest = f"; and {more:,} more, which manifest.json lists" if more > 0 else ""
    return (
        "Some combinations cannot occur, by definition. Nobody is counted there, and the tables show a dash: "
        f"{'; '.join(zeros[:_MOST_ZEROS])}{rest}."
    )


def _combination(zero: Assignment, labels: Labels) -> str:
    return " with ".join(
        f"{labels.name(attribute)} {_levels([labels.level(attribute, code) for code in codes])}"
        for attribute, codes in zero
    )


def _levels(levels: list[str]) -> str:
    """Return levels for a sentence, quoted because they may hold commas, with the number of those that are not named.

    >>> _levels(["0-4", "5-9"]), _levels(list("abcdef"))
    ('“0-4” or “5-9”', '“a”, “b”, “c” or 3 others')
    """
    quoted = [f"“{level}”" for level in levels]
    if len(levels) > _MOST_LEVELS:
        quoted = [*quoted[: _MOST_LEVELS - 1], f"{len(levels) - _MOST_LEVELS + 1} others"]
    *first, last = quoted
    return f"{', '.join(first)} or {last}" if first else last


def _sample(_: "Release") -> str:
    return (
        "The tables are about these records. If the records are a sample, the errors shown do not include the error of "
        "the sample."
    )


RULES: tuple[Callable[["Release"], str], ...] = (_records, _dropped, _weights, _total, _impossible, _sample)
"""The rules that decide who is counted, in the order of the page; a rule that does not apply says nothing."""
