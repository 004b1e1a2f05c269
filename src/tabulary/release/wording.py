"""What was done to the tables of a release, in plain words that follow from its plan."""

from collections.abc import Mapping

from tabulary.planning import MECHANISMS, Plan
from tabulary.release.manifest import Fact


def mechanism_words(plan: Plan) -> str:
    """Return what was measured, in plain words."""
    return MECHANISMS[plan.mechanism].words(plan)


def afterwards_words(plan: Plan) -> str:
    """Return what was done to the measurements before they were published."""
    if plan.reconstruct == plan.rounding == "none":
        return (
            "Nothing was rounded, clipped or adjusted afterwards: each count is the true count plus noise "
            "whose mean is zero, so sums and averages of many counts are not biased."
        )
    if plan.reconstruct == "shift":
        return (
            "Afterwards the total was raised by a constant, so that hardly ever a cell is negative. Every cell is "
            "too large by the same amount on average; the stated errors include that."
        )
    if plan.reconstruct == "shrink":
        return (
            "Afterwards the tables were shrunk: of what a combination of attributes adds to smaller tables, only as "
            "much was kept as is clearly not noise. The rest follows from the smaller tables, the base: for two "
            "attributes that is independence, or dependence through a third one. The published tables are non-negative "
            "and agree with each other. That spends no privacy."
        )
    what = {
        "least-squares": "the non-negative table nearest to what was measured, in units of the noise",
        "lp": "a non-negative table whose largest deviation from what was measured is as small as can be",
    }[plan.reconstruct]
    whole = {"none": "", "nearest": ", each cell rounded to the nearest whole number"}.get(
        plan.rounding, ", rounded at random to whole numbers that keep the sums"
    )
    return (
        f"Afterwards one full table was found: {what}{whole}. The published tables are its margins, so they are "
        "non-negative and agree with each other. That spends no privacy, but it biases: small counts come out "
        "larger and large ones smaller. The stated errors are simulated from this release alone, by measuring "
        "and reconstructing it again many times, and include that bias; the accuracy table above is what was "
        "expected of the plain measurements."
    )


SHRUNK_HELD = "88 % to 98 %"
"""How often intervals of shrunk tables that say 95 % held in the trials of the page "Shrinkage", over all cells."""


def coverage_words() -> str:
    """Return how often the intervals of shrunk tables hold, by the trials that the documentation tells about."""
    return (
        f"In trials with made-up people, intervals of shrunk tables that say 95 % held the truth {SHRUNK_HELD} of the "
        "time over all cells, about 85 % in cells of middling size in sparse tables, and never in a cell made to stand "
        "out from all around it. The page “Shrinkage” of Tabulary’s documentation tells of these trials."
    )


def bias_words(plan: Plan, facts: Mapping[str, Fact]) -> str:
    """Return what a reader of shrunk tables must know of their bias."""
    if plan.reconstruct != "shrink":
        return ""
    said = [
        "These tables are biased towards their base: what could not be distinguished from noise is missing in them."
    ]
    if "bias_share" in facts:
        said.append(
            f"Of the squared error expected of what combinations of attributes add, about "
            f"{100 * float(facts['bias_share']):.0f} % is bias, which does not average out over many cells."
        )
    if facts.get("independence_mixed_in"):
        said.append(
            f"To let the tables agree, {100 * float(facts['independence_mixed_in']):.0f} % of independence was mixed "
            "into all of them."
        )
    repetitions = f", in {facts['repetitions']:,} repetitions" if facts.get("repetitions") else ""
    said.append(
        "The standard errors and intervals of these tables are simulated from this release alone"
        f"{repetitions}, and include that bias. "
        "An association that seems absent here may only be weaker than the noise. Whoever needs unbiased tables, for "
        'a test or a model, should ask for a release with reconstruct = "none".'
    )
    return " ".join(said)


def rounding_words(plan: Plan, facts: Mapping[str, Fact]) -> str:
    """Return how shrunk tables became whole, with how far their cells moved."""
    if plan.reconstruct != "shrink":
        return ""
    if plan.rounding == "none":
        left = float(facts.get("largest_difference", 0.0))
        return f"Where two tables share attributes, their sums differ by {left:.1g} at most." if left else ""
    how = {
        "margins": "The tables were then rounded at random to whole numbers with the same rounded margins",
        "population": "The tables were then counted from one population of whole records that comes near to them",
    }.get(str(facts.get("method")), "The tables were then made whole")
    moved = (
        f": no count moved by more than {float(facts['largest_move']):.3g}, and {float(facts['rms_move']):.2g} is the "
        "root mean square of the moves, which the stated errors include"
        if "largest_move" in facts and "rms_move" in facts
        else ""
    )
    return f"{how}, so that they still agree{moved}."
