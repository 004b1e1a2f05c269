"""A question to a table builder: a table by some attributes, for the people in some levels."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tabulary.core.domain import Domain, Margin
from tabulary.errors import InvalidWorkload
from tabulary.release.cutting import Published, cut


@dataclass(frozen=True)
class Question:
    """A table by the attributes `by`, in this order, for the people in the levels `where`.

    A filter selects a slice of the table on all attributes of `by` and `where`. It reveals nothing that this larger
    table does not show. `keep` shows some levels of an attribute and leaves out the others. `linear` asks for the
    unbiased linear estimate if the published table is a different one.

    Made by `Question.of`, which refuses names that the domain does not have.
    """

    by: Margin
    where: tuple[tuple[str, str], ...] = ()
    keep: tuple[tuple[str, tuple[str, ...]], ...] = ()
    linear: bool = False

    @classmethod
    def of(
        cls,
        domain: Domain,
        by: Iterable[str],
        where: Mapping[str, str] | None = None,
        keep: Mapping[str, Iterable[str]] | None = None,
        *,
        linear: bool = False,
    ) -> "Question":
        """Return the question with its filters in the domain's order; refuse names that the domain does not have.

        >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"]})
        >>> Question.of(domain, ["age"], {"sex": "F"})
        Question(by=('age',), where=(('sex', 'F'),), keep=(), linear=False)
        """
        listed, filters, kept = tuple(by), dict(where or {}), {a: tuple(k) for a, k in (keep or {}).items()}
        domain.margin((*listed, *filters))
        if strangers := [a for a in kept if a not in listed]:
            raise InvalidWorkload(f"levels of {strangers[0]!r} are chosen, but the table is not by it.")
        for attribute, levels in [*((a, (level,)) for a, level in filters.items()), *kept.items()]:
            for level in levels:
                domain.code(attribute, level)
            if not levels or len(set(levels)) < len(levels):
                raise InvalidWorkload(f"choose at least one level of {attribute!r}, and none of them twice.")
        ordered = domain.attributes
        return cls(
            listed,
            tuple((a, filters[a]) for a in ordered if a in filters),
            # In the domain's order, so that two spellings of one selection are the same question.
            tuple(
                (a, tuple(level for level in domain.levels_of(a) if level in kept[a]))
                for a in ordered
                if a in kept and len(kept[a]) < len(domain.levels_of(a))
            ),
            linear,
        )

    def margin(self, domain: Domain) -> Margin:
        """Return the attributes of the table that the answer is a part of, in the domain's order."""
        return domain.margin((*self.by, *(a for a, _ in self.where)))

    def cells(self, domain: Domain) -> int:
        """Return how many cells the answer has.

        >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"]})
        >>> Question.of(domain, ["age", "sex"], keep={"age": ["old"]}).cells(domain)
        2
        """
        kept = dict(self.keep)
        return math.prod(len(kept.get(a, domain.levels_of(a))) for a in self.by)

    def cut(self, table: Published) -> Published:
        """Return the answer, cut from the table on `margin`: filtered, with the chosen levels, in the asked order."""
        return cut(table, self.by, dict(self.where), dict(self.keep))

    def describe(self) -> dict[str, object]:
        """Return the requested cells as plain data. The answer itself names its estimate."""
        return {
            "by": list(self.by),
            "where": dict(self.where),
            "keep": {attribute: list(levels) for attribute, levels in self.keep},
        }
