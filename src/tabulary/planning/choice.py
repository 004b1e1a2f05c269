"""From a request to a plan: the options, and the choice of the best mechanism."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tabulary.core.bits import binary_domain
from tabulary.core.domain import MAX_CELLS, Domain
from tabulary.core.privacy import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Loss,
    Neighbours,
    Privacy,
    PureDP,
    Relation,
    gaussian_rho,
    loss_from_description,
    privacy_from_description,
)
from tabulary.core.workload import Workload
from tabulary.errors import InvalidPlan, InvalidPrivacy, InvalidWorkload, PublicError, TooManyCells, listed
from tabulary.noise import noise_from_description
from tabulary.planning.contrasts import plan_efron_stein, plan_fourier
from tabulary.planning.direct import Request, plan_cells, plan_margins
from tabulary.planning.plan import CONSTRAINED, MeasuredMargin, Plan

Planner = Callable[[Request, Loss], Plan]

PLANNERS: Mapping[str, Planner] = {
    "fourier": plan_fourier,
    "efron-stein": plan_efron_stein,
    "cells": plan_cells,
    "margins": plan_margins,
}
RECONSTRUCTORS = ("none", "least-squares", "lp", "shift")
ROUNDINGS = ("none", "nearest", "controlled")


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
        sensitive: the only attributes whose values are protected, with "replace" neighbours; none means all.
        mechanism: "cells", "margins", "fourier", "efron-stein", or "auto" for the one whose linear estimate
            has the smallest expected error.
        reconstruct: "none" for the linear estimates, unbiased; "least-squares" or "lp" for non-negative
            tables that agree with each other; "shift" for linear estimates raised until they are hardly ever
            negative; "auto" for "none" unless impossible cells call for "least-squares".
        rounding: "none", or "nearest" or "controlled" for whole numbers after a reconstruction.
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
            raise InvalidPrivacy("the neighbours are given twice, and differently.")
    else:
        relation = Neighbours(neighbours, contribution, hidden)
    offered = ["fourier", "efron-stein"] if relation.sensitive else list(PLANNERS)
    request = Request(
        workload=work,
        privacy=privacy,
        neighbours=relation,
        max_cells=max_cells,
        reconstruct=_option("reconstruct", reconstruct, (*RECONSTRUCTORS, "auto")),
        rounding=_option("rounding", rounding, ROUNDINGS),
    )
    if mechanism != "auto":
        _option("mechanism", mechanism, (*offered, "auto"))
    candidates = compare(request, mechanisms=offered if mechanism == "auto" else [mechanism])
    return min(candidates, key=lambda candidate: candidate.expected_rmse)


def compare(request: Request, *, mechanisms: list[str]) -> list[Plan]:
    """Return the plans that these mechanisms offer, skipping one that is too large if another is not."""
    found: list[Plan] = []
    refused: list[PublicError] = []
    for name in mechanisms:
        for loss in _losses(request.privacy):
            try:
                resolved = _resolved(request, name)
                if len(mechanisms) > 1 and request.reconstruct == "auto" and resolved.reconstruct != "none":
                    # Nobody asked for a reconstruction, and the expected error of one is not known.
                    continue
                _check_full_table(resolved)
                found.append(PLANNERS[name](resolved, loss))
            except (TooManyCells, InvalidPlan) as refusal:
                refused.append(refusal)
    if not found:
        # What stops the margins, the least demanding of them, stops all.
        raise refused[0 if len(mechanisms) == 1 else -1]
    return found


def _check_full_table(request: Request) -> None:
    """Refuse a reconstruction whose unknown, the full table, would not fit."""
    if request.reconstruct in CONSTRAINED:
        named = request.domain.margin({a for margin in request.workload for a in margin})
        try:
            request.domain.check_cells(named, request.max_cells)
        except TooManyCells as refusal:
            raise TooManyCells(
                f"reconstruct = {request.reconstruct!r} builds the full table: {refusal} reconstruct = 'none' needs "
                "no full table."
            ) from None


def _resolved(request: Request, mechanism: str) -> Request:
    """Return the request with its reconstruction chosen: none, unless impossible cells call for one."""
    if request.reconstruct != "auto":
        return request
    domain = binary_domain(request.domain) if mechanism == "fourier" else request.domain
    needed = mechanism in ("fourier", "efron-stein") and domain.structural_zeros
    return replace(request, reconstruct="least-squares" if needed else "none")


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
        loss = loss_from_description(description["loss"])
        found = Plan(
            domain=domain,
            workload=Workload(domain, [m["attributes"] for m in work], [m["weight"] for m in work]),
            privacy=privacy_from_description(description["privacy"]),
            loss=loss,
            neighbours=Neighbours(near["relation"], near["records"], domain.margin(near["sensitive"])),
            mechanism=_option("mechanism", description["mechanism"], PLANNERS),
            measured=tuple(
                MeasuredMargin(tuple(m["attributes"]), noise_from_description(m["noise"]), m["query"])
                for m in description["measured"]
            ),
            exact=tuple(tuple(s) for s in description["exact"]),
            encoding=_option("encoding", description["encoding"], ("levels", "bits")),  # type: ignore[arg-type]
            reconstruct=_option("reconstruct", description["reconstruct"], RECONSTRUCTORS),
            rounding=_option("rounding", description["rounding"], ROUNDINGS),
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


def _option(name: str, value: object, known: "Mapping[str, object] | tuple[str, ...]") -> str:
    if not isinstance(value, str) or value not in known:
        raise InvalidPlan(f"{name} must be one of {listed(known)}, not {value!r}.")
    return value
