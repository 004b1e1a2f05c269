"""What the study of perturbation says: its sentences are chosen by the numbers."""

import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from tabulary.studies import (
    SIGNIFICANT,
    Figure,
    Proportion,
    ReportSection,
    Row,
    Sheets,
    Summary,
    chosen,
    distinct,
    number,
    numbers,
    perturbed_chart,
    rejected,
    shown,
)
from tabulary_papers.perturbation import charts
from tabulary_papers.perturbation.printed import ORIGINALS
from tabulary_papers.perturbation.study import PerturbationStudy

_FAMILIES = ("laplace", "normal")
_LOSSES = ("l1", "l2", "l3")
_NARROW = 0.005


def sections(study: PerturbationStudy, sheets: Sheets) -> Sequence[ReportSection]:
    """Return the sections of the page."""
    return [
        ReportSection("In short", tuple(_answer(sheets))),
        _table_2(sheets),
        _census(sheets),
        _independent(study, sheets),
        _levels(sheets),
        _privacy(sheets),
    ]


def _answer(sheets: Sheets) -> Iterable[str]:
    table_2 = sheets["table-2"]
    same = sum(f"{row['probability']:.2f}" == f"{row['printed']:.2f}" for row in table_2)
    yield f"Table 2: {same} of its {len(table_2)} printed probabilities are ours to the last printed digit."
    less, pairs = _laplace_loses_less(sheets)
    yield (
        f"At equal ε and nearly equal δ, Laplace has the smaller median loss in {less} of {pairs} "
        "comparisons: three tables, three losses, every ε."
    )
    for size in ("small", "large"):
        naive, aware = (_worst(sheets, size, test) for test in ("naive_p", "aware_p"))
        yield (
            f"In the {size} table no association is there to be found. Of fresh tables like it, the naive "
            f"test rejects {naive} where it promises 5 %; the noise-aware test {aware}."
        )


def _laplace_loses_less(sheets: Sheets) -> tuple[int, int]:
    less = pairs = 0
    for table, epsilon in distinct(sheets["perturbed"], "table", "epsilon"):
        for loss in _LOSSES:
            laplace, normal = (
                statistics.median(
                    numbers(sheets["perturbed"], loss, table=table, epsilon=epsilon, family=family)
                )
                for family in _FAMILIES
            )
            pairs += 1
            less += laplace < normal
    return less, pairs


def _worst(sheets: Sheets, size: str, test: str) -> str:
    """Return the largest share of fresh tables that a test rejects under any of the laws, in words with the law."""
    found: dict[str, Proportion] = {}
    for family, epsilon in distinct(sheets["fresh"], "family", "epsilon"):
        share = rejected(sheets["fresh"], test, table=size, family=family, epsilon=epsilon)
        if share is not None:
            found[f"{str(family).capitalize()}, ε = {epsilon:g}"] = share
    if not found:
        return "could be fitted to none of them"
    where = max(found, key=lambda law: found[law].rate)
    return f"{shown(found[where])} at worst ({where})"


def _table_2(sheets: Sheets) -> ReportSection:
    rows, found = sheets["table-2"], []
    laws = distinct(rows, "family", "epsilon", "bound")
    for family, epsilon, bound in laws:
        for original in ORIGINALS:
            cells = chosen(rows, family=family, epsilon=epsilon, original=original)
            found.append(
                (
                    f"{str(family).capitalize()}, ε = {epsilon:g}, m = {bound}: {original}",
                    *(f"{cell['probability']:.4f} ({cell['printed']:.2f})" for cell in cells),
                )
            )

    def chances(family: str, epsilon: float, within: int) -> list[float]:
        return numbers(rows, "probability", family=family, epsilon=epsilon, within=within)

    drops = [
        1 - normal / laplace
        for epsilon in (1.5, 0.5)
        for laplace, normal in zip(chances("laplace", epsilon, 4), chances("normal", epsilon, 4), strict=True)
    ]
    return ReportSection(
        "Table 2: how far a published count is from the original",
        (
            "The paper says of Laplace: “All perturbed values are within ±3 for ε = 1.5 and δ = 0.00002”: "
            f"each with a probability of at least {min(chances('laplace', 1.5, 3)):.4f}. “[O]ver 92% of the "
            "perturbed values are within ±4 for ε = 0.5 and δ = 0.008”: at least "
            f"{min(chances('laplace', 0.5, 4)):.4f}. “The corresponding probabilities for the normal "
            f"perturbations are between 6% and 25% lower”: within ±4 they are {min(drops):.0%} to "
            f"{max(drops):.0%} lower.",
        ),
        (
            Summary(
                "Probability of a published value within ±0 to ±4 of the original, negatives being zero: "
                "ours (printed)",
                ("law: original value", "± 0", "± 1", "± 2", "± 3", "± 4"),
                tuple(found),
            ),
        ),
    )


def _census(sheets: Sheets) -> ReportSection:
    rows = chosen(sheets["perturbed"], table="UK census")
    ranges = {
        (family, epsilon): _quartile_range(numbers(rows, "cramers_v", family=family, epsilon=epsilon))
        for family, epsilon in distinct(rows, "family", "epsilon")
    }
    narrow = sum(width < _NARROW for width in ranges.values())
    widest = {family: max(w for (f, _), w in ranges.items() if f == family) for family in _FAMILIES}
    largest = max(numbers(rows, "naive_p"))
    [truth] = chosen(sheets["tables"], table="UK census")
    return ReportSection(
        "Figure 1: a census table",
        (
            "“[U]nder both perturbation mechanisms, the inter-quartile range of the statistic [Cramér's V] "
            f"is less than 0.005”: so it is for {narrow} of {len(ranges)} laws. The widest is "
            f"{widest['laplace']:.4f} for Laplace and {widest['normal']:.4f} for Normal.",
            f"“[T]he inference did not change”: the largest p-value of {len(rows):,} perturbed tables is "
            f"{f'{largest:.1g}' if largest else 'too small for a number of the computer'}.",
        ),
        (_medians(rows),),
        (
            Figure(
                "figure-1",
                perturbed_chart(rows, truth, name="The UK census table"),
                "Cramér's V and three losses of the census table. "
                "Boxes hold the middle half of the repetitions.",
                "Box plots by ε, Laplace left and Normal right: Cramér's V with the true value as a line, "
                "and the losses ℓ₁, ℓ₂ and ℓ₃.",
            ),
        ),
    )


def _medians(rows: Sequence[Row]) -> Summary:
    found = []
    for (epsilon,) in distinct(rows, "epsilon"):
        line = [f"{epsilon:g}"]
        for measure in ("cramers_v", *_LOSSES):
            for family in _FAMILIES:
                values = numbers(rows, measure, family=family, epsilon=epsilon)
                line.append(f"{statistics.median(values):.4g}")
        found.append(tuple(line))
    heads = [f"{what}, {family.capitalize()}" for what in ("V", "ℓ₁", "ℓ₂", "ℓ₃") for family in _FAMILIES]
    return Summary("Medians over the repetitions", ("ε", *heads), tuple(found))


def _independent(study: PerturbationStudy, sheets: Sheets) -> ReportSection:
    words, figures, summaries = [], [], []
    for figure, size in ((2, "small"), (3, "large")):
        rows = chosen(sheets["perturbed"], table=size)
        [truth] = chosen(sheets["tables"], table=size)
        true_p = float(truth["p"] or 0)
        verdict = "rejected" if true_p <= SIGNIFICANT else "not rejected"
        words.append(
            f"The {size} table, {truth['rows']} × {truth['columns']}: p = {true_p:.3g}, "
            f"Cramér's V = {truth['cramers_v']:.4f}. Independence is {verdict} in the table itself. "
            f"A perturbation changes that verdict {_changes(rows, true_p)}."
        )
        planned = [row for row in rows if study.fits(size, int(number(row, "repetition")))]
        words += _failures(planned, f"perturbations of the {size} table")
        if size == "large":
            words += [_correct_from(rows, family) for family in _FAMILIES]
        summaries.append(
            _rejections(rows, f"The {size} table of Figure {figure}: share of perturbations with p ≤ 0.05")
        )
        figures.append(
            Figure(
                f"figure-{figure}",
                charts.independent_chart(rows, truth, size, study),
                f"The {size} table without association: p-values, Cramér's V and three losses.",
                "Box plots by ε, Laplace left and Normal right: the p-value of the naive and of the "
                "noise-aware test, Cramér's V, and the losses ℓ₁, ℓ₂ and ℓ₃.",
            )
        )
    return ReportSection(
        "Figures 2 and 3: tables without association",
        (
            "The paper: under “both perturbation mechanisms we rarely change the inference from independence "
            "to dependence for the small table (with large counts) but this is not the case for the large "
            "table (with small counts). For the latter table under the Normal perturbations, we are unable "
            "to obtain correct inference for any of the ε whilst under the Laplace perturbations we would "
            "need ε over 2.0 in order not to reject independence.” It speaks of one table of each size, "
            "whose own p-value is luck; the next part has many.",
            "The paper says neither how its 1,000 cells are arranged nor how uneven its margins are. Both "
            "were chosen here after several tries, as what keeps the boxes within the axes of its Figure 3; "
            "other choices were seen to give other shares of rejected tables. So the shares below hold for "
            "these tables, and are no proof for or against the paper's, which are not known.",
            *words,
        ),
        tuple(summaries),
        tuple(figures),
    )


def _changes(rows: Sequence[Row], true_p: float) -> str:
    """Return how often the verdict on a perturbed table is not that on the table itself, in words."""
    parts = []
    for test, named in (("naive_p", "naive test"), ("aware_p", "noise-aware test")):
        for family in _FAMILIES:
            law = family.capitalize()
            found = rejected(rows, test, family=family)
            if found is None:
                parts.append(f"in no case that is known for the {named} and {law}, where every fit failed")
                continue
            changed = found.trials - found.times if true_p <= SIGNIFICANT else found.times
            parts.append(f"in {changed:,} of {found.trials:,} cases for the {named} and {law}")
    return ", ".join(parts)


def _correct_from(rows: Sequence[Row], family: str) -> str:
    """Return from which ε on the naive test is right more often than not, in words."""
    right = {}
    for (epsilon,) in distinct(rows, "epsilon"):
        share = rejected(rows, "naive_p", family=family, epsilon=epsilon)
        assert share is not None, "the naive test fits nothing that could fail"
        right[epsilon] = share.rate < 0.5
    wrong = [epsilon for epsilon, is_right in right.items() if not is_right]
    subject = f"With {family.capitalize()} perturbations of the large table the naive test"
    if not wrong:
        return f"{subject} keeps from rejecting more often than not at every ε tried."
    above = [epsilon for epsilon in right if epsilon > max(wrong)]
    if not above:
        return f"{subject} rejects more often than not up to the largest ε tried, {max(wrong):g}."
    last, first = max(wrong), min(above)
    return f"{subject} rejects more often than not up to ε = {last:g}, and no longer at ε = {first:g}."


def _levels(sheets: Sheets) -> ReportSection:
    rows = sheets["fresh"]
    summaries = []
    for (size,) in sorted(distinct(rows, "table"), reverse=True):
        own = chosen(rows, table=size)
        # The p-value of the table itself stands in a row for each law.
        tables = {row["number"]: row for row in own}
        exact = rejected(tables.values(), "exact_p")
        summaries.append(
            _rejections(
                own,
                f"Fresh tables like the {size} one: share with p ≤ 0.05",
                f"Without perturbation Pearson's test rejects {shown(exact)} of the {len(tables):,} tables.",
            )
        )
    return ReportSection(
        "How often a true hypothesis is rejected",
        (
            "Every table here is new and has no association, so a test at 5 % should reject 5 % of them. The "
            "noise of a perturbation looks like association to a test that does not know of it: the more, "
            "the smaller the counts are beside it.",
            *_failures(rows, "perturbed tables"),
        ),
        tuple(summaries),
        (
            Figure(
                "levels",
                charts.levels_chart(rows),
                "Share of fresh tables without association in which independence is rejected at 5 %.",
                "Curves over ε, a panel for the small and one for the large table: naive and noise-aware "
                "tests after Laplace and Normal perturbation, and a line at the 5 % that each test promises.",
            ),
        ),
    )


def _failures(rows: Sequence[Row], what: str) -> list[str]:
    """Return a sentence about the fits that failed, where any did: they are missing from every share."""
    failed = sum(row["aware_p"] is None for row in rows)
    return [f"The noise-aware fit did not converge for {failed:,} of {len(rows):,} {what}."] if failed else []


def _rejections(rows: Sequence[Row], caption: str, note: str = "") -> Summary:
    found = []
    for (epsilon,) in distinct(rows, "epsilon"):
        line = [f"{epsilon:g}"]
        for family in _FAMILIES:
            for test in ("naive_p", "aware_p"):
                line.append(shown(rejected(rows, test, family=family, epsilon=epsilon), interval=True))
        found.append(tuple(line))
    heads = [f"{family.capitalize()}, {test}" for family in _FAMILIES for test in ("naive", "noise-aware")]
    return Summary(caption, ("ε", *heads), tuple(found), f"{note} In brackets: 95 % intervals.".strip())


def _privacy(sheets: Sheets) -> ReportSection:
    rows = sheets["laws"]
    worst = max(abs(number(row, "delta") / number(row, "delta_at_the_edge") - 1) for row in rows)
    printed = [row for row in rows if row["delta_printed"]]
    rounded = sum(
        f"{number(row, 'delta'):.{len(str(row['delta_printed']).split('.')[1])}f}" == row["delta_printed"]
        for row in printed
    )
    epsilons = [epsilon for (epsilon,) in distinct(rows, "epsilon")]
    smaller = 0
    for epsilon in epsilons:
        pair = chosen(rows, epsilon=epsilon)
        deltas = {row["family"]: number(row, "delta_at_half_epsilon") for row in pair}
        smaller += deltas["normal"] < deltas["laplace"]
    found = tuple(
        (
            f"{str(row['family']).capitalize()}, ε = {row['epsilon']:g}, m = {row['bound']}",
            str(row["delta_printed"] or "–"),
            f"{row['delta']:.3g}",
            f"{row['epsilon_with_this_delta']:.4g}",
            f"{row['delta_at_half_epsilon']:.2g}",
        )
        for row in rows
    )
    return ReportSection(
        "What the laws promise",
        (
            "The paper takes for δ the probability of the outermost value. The exact δ at the named ε "
            f"differs from it by a factor of at most 1 + {worst:.1g}, and {rounded} of {len(printed)} "
            "printed values are ours, rounded. All for one person more or less in one table: who moves from "
            "one cell to another changes two, and several tables of the same people add up.",
            "The ε of Normal is a little smaller than its name, for the same δ: ε (2m - 1)/(2m + 1). At half "
            f"of the named ε, Normal has the smaller δ at {smaller} of {len(epsilons)} ε: the two laws are "
            "as private as each other at one point of their curves only.",
        ),
        (
            Summary(
                "δ as printed, exactly, the smallest ε with that δ, and δ at half of the named ε",
                ("law", "δ printed", "δ at ε", "ε with this δ", "δ at ε/2"),
                found,
            ),
        ),
    )


def _quartile_range(values: Sequence[float]) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low)
