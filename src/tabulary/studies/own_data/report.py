"""What the numbers of a study of one plan say, in words and tables."""

from collections.abc import Sequence

from tabulary.core.budget import show_amount, symbol
from tabulary.core.privacy import Privacy
from tabulary.core.workload import show_margin
from tabulary.release import Release
from tabulary.studies.own_data.answer import LARGE_CELLS, answer, capital
from tabulary.studies.own_data.charts import MOST_PANELS, model_figures, table_figures, test_figures
from tabulary.studies.own_data.counting import modelled_margins
from tabulary.studies.own_data.findings import (
    ENOUGH,
    Band,
    Findings,
    band_chance,
    band_ends,
    people,
    percent,
    ranged,
    small,
)
from tabulary.studies.own_data.measures import needed
from tabulary.studies.own_data.study import PlanStudy
from tabulary.studies.study import ReportSection, Sheets, Summary

# A page shows so many tables one by one; the CSV file holds all.
_MOST_ROWS = 30
_TEST_HEADS = ("test", "mechanism", "counts taken as exact", "knowing the noise")


def sections(study: PlanStudy, sheets: Sheets) -> Sequence[ReportSection]:
    """Return the parts of the page: the answer, how to read it, then tables, models and tests by themselves."""
    found = Findings(sheets, study.planned.plan.privacy)
    own = study.planned.plan.privacy
    made = [
        ReportSection("In short", tuple(answer(study, found, own)), (_at_own(study, found, own),)),
        *([] if study.release is None else [_twin(study, study.release)]),
        ReportSection("How to read this page", _reading(study)),
        ReportSection(
            "Tables",
            _table_words(study),
            tuple(_by_table(study, found, own)),
            tuple(table_figures(study, found)),
        ),
    ]
    if study.measures.models:
        made.append(
            ReportSection(
                "Log-linear models",
                _model_words(study, found, own),
                (_by_model(study, found, own),),
                tuple(model_figures(study, found)),
            )
        )
    if study.measures.tests:
        made.append(
            ReportSection(
                "Tests of independence",
                tuple(_test_words(study, found, own)),
                (_by_decision(study, found, own), _by_strength(study, found, own)),
                tuple(test_figures(study, found)),
            )
        )
    left_out = tuple(_left_out(study, found))
    return [*made, *([ReportSection("What was left out", left_out)] if left_out else [])]


def _at_own(study: PlanStudy, found: Findings, own: Privacy) -> Summary:
    names = [show_margin(margin) for margin in study.measures.margins]
    rows = []
    for series in study.series:
        worst = found.worst_table(series, own, names)
        rows.append(
            (
                series.label,
                people(found.rmse(series, own)),
                people(found.expected(series, own)),
                ranged(found.band("all", "rmse", series, own), people),
                "–" if worst is None else f"{worst[0]} {people(worst[1])}",
                percent(_middle(found.band("all", "l1_share", series, own))),
                percent(_middle(found.band("all", "largest_relative_error", series, own))),
            )
        )
    return Summary(
        f"Every mechanism at {own}, the plan's own amount",
        ("mechanism", "RMSE", "expected", "one release", "worst table", "L1 share", "relative"),
        tuple(rows),
        "RMSE: root mean squared error in people a cell, over all tables and repetitions, beside what the plan expects "
        f"of it; and that of the worst table. One release: median of the repetitions, in brackets "
        f"{band_ends(study.repetitions)}. "
        "L1 share: Σ |error| over the people, mean of the tables. Relative: the largest relative error among "
        f"{LARGE_CELLS}. Both are medians.{_untold(study, found, own)}",
    )


def _untold(study: PlanStudy, found: Findings, own: Privacy) -> str:
    """Return why a mechanism that was measured has no expected error."""
    summed = [
        series.name
        for series in study.series
        if found.rows("expected", series, own) and found.expected(series, own) is None
    ]
    if not summed:
        return ""
    return (
        f" Nothing is expected of {' and '.join(summed)} here: the model of shrunk tables speaks of the tables that "
        "the plan publishes, and not of their sums."
    )


def _twin(study: PlanStudy, release: Release) -> ReportSection:
    named = f"“{release.title}”, " if release.title else ""
    promise = f"{release.plan.privacy} ({release.plan.neighbours})"
    words = [
        "The people behind these numbers are made up. Their tables are those of a release that is public, "
        f"{named}digest {release.digest}, made with the promise {promise}. No record was opened for this page, "
        "and it spends nothing: whatever is computed from a release keeps the promise of the release. It may be "
        "shown to whoever may see the release and the plan.",
        "It shows what would happen to people who resemble the release, not what happens to the people who were "
        "counted. Noise that is in the release is here taken for the truth, and what the release smoothed away "
        "is not here to be lost.",
    ]
    fitted = (m for model in study.measures.models for m in needed(model, study.planned.plan.workload))
    wanted = (*study.measures.margins, *study.measures.tests, *fitted)
    model = modelled_margins(dict.fromkeys(wanted), release)
    if model:
        names = ", ".join(map(show_margin, model[:12])) + (" and others" if len(model) > 12 else "")
        words.append(
            f"The release holds no table on {names}. What the made-up people have there is a model's guess, close "
            "to a tree of the strongest associations that the release has, and the curves for it tell less."
        )
    return ReportSection("Whom this page is about", tuple(words))


def _reading(study: PlanStudy) -> tuple[str, ...]:
    letter = symbol(study.planned.plan.privacy)
    few = f", with {ENOUGH} repetitions or more in 80 %" if study.repetitions < ENOUGH else ""
    return (
        f"Each curve is a mechanism. To the right {letter} grows: less privacy. Further down is less error. The "
        f"upright line is the plan's own {letter}; where a curve crosses it is what the plan would publish by "
        "that mechanism. At equal height, the curve further to the left costs less privacy for the same use.",
        f"A line is the median of {study.repetitions} repetitions: the same {study.truth}, fresh noise. The band goes "
        f"from {band_ends(study.repetitions)}. A release is one repetition more: its error lies in the band in "
        f"{percent(band_chance(study.repetitions))} of all cases{few}. Bands that overlap say that a single release "
        "could come out either way.",
        "Expected is what the plan says before any record is read: exact for linear estimates, a model's guess for "
        "shrunk tables, that of the linear estimate for tables that are made non-negative afterwards. It is a root "
        "mean square, and stands beside that of the repetitions. The median is mostly smaller: large errors are rare, "
        "and few cells seldom have one.",
    )


def _table_words(study: PlanStudy) -> tuple[str, ...]:
    ways = dict.fromkeys(
        f"{series.name}: reconstruct = {series.reconstruct!r}"
        + (f", rounding = {series.rounding!r}" if series.rounding != "none" else "")
        for series in study.series
    )
    return (
        "All cells of all tables count alike here, whatever weights the plan gives them. A table that is not "
        "published by itself is summed from the smallest published one that holds it.",
        f"How each mechanism's tables are made: {'; '.join(ways)}.",
    )


def _by_table(study: PlanStudy, found: Findings, own: Privacy) -> list[Summary]:
    if len(study.measures.margins) < 2:
        return []
    errors = {
        name: [found.rmse(series, own, name) for series in study.series]
        for name in map(show_margin, study.measures.margins)
    }
    worst_first = sorted(errors, key=lambda name: -(errors[name][0] or 0.0))
    shown = worst_first[:_MOST_ROWS]
    left = len(errors) - len(shown)
    more = f" {left:,} more stand in the CSV file." if left else ""
    panels = "" if len(errors) <= MOST_PANELS else " Name up to six margins to see their curves."
    return [
        Summary(
            f"Root mean squared error of each table at {own}, in people a cell",
            ("table", *(series.label for series in study.series)),
            tuple((name, *map(people, errors[name])) for name in shown),
            f"Over cells and repetitions, the worst table of {study.series[0].name} first.{more}{panels}",
        )
    ]


def _model_words(study: PlanStudy, found: Findings, own: Privacy) -> tuple[str, ...]:
    said = [
        f"Each model is fitted to the {study.truth} and to the published tables, both as if they were exact. The L1 "
        "distance of the two fitted distributions is 0 where they are the same and 2 where they have nothing in "
        "common. G² over its degrees of freedom is about 1 for counts that follow the model; noise that is taken "
        "for data and tables that were smoothed both move it."
    ]
    partly = dict.fromkeys(
        str(row["model"]) for row in found.sheets.get("models", ()) if row["g2_ratio_change"] is None
    )
    if partly:
        said.append(
            f"No table of the plan holds all attributes of {' and '.join(partly)}: the fit is made from the "
            "tables on its margins, and there is no G²."
        )
    return tuple(said)


def _by_model(study: PlanStudy, found: Findings, own: Privacy) -> Summary:
    rows = [
        (
            model,
            series.label,
            ranged(found.band("models", "fit_l1", series, own, model), small),
            ranged(found.band("models", "g2_ratio_change", series, own, model), small),
        )
        for model in map(str, study.measures.models)
        for series in study.series
    ]
    return Summary(
        f"Log-linear models at {own}",
        ("model", "mechanism", "L1 distance of the fits", "change of G² / d.f."),
        tuple(rows),
        f"Medians, in brackets {band_ends(study.repetitions)}.",
    )


def _test_words(study: PlanStudy, found: Findings, own: Privacy) -> list[str]:
    said = [
        f"Independence is tested at the 5 % level on the {study.truth} and on every published table, there in two "
        "ways: as if the published counts were exact, and with the noise that the release states. Shown is how often "
        f"the decision is the same as on the {study.truth}."
    ]
    decisions = {row["table"]: row["counts_reject"] for row in found.sheets.get("tests", ())}
    for name, rejected in decisions.items():
        said.append(
            f"On the {study.truth}, independence in {name} is {'rejected' if rejected else 'not rejected'}."
        )
    without = [
        series.name
        for series in study.series
        if (rows := found.rows("tests", series, own)) and all(row["aware_agrees"] is None for row in rows)
    ]
    if without:
        said.append(
            f"The tables of {' and '.join(without)} are reconstructed, and the law of what that leaves of the "
            "noise is not known to a test: there is only the first way."
        )
    return said


def _by_decision(study: PlanStudy, found: Findings, own: Privacy) -> Summary:
    return Summary(
        f"Tests of independence at {own} that decide as on the {study.truth}",
        _TEST_HEADS,
        tuple(
            (
                name,
                series.label,
                ranged(found.share("tests", "naive_agrees", series, own, name), percent),
                ranged(found.share("tests", "aware_agrees", series, own, name), percent),
            )
            for name in map(show_margin, study.measures.tests)
            for series in study.series
        ),
        "Shares of the repetitions, in brackets 95 % confidence intervals.",
    )


def _by_strength(study: PlanStudy, found: Findings, own: Privacy) -> Summary:
    return Summary(
        f"How far Cramér's V is off at {own}",
        _TEST_HEADS,
        tuple(
            (
                name,
                series.label,
                ranged(found.band("tests", "naive_v_error", series, own, name), small),
                ranged(found.band("tests", "aware_v_error", series, own, name), small),
            )
            for name in map(show_margin, study.measures.tests)
            for series in study.series
        ),
        f"Medians, in brackets {band_ends(study.repetitions)}.",
    )


def _left_out(study: PlanStudy, found: Findings) -> list[str]:
    said = [
        f"{capital(refusal.name)} cannot answer this plan: {refusal.reason}" for refusal in study.refusals
    ]
    letter = symbol(study.planned.plan.privacy)
    for row in found.sheets.get("refused", ()):
        at = row["rho" if letter == "ρ" else "epsilon"]
        said.append(
            f"{capital(str(row['mechanism']))} at {letter} = {show_amount(float(at or 0))}: {row['reason']}"
        )
    done = {(str(row["mechanism"]), row["table"]) for row in found.sheets.get("expected", ())}
    asked = len(study.grid) * study.repetitions
    for series in study.series:
        if not any(name == series.name for name, _ in done):
            continue
        refused = sum(row["mechanism"] == series.name for row in found.sheets.get("refused", ()))
        missing = (
            asked
            - refused * study.repetitions
            - sum(row["mechanism"] == series.name for row in found.sheets.get("all", ()))
        )
        if missing:
            said.append(
                f"In {missing:,} of {asked:,} repetitions the reconstruction of {series.name} did not come to an end "
                "that could be checked. They are not counted."
            )
    return said


def _middle(band: Band | None) -> float | None:
    return None if band is None else band.middle
