"""Hierarchical log-linear models: which interactions there are, and what follows from that alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary.core import basis
from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, Margin
from tabulary.core.workload import Workload, maximal_margins
from tabulary.errors import InvalidWorkload, TooManyCells
from tabulary.planning.queries import MarginMap

MAX_DESIGN = 1 << 25
"""The most entries, cells times cells of margins, of a design matrix."""


@dataclass(frozen=True)
class LogLinearModel:
    """The model in which log E[count] is a sum of functions of its generators, one of each.

    Generators are margins of the domain, none inside another; with each come all its own margins. Their tables
    are the minimal sufficient statistics. An attribute in no generator is spread evenly, and the model without
    any, "[]", is the uniform one.

    >>> domain = Domain({"A": "xy", "B": "xy", "C": "xyz"})
    >>> model = LogLinearModel.parse("[AB][BC][C]", domain)
    >>> print(model)
    [AB][BC]
    >>> model.parameters, model.decomposable
    (8, True)
    """

    domain: Domain
    generators: tuple[Margin, ...]

    def __post_init__(self) -> None:
        # The order in which a model is written does not matter, so that equal models are equal.
        kept = maximal_margins(Workload(self.domain, self.generators).margins)
        object.__setattr__(self, "generators", tuple(sorted(kept, key=self._place)))

    @classmethod
    def parse(
        cls, model: "str | Workload | Iterable[Iterable[str]] | LogLinearModel", domain: Domain
    ) -> "LogLinearModel":
        """Return the model with the generators written as "[AB][BC]", or given as margins or as a workload."""
        if isinstance(model, str):
            return cls(domain, Workload.parse(model, domain).margins)
        if isinstance(model, Workload):
            return cls(domain, Workload(domain, model.margins).margins)
        if isinstance(model, LogLinearModel):
            return cls(domain, model.generators)
        if not isinstance(model, Iterable):
            raise InvalidWorkload(
                f"a log-linear model is written as its margins, such as '[AB][BC]', not {model!r}."
            )
        return cls(domain, Workload(domain, model).margins)

    @classmethod
    def saturated(cls, domain: Domain) -> "LogLinearModel":
        """Return the model with every interaction, which fits every table exactly."""
        return cls(domain, (domain.attributes,))

    @classmethod
    def k_way(cls, domain: Domain, k: int) -> "LogLinearModel":
        """Return the model with all interactions of `k` attributes and none of more."""
        return cls(domain, tuple(combinations(domain.attributes, min(k, len(domain.attributes)))))

    @cached_property
    def margins(self) -> MarginMap:
        """From a full table to the tables of the generators."""
        positions = self.domain.position
        return MarginMap(
            self.domain.shape, tuple(tuple(map(positions, margin)) for margin in self.generators)
        )

    @cached_property
    def terms(self) -> tuple[Margin, ...]:
        """The interactions that the model has, the constant first: every margin of a generator."""
        closed = {m for g in self.generators for k in range(len(g) + 1) for m in combinations(g, k)}
        return tuple(sorted(closed, key=self._place))

    @property
    def parameters(self) -> int:
        """The number of free parameters on a table without zeros: Σ over the terms of Π (levels - 1)."""
        return sum(basis.coefficients(self.domain.shape_of(term)) for term in self.terms)

    @cached_property
    def junction(self) -> tuple[tuple[Margin, Margin | None], ...] | None:
        """The generators along a junction tree, each with what it shares with those before; None if there is none.

        There is one, and the model is decomposable, if and only if a spanning tree of the generators, heaviest in
        attributes shared, shares as many as they repeat: Σ|generator| - |attributes|. Bernstein & Goodman (1981).
        The first generator has no separator.

        >>> domain = Domain({"A": "xy", "B": "xy", "C": "xy"})
        >>> LogLinearModel.parse("[AB][BC]", domain).junction
        ((('A', 'B'), None), (('B', 'C'), ('B',)))
        >>> LogLinearModel.parse("[AB][BC][AC]", domain).junction
        """
        first, *others = self.generators
        tree: list[tuple[Margin, Margin | None]] = [(first, None)]
        # Of each generator that waits, the most that it shares with one in the tree (Prim).
        waiting = {other: set(other) & set(first) for other in others}
        while waiting:
            found = max(waiting, key=lambda other: len(waiting[other]))
            tree.append((found, self.domain.margin(waiting.pop(found))))
            for other, shared in waiting.items():
                waiting[other] = max(shared, set(other) & set(found), key=len)
        repeated = sum(map(len, self.generators)) - len(self.attributes)
        return tuple(tree) if sum(len(shared or ()) for _, shared in tree) == repeated else None

    @property
    def decomposable(self) -> bool:
        """Whether the fit has a closed form: a product of margins over a product of what they share.

        Structural zeros take it away.
        """
        return self.junction is not None and not self.domain.structural_zeros

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes in any of the generators."""
        return frozenset(a for generator in self.generators for a in generator)

    def without(self, interaction: Margin) -> "LogLinearModel":
        """Return the largest model within this one that lacks an interaction, and so all interactions that include it.

        >>> model = LogLinearModel.parse("[ABC]", Domain({"A": "xy", "B": "xy", "C": "xy"}))
        >>> print(model.without(("A", "B", "C")), model.without(("A", "B")))
        [AB][AC][BC] [AC][BC]
        """
        kept: list[Margin] = []
        for generator in self.generators:
            if set(interaction) <= set(generator):
                kept += [tuple(a for a in generator if a != left_out) for left_out in interaction]
            else:
                kept.append(generator)
        return LogLinearModel(self.domain, tuple(maximal_margins(kept)))

    def added(self, interaction: Margin) -> "LogLinearModel":
        """Return the model with one more interaction, and all that it includes."""
        return LogLinearModel(self.domain, (*self.generators, interaction))

    def design(self, cells: NDArray[np.intp]) -> Floats:
        """Return which cell of each generator's table some cells, given by their flat index, add to: 0 and 1.

        One row per cell. The columns span the model and depend on each other; `parameters` is their rank on all cells.

        >>> LogLinearModel.parse("[A][B]", Domain({"A": "xy", "B": "xy"})).design(np.arange(4)).tolist()
        [[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
        """
        if cells.size * self.margins.size > MAX_DESIGN:
            raise TooManyCells(
                f"the model {self} has {self.margins.size:,} margins on {cells.size:,} cells, more than the "
                f"{MAX_DESIGN:,} entries that a design matrix may have. Nothing was fitted. Take a decomposable model "
                "and the naive method, which need none, or a table of fewer attributes."
            )
        return self.margins.columns(cells).T

    def __str__(self) -> str:
        return str(Workload(self.domain, self.generators))

    def _place(self, margin: Margin) -> tuple[int, list[int]]:
        return len(margin), [self.domain.position(a) for a in margin]
