"""Two releases compared: what they disclose together about people who are in both."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tabulary.confidential.records import Records
from tabulary.errors import InvalidArgument, TooManyCells, listed
from tabulary.toolbox.columns import (
    UNCHECKED,
    Classes,
    Columns,
    Key,
    column_names,
    named_columns,
    refuse_strangers,
    shown,
    texts_of,
)
from tabulary.toolbox.diagnosis import Diagnosis, Exposed, known_by, share
from tabulary.toolbox.k_anonymity import QUASI, check_sensitive

_CALLED = ("the records of the first release", "the records of the second release")
# Two million comparisons take seconds; more come only of columns that one release has and the other has not.
MOST_PAIRS = 2_000_000


@dataclass(frozen=True, repr=False)
class Intersection(Diagnosis):
    """What two releases say together about a person who is in both. Confidential, no guarantee.

    Classes of the two releases that agree in all common columns make a pair. A person in the pair has a value that
    occurs in both of its classes. The value is `pinned` if there is only one, and the pair is `contradictory` if
    there is none: nobody can be in such a pair. `first_exposed` and `second_exposed` are the records in a pinned
    pair.
    """

    first_columns: tuple[str, ...]
    second_columns: tuple[str, ...]
    sensitive: str
    first_records: int
    second_records: int
    first_smallest: int
    second_smallest: int
    pairs: int
    pinned: int
    contradictory: int
    first_exposed: int
    second_exposed: int
    _first: "_Side" = field(compare=False)
    _second: "_Side" = field(compare=False)
    _pinned: tuple[tuple[int, int, str], ...] = field(compare=False)

    @property
    def checked(self) -> tuple[str, ...]:
        """What is known of a person, and the sensitive column."""
        return (*dict.fromkeys((*self.first_columns, *self.second_columns)), self.sensitive)

    @property
    def finding(self) -> str:
        """What was found, in words. Confidential."""
        return (
            f"The first release is {self.first_smallest}-anonymous by {shown(self.first_columns)}, the "
            f"second {self.second_smallest}-anonymous by {shown(self.second_columns)}. Together they leave "
            f"one value of {self.sensitive} in {self.pinned:,} of {self.pairs:,} pairs of classes. A person "
            "who is known to be in both is disclosed there, among "
            f"{share(self.first_exposed, self.first_records)} records of the first and "
            f"{share(self.second_exposed, self.second_records)} of the second."
        )

    def exposed(self, limit: int = 10) -> tuple[Exposed, ...]:
        """Return the pinned pairs and their value, those with the fewest people first. Confidential.

        Their `records` are those of the smaller class: no more people can be in both.
        """
        found = []
        for a, b, value in self._pinned:
            known = {**self._first.known(a), **self._second.known(b)}
            people = min(self._first.classes.sizes[a], self._second.classes.sizes[b])
            found.append(Exposed(known, int(people), (value,)))
        return tuple(sorted(found, key=lambda each: (each.records, *each.known.values()))[:limit])

    def possible(self, known: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the sensitive values that a person in both releases may have, given what is known about the person.

        Confidential. Empty if nobody with these values can be in both.
        """
        strangers = [name for name in known if name not in self.checked[:-1]]
        if strangers:
            raise InvalidArgument(f"{listed(strangers)} is not one of {listed(self.checked[:-1])}.")
        texts = texts_of(known)
        return tuple(sorted(self._first.possible(texts) & self._second.possible(texts)))


@dataclass(frozen=True, repr=False)
class _Side:
    """One of the releases: its classes by what is known, and the sensitive values of each class."""

    columns: Columns
    classes: Classes
    values: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, table: object, known: Iterable[str], sensitive: str, called: str) -> "_Side":
        has = table.domain.attributes if isinstance(table, Records) else column_names(table, called)
        own = tuple(name for name in known if name in has)
        if not own:
            raise InvalidArgument(f"{called} have none of the columns {listed(known)}. {UNCHECKED}")
        columns = Columns.read(table, (*own, sensitive), called)
        classes = columns.classes(own)
        return cls(columns, classes, tuple(map(frozenset, columns.values(classes, sensitive))))

    @property
    def names(self) -> tuple[str, ...]:
        return self.classes.names

    def known(self, which: int) -> dict[str, str]:
        return known_by(self.names, self.classes.keys[which])

    def possible(self, known: Mapping[str, str]) -> frozenset[str]:
        """Return the values of all classes that agree with what is known, of the columns that are here."""
        wanted = [(at, known[name]) for at, name in enumerate(self.names) if name in known]
        agreeing = (
            values
            for key, values in zip(self.classes.keys, self.values, strict=True)
            if all(key[at] == text for at, text in wanted)
        )
        return frozenset().union(*agreeing)


def intersection_attack(
    first: object, second: object, quasi_identifiers: Iterable[str], *, sensitive: str
) -> Intersection:
    """Return what two releases disclose about people who are in both. Confidential, no guarantee.

    Both may be k-anonymous by themselves: the attack needs no class of one. `quasi_identifiers` are what is known of a
    person; each release is asked about those of them that it has, and at least one must be in both. The
    sensitive value is taken to be the same in both, and spelled the same.

    >>> import pyarrow
    >>> clinic = pyarrow.table({"age": ["50-60"] * 2, "illness": ["HIV", "colitis"]})
    >>> surgery = pyarrow.table({"age": ["50-60"] * 3, "illness": ["HIV", "lupus", "fracture"]})
    >>> found = intersection_attack(clinic, surgery, ["age"], sensitive="illness")
    >>> found.first_smallest, found.second_smallest, found.possible({"age": "50-60"})
    (2, 3, ('HIV',))
    """
    names = named_columns(quasi_identifiers, QUASI)
    check_sensitive(sensitive, names)
    one, other = (
        _Side.of(table, names, sensitive, called)
        for table, called in zip((first, second), _CALLED, strict=True)
    )
    strangers = [name for name in names if name not in one.names + other.names]
    if strangers:
        raise InvalidArgument(f"neither release has a column {listed(strangers)}. {UNCHECKED}")
    both = [name for name in one.names if name in other.names]
    if not both:
        raise InvalidArgument(
            f"the releases have none of {listed(names)} in common, so nobody can be followed from one to "
            f"the other. {UNCHECKED}"
        )
    refuse_strangers(one.columns, other.columns, both, "releases")
    pairs = _pairs(one.classes, other.classes, both)
    left = {(a, b): one.values[a] & other.values[b] for a, b in pairs}
    pinned = [pair for pair, values in left.items() if len(values) == 1]
    return Intersection(
        one.names,
        other.names,
        sensitive,
        first_records=one.columns.records,
        second_records=other.columns.records,
        first_smallest=int(one.classes.sizes.min()),
        second_smallest=int(other.classes.sizes.min()),
        pairs=len(pairs),
        pinned=len(pinned),
        contradictory=sum(not values for values in left.values()),
        first_exposed=sum(int(one.classes.sizes[a]) for a in {a for a, _ in pinned}),
        second_exposed=sum(int(other.classes.sizes[b]) for b in {b for _, b in pinned}),
        _first=one,
        _second=other,
        _pinned=tuple((a, b, min(left[a, b])) for a, b in pinned),
    )


def _pairs(first: Classes, second: Classes, both: Iterable[str]) -> list[tuple[int, int]]:
    """Return the pairs of classes that agree in the columns of both."""
    mine, theirs = (tuple(map(each.names.index, both)) for each in (first, second))
    by_key: defaultdict[Key, list[int]] = defaultdict(list)
    for b, key in enumerate(second.keys):
        by_key[tuple(key[at] for at in theirs)].append(b)
    found: list[tuple[int, int]] = []
    for a, key in enumerate(first.keys):
        agreeing = by_key.get(tuple(key[at] for at in mine), [])
        if len(found) + len(agreeing) > MOST_PAIRS:
            raise TooManyCells(
                f"more than {MOST_PAIRS:,} pairs of classes agree, which is the largest number that is "
                f"compared. {UNCHECKED} Name fewer columns that only one of the releases has."
            )
        found += [(a, b) for b in agreeing]
    return found
