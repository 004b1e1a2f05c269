"""Records that are left out of the counts, and what that makes of a neighbouring relation.

With `replace` neighbours the number of records in a source is public. The number of *counted* records is not, as soon
as a record can be left out because of a value it holds: one person's answer would change it. Whoever plans for records,
or measures them, asks here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tabulary.confidential.coding import Coding
from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidPlan, listed


def dropping(codings: Mapping[str, Coding] | None) -> tuple[str, ...]:
    """Return the attributes for which a record with an unknown value is left out.

    >>> dropping({"sex": Coding(), "hiv": Coding(unknown="drop")})
    ('hiv',)
    """
    return tuple(name for name, coding in (codings or {}).items() if coding.unknown == "drop")


def counted_neighbours(neighbours: Neighbours, drops: Iterable[str]) -> Neighbours:
    """Return the relation between counted records that a relation between sources becomes.

    `drops` are the attributes for which a record with an unknown value is left out. With `replace` a record may then
    leave the counts, or enter them (`Neighbours.may_drop`), and the total is measured with noise like every other
    count. With sensitive attributes only those can change, so others may be dropped; to drop a record for a sensitive
    value is refused, for then no table could be released exactly.

    >>> print(counted_neighbours(Neighbours("replace"), ["hiv"]))
    replace, records may be dropped
    >>> print(counted_neighbours(Neighbours("add-remove"), ["hiv"]))
    add-remove
    """
    changing = [name for name in drops if not neighbours.sensitive or name in neighbours.sensitive]
    if not changing or neighbours.relation != "replace":
        return neighbours
    if neighbours.sensitive:
        raise InvalidPlan(
            f"records with an unknown value of {listed(changing)} are dropped, and the attribute is sensitive. A "
            "dropped record leaves the tables that are released exactly, and so shows who did not answer. Nothing was "
            'measured. Give unknown values a level of their own (unknown = "level:NAME"), or protect all attributes.'
        )
    return replace(neighbours, may_drop=True)


def refuse_public_total(neighbours: Neighbours, drops: Iterable[str]) -> None:
    """Refuse a plan that takes the number of counted records for public, where one person's value can change it."""
    named = tuple(drops)
    counted = counted_neighbours(neighbours, named)
    if counted != neighbours:
        raise InvalidPlan(
            "with 'replace' neighbours this plan takes the number of counted records for public, but records with an "
            f"unknown value of {listed(named)} are dropped: one person's answer would show in it. Nothing was "
            f'measured, nothing was spent. Make the plan with neighbours=Neighbours("replace", {counted.records}, '
            "may_drop=True), which measures the total with noise; or read unknown values into a level "
            '(unknown = "level:NAME").'
        )
