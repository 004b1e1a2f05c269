"""The choice of the sampler for a question: the exact one where it is feasible, the chain elsewhere."""

from collections.abc import Callable
from functools import cache

from tabulary.table_samplers.partial_table import PartialTable, TableQuestion
from tabulary.table_samplers.table_sampler import TableSampler

SamplerChooser = Callable[[PartialTable, TableQuestion | None], TableSampler]
"""Returns the sampler for a question, or for the posterior if there is none. It reads public things only."""


def sampler_chooser(sampler: str = "auto", *, epsilon: float | None = None) -> SamplerChooser:
    """Return the function that chooses a sampler from the cost of a question.

    "auto" takes the exact program wherever it is feasible; "exact" and "chain" take one for everything. The chain does
    not estimate a deviation further once it is clearly above or below `epsilon`.
    """
    # Each loads compiled code, and most tables need only one of them.
    from tabulary.table_samplers.exact_sampler import ExactTableSampler

    exact = ExactTableSampler()

    @cache
    def chain() -> TableSampler:
        from tabulary.table_samplers.chain_sampler import ChainTableSampler

        return ChainTableSampler(epsilon=epsilon)

    def choose(known: PartialTable, question: TableQuestion | None) -> TableSampler:
        if sampler == "exact" or (sampler == "auto" and exact.feasible(known, question)):
            return exact
        return chain()

    return choose
