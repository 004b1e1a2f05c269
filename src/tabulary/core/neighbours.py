"""Neighbouring relations: what one person can change, in a source and in its counts."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from tabulary.errors import InvalidPrivacy, listed

Relation = Literal["add-remove", "replace"]


@dataclass(frozen=True)
class Neighbours:
    """What one person can change: the guarantee compares tables that differ by this much.

    `add-remove`: one person's records are in the data or not. `replace`: one person's records become others, and
    the number of records in the source is public. `records` is the contribution bound c, the largest number of
    records of one person.

    `sensitive` names the only attributes that may differ between neighbours; empty means all. Then one person's
    other attributes are not protected at all (Dwork, McSherry & Talwar 2007, section 5).

    `may_drop` says that a record may be left out of the counts because of one of its values, for example by the
    rule `unknown = "drop"`. Then a replaced record may leave the counts or enter them, so the number of counted
    records is as confidential as any other count (`total_is_public`). For `add-remove` this is always so, and the
    field is False.

    >>> print(Neighbours("replace", records=3))
    replace, up to 3 records per person
    >>> print(Neighbours("replace", sensitive=("diagnosis",)))
    replace, in 'diagnosis' only
    >>> print(Neighbours("replace", may_drop=True))
    replace, records may be dropped
    """

    relation: Relation = "add-remove"
    records: int = 1
    sensitive: tuple[str, ...] = ()
    may_drop: bool = False

    def __post_init__(self) -> None:
        if self.relation not in get_args(Relation):
            raise InvalidPrivacy(f"neighbours must be 'add-remove' or 'replace', not {self.relation!r}.")
        if isinstance(self.records, bool) or not isinstance(self.records, int) or self.records < 1:
            raise InvalidPrivacy(
                f"the contribution bound must be a whole number of records, at least 1, not {self.records!r}."
            )

        if self.sensitive and self.relation != "replace":
            raise InvalidPrivacy(
                "sensitive attributes are protected against replacing their values: use neighbours = 'replace'."
            )
        if not isinstance(self.may_drop, bool):
            raise InvalidPrivacy(f"may_drop must be True or False, not {self.may_drop!r}.")
        if self.sensitive and self.may_drop:
            raise InvalidPrivacy(
                "a record that is dropped for a sensitive value disappears from every table, so no table "
                "could be released exactly. Give unknown values of sensitive attributes their own level, "
                "or protect all attributes."
            )
        if self.relation == "add-remove":
            object.__setattr__(self, "may_drop", False)

    @property
    def total_is_public(self) -> bool:
        """Whether the number of counted records is public: the same in any two neighbouring sources.

        Only this property decides it. With `replace` the number of records in the source is public; the number of
        counted records is equal to it only if no record can be left out.
        """
        return self.relation == "replace" and not self.may_drop

    @property
    def moved(self) -> int:
        """The most cells of one table that one changed record changes by one: two if replaced, otherwise one."""
        return 2 if self.relation == "replace" else 1

    @property
    def raw(self) -> "Neighbours":
        """The relation between sources, before a record is recoded or dropped: the promise of an account."""
        return replace(self, may_drop=False)

    @property
    def steps(self) -> tuple[Relation, ...]:
        """What can happen to one record in the counts: a sensitivity is the largest over these.

        A replaced record that may be dropped becomes another record, leaves the counts, or enters them.

        >>> Neighbours("replace", may_drop=True).steps
        ('replace', 'add-remove')
        """
        return ("replace", "add-remove") if self.may_drop else (self.relation,)

    def describe(self) -> dict[str, object]:
        """Return the relation as plain data."""
        return {
            "relation": self.relation,
            "records": self.records,
            "sensitive": list(self.sensitive),
            "may_drop": self.may_drop,
        }

    def __str__(self) -> str:
        only = f", in {listed(self.sensitive)} only" if self.sensitive else ""
        many = "" if self.records == 1 else f", up to {self.records} records per person"
        return self.relation + only + many + (", records may be dropped" if self.may_drop else "")
