"""The answer of a study of one plan in a few sentences."""

from tabulary.core.budget import amount, show_amount, symbol
from tabulary.core.privacy import Privacy
from tabulary.studies.own_data.findings import Findings, band_ends, people, percent
from tabulary.studies.own_data.grid import Series
from tabulary.studies.own_data.study import PlanStudy

LARGE_CELLS = "the cells with at least 1 % of the people"


def answer(study: PlanStudy, found: Findings, own: Privacy) -> list[str]:
    """Return what a reader in a hurry should know: the error at the plan's own amount, the best, the target kept."""
    said = []
    subject = next((series for series in study.series if series.own), study.series[0])
    errors = {series: found.rmse(series, own) for series in study.series}
    mine, band = errors[subject], found.band("all", "rmse", subject, own)
    tables = len(study.measures.margins)
    what = "the table" if tables == 1 else f"all {tables:,} tables together"
    if mine is not None and band is not None:
        whose = "the plan's own mechanism" if subject.own else "the first of the mechanisms named"
        expected = found.expected(subject, own)
        beside = "" if expected is None else f" The plan alone, without data, expects {people(expected)}."
        said.append(
            f"At {own}, the plan's own amount, a count published by {subject.name}, {whose}, is off by "
            f"{people(mine)} people: the root mean square over the cells of {what} and over {study.repetitions} "
            f"repetitions.{beside} By itself one release is off by {people(band.middle)} in the median, "
            f"{people(band.low)} to {people(band.high)} ({band_ends(study.repetitions)})."
        )
    said += _compared(subject, errors)
    said += _target(study, found)
    if study.release is not None and study.release.plan.reconstruct == "shrink":
        said.append(
            "The people were made up from shrunk tables: shrunk tables look better here than on the records, the more "
            f"so with less privacy than the {study.release.plan.privacy} of the release."
        )
    if study.confidential:
        said.append(
            "A choice that is made after looking at this page depends on the records, and the promise of the release "
            "does not cover what the choice gives away. Choose before you look, or look at a page that "
            "was made from an earlier release."
        )
    return said


def _compared(subject: Series, errors: dict[Series, float | None]) -> list[str]:
    others = {
        series: error for series, error in errors.items() if error is not None and series is not subject
    }
    mine = errors[subject]
    if mine is None or not others:
        return []
    best, error = min(others.items(), key=lambda item: item[1])
    if error < mine:
        how = "" if error < 0.95 * mine else ", which is hardly a difference"
        return [
            f"{capital(best.name)} has the smallest error there, {people(error)}: {percent(error / mine)} of "
            f"that{how}."
        ]
    ratio = error / mine if mine else 1.0
    return [
        f"None of the others has a smaller error there: {best.name}, the next, has {people(error)}, "
        f"{ratio:.2f} times as much."
    ]


def _target(study: PlanStudy, found: Findings) -> list[str]:
    measure, letter = "largest_relative_error", symbol(study.planned.plan.privacy)
    rows = found.sheets.get("all", ())
    if not rows:
        return [
            "Nothing could be measured, at any amount or by any mechanism; the end of this page says why."
        ]
    if all(row[measure] is None for row in rows):
        return [
            "No cell of these tables holds 1 % of the people, so that there is no relative error to speak of."
        ]
    told = []
    for series in study.series:
        measured = found.measured(measure, series, study.grid)
        if not measured:
            continue
        last = f"{letter} = {show_amount(amount(measured[-1]))}"
        least = found.kept_from(measure, study.target, series, measured)
        if least is None:
            told.append(f"{series.name} not up to {last}")
        else:
            already = ", the smallest compared" if least == amount(study.grid[0]) else ""
            further = "" if measured[-1] == study.grid[-1] else f", and was not measured beyond {last}"
            told.append(f"{series.name} from {letter} = {show_amount(least)} on{already}{further}")
    return [
        f"The largest relative error among {LARGE_CELLS} is at most {percent(study.target)}, in the median: "
        f"{'; '.join(told)}."
    ]


def capital(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]
