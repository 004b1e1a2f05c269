"""Which sampler answers a question: the exact one where it can, the chain where it cannot."""

from fractions import Fraction
from functools import cache

from tabulary.suppress.simulatable_method.suppressor import SamplerChooser
from tabulary.suppress.simulatable_method.terms import ROUNDING
from tabulary.table_samplers.partial_table import PartialTable, TableQuestion
from tabulary.table_samplers.table_sampler import TableSampler


def chooser(sampler: str, epsilon: Fraction) -> SamplerChooser:
    """Return who chooses the sampler of each question, from its cost: public things only.

    "auto" takes the exact program wherever it is feasible; "exact" and "chain" take one for everything.
    """
    # Each loads compiled code, and most tables need only one of them.
    from tabulary.table_samplers.exact_sampler import ExactTableSampler

    exact = ExactTableSampler()

    @cache
    def chain() -> TableSampler:
        from tabulary.table_samplers.chain_sampler import ChainTableSampler

        # Where a value is unsafe the chain looks no further, so it must mean by that what the suppressor means.
        return ChainTableSampler(epsilon=float(epsilon) + ROUNDING)

    def choose(known: PartialTable, question: TableQuestion | None) -> TableSampler:
        if sampler == "exact" or (sampler == "auto" and exact.feasible(known, question)):
            return exact
        return chain()

    return choose
