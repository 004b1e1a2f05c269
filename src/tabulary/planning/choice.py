"""From a request to a plan: the options, and the choice of the best mechanism."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from tabulary.core.domain import MAX_CELLS, Domain
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Loss,
    Privacy,
    PureDP,
    gaussian_rho,
    loss_from_description,
    privacy_from_description,
)
from tabulary.core.workload import Workload
from tabulary.errors import (
    InvalidNoise,
    InvalidPlan,
    InvalidPrivacy,
    InvalidWorkload,
    PublicError,
    TooManyCells,
    listed,
)
from tabulary.planning.encoding import ENCODINGS
from tabulary.planning.face import CONSTRAINED, Face
from tabulary.planning.mechanism import MECHANISMS, Mechanism, dividing_for_shrinkage
from tabulary.planning.plan import Plan
from tabulary.planning.planners import MARGINS
from tabulary.planning.request import Request
from tabulary.planning.shrink_weights import CLEARLY, RECORDS

OBJECTIVES = ("rmse", "max", "shrink")

# Of mechanisms whose expected errors differ by less than rounding, the one that is easiest to explain.
_ALIKE = 1e-9


def plan(
    domain: Domain,
    workload: Workload | str,
    *,
    privacy: Privacy,
    neighbours: Relation | Neighbours = "add-remove",
    contribution: int = 1,
    sensitive: Iterable[str] = (),
    mechanism: str = "auto",
    reconstruct: str = "auto",
    rounding: str = "auto",
    objective: str = "auto",
    records: int | None = None,
    max_cells: int = MAX_CELLS,
) -> Plan:
    """Return what will be measured for these tables at this privacy, with its expected error. Reads no data.

    Args:
        domain: the attributes and levels.
        workload: the wanted margins, as a `Workload` or as text such as "[sex age][age job]".
        privacy: `PureDP(1)`, `ApproxDP(1, 1e-9)` or `ZCDP("1/8")`.
        neighbours: "add-remove" (a person's records are there or not) or "replace". Where records with an unknown
            value are dropped, "replace" has to know: `Neighbours("replace", may_drop=True)`.
        contribution: the most records of one person.
        sensitive: the only attributes whose values are protected, with "replace" neighbours; none means all.
        mechanism: "cells", "margins", "fourier", "efron-stein", "residual", one that another package adds, or
            "auto" for the one whose linear estimate has the smallest expected error.
        reconstruct: the published face. "shrink", which "auto" means: non-negative tables that agree, each with as
            much of its interactions as is clearly not noise; "least-squares" or "lp" for such tables as margins of
            one full table; "none" for the linear estimates; "shift" for linear estimates raised until they are
            hardly ever negative. The release keeps the measurements, so every face can be made later, for nothing.
        rounding: "controlled" for whole numbers that still add up; "nearest" for whole numbers by themselves, with
            "least-squares" or "lp"; "none" for real numbers; "auto" for "controlled" wherever tables agree.
        objective: which expected error is to be small. "rmse": the mean square over all wanted cells, each
            margin by its weight; "max": the largest mean square of a wanted margin times its weight; "shrink":
            what shrunk tables need most, by the mechanism "residual"; "auto" for "shrink" where it is asked for by
            reconstruct = "shrink", or where mechanism and reconstruct are "auto" too and shrunk tables are expected
            to have less than 80 % of the error of any linear estimate; otherwise "rmse".
        records: about how many records there are, if that is public: what the objective "shrink" assumes when it
            divides the budget, 100,000 by default. A wrong number costs accuracy, never privacy.
        max_cells: refuse a table with more cells than this.

    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> print(plan(domain, "[sex][sex job]", privacy=PureDP(1)))
    2 tables by mechanism 'cells' at ε = 1 (add-remove), L1 sensitivity 1
    """
    work = Workload.parse(workload, domain) if isinstance(workload, str) else workload
    if not isinstance(work, Workload) or work.domain != domain:
        raise InvalidWorkload("the workload is text such as '[sex age]', or a Workload of the same domain.")
    if not isinstance(privacy, PureDP | ApproxDP | ZCDP):
        raise InvalidPrivacy(
            f"privacy must be PureDP(ε), ApproxDP(ε, δ) or ZCDP(ρ), not {type(privacy).__name__}."
        )
    hidden = Workload(domain, [tuple(sensitive)]).margins[0]
    if isinstance(neighbours, Neighbours):
        relation = replace(neighbours, sensitive=Workload(domain, [neighbours.sensitive]).margins[0])
        if contribution not in (1, relation.records) or hidden not in ((), relation.sensitive):
            raise InvalidPrivacy(
                "the neighbours are given twice, and differently: as Neighbours, and as contribution or sensitive. "
                "Give them once."
            )
    else:
        relation = Neighbours(neighbours, contribution, hidden)
    offered = [n for n in MECHANISMS if MECHANISMS[n].query.protects_some or not relation.sensitive]
    if mechanism in MECHANISMS and mechanism not in offered:
        able = " or ".join(repr(name) for name in offered)
        raise InvalidPlan(
            f"mechanism {mechanism!r} protects all attributes alike. With sensitive attributes use {able}, which "
            "release exactly what none of them can change."
        )
    face = Face.named(reconstruct, rounding)
    wanted = _option("objective", objective, (*OBJECTIVES, "auto"))
    if mechanism != "auto":
        _option("mechanism", mechanism, (*offered, "auto"))
    dividing = [name for name in dividing_for_shrinkage() if name in offered]
    if wanted == "auto":
        divides = bool(dividing) if mechanism == "auto" else mechanism in dividing
        wanted = "shrink" if reconstruct == "shrink" and divides else "rmse"
    request = Request(
        workload=work,
        privacy=privacy,
        neighbours=relation,
        max_cells=max_cells,
        face=face,
        objective=wanted,
        records=_checked_records(records),
    )
    if mechanism == "auto":
        candidates = compare(request, mechanisms=dividing if wanted == "shrink" else offered)
    elif wanted == "shrink" and mechanism not in dividing:
        raise InvalidPlan(
            f"mechanism {mechanism!r} does not divide its budget for shrunk tables. Use the mechanism "
            f"{listed(dividing)}, or leave the objective out."
        )
    else:
        candidates = compare(request, mechanisms=[mechanism])
    best = chosen(request, candidates)
    if (mechanism, reconstruct, objective) == ("auto", "auto", "auto") and dividing:
        return shrunk_if_better(request, best)
    return best


def shrunk_if_better(request: Request, best: Plan) -> Plan:
    """Return the plan that divides the budget for shrunk tables where that is clearly better than the best other."""
    asked = replace(request, objective="shrink")
    try:
        shrunk = chosen(asked, compare(asked, mechanisms=dividing_for_shrinkage()))
    except (TooManyCells, InvalidPlan, InvalidNoise):
        return best
    return shrunk if clearly_better(shrunk, best) else best


def clearly_better(shrunk: Plan, best: Plan) -> bool:
    """Return whether the model expects clearly less error of a plan for shrunk tables than of the best other one.

    Choose it only if its expected error is below 80 % of the best linear estimate: its unbiased estimates are worse.
    """
    return shrunk.expected_rmse < CLEARLY * best.expected_rmse


def chosen(request: Request, candidates: list[Plan]) -> Plan:
    """Return the plan with the smallest expected error, and of those that are alike the simplest."""
    least = min(map(request.expected, candidates))
    alike = [c for c in candidates if request.expected(c) <= least * (1 + _ALIKE)]
    return min(alike, key=lambda candidate: MECHANISMS[candidate.mechanism].rank)


def compare(request: Request, *, mechanisms: list[str]) -> list[Plan]:
    """Return the plans that these mechanisms offer, skipping one that is too large if another is not."""
    found: list[Plan] = []
    refused: list[tuple[Mechanism, PublicError]] = []
    for mechanism in (MECHANISMS[name] for name in mechanisms):
        for loss in _losses(request.privacy):
            if any(
                plan.loss == loss and MECHANISMS[plan.mechanism].surpasses(plan, request, mechanism)
                for plan in found
            ):
                continue
            rivals = [request.expected(plan) for plan in found if plan.mechanism != mechanism.name]
            if rivals and mechanism.least_error(request, loss) > min(rivals):
                continue
            try:
                _check_full_table(request)
                found.append(mechanism.plan(request, loss))
            except (TooManyCells, InvalidPlan, InvalidNoise) as refusal:
                refused.append((mechanism, refusal))
    if not found:
        # What stops the margins, the least demanding of them, stops all.
        least = [refusal for mechanism, refusal in refused if mechanism is MARGINS]
        raise least[-1] if least and len(mechanisms) > 1 else refused[0][1]
    return found


def _check_full_table(request: Request) -> None:
    """Refuse a reconstruction whose unknown, the full table, would not fit."""
    if request.face.reconstruct in CONSTRAINED:
        try:
            request.domain.check_cells(request.attributes, request.max_cells)
        except TooManyCells as refusal:
            raise TooManyCells(
                f"reconstruct = {request.face.reconstruct!r} builds the full table: {refusal} reconstruct = 'shrink' "
                "needs no full table."
            ) from None


def plan_from_description(description: object) -> Plan:
    """Return the plan that `Plan.describe` wrote, re-derived and checked; refuse anything else.

    The noise is taken as described and its cost computed anew, so a scale that is too small for the promise
    is found whoever wrote it.
    """
    try:
        assert isinstance(description, dict)
        domain = Domain.from_description(description["domain"])
        work = description["workload"]
        near = description["neighbours"]
        mechanism = MECHANISMS[_option("mechanism", description["mechanism"], MECHANISMS)]
        found = Plan(
            domain=domain,
            workload=Workload(domain, [m["attributes"] for m in work], [m["weight"] for m in work]),
            privacy=privacy_from_description(description["privacy"]),
            loss=loss_from_description(description["loss"]),
            neighbours=Neighbours(
                near["relation"], near["records"], domain.margin(near["sensitive"]), near["may_drop"]
            ),
            mechanism=mechanism.name,
            measured=tuple(mechanism.part_from_description(part) for part in description["measured"]),
            exact=tuple(tuple(s) for s in description["exact"]),
            encoding=_option("encoding", description["encoding"], ENCODINGS),
            reconstruct=description["reconstruct"],
            rounding=description["rounding"],
            records=description.get("records"),
        )
    except (AssertionError, KeyError, TypeError, AttributeError):
        raise InvalidPlan("this is not the description of a plan that Tabulary writes.") from None
    if found.describe() != description:
        raise InvalidPlan("the description of the plan claims something that does not follow from the rest.")
    return found


def _losses(privacy: Privacy) -> list[Loss]:
    """Return the losses that keep the promise: each calls for its own family of noise."""
    if isinstance(privacy, ApproxDP):
        return [GaussianDP(gaussian_rho(privacy)), PureDP(privacy.epsilon)]
    return [privacy]


def _checked_records(records: int | None) -> int:
    if records is None:
        return RECORDS
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise InvalidPlan(
            f"records must be a positive whole number, the approximate number of records, not {records!r}."
        )
    return records


def _option(name: str, value: object, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise InvalidPlan(f"{name} must be one of {listed(known)}, not {value!r}.")
    return value
