r"""Noisy parts of a plan, each measured when it is first needed and the same ever after.

What is measured, the sensitivity and the privacy are those of the plan: the parts that it lists, whole numbers plus
discrete noise, over all of which one person costs the plan's loss and no more. That accounting takes all parts
together. Which of them are asked for, in what order and how often, even after other answers have been seen, shows a
function of that one measurement: post-processing.

So a part must have one noise for ever, although nobody keeps it. Its draws come from the words of a key and of the
part's own name (`noise.keyed`), through the exact sampler. The plan lists no part twice, and names are spelled so that
no two parts have the same one: no word serves two parts, and the draws are independent, as they have to be. The words
are SHAKE-256 under a key from HMAC-SHA-256: whoever tells them from fresh ones without the key has broken one of these.
Against everybody else the promise is the plan's, up to that: it is computational, and it ends where the key is known.

The key must belong to these records and this plan alone (`workflows.answering.edition`). Under one key, two versions
of the records would have the same noise, and the difference of their answers would be exact.
"""

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.dropping import refuse_public_total
from tabulary.confidential.tally_cache import TallyCache
from tabulary.confidential.weights import refuse_weights
from tabulary.core.arrays import Integers
from tabulary.core.cache import ArrayCache, Cache
from tabulary.core.domain import check_same_domain
from tabulary.core.uncopyable import Uncopyable
from tabulary.errors import InvalidTable
from tabulary.noise import (
    Entropy,
    ExactSampler,
    Sampler,
)
from tabulary.noise.keyed import KeyedEntropy
from tabulary.noise.laws import SPENDING
from tabulary.planning import Measurement, Part, Plan, Query

_CHECKED_DRAWS = 1000


class MeasuredOnDemand(Uncopyable):
    """The noisy values of the parts of a plan, drawn under one key when they are asked for. Public, as they leave here.

    Unbiased. A part costs one sum of a counted table, one draw per value, and twenty milliseconds for the tables of
    a law that was not drawn from lately. Noisy values are kept in a section of `cache`; those that were dropped are
    drawn again, the same. Safe to use from several threads.

    `sampler` makes the sampler that draws a part from the part's words; only the exact one keeps the promise.
    """

    def __init__(
        self,
        tallies: TallyCache,
        plan: Plan,
        noise_key: bytes,
        *,
        sampler: Callable[[Entropy], Sampler] = ExactSampler,
        cache: Cache | None = None,
    ) -> None:
        check_measurable(tallies, plan)
        self.plan = plan
        self._tallies = tallies
        self._key = noise_key
        self._sampler = sampler
        self._values: ArrayCache[int, np.int64] = ArrayCache(Cache() if cache is None else cache)

    def values(self, position: int) -> NDArray[np.int64]:
        """Return the noisy values of the part at this position of the plan, read-only.

        After the parts come the queries that the plan releases exactly.
        """
        return self._values.get(position, lambda: self._measured(position))

    def close(self) -> None:
        """Forget the values that are kept."""
        self._values.clear()

    def measurement(self) -> Measurement:
        """Return the values of all parts: what `measure` would have measured with these draws."""
        return Measurement(self.plan, tuple(self.values(i) for i in range(len(self.plan.queries))))

    def __repr__(self) -> str:
        return f"<MeasuredOnDemand of {len(self.plan.measured):,} parts>"

    def _measured(self, position: int) -> Integers:
        query, encoded = self.plan.queries[position], self.plan.encoded
        attributes = encoded.attributes(query.margin)
        table = encoded.encode(attributes, self._tallies.exact(attributes))
        (values,) = self.plan.query.all_values([query], {encoded.margin(attributes): table})
        if position >= len(self.plan.measured):
            return values
        part = self.plan.measured[position]
        sampler = self._sampler(KeyedEntropy(self._key, *part_name(part)))
        drawn = sampler.draw(part.noise, query.draws(self.plan.measured_domain))
        return query.with_noise(values, drawn, self.plan.measured_domain)


def part_name(part: Part[Query]) -> tuple[str, ...]:
    """Return the words under which the noise of a part is drawn; no two parts of a plan have the same.

    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning import Residuals
    >>> part_name(Part(Residuals(("sex", "age"), ("age",)), DiscreteLaplace(1)))
    ('part', 'sex,age', 'age')
    """
    return "part", *part.query.key


def noise_check(key: bytes) -> str:
    """Return 32 digits that change if the noise that is drawn from this key does.

    Kept beside the key and compared before anything is drawn, they tell another key, and a sampler that draws otherwise
    than the one whose noise was paid for. They come from words of their own and tell nothing about any other.

    >>> noise_check(bytes(32))
    'ebdfb70a52fbd423cdd86f1994a82a44'
    """
    digest = hashlib.sha256()
    # Not every registered law: another installed package must not change the digits.
    for law in (example for spending in SPENDING.values() for example in spending.examples()):
        sampler = ExactSampler(KeyedEntropy(key, "check", *law.describe().values()))
        digest.update(sampler.draw(law, _CHECKED_DRAWS).astype("<i8").tobytes())
    return digest.hexdigest()[:32]


def check_measurable(tallies: TallyCache, plan: Plan) -> None:
    """Refuse records that a plan cannot measure, before anything is paid. Counts them once."""
    refuse_weights(tallies.weights, use="a plan", state="Nothing was measured.")
    check_same_domain(
        tallies.domain, plan.domain, things="the data and the plan", state="Nothing was measured."
    )
    refuse_public_total(plan.neighbours, tallies.drops)
    largest = max(query.growth(plan.measured_domain) for query in plan.queries)
    if largest * int(tallies.exact(())) >= 2**62:
        raise InvalidTable(
            "with this many records some measured values would not fit into 64-bit whole numbers. Nothing was "
            "measured."
        )
