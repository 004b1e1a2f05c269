"""What the study of noise-aware tests says: its sentences are chosen by the numbers."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tabulary.perturb import Laplace
from tabulary.studies import Figure, ReportSection, Row, Sheets, Summary, chosen, numbers, rejected, shown
from tabulary_papers.noise_aware_tests import charts
from tabulary_papers.noise_aware_tests.printed import (
    ASYMPTOTIC,
    CRITICAL,
    DELTAS,
    DEPENDENT,
    EXACT_POWER,
    FIT_DELTAS,
    INDEPENDENT,
    LARGE_COUNTS,
    NAIVE,
    ORIGINAL,
    POWER,
    RATIO,
    REPETITIONS,
    TABLE_3,
    WEAKLY,
)
from tabulary_papers.noise_aware_tests.study import COLUMNS, MATCHED, NoiseAwareTests


@dataclass(frozen=True)
class Point:
    """What is known of one count's test at a critical value: its level and its power, in draws and exactly."""

    critical: float
    level: float
    power: float


def sections(study: NoiseAwareTests, sheets: Sheets) -> Sequence[ReportSection]:
    """Return the sections of the page."""
    rows = sheets["tests"]
    lowest = min(numbers(rows, "level"))
    usual = [row for row in rows if row["level"] == lowest]
    large = [row for row in rows if row["level"] != lowest]
    return [
        ReportSection("In short", tuple(_answer(usual, large, sheets))),
        _table_3(usual, study),
        _large_counts(large),
        _one_count(sheets, study),
    ]


def _answer(usual: Sequence[Row], large: Sequence[Row], sheets: Sheets) -> Iterable[str]:
    pairs = ((INDEPENDENT, INDEPENDENT), (DEPENDENT, DEPENDENT), (DEPENDENT, WEAKLY))
    same, stated, implied = (_agreement(usual, *pair) for pair in pairs)
    yield (
        "Printed shares of p ≤ 0.05 in Table 3 that lie within two standard errors of ours, those of both "
        f"runs taken together: of independent tables {same[0]} of {same[1]}; of dependent ones {stated[0]} "
        f"of {stated[1]} with the interaction 0.7 that the paper states, and {implied[0]} of {implied[1]} "
        "with 0.31. The latter was chosen to give the statistic that is printed of tables before the noise, "
        "so only the lines after the noise check it."
    )
    spans = {}
    for test, (p_value, _) in COLUMNS.items():
        shares = [
            rejected(usual, p_value, epsilon=epsilon, bound=bound, attributes=INDEPENDENT)
            for epsilon, bound in DELTAS
        ]
        rates = [share.rate for share in shares if share is not None]
        spans[test] = f"{min(rates):.1%} to {max(rates):.1%}" if rates else "–"
    yield (
        "How often true independence is rejected at 5 %, the least and the most over four noises: "
        f"{spans[ORIGINAL]} before the noise, {spans[NAIVE]} by the naive test, "
        f"{spans[RATIO]} by the likelihood ratio that knows the noise, compared with χ², "
        f"and {spans[MATCHED]} with the package's own p-value."
    )
    yield _power(usual)
    naive, ratio = (shown(rejected(large, COLUMNS[test][0]), ".3f") for test in (NAIVE, RATIO))
    yield (
        f"With about {_mean_cell(large):.0f} people a cell at ε = 0.1, m = 10 the naive test has a level of "
        f"{naive} (printed: {LARGE_COUNTS[NAIVE]}), the likelihood ratio {ratio} (printed: "
        f"{LARGE_COUNTS[RATIO]})."
    )
    for bound in CRITICAL:
        drawn, exact = drawn_point(sheets, bound), exact_point(sheets, bound, CRITICAL[bound])
        yield (
            f"Figure 4 at m = {bound}: 95 % of the statistics are at most {drawn.critical:.2f} in our draws "
            f"(printed: {CRITICAL[bound]}). The exact level at the printed value is {exact.level:.3f}, and "
            f"the power {exact.power:.3f} (printed: {POWER[bound]})."
        )


def _power(rows: Sequence[Row]) -> str:
    """Return in how many weakly dependent tables the noise-aware test finds it, where least and where most."""
    kept = []
    for epsilon, bound in DELTAS:
        own = chosen(rows, epsilon=epsilon, bound=bound, attributes=WEAKLY)
        after, before = (rejected(own, COLUMNS[test][0]) for test in (MATCHED, ORIGINAL))
        if after is not None:
            kept.append((after.rate, f"ε = {epsilon}, m = {bound}", shown(before)))
    if not kept:
        return "What the noise costs in power is not known: no fit to a weakly dependent table converged."
    (least, worst, exact), (most, best, other) = min(kept), max(kept)
    return (
        f"What the noise costs in power: weak dependence is found by the noise-aware test in {least:.0%} of "
        f"tables at {worst} ({exact} before the noise), and in {most:.0%} at {best} ({other})."
    )


def _agreement(rows: Sequence[Row], printed_as: str, ours_as: str) -> tuple[int, int]:
    """Return how many printed shares lie within two standard errors of ours, of how many that have one of ours."""
    near = total = 0
    for (epsilon, bound, printed_kind, test), line in TABLE_3.items():
        if printed_kind != printed_as:
            continue
        ours = rejected(rows, COLUMNS[test][0], epsilon=epsilon, bound=bound, attributes=ours_as)
        if ours is None:
            continue
        total += 1
        # Shares of nought or all would have no error of their own.
        together = (ours.times + line.share * REPETITIONS + 1) / (ours.trials + REPETITIONS + 2)
        error = math.sqrt(together * (1 - together) * (1 / ours.trials + 1 / REPETITIONS))
        near += abs(ours.rate - line.share) <= 2 * error
    return near, total


def _mean_cell(rows: Sequence[Row]) -> float:
    return statistics.mean(numbers(rows, "people")) / 100


def _table_3(rows: Sequence[Row], study: NoiseAwareTests) -> ReportSection:
    kinds = {
        INDEPENDENT: ("independent attributes", INDEPENDENT),
        WEAKLY: ("dependent attributes, interaction 0.31", DEPENDENT),
        DEPENDENT: ("dependent attributes, interaction 0.7 as stated", DEPENDENT),
    }
    summaries = [_lines(rows, kind, named, printed, study) for kind, (named, printed) in kinds.items()]
    printed_mean = statistics.mean(
        line.statistic
        for (_, _, kind, test), line in TABLE_3.items()
        if (kind, test) == (DEPENDENT, ORIGINAL)
    )
    means = {
        kind: statistics.mean(numbers(rows, "original_statistic", attributes=kind))
        for kind in (WEAKLY, DEPENDENT)
    }
    deltas = tuple(
        (f"ε = {epsilon}, m = {bound}", printed, f"{Laplace(epsilon, bound=bound).delta:.4f}")
        for (epsilon, bound), printed in DELTAS.items()
    )
    return ReportSection(
        "Table 3: tests of independence",
        (
            f"About {_mean_cell(rows):.0f} people a cell. A test that rejects independent tables more often "
            "than 5 % is no test of 5 %, whatever it finds in dependent ones.",
            f"Before any noise the statistic of the paper's dependent tables is {printed_mean:.1f} on "
            f"average. The model that it states has {means[DEPENDENT]:.1f} here; an interaction of 0.31 "
            f"instead of 0.7 has {means[WEAKLY]:.1f}.",
            *_failures(rows),
        ),
        (
            *summaries,
            Summary("δ of the noise", ("noise", "printed", "exact"), deltas),
        ),
        (
            Figure(
                "table-3",
                charts.table_3_chart(rows),
                "Share of tables with independence rejected at 5 %, with 95 % intervals, and as printed.",
                "Points with intervals for four tests and four noises, in a panel for independent tables and "
                "one for each interaction of dependent ones; ticks mark the printed shares, a line the 5 %.",
            ),
        ),
    )


def _failures(rows: Sequence[Row]) -> list[str]:
    """Return a sentence about the fits that failed, where any did: they are missing from every share."""
    missing = sum(row["ratio_p"] is None for row in rows)
    return [f"The fit did not converge for {missing:,} of {len(rows):,} tables."] if missing else []


def _lines(rows: Sequence[Row], kind: str, named: str, printed_kind: str, study: NoiseAwareTests) -> Summary:
    lines = []
    for epsilon, bound in DELTAS:
        own = chosen(rows, epsilon=epsilon, bound=bound, attributes=kind)
        for test, (p_value, statistic) in COLUMNS.items():
            printed = TABLE_3.get((epsilon, bound, printed_kind, test))
            lines.append(
                (
                    f"{epsilon}, {bound}: {test}",
                    shown(rejected(own, p_value), ".1%"),
                    f"{printed.share:.1%}" if printed else "–",
                    _mean(numbers(own, statistic), 1),
                    f"{printed.statistic:.1f} ({printed.statistic_error:.3f})" if printed else "–",
                    _mean(numbers(own, p_value), 3),
                    f"{printed.p:.3f} ({printed.p_error:.3f})" if printed else "–",
                )
            )
    return Summary(
        f"{named[0].upper()}{named[1:]}: {study.repetitions:,} tables a design, {REPETITIONS:,} in the "
        "paper; standard errors in brackets",
        ("ε, m: test", "p ≤ 0.05", "printed", "mean statistic", "printed", "mean p", "printed"),
        tuple(lines),
    )


def _large_counts(rows: Sequence[Row]) -> ReportSection:
    lines = [
        (test, shown(rejected(rows, p_value), ".3f", interval=True), str(LARGE_COUNTS.get(test, "–")))
        for test, (p_value, _) in COLUMNS.items()
    ]
    return ReportSection(
        "The remark on large counts",
        (
            "The paper: with ε = 0.1, m = 10 “and an average count of about 400 per cell, the naive test "
            "still has a significance level of about 0.12”, the likelihood ratio “a level of about 0.05”. "
            f"Here cells have {_mean_cell(rows):.0f} people on average.",
            *_failures(rows),
        ),
        (Summary("Level of the tests, with 95 % intervals", ("test", "p ≤ 0.05", "printed"), tuple(lines)),),
    )


def drawn_point(sheets: Sheets, bound: int) -> Point:
    """Return the critical value of the draws, and their level and power there."""
    rows = chosen(sheets["one-count"], bound=bound)
    under, against = (sorted(numbers(rows, f"statistic_{p0}")) for p0 in ("0.5", "0.7"))
    critical = under[math.ceil(0.95 * len(under)) - 1]
    return Point(critical, _above(under, critical), _above(against, critical))


def exact_point(sheets: Sheets, bound: int, critical: float | None = None) -> Point:
    """Return level and power by the exact law at a critical value, rounded or not.

    Without one, at the smallest value with 95 % up to it.
    """
    rows = chosen(sheets["one-count-law"], bound=bound)
    chances = numbers(rows, "probability")
    under, against = (numbers(rows, f"statistic_{p0}") for p0 in ("0.5", "0.7"))
    if critical is None:
        so_far = 0.0
        for value, chance in sorted(zip(under, chances, strict=True)):
            so_far, critical = so_far + chance, value
            if so_far >= 0.95:
                break
    assert critical is not None, "a law has a value"
    # A printed value is rounded, and two released values beside the mean have one statistic but for rounding.
    nearest = min(under, key=lambda value: abs(value - critical))
    limit = (nearest if abs(nearest - critical) < 0.005 else critical) + 1e-9
    level, power = (
        math.fsum(chance for value, chance in zip(values, chances, strict=True) if value > limit)
        for values in (under, against)
    )
    return Point(critical, level, power)


def _one_count(sheets: Sheets, study: NoiseAwareTests) -> ReportSection:
    lines = []
    for bound in CRITICAL:
        drawn, exact = drawn_point(sheets, bound), exact_point(sheets, bound)
        usual, theirs = (exact_point(sheets, bound, value) for value in (ASYMPTOTIC, CRITICAL[bound]))
        lines += [
            (f"m = {bound}: printed, 500 draws", f"{CRITICAL[bound]}", "0.05", f"{POWER[bound]}"),
            (f"m = {bound}: ours, {study.draws:,} draws", *_shown(drawn)),
            (f"m = {bound}: exactly, at the printed value", *_shown(theirs)),
            (f"m = {bound}: exactly, at the least with 95 % up to it", *_shown(exact)),
            (f"m = {bound}: exactly, at the χ² value", *_shown(usual)),
        ]
    without = exact_point(sheets, 0, ASYMPTOTIC)
    lines += [
        ("no noise: printed", "–", "–", f"{EXACT_POWER}"),
        ("no noise: exactly, at the χ² value", *_shown(without)),
    ]
    deltas = tuple(
        (f"m = {bound}", printed, f"{Laplace('0.5', bound=bound).delta:.5f}")
        for bound, printed in FIT_DELTAS.items()
    )
    return ReportSection(
        "Figure 4: the share of one count",
        (
            "80 people, each with the property with probability 0.5. The likelihood ratio tests the share "
            "0.5, which is true, and 0.7, which is not; ε = 0.5. What the paper draws can be summed: few "
            "values can be released, and the probability of each is known. The statistic therefore jumps, "
            "and a critical value from draws is one of a few.",
        ),
        (
            Summary(
                "The point with 95 % of the statistics of a true hypothesis up to it",
                ("", "critical value", "level", "power against 0.7"),
                tuple(lines),
            ),
            Summary("δ of the noise", ("bound", "printed", "exact"), deltas),
        ),
        (
            Figure(
                "figure-4",
                charts.figure_4_chart(
                    sheets, {bound: drawn_point(sheets, bound).critical for bound in CRITICAL}
                ),
                "Twice the logarithm of the likelihood ratio: draws (bars) and the exact law (points).",
                "Histograms for m = 5 and m = 10: testing the true share 0.5 left and the false share 0.7 "
                "right; a line at the critical value.",
            ),
        ),
    )


def _shown(point: Point) -> tuple[str, str, str]:
    return f"{point.critical:.2f}", f"{point.level:.3f}", f"{point.power:.3f}"


def _mean(values: Sequence[float], digits: int) -> str:
    if len(values) < 2:
        return "–"
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.mean(values):.{digits}f} ({error:.3f})"


def _above(values: Sequence[float], critical: float) -> float:
    return sum(value > critical + 1e-9 for value in values) / len(values)
