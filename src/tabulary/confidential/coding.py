"""How the values of a source column become levels of an attribute. Public, like the domain."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType

from tabulary.core.domain import Domain, bin_labels
from tabulary.errors import InvalidArgument, InvalidDomain, listed

Raw = str | int | float | bool | date
"""A value as a source stores it and as a mapping names it."""

_LEVEL = "level:"

# Up to this number every whole number is an exact float.
_LAST_EXACT = 2**53


@dataclass(frozen=True)
class Coding:
    """How one column is read: its name, its levels, and what an unknown value means.

    Without `mapping` and `bins` the text of a value is its level. `mapping` gives each value its level; any other
    value is unknown. `bins` are the lower edges of half-open ranges of numbers, with the labels of
    `core.domain.bin_labels`; a number below the first edge, or a text that is not a number, is unknown. A null, a
    NaN, an infinity and an empty text are always unknown values.

    `unknown` says what happens to a record with an unknown value: "error" refuses the whole source, "drop" leaves
    the record out, "level:NAME" counts it in the level NAME.

    >>> domain = Domain({"age": ["0-14", "15-64", "65+", "unknown"]})
    >>> coding = Coding(column="AGE_YEARS", bins=[0, 15, 65], unknown="level:unknown")
    >>> recoding = coding.resolve(domain, "age")
    >>> recoding.column, recoding.codes, recoding.otherwise
    ('AGE_YEARS', (0, 1, 2), 3)
    """

    column: str | None = None
    mapping: Mapping[Raw, str | int] | None = field(default=None, hash=False)
    bins: Sequence[int | float] | None = None
    unknown: str = "error"

    def __post_init__(self) -> None:
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise InvalidArgument(f"the name of a column must be text, not {self.column!r}.")
        if self.mapping is not None and self.bins is not None:
            raise InvalidArgument("a coding has a mapping or bins, but not both.")
        if self.mapping is not None:
            if not isinstance(self.mapping, Mapping) or not self.mapping:
                raise InvalidArgument('a mapping gives each value its level, such as {"1": "F", "2": "M"}.')
            object.__setattr__(self, "mapping", MappingProxyType(dict(self.mapping)))
        if self.bins is not None:
            edges: object = self.bins
            if isinstance(edges, str) or not isinstance(edges, Sequence):
                raise InvalidArgument(f"bins must be a list of numbers, not {edges!r}.")
            bin_labels(edges)
            object.__setattr__(self, "bins", tuple(edges))
        if not isinstance(self.unknown, str) or not (
            self.unknown in ("error", "drop") or self.unknown.startswith(_LEVEL)
        ):
            raise InvalidArgument(f'`unknown` must be "error", "drop" or "level:NAME", not {self.unknown!r}.')

    def resolve(self, domain: Domain, attribute: str) -> "Recoding":
        """Return the coding with the codes of the attribute's levels; refuse a level outside the domain."""
        levels = domain.levels_of(attribute)
        column = self.column or attribute
        codes: tuple[int, ...]
        texts: tuple[str, ...] = ()
        edges: tuple[float, ...] = ()
        if self.bins is not None:
            edges = tuple(map(float, self.bins))
            codes = tuple(domain.code(attribute, label) for label in bin_labels(self.bins))
        elif self.mapping is not None:
            table = _texts_of(self.mapping, attribute)
            texts = tuple(table)
            codes = tuple(domain.code(attribute, label) for label in table.values())
        else:
            texts = levels
            codes = tuple(range(len(levels)))
        otherwise = None
        if self.unknown.startswith(_LEVEL):
            otherwise = domain.code(attribute, self.unknown.removeprefix(_LEVEL))
        return Recoding(
            attribute, column, levels, texts, edges, codes, otherwise, drop=self.unknown == "drop"
        )


@dataclass(frozen=True)
class Recoding:
    """A coding for one attribute: all that an engine needs to turn values into codes.

    Text i of `texts`, or the numbers from `edges[i]` up to the next edge, get `codes[i]`. An engine gives every
    other value the code `unknown`; the encoder decides what that means.
    """

    attribute: str
    column: str
    levels: tuple[str, ...]
    texts: tuple[str, ...]
    edges: tuple[float, ...]
    codes: tuple[int, ...]
    otherwise: int | None
    drop: bool

    @property
    def unknown(self) -> int:
        """The code of a value that is not a level: the last code plus one."""
        return len(self.levels)


def resolve_all(domain: Domain, codings: Mapping[str, Coding] | None) -> tuple[Recoding, ...]:
    """Return a recoding for every attribute, in the domain's order; without a coding the column is read unchanged."""
    given = dict(codings or {})
    strangers = [name for name in given if name not in domain.attributes]
    if strangers:
        raise InvalidArgument(
            f"there is a coding for {listed(map(str, strangers))}, but the domain has no such attribute. It "
            f"has {listed(domain.attributes)}."
        )
    for name, coding in given.items():
        if not isinstance(coding, Coding):
            raise InvalidArgument(f"the coding of {name!r} must be a Coding, not a {type(coding).__name__}.")
    if not domain.attributes:
        raise InvalidDomain("the domain has no attribute, so there is nothing to read from the records.")
    return tuple(given.get(a, Coding()).resolve(domain, a) for a in domain.attributes)


def text_of(value: Raw) -> str:
    """Return the text of a value; mapping keys, levels and column values are compared by this text.

    Numbers are compared by value: a whole number has no decimal point, stored as an integer or as a float. True is
    "true" and false is "false". Text stays as it is, so "01", "1.0" and "1" differ.

    >>> [text_of(v) for v in ("01", 3, 3.0, 3.5, True, date(2024, 2, 29))]
    ['01', '3', '3', '3.5', 'true', '2024-02-29']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LAST_EXACT:
        return str(int(value))
    return str(value)


def _texts_of(mapping: Mapping[Raw, str | int], attribute: str) -> dict[str, str | int]:
    table: dict[str, str | int] = {}
    for raw, label in mapping.items():
        if not isinstance(raw, str | int | float | date) or (
            isinstance(raw, float) and not math.isfinite(raw)
        ):
            raise InvalidArgument(
                f"attribute {attribute!r}: the keys of a mapping are text, numbers, booleans or dates, not "
                f"{raw!r}. Nulls and NaN are unknown values: say with `unknown` what they mean."
            )
        text = text_of(raw)
        if not text:
            raise InvalidArgument(
                f"attribute {attribute!r}: the empty text is an unknown value and cannot be a key of a "
                "mapping. Say with `unknown` what it means."
            )
        if table.setdefault(text, label) != label:
            raise InvalidArgument(f"attribute {attribute!r}: the mapping gives {text!r} two levels.")
    return table
