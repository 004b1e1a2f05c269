"""The conclusions that a release supports or does not, with its own numbers. Post-processing of the release alone."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tabulary.core.labels import CODES, Labels
from tabulary.core.workload import show_margin
from tabulary.planning import Plan
from tabulary.planning.face import CONSTRAINED
from tabulary.release.limits import Disagreement, Limits, disagreement, limits_of
from tabulary.release.svg import LEAST_SHOWN, show_count
from tabulary.release.table import CONFIDENCE, ReleasedTable
from tabulary.release.wording import SHRUNK_HELD

# Agreement is not checked for very many tables: it would take longer than the page.
_MOST_COMPARED = 500
# Noise alone does not explain the intervals above zero if there are this many times as many as expected.
_CLEARLY = 5


@dataclass(frozen=True)
class Conclusion:
    """One conclusion that a reader may or may not draw, with the reason, and the command to run if there is one."""

    head: str
    words: str
    command: str = ""


@dataclass(frozen=True)
class Conclusions:
    """The supported and unsupported conclusions of a release, and the limits of each examined table."""

    may: tuple[Conclusion, ...]
    may_not: tuple[Conclusion, ...]
    limits: tuple[Limits, ...]
    possible: int
    above_zero: int


def conclusions(
    plan: Plan, tables: Sequence[ReleasedTable], *, most_limits: int, labels: Labels = CODES
) -> Conclusions:
    """Return what may and may not be concluded from the tables of a plan, with limits of the first `most_limits`.

    Every sentence holds for this release: a sentence that its numbers do not support is left out.
    """
    limits = tuple(limits_of(table) for table in tables[:most_limits])
    possible, above = 0, 0
    for table in tables:
        allowed = ~np.asarray(table.domain.impossible(table.margin))
        possible += int(allowed.sum())
        above += int((table.interval()[0][allowed.reshape(table.shape)] > 0).sum())
    shared = disagreement(tables) if len(tables) <= _MOST_COMPARED else None
    linear = plan.reconstruct == "none" and all(table.covariance is not None for table in tables)
    testable = all(table.unbiased.covariance is not None for table in tables)
    shrunk = plan.reconstruct == "shrink"
    # Symmetric noise puts half of the intervals that miss above zero; in adjusted tables, all of them may be there.
    by_noise = round(possible * (1 - CONFIDENCE) / (2 if linear else 1), 6)
    order = max(len(table.margin) for table in tables)
    drawn = shrunk and order > 1
    clear = above >= _CLEARLY * by_noise and not drawn
    why = _drawn(order, _above_zero(tables)) if drawn else _by_noise(by_noise, linear=linear)
    people = _people(possible, above, why) if above else None
    may = [
        people if clear else None,
        _differences(limits, labels, shrunk=shrunk),
        _agreement(shared, labels) if shared is not None and shared.agrees else None,
        _sums(linear=linear) if testable else None,
        _test(tables) if testable else None,
    ]
    may_not = [
        _one_person(plan, tables, labels, linear=linear),
        None if clear else people,
        _empty(tables),
        _at_once(tables, shrunk=shrunk),
        _agreement(shared, labels) if shared is not None and not shared.agrees else None,
        _biased(plan),
        _as_exact(),
        _sampled(),
    ]
    return Conclusions(
        tuple(each for each in may if each),
        tuple(each for each in may_not if each),
        limits,
        possible,
        above,
    )


def _people(possible: int, above: int, why: str) -> Conclusion:
    if above == possible:
        found = (
            f"All {show_count(possible)} possible cells are" if possible > 1 else "The one possible cell is"
        )
    else:
        are = "is" if above == 1 else "are"
        found = f"Of the {show_count(possible)} possible cells, {show_count(above)} {are}"
    return Conclusion(
        "That people are in a cell whose interval is above zero.", f"{found} of this kind. {why}"
    )


def _above_zero(tables: Sequence[ReleasedTable]) -> int:
    """Return how many cells the unbiased estimates put above zero, each with an interval of its own."""
    return sum(int((np.asarray(table.unbiased.interval()[0]) > 0).sum()) for table in tables)


def _drawn(order: int, seen: int) -> str:
    return (
        "The count of such a cell may follow from "
        f"{'its row and column' if order == 2 else 'smaller tables'} alone. The measurements by themselves put "
        f"{show_count(seen)} cell{'' if seen == 1 else 's'} above zero."
    )


def _by_noise(expected: float, *, linear: bool) -> str:
    if expected >= 1:
        return f"Noise alone would put up to about {show_count(math.ceil(expected))} of them there."
    often = "forty" if linear else "twenty"
    return f"A cell that is truly empty gets such an interval about one time in {often}, or less often."


def _differences(limits: Sequence[Limits], labels: Labels, *, shrunk: bool) -> Conclusion | None:
    known = [(each.difference, each) for each in limits if each.difference]
    if not known:
        return None
    (least, finest), (most, _) = min(known, key=lambda e: e[0]), max(known, key=lambda e: e[0])
    spread = (
        f"that is {show_count(_up(least))}"
        if least == most
        else f"that is from {show_count(_up(least))}, in {labels.table_name(finest.margin)}, to {show_count(_up(most))}"
    )
    return Conclusion(
        "That two counts of one table differ, if their difference is larger than noise makes it.",
        f"The limit for each table is listed below: {spread}. A smaller difference may be noise. The limit "
        "is for two cells that were chosen beforehand, not for the two that stand out."
        + (" It is only as good as the intervals of shrunk tables." if shrunk else ""),
    )


def _agreement(found: Disagreement, labels: Labels) -> Conclusion | None:
    if not found.compared:
        return None
    if found.agrees:
        return Conclusion(
            "That sums over different tables agree.",
            "If two tables share attributes, they give the same sums: you may add up either one.",
        )
    where = f"on {' and '.join(map(labels.name, found.on))}" if found.on else "on the total"
    return Conclusion(
        "That something is wrong if two tables disagree.",
        f"Each table has its own noise: their sums differ by up to {show_count(round(found.largest, 1))} "
        f"({where}). Both are right within their errors. If the folder has a table on exactly these "
        "attributes, use that one.",
    )


def _sums(*, linear: bool) -> Conclusion:
    why = (
        "The mean of the noise is zero, so a sum is not biased."
        if linear
        else "They are made from the unbiased estimates, not from the published counts."
    )
    return Conclusion(
        "Sums and differences of counts, with an interval of their own.",
        f"{why} The error of a sum is not the sum of the errors; tabulary.infer.interval computes it.",
    )


def _test(tables: Sequence[ReleasedTable]) -> Conclusion | None:
    testable = [table.margin for table in tables if table.shape and min(table.shape) > 1]
    margin = next((m for m in testable if len(m) == 2), testable[0] if testable else None)
    if margin is None:
        return None
    asked = "Whether attributes are related" if len(margin) > 1 else "Whether levels are equally frequent"
    return Conclusion(
        f"{asked}, by a test that knows the noise.",
        "A test asks whether the effect is more than noise and chance would make. Its p-value says how often they "
        "alone would make as much: below 0.05, once in twenty times, it is usually called a finding. In this folder:",
        f"tabulary test . {shell_word(show_margin(margin))}",
    )


def _one_person(plan: Plan, tables: Sequence[ReleasedTable], labels: Labels, *, linear: bool) -> Conclusion:
    whose = (
        "The promise above covers only the sensitive attributes"
        if plan.neighbours.sensitive
        else "The promise above limits what all tables together say about one person"
    )
    finest = min((_finest(table, labels) for table in tables), key=lambda each: each[0]) if linear else None
    if finest is None or math.isinf(finest[0]):
        return Conclusion(
            "Who is in a cell, or that one person is there.",
            f"A published count of 1 does not mean one person: its interval says what it may mean. {whose}.",
        )
    width, name = finest
    if width < 1:
        return Conclusion(
            "That nothing here shows one person.",
            f"In the table {name} the noise is so small that counts have an error below one with "
            "probability 95 %: a small count there may show a person to readers who know the others. "
            f"{whose}.",
        )
    return Conclusion(
        "Who is in a cell, or that one person is there.",
        f"Even in the table with the smallest noise, {name}, a published count of 1 may mean any count up "
        f"to {show_count(math.floor(1 + width))}, with probability 95 %. {whose}.",
    )


def _finest(table: ReleasedTable, labels: Labels) -> tuple[float, str]:
    """Return the smallest half-width of the cells that have noise, infinite without any, and the table's name."""
    noisy = np.asarray(table.half_widths(), dtype=np.float64)[np.asarray(table.standard_errors) > 0]
    return float(noisy.min(initial=math.inf)), labels.table_name(table.margin)


def _empty(tables: Sequence[ReleasedTable]) -> Conclusion:
    found, most, impossible = 0, 0.0, False
    for table in tables:
        allowed = ~np.asarray(table.domain.impossible(table.margin)).reshape(table.shape)
        impossible |= not allowed.all()
        none = allowed & (np.asarray(table.counts) < LEAST_SHOWN)
        found += int(none.sum())
        most = max([most, *np.asarray(table.interval()[1])[none].tolist()])
    if not found:
        return Conclusion(
            "That a combination is rare because its count is small.",
            "Its interval says how many people it may mean. No possible cell has a count of zero or below "
            "here, but this does not mean that each of them has people.",
        )
    are = "possible cell has a count" if found == 1 else "possible cells have a count"
    upto = (
        f". By their intervals, one of them may have up to {show_count(math.floor(most))} people"
        if most >= 1
        else ""
    )
    only = " Only a cell marked – is empty, by definition." if impossible else ""
    return Conclusion(
        "That nobody is in a cell with a count of zero or below.",
        f"{show_count(found)} {are} of zero or below{upto}.{only}",
    )


def _at_once(tables: Sequence[ReleasedTable], *, shrunk: bool) -> Conclusion | None:
    cells = sum(int((np.asarray(table.half_widths()) > 0).sum()) for table in tables)
    if cells < 2:
        return None
    head = "That all intervals are right at the same time."
    if shrunk:
        return Conclusion(
            head,
            f"Each says 95 %, and in trials {SHRUNK_HELD} of all intervals contained the truth; the page "
            "“Shrinkage” of Tabulary’s documentation describes the trials. A cell that stands out among "
            "many is the least likely to be right.",
        )
    missing = cells * (1 - CONFIDENCE)
    some = (
        f"up to about {show_count(round(missing))} miss the truth on average"
        if round(missing) > 1
        else "one may miss the truth"
    )
    return Conclusion(
        head,
        f"Each interval is right with probability 95 %. Of the {show_count(cells)} intervals here, {some}, "
        "and the cell that stands out among many may be one of those.",
    )


def _biased(plan: Plan) -> Conclusion | None:
    match plan.reconstruct:
        case "shrink":
            return Conclusion(
                "That attributes are unrelated because these tables show no relation.",
                "The tables are shrunk towards their base, and relations that are weaker than the noise "
                "are missing. A test uses the unbiased estimates instead.",
            )
        case "shift":
            return Conclusion(
                "That sums over many cells are right.",
                "Every cell was raised by the same amount on average, and a sum is raised by this amount "
                "for each of its cells.",
            )
        case kind if kind in CONSTRAINED:
            return Conclusion(
                "That sums over many small cells are right.",
                "The tables were made non-negative, which makes small counts larger and large ones "
                "smaller. The stated errors are for single cells and include that bias; they do not give "
                "the error of a sum. Sums from the unbiased estimates have no such bias.",
            )
    return None


def _as_exact() -> Conclusion:
    return Conclusion(
        "Anything from a method that treats these counts as exact.",
        "A chi-squared test from any package finds association in the noise, and finds more of it with "
        "larger noise.",
    )


def _sampled() -> Conclusion:
    return Conclusion(
        "Anything about people who are not in the records.",
        "The error bars show only the noise. If the records are a sample, the sampling error comes in "
        "addition.",
    )


def _up(width: float) -> float:
    """Return a limit, rounded upwards to one decimal."""
    return width if float(width).is_integer() else math.ceil(10 * width) / 10


def shell_word(word: str) -> str:
    r"""Return a word, quoted for most shells.

    >>> shell_word("[sex age]"), shell_word('[sex "birth country"]')
    ('"[sex age]"', '\'[sex "birth country"]\'')
    """
    return shlex.quote(word) if set(word) & set('"$`\\!') else f'"{word}"'
