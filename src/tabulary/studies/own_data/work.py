"""One piece of the study: a mechanism at an amount of privacy, again and again on the same counts."""

from tabulary.confidential.tally import Tally
from tabulary.core.budget import amount, column
from tabulary.core.privacy import Privacy
from tabulary.errors import NotCertified, PublicError
from tabulary.mechanisms import measure
from tabulary.reconstruct import reconstruct
from tabulary.studies.own_data.counting import Counts, summed
from tabulary.studies.own_data.grid import Asked, Series
from tabulary.studies.own_data.judging import Judge
from tabulary.studies.own_data.measures import Measures
from tabulary.studies.study import Lab, Row, Sheets


def trials(
    lab: Lab, asked: Asked, series: Series, privacy: Privacy, measures: Measures, repetitions: int
) -> Sheets:
    """Return how far the tables are from the counts in each repetition, and what the plan alone expects.

    The tables are those that a release would hold: counted, measured, reconstructed and rounded by the same functions.
    The errors that a release states are not simulated, for here they can be seen.

    Confidential where the counts are: the noise follows from the seed and the plan, so that exact counts can be worked
    out from these numbers. Whoever may not see the records may not see them.
    """
    place: Row = {"mechanism": series.name, column(privacy): float(amount(privacy))}
    try:
        plan = asked.planned(series, privacy)
    except PublicError as refusal:
        return {"refused": [{**place, "reason": str(refusal)}]}
    counts: Counts = lab.material
    tally = Tally(plan.domain, {margin: summed(counts, margin) for margin in plan.counted})
    judge = Judge(plan, measures, counts)
    sheets: dict[str, list[Row]] = {"all": [], "tables": [], "models": [], "tests": []}
    for repetition in range(repetitions):
        sampler = lab.sampler(str(repetition))
        try:
            made = reconstruct(measure(tally, plan, sampler))
        except NotCertified:
            continue
        here: Row = {**place, "repetition": repetition + 1}
        tables = judge.tables(made.tables)
        found = {
            "all": [judge.together(tables)],
            "tables": tables,
            "models": judge.models(made.tables),
            "tests": judge.tests(made.tables),
        }
        for name, rows in found.items():
            sheets[name] += [{**here, **row} for row in rows]
    sheets["expected"] = [{**place, **row} for row in judge.expected()]
    return {name: rows for name, rows in sheets.items() if rows}
