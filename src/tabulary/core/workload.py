"""The workload: which margins are wanted, and how much each matters."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import exact_fraction
from tabulary.errors import InvalidDomain, InvalidWorkload

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NAMES = re.compile(r'"([^"]*)"|([^\s,"]+)')


@dataclass(frozen=True, init=False)
class Workload:
    """Margins of one domain, each in the domain's order, with a positive weight.

    >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"], "job": ["none", "paid"]})
    >>> work = Workload.parse("[sex age][age job]", domain)
    >>> print(work)
    [sex age][age job]
    >>> print(work.closure())
    [][sex][age][job][sex age][age job]
    """

    domain: Domain
    margins: tuple[Margin, ...]
    weights: tuple[Fraction, ...]

    def __init__(
        self,
        domain: Domain,
        margins: Iterable[Iterable[str]],
        weights: Mapping[Iterable[str], object] | Iterable[object] | None = None,
    ) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "margins", tuple(self._margin(m) for m in margins))
        if not self.margins:
            raise InvalidWorkload("a workload needs at least one margin.")
        if len(set(self.margins)) < len(self.margins):
            twice = next(m for m in self.margins if self.margins.count(m) > 1)
            raise InvalidWorkload(f"the workload contains the margin {show_margin(twice)} twice.")
        object.__setattr__(self, "weights", self._checked_weights(weights))

    @classmethod
    def parse(cls, text: str, domain: Domain) -> "Workload":
        """Return the workload written as "[AB][BC]" or "[sex age][age job]".

        Names are separated by spaces or commas; one with a space in it stands in double quotes. Where every
        attribute has one letter, they may be written together. "[]" is the total.

        >>> domain = Domain({"A": "xy", "B": "xy", "C": "xy"})
        >>> Workload.parse("[AB][BC]", domain).margins
        (('A', 'B'), ('B', 'C'))
        """
        if not isinstance(text, str) or _BRACKETS.sub("", text).strip(" \t\n,"):
            raise InvalidWorkload(
                f"cannot read the margins {text!r}: write each in brackets, such as [sex age][age job]."
            )
        one_letter = all(len(attribute) == 1 for attribute in domain.attributes)
        margins = []
        for inside in _BRACKETS.findall(text):
            names = [quoted or plain for quoted, plain in _NAMES.findall(inside)]
            if _NAMES.sub("", inside).strip(" \t\n,") or not all(names):
                raise InvalidWorkload(
                    f"cannot read the margin [{inside}]: a quote is not closed, or a name is empty."
                )
            if one_letter:
                names = [letter for name in names for letter in name]
            margins.append(names)
        return cls(domain, margins)

    @classmethod
    def k_way(cls, domain: Domain, k: int) -> "Workload":
        """Return all margins of exactly `k` attributes.

        >>> len(Workload.k_way(Domain({"A": "xy", "B": "xy", "C": "xy"}), 2))
        3
        """
        return cls(domain, combinations(domain.attributes, _checked_order(domain, k)))

    @classmethod
    def all_up_to(cls, domain: Domain, k: int) -> "Workload":
        """Return all margins of one to `k` attributes.

        >>> len(Workload.all_up_to(Domain({"A": "xy", "B": "xy", "C": "xy"}), 2))
        6
        """
        orders = range(min(1, _checked_order(domain, k)), k + 1)
        return cls(domain, (m for order in orders for m in combinations(domain.attributes, order)))

    def closure(self) -> "Workload":
        """Return the downward closure: every margin of a margin, the total included, lowest order first.

        A margin that was asked for keeps its weight; the others get weight one.
        """
        closed = {
            m for margin in self.margins for k in range(len(margin) + 1) for m in combinations(margin, k)
        }
        return Workload(self.domain, self._sorted(closed), self._weights_of(closed))

    def maximal(self) -> "Workload":
        """Return the margins that are not margins of another one.

        >>> domain = Domain({"A": "xy", "B": "xy", "C": "xy"})
        >>> print(Workload.parse("[A][AB][BC][C]", domain).maximal())
        [AB][BC]
        """
        kept = maximal_margins(self.margins)
        return Workload(self.domain, self._sorted(kept), self._weights_of(kept))

    def weighted(self, weights: Mapping[Iterable[str], object]) -> "Workload":
        """Return the same margins with other weights; those not named keep theirs.

        >>> work = Workload.parse("[A][AB]", Domain({"A": "xy", "B": "xy"}))
        >>> [str(w) for w in work.weighted({"A": 3}).weights]
        ['3', '1']
        """
        now: dict[Iterable[str], object] = dict(zip(self.margins, self.weights, strict=True))
        return Workload(self.domain, self.margins, now | {self._margin(m): w for m, w in weights.items()})

    def __iter__(self) -> Iterator[Margin]:
        return iter(self.margins)

    def __len__(self) -> int:
        return len(self.margins)

    def __str__(self) -> str:
        together = all(len(attribute) == 1 for attribute in self.domain.attributes)
        return "".join(show_margin(margin, together=together) for margin in self.margins)

    def _margin(self, attributes: Iterable[str]) -> Margin:
        try:
            return self.domain.margin(attributes)
        except InvalidDomain as problem:
            raise InvalidWorkload(str(problem)) from None

    def _sorted(self, margins: Iterable[Margin]) -> list[Margin]:
        return sorted(margins, key=lambda m: (len(m), [self.domain.position(a) for a in m]))

    def _weights_of(self, margins: Iterable[Margin]) -> dict[Iterable[str], object]:
        given = dict(zip(self.margins, self.weights, strict=True))
        return {m: given[m] for m in margins if m in given}

    def _checked_weights(
        self, weights: Mapping[Iterable[str], object] | Iterable[object] | None
    ) -> tuple[Fraction, ...]:
        if weights is None:
            return (Fraction(1),) * len(self.margins)
        if isinstance(weights, Mapping):
            named = {self._margin(m): w for m, w in weights.items()}
            if len(named) < len(weights):
                raise InvalidWorkload("there are two weights for one margin.")
            asked = set(self.margins)
            for margin in named:
                if margin not in asked:
                    raise InvalidWorkload(
                        f"there is a weight for {show_margin(margin)}, which is not in the workload."
                    )
            given: list[object] = [named.get(m, 1) for m in self.margins]
        elif isinstance(weights, str):
            raise InvalidWorkload(
                "weights must be numbers, one per margin, or a mapping from margins to numbers."
            )
        else:
            given = list(weights)
        if len(given) != len(self.margins):
            raise InvalidWorkload(f"{len(self.margins)} margins need as many weights, not {len(given)}.")
        exact = tuple(exact_fraction(w, name="a margin's weight", error=InvalidWorkload) for w in given)
        if min(exact) <= 0:
            raise InvalidWorkload(
                "a margin's weight must be positive. Leave out a margin that you do not need."
            )
        return exact


class MarginIndex:
    """Which of many margins contain a given one: a bit a margin, an integer an attribute.

    Asking costs one bitwise `and` an attribute, so that a plan of thousands of margins need not compare each
    of them with every other.

    >>> index = MarginIndex([("A",), ("A", "B"), ("B", "C")])
    >>> index.containing(("B",)), index.containing(("C", "D"))
    ([1, 2], [])
    """

    def __init__(self, margins: Iterable[Margin]) -> None:
        indexed = list(margins)
        positions: dict[str, list[int]] = {}
        for position, margin in enumerate(indexed):
            for attribute in margin:
                positions.setdefault(attribute, []).append(position)
        self._all = (1 << len(indexed)) - 1
        self._holding = {attribute: _bits(found, len(indexed)) for attribute, found in positions.items()}

    def containing(self, margin: Margin) -> list[int]:
        """Return the positions of the margins that contain `margin`, in order."""
        left, positions = self._found(margin), []
        while left:
            lowest = left & -left
            positions.append(lowest.bit_length() - 1)
            left ^= lowest
        return positions

    def first(self, margin: Margin) -> int:
        """Return the position of the first margin that contains `margin`, or -1."""
        found = self._found(margin)
        return (found & -found).bit_length() - 1

    def count(self, margin: Margin) -> int:
        """Return how many of the margins contain `margin`, itself included."""
        return self._found(margin).bit_count()

    def _found(self, margin: Margin) -> int:
        found = self._all
        for attribute in margin:
            found &= self._holding.get(attribute, 0)
        return found


def maximal_margins(margins: Iterable[Margin]) -> list[Margin]:
    """Return the different margins that no other one contains, in the order of asking.

    >>> maximal_margins([("A",), ("A", "B"), ("B", "C"), ("A", "B")])
    [('A', 'B'), ('B', 'C')]
    """
    different = list(dict.fromkeys(margins))
    index = MarginIndex(different)
    return [margin for margin in different if index.count(margin) == 1]


def _bits(positions: list[int], count: int) -> int:
    bits = bytearray(count // 8 + 1)
    for position in positions:
        bits[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bits, "little")


def show_margin(margin: Margin, *, together: bool | None = None) -> str:
    """Return a margin as it is written in a workload, one-letter names `together` by default.

    >>> show_margin(("A", "B")), show_margin(("sex", "birth country"))
    ('[AB]', '[sex "birth country"]')
    """
    if all(len(attribute) == 1 for attribute in margin) if together is None else together:
        return f"[{''.join(margin)}]"
    names = (f'"{attribute}"' if " " in attribute else attribute for attribute in margin)
    return f"[{' '.join(names)}]"


def _checked_order(domain: Domain, k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= len(domain.attributes):
        raise InvalidWorkload(
            f"k must be a whole number from 0 to {len(domain.attributes)} attributes, not {k!r}."
        )
    return k
