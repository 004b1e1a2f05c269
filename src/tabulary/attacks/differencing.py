"""Two attacks on published counts: differencing, and averaging. Rinott, O'Keefe, Shlomo & Skinner (2018), section 2.2.

Differencing: Bob is the only worker hired today. How many workers earn more than s? How many of them have been
working for more than a day? Where the same participants always get the same perturbation, two different answers prove
that the participants differ, and only Bob can be the difference: he earns more than s.

Averaging: describe the same people in many ways. Where each description gets a perturbation of its own, the mean
of the answers is the count.

Each is run against cell keys and against differentially private answers that share one budget. Nothing is confidential
here: the workers are invented.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tabulary.cellkey import PTable, record_keys
from tabulary.core.arrays import Integers
from tabulary.core.guessing import guessing
from tabulary.core.privacy import PureDP
from tabulary.core.proportion import Proportion
from tabulary.errors import InvalidArgument
from tabulary.noise import DiscreteLaplace, Entropy, ExactSampler, SystemEntropy

CELL_KEYS = "cell keys"
DESCRIPTIONS = "fresh perturbations"
PRIVATE = "differential privacy"

_KEYS = 4096


@dataclass(frozen=True)
class Differencing:
    """What an attacker who wants Bob's salary gets out of two answers.

    `found`: how often the attacker says that Bob earns more than s when he does; `wrong`: how often when he does not.
    An attacker who is never wrong is certain whenever he speaks. `bound` is the most that differential privacy allows
    `advantage` to be, for any attacker whatever he knows; without it there is none.
    """

    mechanism: str
    attacker: str
    found: Proportion
    wrong: Proportion
    bound: float | None = None

    @property
    def advantage(self) -> float:
        """How much likelier the attacker says so when it is true: 0 is guessing, 1 is knowing."""
        return self.found.rate - self.wrong.rate


@dataclass(frozen=True)
class Averaging:
    """How often an attacker has the exact count: after one answer, and after the mean of `answers` of them."""

    mechanism: str
    answers: int
    once: Proportion
    averaged: Proportion


def demonstration_ptable() -> PTable:
    """Return a perturbation table of five offsets, -2 to 2, unbiased at every count, that leaves zeros alone.

    >>> [float(demonstration_ptable().mean(count)) for count in (0, 1, 2)]
    [0.0, 0.0, 0.0]
    """
    wide = {-2: "1/10", -1: "1/5", 0: "2/5", 1: "1/5", 2: "1/10"}
    return PTable.from_rows([{0: 1}, {-1: "3/10", 0: "4/10", 1: "3/10"}, wide], modulus=_KEYS)


def differencing(
    *,
    trials: int = 100_000,
    workers: int = 40,
    epsilon: object = 1,
    ptable: PTable | None = None,
    entropy: Entropy | None = None,
) -> tuple[Differencing, ...]:
    r"""Return what the differencing attack gains against cell keys, and against two differentially private answers.

    `workers` other workers earn more than s, and Bob does in half of the `trials`. With cell keys the attacker speaks
    when the two answers differ. Differential privacy answers each query with its own discrete Laplace noise at half
    of `epsilon`, whether or not the participants are the same; there the same attacker is shown, and the best one
    possible: he knows every salary but Bob's and takes the likelier of the two. No attacker can gain more than
    (e^ε - 1)/(e^ε + 1).

    >>> keys, same, best = differencing(trials=2_000)
    >>> keys.wrong.times, keys.found.rate > 0.7, best.advantage < 0.5
    (0, True, True)
    """
    _check(trials=trials, workers=workers)
    loss, table, source = _given(epsilon, ptable, entropy)
    above = np.arange(trials) % 2 == 0
    # The sum of uniform keys is uniform, whoever the others are.
    others, bob = (record_keys(trials, table.modulus, source) for _ in range(2))
    small = np.full(trials, workers)
    large = small + above
    second = small + table.pvalues(table.pcv(small), others)
    first = large + table.pvalues(table.pcv(large), (others + above * bob) % table.modulus)
    noise = DiscreteLaplace(2 / loss)
    sampler = ExactSampler(source)
    noisy_first, noisy_second = large + sampler.draw(noise, trials), small + sampler.draw(noise, trials)
    bound = 2 * guessing(PureDP(loss)) - 1
    differs = "compares the answers"
    return (
        _differencing(CELL_KEYS, differs, first != second, above),
        _differencing(PRIVATE, differs, noisy_first != noisy_second, above, bound),
        _differencing(PRIVATE, "knows all but Bob", noisy_first > small, above, bound),
    )


def averaging(
    *,
    answers: int = 100,
    trials: int = 2_000,
    count: int = 40,
    epsilon: object = 1,
    ptable: PTable | None = None,
    entropy: Entropy | None = None,
) -> tuple[Averaging, ...]:
    """Return how often the mean of many answers about the same `count` people is their number.

    Three ways to answer: a fresh perturbation for each description, which the rule of cell keys is there to prevent;
    cell keys, where every answer is the first one again; and differential privacy, where `epsilon` is shared by all
    the answers, so that the noise of each grows with their number and that of their mean does too.

    >>> fresh, keys, private = averaging(answers=100, trials=200)
    >>> fresh.averaged.rate > 0.95, keys.averaged == keys.once, private.averaged.rate < 0.1
    (True, True, True)
    """
    _check(answers=answers, trials=trials, count=count)
    loss, table, source = _given(epsilon, ptable, entropy)
    shape = (trials, answers)
    pcv = table.pcv(np.full(shape, count))
    fresh = table.pvalues(pcv, record_keys(trials * answers, table.modulus, source).reshape(shape))
    same = table.pvalues(pcv, np.repeat(record_keys(trials, table.modulus, source), answers).reshape(shape))
    sampler = ExactSampler(source)
    private = sampler.draw(DiscreteLaplace(answers / loss), shape)
    alone = sampler.draw(DiscreteLaplace(1 / loss), trials)
    return (
        _averaging(DESCRIPTIONS, fresh, fresh[:, 0]),
        _averaging(CELL_KEYS, same, same[:, 0]),
        _averaging(PRIVATE, private, alone),
    )


def _differencing(
    mechanism: str,
    attacker: str,
    says: NDArray[np.bool_],
    above: NDArray[np.bool_],
    bound: float | None = None,
) -> Differencing:
    found = Proportion(int(says[above].sum()), int(above.sum()))
    wrong = Proportion(int(says[~above].sum()), int((~above).sum()))
    return Differencing(mechanism, attacker, found, wrong, bound)


def _averaging(mechanism: str, errors: Integers, once: Integers) -> Averaging:
    trials, answers = errors.shape
    # The mean rounds to the count where the sum of the errors is less than half a person per answer.
    right = 2 * np.abs(errors.sum(axis=1)) < answers
    return Averaging(
        mechanism, answers, Proportion(int((once == 0).sum()), trials), Proportion(int(right.sum()), trials)
    )


def _given(
    epsilon: object, ptable: PTable | None, entropy: Entropy | None
) -> tuple[Fraction, PTable, Entropy]:
    return (
        PureDP(epsilon).epsilon,
        demonstration_ptable() if ptable is None else ptable,
        SystemEntropy() if entropy is None else entropy,
    )


def _check(**numbers: int) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 2:
            raise InvalidArgument(f"`{name}` is a whole number from 2 on, not {number!r}.")
