"""Which sampler answers a question: the exact one where it can, the chain where it cannot."""

from fractions import Fraction
from functools import cache

from tabulary.suppress.samplers.answers import TableSampler
from tabulary.suppress.samplers.known import Known, Question
from tabulary.suppress.simulatable_method.suppressor import Chooser
from tabulary.suppress.simulatable_method.terms import ROUNDING


def chooser(sampler: str, epsilon: Fraction) -> Chooser:
    """Return who chooses the sampler of each question, from its cost: public things only.

    "auto" takes the exact program wherever it is feasible; "exact" and "chain" take one for everything.
    """
    # Each loads compiled code, and most tables need only one of them.
    from tabulary.suppress.samplers.exact import Exact

    exact = Exact()

    @cache
    def chain() -> TableSampler:
        from tabulary.suppress.samplers.chain import Chain

        # Where a value is unsafe the chain looks no further, so it must mean by that what the suppressor means.
        return Chain(epsilon=float(epsilon) + ROUNDING)

    def choose(known: Known, question: Question | None) -> TableSampler:
        if sampler == "exact" or (sampler == "auto" and exact.feasible(known, question)):
            return exact
        return chain()

    return choose
