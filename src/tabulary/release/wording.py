"""What the tables of a release hold and how they were made, in plain words that follow from its plan."""

import datetime
from typing import TYPE_CHECKING

from tabulary.planning import MECHANISMS, Plan
from tabulary.planning.words import listed_words
from tabulary.reconstruct.constrained import Facts

if TYPE_CHECKING:
    from tabulary.release.manifest import Imprint
    from tabulary.release.release import Release


_MOST_NAMED = 5


def content_words(release: "Release", imprint: "Imprint") -> str:
    """Return what a release counts, where that is from, and when it was published, in one sentence."""
    labels, margins = release.labels, release.margins
    names = [labels.name(a) for a in release.plan.domain.attributes if any(a in m for m in margins)]
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} more attributes"]
    by = f" by {listed_words(names)}" if names else ""
    these = f"These {len(margins):,} tables show" if len(margins) > 1 else "This table shows"
    source = f" (source: {labels.source.rstrip('.')})" if labels.source else ""
    day = datetime.date.fromisoformat(imprint.date)
    signed = f" and signed by {imprint.signer.name}" if imprint.signer else ""
    return f"{these} the number of {labels.unit or 'people'}{by}{source}, published on {day.day} {day:%B %Y}{signed}."


def mechanism_words(plan: Plan) -> str:
    """Return a description of the measurements, in plain words."""
    return MECHANISMS[plan.mechanism].words(plan)


def afterwards_words(plan: Plan) -> str:
    """Return how the measurements were processed before publication."""
    if plan.reconstruct == plan.rounding == "none":
        return (
            "Nothing was rounded, clipped or adjusted afterwards: each count is the true count plus noise "
            "whose mean is zero, so sums and averages of many counts are not biased."
        )
    if plan.reconstruct == "shift":
        return (
            "Afterwards the total was raised by a constant, so that a cell is hardly ever negative. On "
            "average every cell is too large by the same amount; the stated errors include that."
        )
    if plan.reconstruct == "shrink":
        return (
            "Afterwards the tables were shrunk. A combination of attributes adds something to smaller "
            "tables; only the part of it that is clearly not noise was kept. The rest follows from the "
            "smaller tables, the base: for two attributes that is independence, or dependence through a "
            "third one. The published tables are non-negative and agree with each other. This costs no "
            "privacy."
        )
    what = {
        "least-squares": "the non-negative table closest to the measurements, in units of the noise",
        "lp": "a non-negative table whose largest deviation from the measurements is as small as possible",
    }[plan.reconstruct]
    whole = {"none": "", "nearest": ", each cell rounded to the nearest whole number"}.get(
        plan.rounding, ", rounded at random to whole numbers that keep the sums"
    )
    return (
        f"Afterwards one full table was found: {what}{whole}. The published tables are its margins, so they "
        "are non-negative and agree with each other. This costs no privacy, but it biases: small counts "
        "become larger and large ones smaller. The stated errors include that bias. They were simulated "
        "from this release alone, by measuring and reconstructing it again; the accuracy table "
        "above shows the expected errors of the plain measurements."
    )


SHRUNK_HELD = "93 % to 100 %"
"""How often intervals of shrunk tables that say 95 % held in the trials of the page "Shrinkage", over all cells."""


def coverage_words() -> str:
    """Return how often the intervals of shrunk tables hold, by the trials in the documentation."""
    return (
        "In trials with invented people, intervals of shrunk tables that say 95 % contained the truth "
        f"{SHRUNK_HELD} of the time over all cells, about 93 % in large cells of sparse tables, "
        "and never in a cell that was made to differ from all around it. The page “Shrinkage” of "
        "Tabulary’s documentation describes these trials."
    )


def bias_words(plan: Plan, facts: Facts) -> str:
    """Return what a reader of shrunk tables must know about their bias."""
    if plan.reconstruct != "shrink":
        return ""
    said = [
        "These tables are biased towards their base: relations that could not be distinguished from noise "
        "are missing."
    ]
    if "bias_share" in facts:
        said.append(
            f"About {100 * float(facts['bias_share']):.0f} % of the expected squared error in combinations "
            "of attributes is bias, which does not average out over many cells."
        )
    if facts.get("independence_mixed_in"):
        said.append(
            f"To let the tables agree, {100 * float(facts['independence_mixed_in']):.0f} % of independence was mixed "
            "into all of them."
        )
    said.append(
        "The standard errors and intervals of these tables were simulated from this release "
        "alone, and include that bias. An association that seems absent here may only be "
        "weaker than the noise. For a test, a model or a sum of many cells use the unbiased estimates, which this "
        "folder holds too."
    )
    return " ".join(said)


def rounding_words(plan: Plan, facts: Facts) -> str:
    """Return how shrunk tables were rounded to whole numbers, and how far their cells moved."""
    if plan.reconstruct != "shrink":
        return ""
    if plan.rounding == "none":
        left = float(facts.get("largest_difference", 0.0))
        return f"If two tables share attributes, their sums differ by at most {left:.1g}." if left else ""
    how = {
        "margins": "The tables were then rounded at random to whole numbers with the same rounded margins",
        "population": (
            "The tables were then counted from one population of whole records that is close to them"
        ),
    }.get(str(facts.get("method")), "The tables were then made whole")
    moved = (
        (
            f": no count changed by more than {float(facts['largest_move']):.3g}; the root mean square of the "
            f"changes is {float(facts['rms_move']):.2g}, and the stated errors include it"
        )
        if "largest_move" in facts and "rms_move" in facts
        else ""
    )
    return f"{how}, so that they still agree{moved}."
