"""One piece of work of the study: a table perturbed in one way at one ε, many times, and measured as in the paper."""

from tabulary import Table
from tabulary.datasets import describe
from tabulary.errors import NotCertified
from tabulary.infer import loglinear, utility
from tabulary.studies import Lab, Row, Sheets, Value
from tabulary_papers.sparse_tables.methods import Name, Perturbed, measured_as_published, prepared, wanted
from tabulary_papers.sparse_tables.printed import reference


def trials(lab: Lab, name: str, method: Name, epsilon: str, repetitions: int) -> Sheets:
    """Return one row per repetition: the measures of the paper's Figures 1 to 6, and the ε that is really promised."""
    data = describe(name)
    perturb = prepared(method, data, epsilon)
    promised = float(epsilon)
    if method == "as published":
        promised = float(measured_as_published(data, epsilon, "as-published").true_epsilon)
    # One sampler for all repetitions: they draw one after the other.
    sampler = lab.sampler()
    rows = []
    for repetition in range(1, repetitions + 1):
        place: Row = {
            "table": name,
            "method": method,
            "epsilon": float(epsilon),
            "true_epsilon": promised,
            "repetition": repetition,
        }
        rows.append({**place, **measured(name, data.table, perturb(sampler))})
    return {"trials": rows}


def measured(name: str, truth: Table, found: Perturbed) -> Row:
    """Return how far a perturbed table is from the truth, in the paper's measures.

    `mle_l1` is the sum of absolute differences of the fitted shares, twice the total variation. An empty table has no
    fit, and for one that is mostly noise none may be found: what needs it is left blank, and `unfitted` says so.
    """
    row: dict[str, Value] = dict.fromkeys(("sample_size", "max_l1"))
    row["infeasible"] = None if found.infeasible is None else int(found.infeasible)
    row |= {"b": found.b, "unfitted": 1}
    row |= dict.fromkeys(("g2", "g2_change", "mle_l1"))
    if found.table is None:
        return row
    work = wanted(describe(name))
    row["sample_size"] = size = float(found.table.total)
    row["max_l1"] = max(utility.margin_l1(truth, found.table, work).values())
    if size == 0:
        return row
    try:
        fit = found.fit or loglinear(found.table, work)
    except NotCertified:
        return row
    original = reference(name).fit
    return row | {
        "unfitted": 0,
        "g2": fit.g2,
        "g2_change": abs(fit.g2 - original.g2),
        "mle_l1": utility.distribution_l1(original.fitted, fit.fitted),
    }
