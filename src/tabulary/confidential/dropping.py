"""Records that are left out of the counts, and how this changes a neighbouring relation.

With `replace` neighbours the number of records in a source is public. But the number of *counted* records is not
public if a record can be left out because of one of its values: one person's answer would change it. Planning and
measuring ask this module.
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
    """Return the neighbouring relation of the counted records, given that of the sources.

    `drops` are the attributes for which a record with an unknown value is left out. With `replace` a record may
    then leave the counts or enter them (`Neighbours.may_drop`), and the total gets noise like every other count.
    With sensitive attributes only those can change, so other attributes may drop records. Dropping a record for a
    sensitive value is refused, because then no table could be released exactly.

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
            f"records with an unknown value of {listed(changing)} are dropped, and the attribute is "
            "sensitive. A dropped record disappears from the tables that are released exactly, which shows "
            "who did not answer. Nothing was measured. Give unknown values their own level (unknown = "
            '"level:NAME"), or protect all attributes.'
        )
    return replace(neighbours, may_drop=True)


def refuse_public_total(neighbours: Neighbours, drops: Iterable[str]) -> None:
    """Refuse a plan that assumes a public number of counted records if one person's value can change it."""
    named = tuple(drops)
    counted = counted_neighbours(neighbours, named)
    if counted != neighbours:
        raise InvalidPlan(
            "with 'replace' neighbours this plan assumes that the number of counted records is public. But "
            f"records with an unknown value of {listed(named)} are dropped, so one person's answer can "
            "change that number. Nothing was measured, nothing was spent. Make the plan with "
            f'neighbours=Neighbours("replace", {counted.records}, may_drop=True), which measures the total '
            'with noise; or read unknown values into a level (unknown = "level:NAME").'
        )
