"""The domain: named attributes with ordered, labelled levels, and the structural zeros.

Everything here is public. A domain is written down before anybody looks at the data.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import axes_outside
from tabulary.errors import DifferentDomains, InvalidDomain, TooManyCells, listed

Margin = tuple[str, ...]
"""The attributes of one table, in the domain's order; the empty margin is the total."""

Assignment = tuple[tuple[str, tuple[str, ...]], ...]
"""Attributes with the levels that match: a box of cells."""

MAX_CELLS = 10_000_000
"""The default cap on the cells of one table; the caller may raise it."""

# A set of structural zeros that share attributes is stored as one array over these attributes.
_MAX_MASK = 1 << 24

_LABELS = (str, int, np.integer)


@dataclass(frozen=True, init=False)
class Domain:
    """Attributes, their levels, and the structural zeros.

    Structural zeros are partial assignments: every cell that matches one is impossible. A value may be one
    level or a list of levels.

    >>> domain = Domain({"age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    ...                 structural_zeros=[{"age": "0-14", "job": "paid"}])
    >>> domain.shape, domain.size
    ((3, 2), 6)
    >>> domain.impossible(("age", "job")).tolist()
    [[False, True], [False, False], [False, False]]
    """

    attributes: Margin
    levels: tuple[tuple[str, ...], ...]
    structural_zeros: tuple[Assignment, ...]

    def __init__(
        self,
        levels: Mapping[str, Iterable[str | int]],
        structural_zeros: Iterable[Mapping[str, str | int | Sequence[str | int]]] = (),
    ) -> None:
        if not isinstance(levels, Mapping):
            raise InvalidDomain("a domain must be a mapping from attribute names to their levels.")
        if isinstance(structural_zeros, Mapping) or not isinstance(structural_zeros, Iterable):
            raise InvalidDomain("structural zeros must be a list of mappings such as {'age': '0-14'}.")
        object.__setattr__(self, "attributes", tuple(_checked_name(name) for name in levels))
        object.__setattr__(self, "levels", tuple(_checked_levels(a, v) for a, v in levels.items()))
        zeros = dict.fromkeys(self._checked_zero(zero) for zero in structural_zeros)
        object.__setattr__(self, "structural_zeros", tuple(zeros))
        for attributes, mask in self.zero_blocks:
            if mask.all():
                raise InvalidDomain(
                    "the structural zeros contradict each other: they leave no combination of "
                    f"{listed(attributes)} possible. Remove one of them."
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return tuple(map(len, self.levels))

    @property
    def size(self) -> int:
        """The number of cells of the full table, impossible ones included."""
        return math.prod(self.shape)

    def levels_of(self, attribute: str) -> tuple[str, ...]:
        """Return the labels of one attribute, in order."""
        return self.levels[self.position(attribute)]

    def position(self, attribute: str) -> int:
        """Return the position of an attribute in the domain."""
        try:
            return self._positions[attribute]
        except KeyError:
            raise InvalidDomain(
                f"the domain has no attribute {attribute!r}. It has {listed(self.attributes)}."
            ) from None

    def code(self, attribute: str, level: str | int) -> int:
        """Return the position of a level among the levels of its attribute."""
        codes = self._codes[self.position(attribute)]
        try:
            return codes[_label(level)]
        except KeyError:
            known = listed(self.levels_of(attribute))
            raise InvalidDomain(f"attribute {attribute!r} has no level {level!r}. It has {known}.") from None

    def margin(self, attributes: Iterable[str]) -> Margin:
        """Return the attributes in the domain's order; each must exist and be named once."""
        named = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        known = self._positions
        positions = [known[a] if a in known else self.position(a) for a in named]
        if len(set(positions)) < len(positions):
            twice = next(a for a in named if named.count(a) > 1)
            raise InvalidDomain(f"the margin {listed(named)} names attribute {twice!r} twice.")
        return tuple(self.attributes[position] for position in sorted(positions))

    def shape_of(self, margin: Margin) -> tuple[int, ...]:
        """Return the shape of the table on `margin`."""
        sizes = self._sizes
        return tuple([sizes[a] if a in sizes else len(self.levels_of(a)) for a in margin])

    def cells(self, margin: Margin) -> int:
        """Return the number of cells of the table on `margin`, impossible ones included."""
        return math.prod(self.shape_of(margin))

    def check_cells(self, margin: Margin, cap: int = MAX_CELLS) -> None:
        """Refuse a table above the cap, and state its number of cells.

        >>> Domain({"a": range(10_000), "b": range(9_999)}).check_cells(("a", "b"))
        Traceback (most recent call last):
        ...
        tabulary.errors.TooManyCells: the table on 'a', 'b' has 99,990,000 cells, ...
        """
        cells = self.cells(margin)
        if cells > cap:
            raise TooManyCells(
                f"the table on {listed(margin)} has {cells:,} cells, more than the cap of {cap:,}. "
                "Coarsen an attribute, drop one from the margin, or raise the cap (max_cells)."
            )

    def impossible(self, margin: Margin) -> NDArray[np.bool_]:
        """Return which cells of the table on `margin` are impossible.

        A cell of a margin is impossible if every full cell in its sum is impossible.
        """
        if not self.structural_zeros:
            return np.zeros(self.shape_of(margin), dtype=bool)
        return np.asarray(self.multiplicity(margin) == 0)

    def multiplicity(self, margin: Margin) -> NDArray[np.int64]:
        """Return, for each cell of `margin`, how many possible cells of the full table it sums over.

        Saturates at 2^62 on domains whose full table is larger than that; zero always means impossible.
        """
        named = self.margin(margin)
        if named != tuple(margin):
            return self.multiplicity(named).transpose([named.index(a) for a in margin])
        count = np.ones(self.shape_of(margin), dtype=np.float64)
        blocked: set[str] = set()
        for attributes, mask in self.zero_blocks:
            blocked.update(attributes)
            possible = (~mask).sum(axis=axes_outside(attributes, margin))
            count *= possible.reshape([len(self.levels_of(a)) if a in attributes else 1 for a in margin])
        free = [a for a in self.attributes if a not in blocked and a not in margin]
        # Beyond 2^53 a float is no longer the exact count; nothing that large is ever added up cell by cell.
        count *= float(min(math.prod(self.shape_of(tuple(free))), 1 << 62))
        return np.asarray(np.minimum(count, float(1 << 62)), dtype=np.int64)

    def project(self, margin: Iterable[str]) -> "Domain":
        """Return the domain of the table on `margin`, with the structural zeros that are visible in it.

        >>> Domain({"a": "xy", "b": "xy"}, [{"a": "x"}]).project(["a"]).structural_zeros
        ((('a', ('x',)),),)
        """
        kept = self.margin(margin)
        zeros: list[Assignment] = []
        for attributes, mask in self.zero_blocks:
            shown = tuple(a for a in attributes if a in kept)
            left = np.asarray(mask.all(axis=axes_outside(attributes, kept)))
            for zero in self.structural_zeros:
                if {a for a, _ in zero} <= set(shown):
                    zeros.append(zero)
                    left[self._box(zero, shown)] = False
            # What several zeros rule out together, cell by cell.
            for cell in np.argwhere(left):
                zeros.append(tuple((a, (self.levels_of(a)[i],)) for a, i in zip(shown, cell, strict=True)))
        return Domain._of(kept, tuple(self.levels_of(a) for a in kept), tuple(dict.fromkeys(zeros)))

    @classmethod
    def _of(
        cls, attributes: Margin, levels: tuple[tuple[str, ...], ...], zeros: tuple[Assignment, ...]
    ) -> "Domain":
        """Return a domain from values that another domain has checked: a plan projects thousands of times."""
        made = object.__new__(cls)
        object.__setattr__(made, "attributes", attributes)
        object.__setattr__(made, "levels", levels)
        object.__setattr__(made, "structural_zeros", zeros)
        return made

    def describe(self) -> dict[str, object]:
        """Return the domain as plain data, the inverse of `from_description`."""
        return {
            "attributes": [
                {"name": a, "levels": list(v)} for a, v in zip(self.attributes, self.levels, strict=True)
            ],
            "structural_zeros": [{a: list(v) for a, v in zero} for zero in self.structural_zeros],
        }

    @classmethod
    def from_description(cls, description: object) -> "Domain":
        """Return the domain that `describe` wrote; refuse anything else."""
        match description:
            case {"attributes": list(attributes), "structural_zeros": list(zeros), **rest} if not rest:
                levels: dict[str, list[str | int]] = {}
                for entry in attributes:
                    match entry:
                        case {"name": str(name), "levels": list(labels), **more} if not more:
                            levels[name] = labels
                if len(levels) == len(attributes):
                    return cls(levels, zeros)
        raise InvalidDomain("this is not the description of a domain that Tabulary writes.")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {attribute: i for i, attribute in enumerate(self.attributes)}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {
            attribute: len(labels) for attribute, labels in zip(self.attributes, self.levels, strict=True)
        }

    @cached_property
    def _codes(self) -> tuple[dict[str, int], ...]:
        return tuple({label: i for i, label in enumerate(labels)} for labels in self.levels)

    @cached_property
    def zero_blocks(self) -> tuple[tuple[Margin, NDArray[np.bool_]], ...]:
        """The structural zeros in groups that share no attribute, each as a mask over its attributes.

        A cell is impossible if and only if one of the groups rules it out, so groups never need to be
        multiplied into one large table.
        """
        groups: list[set[str]] = []
        for zero in self.structural_zeros:
            joined = {a for a, _ in zero}
            apart = [group for group in groups if not group & joined]
            groups = [*apart, joined.union(*(group for group in groups if group & joined))]
        blocks = []
        for group in groups:
            attributes = self.margin(group)
            if self.cells(attributes) > _MAX_MASK:
                raise TooManyCells(
                    f"the structural zeros tie {listed(attributes)} together, {self.cells(attributes):,} "
                    f"combinations, more than the {_MAX_MASK:,} that can be examined. State fewer of them."
                )
            mask = np.zeros(self.shape_of(attributes), dtype=bool)
            for zero in self.structural_zeros:
                if zero[0][0] in group:
                    mask[self._box(zero, attributes)] = True
            mask.flags.writeable = False
            blocks.append((attributes, mask))
        return tuple(blocks)

    def _box(self, zero: Assignment, attributes: Margin) -> tuple[NDArray[np.intp], ...]:
        named = dict(zero)
        return np.ix_(
            *(
                [self.code(a, v) for v in named[a]] if a in named else range(len(self.levels_of(a)))
                for a in attributes
            )
        )

    def _checked_zero(self, zero: Mapping[str, str | int | Sequence[str | int]]) -> Assignment:
        if not isinstance(zero, Mapping) or not zero:
            raise InvalidDomain("a structural zero must be a mapping such as {'age': '0-14', 'job': 'paid'}.")
        named = {a: (v,) if isinstance(v, _LABELS) else v for a, v in zero.items()}
        if not all(isinstance(v, Iterable) for v in named.values()):
            raise InvalidDomain("a structural zero must give each attribute one level or a list of levels.")
        named = {a: tuple(v) for a, v in named.items()}
        for attribute, levels in named.items():
            if not levels:
                raise InvalidDomain(f"a structural zero names no level of attribute {attribute!r}.")
        return tuple(
            (a, tuple(self.levels_of(a)[i] for i in sorted({self.code(a, v) for v in named[a]})))
            for a in self.margin(named)
        )


def bin_labels(edges: Iterable[int | float]) -> tuple[str, ...]:
    """Return the labels of the half-open bins that start at each edge; the last one is open.

    >>> bin_labels([0, 15, 65])
    ('0-14', '15-64', '65+')
    >>> bin_labels([0, 0.5, 2])
    ('0 to under 0.5', '0.5 to under 2', '2+')
    """
    lower = list(edges)
    for edge in lower:
        if isinstance(edge, bool) or not isinstance(edge, int | float) or not math.isfinite(edge):
            raise InvalidDomain(f"bins must be numbers, each the lower edge of a bin, not {edge!r}.")
    if not lower or any(low >= high for low, high in pairwise(lower)):
        raise InvalidDomain(f"bins must be at least one number, in strictly ascending order, not {lower}.")
    if all(float(edge).is_integer() for edge in lower):
        starts = [int(edge) for edge in lower]
        closed = [str(a) if b - a == 1 else f"{a}-{b - 1}" for a, b in pairwise(starts)]
        return (*closed, f"{starts[-1]}+")
    return (*(f"{a:g} to under {b:g}" for a, b in pairwise(lower)), f"{lower[-1]:g}+")


def _label(level: object) -> str:
    return str(level)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
        raise InvalidDomain(f"an attribute's name must be printable text without outer spaces, not {name!r}.")
    if set(name) & set('[]",'):
        raise InvalidDomain(f"attribute {name!r}: a name must not contain brackets, commas or double quotes.")
    return name


def _checked_levels(attribute: str, levels: Iterable[str | int]) -> tuple[str, ...]:
    if not isinstance(levels, Iterable):
        raise InvalidDomain(f"attribute {attribute!r}: the levels must be a list, such as ['F', 'M'].")
    given = tuple(levels)
    for level in given:
        if isinstance(level, bool) or not isinstance(level, _LABELS):
            raise InvalidDomain(
                f"attribute {attribute!r}: a level must be text or a whole number, not {level!r}. For "
                "ranges of numbers use bins."
            )
    labels = tuple(map(_label, given))
    if not labels:
        raise InvalidDomain(f"attribute {attribute!r} has no level.")
    if any(not label or label != label.strip() or not label.isprintable() for label in labels):
        raise InvalidDomain(
            f"attribute {attribute!r}: a level must be printable, non-empty text without outer spaces."
        )
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InvalidDomain(f"attribute {attribute!r} names the level {twice!r} twice.")
    return labels


def check_same_domain(one: Domain, other: Domain, *, things: str, state: str) -> None:
    """Raise DifferentDomains unless two things share a domain: `things` names both, `state` says what was not done."""
    if one != other:
        raise DifferentDomains(f"{things} have different domains. {state} Make both with the same Domain.")
