"""What the numbers say of the paper's guarantees: non-negative tables without a program, and bounds on errors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabulary.studies import Figure, ReportSection, Row, Sheets, Summary, number
from tabulary_papers.three_approaches.charts import bounds_chart, corollary_chart, shift_chart
from tabulary_papers.three_approaches.measured import PROGRAM

if TYPE_CHECKING:
    from tabulary_papers.three_approaches.study import ThreeApproaches


def corollary_words(rows: Sequence[Row]) -> str:
    """Return how the claim of Corollary 1 stands to the truth."""
    broken = [row for row in rows if number(row, "true") > number(row, "claimed")]
    if not broken:
        return "The failure probability that Corollary 1 claims was not exceeded at any d and t that was looked at."
    worst = max(broken, key=lambda row: number(row, "true") - number(row, "claimed"))
    return (
        f"Corollary 1 claims too small a failure probability in {len(broken)} of {len(rows)} combinations "
        f"of d and t; at d = {worst['coefficients']} it claims {number(worst, 'claimed'):.2f} where the "
        f"truth is {number(worst, 'true'):.2f}."
    )


def shift_words(study: "ThreeApproaches", rows: Sequence[Row]) -> str:
    """Return what the three shifts add to a cell."""
    parts = []
    for way in study.ways:
        bias = {
            str(row["shift"]): number(row, "bias")
            for row in rows
            if row["way"] == way and row["failure"] == study.failure
        }
        if bias:
            parts.append(
                f"{way}-way {bias['Corollary 1']:,.0f}, {bias['quantile of the norm']:,.0f} and "
                f"{bias['what is needed']:,.0f} people"
            )
    return (
        f"To be non-negative with probability {1 - study.failure:.0%} every cell is raised, by Corollary 1, "
        f"by the exact quantile of the norm, and by what is needed whatever the data: {'; '.join(parts)}."
    )


def raised_section(study: "ThreeApproaches", sheets: Sheets) -> ReportSection:
    """Return the part on non-negative tables without a program."""
    rows = sheets["shifts"]
    table = [
        (
            f"{row['way']}-way, d = {row['coefficients']}, {row['shift']}",
            f"{number(row, 'added'):,.0f}",
            f"{number(row, 'bias'):,.1f}",
            f"{number(row, 'norm_failed'):.3%}",
            f"{number(row, 'negative'):.3%}",
        )
        for row in rows
        if row["failure"] == study.failure
    ]
    return ReportSection(
        "Non-negative without a program",
        (
            "Adding a constant to the total raises all cells alike. Theorem 6 says that the L1 norm of the "
            "noise is enough, and Corollary 1 that t·d times the scale of the noise is, but with "
            "probability exp(−t). The norm of d Laplace draws has a Gamma law, whose quantile is the "
            "smallest shift that Theorem 6 allows.",
            "The norm itself is more than is needed: a cell would be that negative only if all signs fell "
            "together in it. The last of the three shifts is the quantile of what the most negative cell "
            "of a table of nobody lacks. It depends on the noise alone, so it tells nothing about anybody; "
            "it takes the full table to compute.",
        ),
        (
            Summary(
                f"Shifts for a failure of {study.failure:.0%}, k = {max(study.tried)}",
                (
                    "tables, coefficients, shift",
                    "added to the total",
                    "bias of a cell",
                    "norm above it",
                    "negative cell",
                ),
                tuple(table),
                note=f"The last two columns are shares of {rows[0]['draws']:,} draws.",
            ),
        ),
        (
            Figure(
                "corollary",
                corollary_chart(sheets["corollary"]),
                "The failure probability that Corollary 1 claims, and the true one.",
                "Curves of the true against the claimed probability, one for each number of coefficients, "
                "and a line where the two are equal.",
            ),
            Figure(
                "shift-bias",
                shift_chart(rows),
                "What each shift adds to a cell.",
                "Panels by order of the tables: the bias of a cell against the probability of a negative "
                "cell for three shifts.",
            ),
        ),
    )


def bounds_section(study: "ThreeApproaches", sheets: Sheets) -> ReportSection:
    """Return the part on the bounds of the paper beside what was measured."""
    pure = str(study.privacies[0])
    measured = [row for row in sheets["measured"] if row["privacy"] == pure]
    table, words = [], []
    size = max(study.tried)
    for way in study.ways:
        mine = [
            row
            for row in measured
            if (row["way"], row["attributes"], row["approach"]) == (way, size, PROGRAM)
        ]
        bound = {
            (str(row["bound"]), str(row["tables"])): number(row, "l1")
            for row in sheets["bounds"]
            if (row["way"], row["attributes"]) == (way, size)
        }
        largest = [number(row, "largest_l1") for row in mine]
        quantile = float(np.quantile(largest, 1 - study.failure))
        table.append(
            (
                f"{way}-way",
                f"{bound['Theorem 5', 'all']:,.0f}",
                f"{bound['quantile', 'all']:,.0f}",
                f"{quantile:,.0f}",
                f"{max(largest):,.0f}",
                f"{bound['Theorem 5', 'all'] / quantile:,.0f}",
                f"{bound['quantile', 'all'] / quantile:,.1f}",
            )
        )
        above = {
            name: float(np.mean([v > bound[name, "all"] for v in largest]))
            for name in ("Theorem 5", "quantile")
        }
        words.append(
            f"{way}-way tables at k = {size}: Theorem 5 was exceeded in {above['Theorem 5']:.1%} and the "
            f"bound from the exact quantile in {above['quantile']:.1%} of {len(largest)} repetitions, where "
            f"{study.failure:.0%} would be allowed."
        )
    return ReportSection(
        "Bounds and errors",
        (
            "Theorem 5 bounds the L1 error of every table that comes out of the linear program. The bound from "
            "the exact quantile starts at the exact quantile of the largest draw of the noise, where the theorem "
            "has an inequality; that of Cauchy and Schwarz then puts the root of the number of cells of a table "
            "in the place of the number. The factor of two between the largest draw and a coefficient of the program "
            "stays, so this is a bound and no quantile of the error. Without the program the factor falls "
            "away, and the quantile of the L1 norm of a table's draws is taken where it gives less.",
            *words,
        ),
        (
            Summary(
                f"Largest L1 error of a table, {pure}, k = {size}, with probability {1 - study.failure:.0%}",
                (
                    "tables",
                    "Theorem 5",
                    "bound from the exact quantile",
                    "measured quantile",
                    "measured largest",
                    "Theorem 5 / measured",
                    "bound from quantile / measured",
                ),
                tuple(table),
            ),
        ),
        (
            Figure(
                "bounds",
                bounds_chart(sheets["bounds"], sheets["measured"], failure=study.failure),
                "Bounds on the error of tables, and errors measured.",
                "Panels by order of the tables: two bounds for the linear program, one for plain "
                "coefficients, and the errors that were measured, against the number of attributes.",
            ),
        ),
    )
