"""Records compared with a register of people: which of them get a name."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from tabulary.toolbox.columns import Columns, Key, named_columns, refuse_strangers, shown
from tabulary.toolbox.diagnosis import Diagnosis, Exposed, known_by, share
from tabulary.toolbox.k_anonymity import CALLED

REGISTER = "the people of the register"


@dataclass(frozen=True, repr=False)
class Linkage(Diagnosis):
    """How many records get a name from a register. Confidential, no guarantee.

    `one` counts the records that agree with exactly one person of the register, `several` those that agree with
    more, `none` those that agree with nobody. `mutual` are those of `one` whose person agrees with no other record.
    If the register contains everybody, the records of `one` are re-identified, and naming the others by chance is
    right for `expected` records in all, the sum of 1/people over the records.
    """

    on: tuple[str, ...]
    records: int
    people: int
    none: int
    one: int
    several: int
    mutual: int
    expected: Fraction
    _single: tuple[tuple[Key, int], ...] = field(compare=False)

    @property
    def checked(self) -> tuple[str, ...]:
        """The columns that both tables have."""
        return self.on

    @property
    def finding(self) -> str:
        """What was found, in words. Confidential."""
        return (
            f"By {shown(self.on)}, {share(self.one, self.records)} records agree with exactly one person of "
            f"the register, {self.mutual:,} of them one to one; {self.several:,} agree with several people "
            f"and {self.none:,} with nobody. If the register contains everybody, choosing a name by chance "
            f"is right for {float(self.expected):,.1f} records."
        )

    def exposed(self, limit: int = 10) -> tuple[Exposed, ...]:
        """Return the combinations that one person of the register has, the fewest records first. Confidential."""
        order = sorted(self._single, key=lambda single: (single[1], single[0]))[:limit]
        return tuple(Exposed(known_by(self.on, key), size) for key, size in order)


def link(records: object, register: object, on: Iterable[str]) -> Linkage:
    """Return how many records agree with exactly one person of a register. Confidential, no guarantee.

    `register` is a table of known people, one per row, such as a list of voters; `on` are the columns that it
    shares with the records. Coarsen both in the same way first: values are compared by their text. A column without
    any common value is refused, because the result would look like safety.

    >>> import pyarrow
    >>> patients = pyarrow.table({"age": [53, 61, 61], "zip": ["191**"] * 3})
    >>> voters = pyarrow.table({"name": ["Ada", "Max", "Eva"], "age": [53, 61, 61], "zip": ["191**"] * 3})
    >>> found = link(patients, voters, ["age", "zip"])
    >>> found.one, found.several, found.none, found.expected
    (1, 2, 0, Fraction(2, 1))
    """
    names = named_columns(on, "columns to link on")
    ours = Columns.read(records, names, CALLED)
    theirs = Columns.read(register, names, REGISTER)
    return linkage_of(ours, theirs, names)


def linkage_of(ours: Columns, theirs: Columns, names: tuple[str, ...]) -> Linkage:
    """Return how the classes of records meet those of a register."""
    refuse_strangers(ours, theirs, names, "the records and the register")
    mine, classes = ours.classes(names), theirs.classes(names)
    people = dict(zip(classes.keys, classes.sizes.tolist(), strict=True))
    # How many records agree with no, one, two … people of the register.
    agreeing: Counter[int] = Counter()
    single = []
    for key, size in zip(mine.keys, mine.sizes.tolist(), strict=True):
        found = people.get(key, 0)
        agreeing[found] += size
        if found == 1:
            single.append((key, size))
    return Linkage(
        names,
        records=ours.records,
        people=theirs.records,
        none=agreeing[0],
        one=agreeing[1],
        several=sum(size for found, size in agreeing.items() if found > 1),
        mutual=sum(size == 1 for _, size in single),
        expected=sum((Fraction(size, found) for found, size in agreeing.items() if found), Fraction(0)),
        _single=tuple(single),
    )
