"""What the numbers of the study say: the verdict, the paper's tables beside ours, its figures."""

from collections import Counter
from collections.abc import Sequence

from tabulary.studies import ReportSection, Row, Sheets, Summary, distinct, number, numbers
from tabulary_papers.sparse_tables.charts import figure_sections
from tabulary_papers.sparse_tables.printed import FAILURE, TABLES, paper_bound
from tabulary_papers.sparse_tables.verdict import CRITERIA, averages, thresholds

PUBLISHED = "as published"
STRONG = 1.0
"""Thresholds are counted in the sentences up to the largest ε of the grid that is no larger than this."""


def sections(study: object, sheets: Sheets) -> Sequence[ReportSection]:
    """Return the page. Every sentence that states a number or a direction is made from the numbers."""
    order = {name: place for place, name in enumerate(TABLES)}
    tables = sorted(sheets["table-7"], key=lambda row: order[str(row["table"])])
    noise = sorted(sheets["table-8"], key=lambda row: order[str(row["table"])])
    averaged = sorted(averages(sheets["trials"], tables), key=lambda row: order[str(row["table"])])
    reached = thresholds(averaged, tables)
    strong = max((e for e in numbers(averaged, "epsilon") if e <= STRONG), default=STRONG)
    return [
        ReportSection(
            "The verdict",
            (*_moved(reached, strong), *_unfitted(averaged)),
            (_kept(reached, strong), _reached(reached)),
        ),
        _tables_section(tables),
        _noise_section(noise, tables, sheets["trials"]),
        *figure_sections(averaged, tables),
    ]


def _reached(reached: Sequence[Row]) -> Summary:
    methods = _methods(reached)
    found = {(row["measure"], row["table"], row["method"]): _epsilon(row) for row in reached}
    limits = {(row["measure"], row["table"]): number(row, "limit") for row in reached}
    rows = tuple(
        (
            f"{criterion.measure} < {limits[criterion.measure, table]:.3g}",
            table,
            *(found.get((criterion.measure, table, method), "–") for method in methods),
        )
        for criterion in CRITERIA
        for (table,) in distinct(reached, "table")
    )
    return Summary(
        "Thresholds: from which ε on each method is good enough",
        ("measure", "table", *methods),
        rows,
        note="“never” is never up to the largest ε of the grid; noise-aware fits solve no program. "
        + " ".join(
            f"{criterion.measure[0].upper()}{criterion.measure[1:]}: {criterion.rule}."
            for criterion in CRITERIA
        ),
    )


def _kept(reached: Sequence[Row], strong: float) -> Summary:
    """Return on how many tables each method keeps each threshold at an ε that is not too large."""
    methods = _methods(reached)
    there = {(row["measure"], row["method"]) for row in reached}
    count = Counter((row["measure"], row["method"]) for row in _within(reached, strong))
    return Summary(
        f"On how many tables each method is good enough from some ε ≤ {strong:g} on",
        ("measure", "tables", *methods),
        tuple(
            (
                criterion.measure,
                str(len(distinct(reached, "table"))),
                *(
                    str(count[criterion.measure, method]) if (criterion.measure, method) in there else "–"
                    for method in methods
                ),
            )
            for criterion in CRITERIA
        ),
    )


def _methods(reached: Sequence[Row]) -> list[str]:
    return [str(method) for (method,) in distinct(reached, "method")]


def _within(reached: Sequence[Row], strong: float) -> list[Row]:
    return [row for row in reached if row["epsilon"] is not None and number(row, "epsilon") <= strong]


def _moved(reached: Sequence[Row], strong: float) -> list[str]:
    """Return where methods get at useful ε, where the published one does not, and where none does."""
    methods = _methods(reached)
    places = distinct(reached, "measure", "table")
    within = set(distinct(_within(reached, strong), "measure", "table", "method"))
    count = Counter(method for _, _, method in within)
    there = Counter(row["method"] for row in reached)
    shares = ", ".join(f"{method} {count[method]} of {there[method]}" for method in methods)
    sentences = [
        f"There are {len(places)} thresholds, of {len(CRITERIA)} measures on {len(places) // len(CRITERIA)} tables. "
        f"So many are kept from some ε ≤ {strong:g} on: {shares}."
    ]
    others = [method for method in methods if method != PUBLISHED]
    moved = [
        f"{measure} of {table}"
        for measure, table in places
        if (measure, table, PUBLISHED) not in within
        and any((measure, table, method) in within for method in others)
    ]
    stands = [
        f"{measure} of {table}"
        for measure, table in places
        if not any((measure, table, method) in within for method in methods)
    ]
    if moved:
        sentences.append(
            f"Kept at ε ≤ {strong:g} by another method and not as published: {'; '.join(moved)}."
        )
    if stands:
        sentences.append(
            f"Kept by no method at ε ≤ {strong:g}, so that the paper's verdict stands: {'; '.join(stands)}."
        )
    return sentences


def _unfitted(averaged: Sequence[Row]) -> list[str]:
    lacking = [row for row in averaged if row["unfitted"]]
    if not lacking:
        return ["A fit was found in every repetition."]
    count: Counter[tuple[str, str]] = Counter()
    for row in lacking:
        count[str(row["table"]), str(row["method"])] += int(number(row, "unfitted"))
    listed = "; ".join(f"{table}, {method}: {times}" for (table, method), times in count.items())
    return [
        "Repetitions without a fit, since the table was empty or the likelihood not brought to its maximum, which are "
        f"left out of averages: {listed}."
    ]


def _tables_section(tables: Sequence[Row]) -> ReportSection:
    rows = tuple(
        (
            str(row["table"]),
            str(row["dimension"]),
            f"{row['n']:,}",
            f"{row['zero_cells']} of {row['cells']}",
            str(row["model"]),
            f"{row['g2_printed']:.2f}",
            f"{row['g2']:.2f}",
            f"{row['degrees_of_freedom_printed']}",
            f"{row['degrees_of_freedom']}",
            f"{row['degrees_of_freedom_after_zeros']}",
            f"{row['from_uniform_printed']:.2f}",
            f"{row['from_uniform']:.3f}",
        )
        for row in tables
    )
    heads = ("table", "dimension", "n", "zero cells", "model", "G² printed", "G²", "d.f. printed", "d.f.")
    different = [
        str(row["table"]) for row in tables if abs(number(row, "g2") - number(row, "g2_printed")) > 0.01
    ]
    words = (
        (
            f"The G² of the printed counts differ from the printed G² on {len(different)} of {len(rows)} tables.",
        )
        if different
        else ()
    )
    summary = Summary(
        "Table 7 of the paper, printed and recomputed",
        (*heads, "d.f. after zeros", "L1 from equal cells, printed", "L1 from equal cells"),
        rows,
        note="L1 is Σ |p − q| between the shares of the cells, from 0 to 2: twice the total variation. Where zeros put "
        "the fit on the boundary, cells and parameters are lost; the degrees of freedom that are left come after it.",
    )
    return ReportSection("The tables and their models", words, (summary,))


def _noise_section(noise: Sequence[Row], tables: Sequence[Row], trials: Sequence[Row]) -> ReportSection:
    scales = tuple(
        (
            str(row["table"]),
            f"{row['epsilon']:g}",
            f"{row['scale_printed']:.4g}",
            f"{row['scale_as_published']:.4g}",
            f"{row['scale_exact']:.4g}",
            f"{row['bound_printed']:,.0f}",
            f"{row['bound_recomputed']:,.0f}",
            f"{row['bound_quantile']:,.0f}",
        )
        for row in noise
    )
    people = {row["table"]: number(row, "n") for row in tables}
    above = {
        column: sum(number(row, column) > people[row["table"]] for row in noise)
        for column in ("bound_recomputed", "bound_quantile")
    }
    label = [row for row in noise if row["epsilon"] == 1]
    promises = tuple(
        (
            str(row["table"]),
            str(row["mechanism"]),
            f"{row['terms']}",
            f"{row['scale_as_published']:.4g}",
            f"{row['scale_exact']:.4g}",
            f"{row['true_epsilon_as_published']:.3f}",
            f"{row['true_epsilon_exact']:.3f}",
        )
        for row in label
    )
    less = [str(row["table"]) for row in label if number(row, "true_epsilon_as_published") > 1]
    more = [str(row["table"]) for row in label if number(row, "true_epsilon_as_published") < 1]
    words = [
        f"The recomputed bound exceeds the sample size in {above['bound_recomputed']} of {len(noise)} rows, the "
        f"quantile in {above['bound_quantile']}."
    ]
    words.extend(_exceeded(trials))
    if less:
        words.append(f"As published, less is promised than the label says for {', '.join(less)}.")
    if more:
        words.append(f"As published, there is more noise than the label needs for {', '.join(more)}.")
    return ReportSection(
        "Noise, bounds, and what is really promised",
        tuple(words),
        (
            Summary(
                "What a label of ε = 1 really promises, one record replaced",
                (
                    "table",
                    "mechanism",
                    "terms",
                    "sensitivity as published",
                    "exact sensitivity",
                    "true ε as published",
                    "true ε, exact calibration",
                ),
                promises,
                note="L1 sensitivity of all terms in the paper's unit. Figures and thresholds go by the label ε; as "
                "published, what is really promised is the label times the true ε of this table.",
            ),
            Summary(
                "Table 8 of the paper: scale of the noise and bound of the L1 distance of a margin",
                (
                    "table",
                    "ε",
                    "scale printed",
                    "scale as published",
                    "scale, exact calibration",
                    "bound printed",
                    "bound recomputed",
                    "quantile, exact calibration",
                ),
                scales,
                note=f"Bounds at δ = {FAILURE:g}, of the margin that has the largest. Recomputed: the paper's formula "
                "with all sets and the largest margin of the model. The quantile is that of the noise that is drawn, "
                "after the linear program and rounding. Theorem 3, for the journey to work, takes b for 0, a cell of a "
                "margin for one term of one cell, and so leaves out that it sums many; the quantile does neither.",
            ),
        ),
    )


def _exceeded(trials: Sequence[Row]) -> list[str]:
    """Return how often the tables as published are further from the truth than the paper's own bound allows."""
    count: dict[str, list[bool]] = {}
    for row in trials:
        if row["method"] == PUBLISHED and row["max_l1"] is not None:
            table, epsilon = str(row["table"]), number(row, "epsilon")
            count.setdefault(table, []).append(number(row, "max_l1") > paper_bound(table, epsilon))
    if not count:
        return []
    shares = ", ".join(
        f"{table} {sum(own) / len(own):.0%}" for table in TABLES if (own := count.get(table)) is not None
    )
    return [
        "As published, the worst margin is further from the truth than the paper's recomputed bound, which may fail "
        f"in {FAILURE:.0%} of the repetitions, in so many of them: {shares}."
    ]


def _epsilon(row: Row) -> str:
    return "never" if row["epsilon"] is None else f"{row['epsilon']:g}"
