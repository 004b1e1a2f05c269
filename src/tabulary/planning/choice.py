"""From a request to a plan: the options, and the choice of the best mechanism."""

from collections.abc import Callable, Mapping

from tabulary.core.domain import MAX_CELLS, Domain
from tabulary.core.privacy import (
    ZCDP,
    ApproxDP,
    Neighbours,
    Privacy,
    PureDP,
    Relation,
    approx_to_zcdp,
    privacy_from_description,
)
from tabulary.core.workload import Workload
from tabulary.errors import InvalidPlan, InvalidPrivacy, InvalidWorkload, PublicError, TooManyCells, listed
from tabulary.noise import noise_from_description
from tabulary.planning.direct import Request, plan_cells, plan_margins
from tabulary.planning.plan import MeasuredMargin, Plan

Planner = Callable[[Request, PureDP | ZCDP], Plan]

PLANNERS: Mapping[str, Planner] = {"cells": plan_cells, "margins": plan_margins}
RECONSTRUCTORS = ("none",)
ROUNDINGS = ("none",)


def plan(
    domain: Domain,
    workload: Workload | str,
    *,
    privacy: Privacy,
    neighbours: Relation | Neighbours = "add-remove",
    contribution: int = 1,
    mechanism: str = "auto",
    reconstruct: str = "auto",
    rounding: str = "none",
    max_cells: int = MAX_CELLS,
) -> Plan:
    """Return what will be measured for these tables at this privacy, with its expected error. Reads no data.

    Args:
        domain: the attributes and levels.
        workload: the wanted margins, as a `Workload` or as text such as "[sex age][age job]".
        privacy: `PureDP(1)`, `ApproxDP(1, 1e-9)` or `ZCDP("1/8")`.
        neighbours: "add-remove" (a person's records are there or not) or "replace".
        contribution: the most records of one person.
        mechanism: "cells", "margins", or "auto" for the one with the smaller expected error.
        reconstruct: "auto" or "none": tables are the linear estimates, unbiased.
        rounding: "none"; measurements are whole numbers already.
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
    relation = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours, contribution)
    if contribution not in (1, relation.records):
        raise InvalidPrivacy("the contribution bound is given twice, and differently.")
    request = Request(
        workload=work,
        privacy=privacy,
        neighbours=relation,
        max_cells=max_cells,
        reconstruct=_option("reconstruct", "none" if reconstruct == "auto" else reconstruct, RECONSTRUCTORS),
        rounding=_option("rounding", rounding, ROUNDINGS),
    )
    if mechanism != "auto":
        _option("mechanism", mechanism, (*PLANNERS, "auto"))
    candidates = compare(request, mechanisms=list(PLANNERS) if mechanism == "auto" else [mechanism])
    return min(candidates, key=lambda candidate: candidate.expected_rmse)


def compare(request: Request, *, mechanisms: list[str]) -> list[Plan]:
    """Return the plans that these mechanisms offer, skipping one that is too large if another is not."""
    found: list[Plan] = []
    refused: list[PublicError] = []
    for name in mechanisms:
        for loss in _losses(request.privacy):
            try:
                found.append(PLANNERS[name](request, loss))
            except TooManyCells as refusal:
                refused.append(refusal)
    if not found:
        # The last to refuse is the one that needed the fewest cells.
        raise refused[-1]
    return found


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
        loss = privacy_from_description(description["loss"])
        assert isinstance(loss, PureDP | ZCDP)
        found = Plan(
            domain=domain,
            workload=Workload(domain, [m["attributes"] for m in work], [m["weight"] for m in work]),
            privacy=privacy_from_description(description["privacy"]),
            loss=loss,
            neighbours=Neighbours(near["relation"], near["records"]),
            mechanism=_option("mechanism", description["mechanism"], PLANNERS),
            measured=tuple(
                MeasuredMargin(domain.margin(m["attributes"]), noise_from_description(m["noise"]))
                for m in description["measured"]
            ),
            reconstruct=_option("reconstruct", description["reconstruct"], RECONSTRUCTORS),
            rounding=_option("rounding", description["rounding"], ROUNDINGS),
        )
    except (AssertionError, KeyError, TypeError, AttributeError):
        raise InvalidPlan("this is not the description of a plan that Tabulary writes.") from None
    if found.describe() != description:
        raise InvalidPlan("the description of the plan claims something that does not follow from the rest.")
    return found


def _losses(privacy: Privacy) -> list[PureDP | ZCDP]:
    """Return the losses that keep the promise: each calls for its own family of noise."""
    if isinstance(privacy, ApproxDP):
        return [approx_to_zcdp(privacy), PureDP(privacy.epsilon)]
    return [privacy]


def _option(name: str, value: object, known: "Mapping[str, object] | tuple[str, ...]") -> str:
    if not isinstance(value, str) or value not in known:
        raise InvalidPlan(f"{name} must be one of {listed(known)}, not {value!r}.")
    return value
