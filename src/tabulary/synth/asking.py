"""The checks that every synthesizer makes on a request before any data is read."""

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.workload import Workload
from tabulary.errors import InvalidPrivacy, InvalidWorkload


def asked_workload(domain: Domain, work: Workload | str) -> Workload:
    """Return the requested margins, or refuse those of another domain.

    >>> asked_workload(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), "[sex job]").margins
    (('sex', 'job'),)
    """
    asked = Workload.parse(work, domain) if isinstance(work, str) else work
    if not isinstance(asked, Workload) or asked.domain != domain:
        raise InvalidWorkload(
            "the workload must be text such as '[sex age]', or a Workload of the records' domain. Nothing "
            "was measured."
        )
    return asked


def named_domain(asked: Workload) -> Domain:
    """Return the domain of the attributes that are in a margin; rows have no others."""
    named = [name for name in asked.domain.attributes if any(name in margin for margin in asked.margins)]
    if not named:
        raise InvalidWorkload("the workload has no table by an attribute, so it gives no rows.")
    return asked.domain.project(named)


def whole_person(neighbours: Relation | Neighbours, synthesizer: str) -> Neighbours:
    """Return the neighbours, or refuse those that differ in some attributes only: rows use all attributes."""
    near = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)
    if near.sensitive:
        raise InvalidPrivacy(
            f"{synthesizer} protects every attribute: leave the sensitive ones out. Nothing was measured."
        )
    return near
