"""How many records share what an attacker may know, and whether this hides anything."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tabulary.errors import InvalidArgument
from tabulary.toolbox.columns import UNCHECKED, Classes, Columns, named_columns, shown
from tabulary.toolbox.diagnosis import Diagnosis, Exposed, known_by, share

CALLED = "the records"
QUASI = "quasi-identifiers"


@dataclass(frozen=True, repr=False)
class Anonymity(Diagnosis):
    """The sizes of the classes of records that agree in the quasi-identifiers. Confidential, no guarantee.

    `smallest` is the largest k for which the table is k-anonymous; `below` are the records in classes of fewer than
    the `k` asked for, `uniques` those that stand alone.
    """

    quasi_identifiers: tuple[str, ...]
    k: int
    records: int
    classes: int
    smallest: int
    below: int
    classes_below: int
    uniques: int
    _classes: Classes = field(compare=False)

    @property
    def holds(self) -> bool:
        """Whether the table is k-anonymous in the quasi-identifiers, which protects nobody by itself."""
        return not self.below

    @property
    def checked(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return self.quasi_identifiers

    @property
    def finding(self) -> str:
        """What was found, in words. Confidential."""
        by = shown(self.quasi_identifiers)
        if self.holds:
            return (
                f"The records are {self.k}-anonymous by {by}: the smallest of {self.classes:,} classes has "
                f"{self.smallest:,} of {self.records:,} records."
            )
        return (
            f"The records are not {self.k}-anonymous by {by}: {share(self.below, self.records)} are in "
            f"classes of fewer than {self.k}, {self.classes_below:,} of {self.classes:,} classes; the smallest "
            f"has {self.smallest:,}, and {self.uniques:,} records are the only ones of their class."
        )

    def exposed(self, limit: int = 10) -> tuple[Exposed, ...]:
        """Return the classes below k, the smallest first. Confidential."""
        found = self._classes
        order = sorted(np.flatnonzero(found.sizes < self.k), key=lambda c: (found.sizes[c], found.keys[c]))
        return tuple(
            Exposed(known_by(found.names, found.keys[c]), int(found.sizes[c])) for c in order[:limit]
        )


@dataclass(frozen=True, repr=False)
class Homogeneity(Diagnosis):
    """What an attacker learns about a sensitive column without identifying anybody. Confidential, no guarantee.

    If all records of a class have the same value, then everyone in it is disclosed, in a class of any size.
    `diversity` is the largest l for which the table has l distinct values in every class (Machanavajjhala et al.
    2007). Distinct values alone say little: `largest_share` is the share of the most frequent value in the worst
    class.
    """

    quasi_identifiers: tuple[str, ...]
    sensitive: str
    records: int
    classes: int
    diversity: int
    homogeneous: int
    disclosed: int
    largest_share: Fraction
    _classes: Classes = field(compare=False)
    _values: tuple[dict[str, int], ...] = field(compare=False)

    @property
    def checked(self) -> tuple[str, ...]:
        """The quasi-identifiers and the sensitive column."""
        return (*self.quasi_identifiers, self.sensitive)

    @property
    def finding(self) -> str:
        """What was found, in words. Confidential."""
        by = shown(self.quasi_identifiers)
        worst = (
            f"In the worst class a guess of {self.sensitive} is right for {float(self.largest_share):.0%} of its "
            "records.".replace("%", " %")
        )
        if self.homogeneous:
            return (
                f"{self.homogeneous:,} of {self.classes:,} classes by {by} have only one value of "
                f"{self.sensitive}: {share(self.disclosed, self.records)} records are disclosed to anybody "
                f"who knows {by}."
            )
        return (
            f"Every class by {by} has at least {self.diversity:,} different values of {self.sensitive}, so no class "
            f"discloses it with certainty. {worst}"
        )

    def exposed(self, limit: int = 10) -> tuple[Exposed, ...]:
        """Return the classes with one value only, the largest first: the most people. Confidential."""
        found = self._classes
        alike = [c for c, values in enumerate(self._values) if len(values) == 1]
        order = sorted(alike, key=lambda c: (-int(found.sizes[c]), found.keys[c]))[:limit]
        return tuple(
            Exposed(known_by(found.names, found.keys[c]), int(found.sizes[c]), tuple(self._values[c]))
            for c in order
        )


def k_anonymity(records: object, quasi_identifiers: Iterable[str], *, k: int) -> Anonymity:
    """Return how many records share their quasi-identifiers with at least k - 1 others. Confidential.

    `records` are a pandas or polars frame, an Arrow table or Records, one record per person; a person with two
    records counts as two people who hide each other. **No guarantee**: "for any tuple of values there are at least
    k copies" says nothing about what the copies have in common, nor about any other table.

    >>> import pyarrow
    >>> people = pyarrow.table({"age": ["50-60", "50-60", "60-70"], "sex": ["F", "F", "M"]})
    >>> found = k_anonymity(people, ["age", "sex"], k=2)
    >>> found
    <Anonymity by age × sex, confidential, no guarantee>
    >>> found.holds, found.smallest, found.below, found.uniques
    (False, 1, 1, 1)
    """
    names = named_columns(quasi_identifiers, QUASI)
    check_k(k)
    classes = Columns.read(records, names, CALLED).classes(names)
    return anonymity_of(classes, k)


def homogeneity(records: object, quasi_identifiers: Iterable[str], *, sensitive: str) -> Homogeneity:
    """Return the records whose sensitive value the quasi-identifiers alone disclose. Confidential, no guarantee.

    >>> import pyarrow
    >>> people = pyarrow.table({"age": ["50-60"] * 3 + ["60-70"] * 2, "illness": ["flu"] * 4 + ["gout"]})
    >>> found = homogeneity(people, ["age"], sensitive="illness")
    >>> found.homogeneous, found.disclosed, found.diversity
    (1, 3, 1)
    """
    names = named_columns(quasi_identifiers, QUASI)
    check_sensitive(sensitive, names)
    columns = Columns.read(records, (*names, sensitive), CALLED)
    return homogeneity_of(columns, columns.classes(names), sensitive)


def anonymity_of(classes: Classes, k: int) -> Anonymity:
    """Return what the sizes of classes come to."""
    sizes = classes.sizes
    return Anonymity(
        classes.names,
        k,
        records=int(sizes.sum()),
        classes=len(sizes),
        smallest=int(sizes.min()),
        below=int(sizes[sizes < k].sum()),
        classes_below=int((sizes < k).sum()),
        uniques=int((sizes == 1).sum()),
        _classes=classes,
    )


def homogeneity_of(columns: Columns, classes: Classes, sensitive: str) -> Homogeneity:
    """Return what the values of a sensitive column within classes come to."""
    values = columns.values(classes, sensitive)
    alike = np.array([len(each) == 1 for each in values])
    # Few of the pairs are different, however many classes there are.
    most = {(max(each.values()), size) for each, size in zip(values, classes.sizes.tolist(), strict=True)}
    return Homogeneity(
        classes.names,
        sensitive,
        records=columns.records,
        classes=len(values),
        diversity=min(map(len, values)),
        homogeneous=int(alike.sum()),
        disclosed=int(classes.sizes[alike].sum()),
        largest_share=max(Fraction(*pair) for pair in most),
        _classes=classes,
        _values=values,
    )


def check_k(k: object) -> None:
    """Refuse a k without meaning.

    >>> check_k(2)
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 2:
        raise InvalidArgument(
            f"k must be a whole number of at least 2, because every table is 1-anonymous. It is {k!r}. "
            f"{UNCHECKED}"
        )


def check_sensitive(sensitive: object, quasi_identifiers: tuple[str, ...]) -> None:
    """Refuse a sensitive column that does not exist, or that the attacker already knows.

    >>> check_sensitive("illness", ("age",))
    """
    if not isinstance(sensitive, str) or not sensitive:
        raise InvalidArgument(
            f"the name of the sensitive column must be text, not {sensitive!r}. {UNCHECKED}"
        )
    if sensitive in quasi_identifiers:
        raise InvalidArgument(
            f"column {sensitive!r} cannot be both known and sensitive: a known value has nothing left to "
            f"disclose. {UNCHECKED}"
        )
