"""The properties that statistical offices want from a perturbation, and what each one costs: the report on a law.

The eight properties of Rinott, O'Keefe, Shlomo & Skinner (2018), section 2.2. Whether a law has a property is
computed from its rows p(a, ·), and the cost as ε and δ: `tabulary.perturb.exact_delta` has the definition.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from textwrap import fill
from types import MappingProxyType

import numpy as np

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.core.privacy import PureDP
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise
from tabulary.perturb.perturbation import Perturbation, Row
from tabulary.perturb.property_figures import Figures
from tabulary.release import ReleasedTable

NAMES = (
    "threshold",
    "maximal entropy",
    "sparse-table rule",
    "non-negative integers",
    "structural zeros",
    "unbiased",
    "bounded variance",
    "truncated",
)
"""The eight properties, in the order of the paper."""

# Probabilities are exact to about fifteen digits; smaller differences are treated as zero.
_TOLERANCE = 1e-9
_WIDTH = 110


@dataclass(frozen=True)
class NoiseProperty:
    """One property: whether a law has it, the evidence, and what it costs.

    `holds` is None if the property is not about a distribution. `figures` are the numbers behind the words.
    """

    number: int
    holds: bool | None
    evidence: str
    cost: str
    figures: Mapping[str, float]

    @property
    def name(self) -> str:
        """The name of the property."""
        return NAMES[self.number - 1]

    @property
    def verdict(self) -> str:
        """Whether the property holds, in words."""
        return {True: "holds", False: "does not hold", None: "not about a distribution"}[self.holds]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.number}  {self.name}: {self.verdict}",
                fill(self.evidence, _WIDTH, initial_indent="   ", subsequent_indent="   "),
                fill(f"Cost: {self.cost}", _WIDTH, initial_indent="   ", subsequent_indent="   "),
            ]
        )


@dataclass(frozen=True)
class Contradiction:
    """Properties that no law can have together; or, if there is a `delta`, only with at least this δ at every ε."""

    properties: tuple[int, ...]
    reason: str
    delta: float | None = None

    def __str__(self) -> str:
        parties = [*map(str, self.properties), *([] if self.delta is None else ["privacy"])]
        return fill(f"{' and '.join(parties)}: {self.reason}", _WIDTH, subsequent_indent="   ")


@dataclass(frozen=True)
class NoiseProperties:
    """A law and the eight properties: one row per property, and the contradictions between them.

    `delta` is the exact δ at `epsilon`; `pure_epsilon` the smallest ε with δ = 0, infinite if there is none.
    """

    law: Perturbation
    minimum: int | None
    epsilon: Fraction
    delta: float
    pure_epsilon: float
    rows: tuple[NoiseProperty, ...]
    contradictions: tuple[Contradiction, ...]

    def numbered(self, number: int) -> NoiseProperty:
        """Return the row of one property, by its number in the paper."""
        if not 1 <= number <= len(self.rows):
            raise InvalidNoise(f"The properties have the numbers 1 to {len(self.rows)}, not {number!r}.")
        return self.rows[number - 1]

    def __str__(self) -> str:
        pure = "No ε" if math.isinf(self.pure_epsilon) else f"ε = {_shown(self.pure_epsilon)}"
        kept = (
            "Values are published unchanged"
            if self.minimum is None
            else f"Values below {self.minimum} are published as {self.minimum}"
        )
        return "\n".join(
            [
                f"{self.law}. {kept}.",
                f"At ε = {show_fraction(self.epsilon)} the exact δ is {_shown(self.delta)}. {pure} holds with δ = 0.",
                "",
                *map(str, self.rows),
                "",
                "Contradictions",
                *map(str, self.contradictions),
            ]
        )


def noise_properties(
    law: Perturbation,
    *,
    minimum: int | None = None,
    threshold: int = 1,
    variance_limit: object = None,
    sparse_share: object = Fraction(1, 2),
    table: Table | ReleasedTable | None = None,
    epsilon: object = None,
) -> NoiseProperties:
    """Return which of the eight properties a law has, which contradict each other, and their cost in ε and δ.

    `minimum` is the value that smaller ones are published as, as in `perturb`. No value up to `threshold` is to
    be published (property 1); no variance is to exceed `variance_limit`, or any limit at all if none is given
    (property 7); no table is to be published of whose possible cells a share above `sparse_share` is at most
    `threshold` (property 3), which needs a `table`. Costs are told at `epsilon`: the one that the law names unless
    another is given, or 1 if it names none.

    Statements about all counts are proven for all of them: see `perturb.property_figures`. A law whose rows never
    settle is examined at 0, 10 and 1000. It gets no property of all counts that these could refute but not prove.

    Properties 4 and 6 together must cost δ. Non-negative and unbiased leave zero as it is, and a published value other
    than zero then proves that the count is not zero: δ is at least P(b ≠ 0) of a count of one, at every ε. Its mean
    is one, so that is at least 1/(1 + m) under a bound m and 1/(1 + v) with a variance v, whatever the law.

    ε and δ are those of what is drawn; a `minimum` is post-processing, which can only lower them. Reads no data unless
    a `table` is given, and draws nothing.

    >>> from tabulary.perturb import Laplace
    >>> report = noise_properties(Laplace(1.5, bound=7), minimum=0, variance_limit=2)
    >>> [(row.number, row.holds) for row in report.rows]
    [(1, False), (2, False), (3, None), (4, True), (5, True), (6, False), (7, True), (8, True)]
    >>> print(report.numbered(8))
    8  truncated: holds
       The largest change is ±7.
       Cost: δ = 1.749e-05 at ε = 1.5, of which 1.749e-05 remain at every ε, for values that a neighbouring count
       cannot have. Without the bound δ is 0.
    >>> [(found.properties, found.delta) for found in report.contradictions if 8 in found.properties][0]
    ((4, 6, 8), 0.125)
    """
    if not isinstance(law, Perturbation):
        raise InvalidNoise(f"The report needs a perturbation, not a {type(law).__name__}.")
    if minimum is not None and (not _is_whole(minimum) or minimum < 0):
        raise InvalidNoise(f"The minimum published value must be a whole number, 0 or more, not {minimum!r}.")
    if not _is_whole(threshold) or threshold < 1:
        raise InvalidNoise(f"The threshold must be a positive whole number, not {threshold!r}.")
    limit = variance_limit
    if limit is not None:
        limit = exact_fraction(limit, name="the limit of the variance", error=InvalidNoise)
        if limit <= 0:
            raise InvalidNoise(f"The limit of the variance must be positive, not {variance_limit!r}.")
    share = exact_fraction(sparse_share, name="the share of small cells", error=InvalidNoise)
    if not 0 <= share <= 1:
        raise InvalidNoise(f"The share of small cells must be from 0 to 1, not {sparse_share!r}.")
    asked = (law.epsilon or 1) if epsilon is None else epsilon
    figures = Figures(law, minimum, threshold, limit, PureDP(asked).epsilon)
    rows = (
        _threshold(figures),
        _entropy(figures),
        _sparse(figures.threshold, share, table),
        _nonnegative(figures),
        _structural(figures),
        _unbiased(figures),
        _variance(figures),
        _truncated(figures),
    )
    return NoiseProperties(
        law, minimum, figures.epsilon, figures.delta, law.epsilon_at(0), rows, tuple(_contradictions(figures))
    )


def _threshold(figures: Figures) -> NoiseProperty:
    threshold = figures.threshold
    small = {count: _up_to(row, threshold) for count, row in figures.published.items()}
    worst = max(small, key=lambda count: small[count])
    evidence = _smallest(figures)
    if small[worst] > 0:
        evidence += (
            f" With probability {_shown(small[worst])} a count of {worst:,} becomes {threshold} or less."
        )
        if all(_up_to(row, 0) == small[count] for count, row in figures.published.items()):
            evidence += (
                f" The values from 1 to {threshold} never are." if threshold > 1 else " A one never is."
            )
    raised = figures.law.bias(0, minimum=threshold + 1)
    cost = (
        f"none in ε and δ if smaller values are published as {threshold + 1}, which is post-processing; "
        f"a zero is then biased by {_shown(raised)}. "
    )
    numbers = {"smallest published": figures.lowest, "probability": small[worst], "bias of zero": raised}
    if figures.cut_delta is None:
        cost += "This law cannot leave them out itself: some count would have no other value."
    else:
        cost += (
            f"If the law itself leaves them out, δ is at least {_shown(figures.cut_delta)} at "
            f"{_at(figures)}; otherwise it is {_shown(figures.delta)}."
        )
        numbers |= {"delta of the law cut": figures.cut_delta, "delta": figures.delta}
    return _property(1, small[worst] == 0, evidence, cost, numbers)


def _entropy(figures: Figures) -> NoiseProperty:
    law = figures.law
    worst = max(figures.counts, key=lambda count: figures.entropies[count][1] - figures.entropies[count][0])
    entropy, largest = figures.entropies[worst]
    holds = largest - entropy <= _TOLERANCE and law.settled is not None
    evidence = (
        f"The entropy of {_counts(figures, worst)} is {_shown(entropy)} nats; with the same values, mean and "
        f"variance it could be {_shown(largest)}."
    )
    variance, least = law.variance(figures.large), figures.equally_private.variance()
    where = "large counts" if law.settled is not None else f"a count of {figures.large}"
    numbers = {
        "entropy": entropy,
        "largest entropy": largest,
        "variance": variance,
        "variance of Laplace at equal privacy": least,
        "delta": figures.delta,
    }
    cost = (
        f"Laplace noise with no larger ε and δ has the variance {_shown(least)}; this law has {_shown(variance)}, "
        f"{_shown(variance / least)} times that, for {where}."
    )
    if variance > 0 and figures.delta < 1:
        own = law.epsilon_at(figures.delta)
        equal = figures.equally_varying(variance).epsilon_at(figures.delta)
        numbers |= {"epsilon": own, "epsilon of Laplace at equal variance": equal}
        cost += (
            f" At δ = {_shown(figures.delta)} it has ε = {_shown(own)}, and Laplace noise of its variance has "
            f"ε = {_shown(equal)}."
        )
    if not holds and figures.entropic_delta is not None:
        numbers["delta of largest entropy"] = figures.entropic_delta
        cost += (
            f" The law of largest entropy would have δ = {_shown(figures.entropic_delta)} at {_at(figures)}; "
            f"this one has {_shown(figures.delta)}."
        )
    return _property(2, holds, evidence, cost, numbers)


def _sparse(threshold: int, share: Fraction, table: Table | ReleasedTable | None) -> NoiseProperty:
    rule = f"of the possible cells, a share of at most {show_fraction(share)} may be {threshold} or less"
    numbers = {"delta on exact counts": 1.0, "delta on published counts": 0.0}
    exact = (
        "a rule about exact counts gives information when it refuses. It distinguishes two neighbouring "
        "tables on its two sides with certainty: δ = 1 at every ε. A rule about published counts is "
        "post-processing and costs nothing."
    )
    if table is None:
        evidence = f"It is a rule about which tables are published: {rule}. Give a table to check it."
        return _property(3, None, evidence, exact, numbers)
    possible = ~table.domain.impossible(table.domain.attributes)
    # As a fraction: two cells of five are not more than 0.4 of them.
    small = Fraction(int(np.sum(table.counts[possible] <= threshold)), max(1, int(possible.sum())))
    evidence = f"The rule: {rule}. In this table the share is {_shown(float(small))}."
    if isinstance(table, ReleasedTable):
        cost = "none: the checked counts are the published ones, so this is post-processing."
    else:
        cost = (
            f"{exact} The counts that were checked here are not published, so this answer must not be "
            "published."
        )
    return _property(3, small <= share, evidence, cost, numbers | {"share": float(small)})


def _nonnegative(figures: Figures) -> NoiseProperty:
    negative = _up_to(figures.published[0], -1)
    biased = figures.law.bias(0, minimum=0)
    evidence = _smallest(figures)
    if negative:
        evidence += f" A zero becomes negative with probability {_shown(negative)}."
    if figures.keeps_zeros:
        least = figures.zeros_delta(figures.minimum)
        cost = (
            f"a zero always stays zero, so δ is at least {_shown(least)} at every ε; at {_at(figures)} it is "
            f"{_shown(figures.delta)}."
        )
    elif figures.law.row(0).lowest >= 0:
        cost = f"δ = {_shown(figures.delta)} at {_at(figures)}, and a zero is biased by {_shown(biased)}."
    else:
        cost = (
            "none in ε and δ if negative values are published as 0, which is post-processing; "
            f"a zero is then biased by {_shown(biased)}."
        )
    numbers = {"smallest published": figures.lowest, "probability": negative, "bias of zero": biased}
    return _property(4, figures.lowest >= 0, evidence, cost, numbers | {"delta": figures.delta})


def _structural(figures: Figures) -> NoiseProperty:
    stays = figures.published[0].probability(0)
    least = figures.zeros_delta(figures.minimum)
    evidence = (
        "Impossible cells are published unchanged by every law. The zero of a possible cell stays zero "
        f"with probability {_shown(stays)}."
    )
    cost = "none: everybody knows without the data that a cell is impossible. " + (
        f"This law also leaves the zeros of possible cells, so δ is at least {_shown(least)} at every ε."
        if figures.keeps_zeros
        else (
            f"If the zeros of possible cells stayed zero too, δ would be at least {_shown(least)} at every "
            f"ε; it is {_shown(figures.delta)} at {_at(figures)}."
        )
    )
    numbers = {"probability that a zero stays": stays, "delta with zeros left": least, "delta": figures.delta}
    return _property(5, True, evidence, cost, numbers)


def _unbiased(figures: Figures) -> NoiseProperty:
    worst = max(figures.counts, key=lambda count: abs(figures.biases[count]))
    bias = figures.biases[worst]
    holds = abs(bias) <= _TOLERANCE and figures.law.settled is not None
    evidence = (
        "The expected published value of every count is that count."
        if holds
        else f"The largest bias is {_shown(bias)}, of {_counts(figures, worst)}."
    )
    numbers = {"bias": bias, "count": worst}
    cost = "none in ε and δ while negative values are published."
    least = max(figures.variance_delta or 0.0, figures.bound_delta or 0.0)
    if least > 0:
        numbers["delta if non-negative"] = least
        cost += (
            f" If none are, zeros must stay zeros, and δ is at least {_shown(least)} at every ε for any law "
            "with this variance and range."
        )
    return _property(6, holds, evidence, cost, numbers)


def _variance(figures: Figures) -> NoiseProperty:
    settled = figures.law.settled is not None
    worst = max(figures.counts, key=lambda count: figures.variances[count])
    variance, limit = figures.variances[worst], figures.variance_limit
    holds = settled and (limit is None or variance <= float(limit) * (1 + _TOLERANCE))
    evidence = f"The variance of {_counts(figures, worst)} is {_shown(variance)}" + (
        ", and of none larger." if settled else "; there is no known limit over all counts."
    )
    if limit is not None:
        evidence += f" The limit is {show_fraction(limit)}."
    numbers = {"variance": variance, "count": worst, "delta": figures.delta}
    cost = f"this law has δ = {_shown(figures.delta)} at {_at(figures)}."
    if allowed := figures.largest_variance:
        laplace = float(figures.equally_varying(allowed).epsilon)
        numbers["epsilon of Laplace"] = laplace
        cost += f" Laplace noise of variance {_shown(allowed)} has ε = {_shown(laplace)} and δ = 0."
    return _property(7, holds, evidence, cost, numbers)


def _truncated(figures: Figures) -> NoiseProperty:
    numbers = {"delta": figures.delta, "delta at every epsilon": figures.lasting_delta}
    if figures.largest_change is None:
        cost = f"none is paid: δ is {_shown(figures.lasting_delta)} at large ε."
        return _property(8, False, "There is no largest change.", cost, numbers)
    numbers["largest change"] = figures.largest_change
    cost = (
        f"δ = {_shown(figures.delta)} at {_at(figures)}, of which {_shown(figures.lasting_delta)} remain at every "
        "ε, for values that a neighbouring count cannot have."
    )
    if figures.unbounded_delta is not None:
        numbers["delta without the bound"] = figures.unbounded_delta
        cost += f" Without the bound δ is {_shown(figures.unbounded_delta)}."
    return _property(8, True, f"The largest change is ±{figures.largest_change:,}.", cost, numbers)


def _contradictions(figures: Figures) -> Iterator[Contradiction]:
    law, least = figures.law, figures.threshold + 1
    yield Contradiction((1, 5), f"an impossible cell stays 0, and no value below {least} may be published.")
    raised = _shown(law.bias(0, minimum=least))
    yield Contradiction(
        (1, 6), f"a zero becomes {least} or more, so its bias is no less; with this law it is {raised}."
    )
    if law.bound is not None and law.bound < least:
        yield Contradiction((1, 8), f"no change within ±{law.bound} makes a zero {least} or more.")
    yield Contradiction(
        (3,), "a refusal that depends on exact counts distinguishes neighbouring tables.", 1.0
    )
    left = figures.zeros_delta(max(figures.minimum or 0, 0))
    if figures.keeps_zeros:
        reason = f"zeros must stay zeros, as with this law, so δ is at least {_shown(left)} at every ε."
    else:
        reason = (
            "a zero that is perturbed and never negative is biased, with this law by "
            f"{_shown(law.bias(0, minimum=0))}; if it stays zero, δ is at least {_shown(left)} at every ε."
        )
    yield Contradiction((4, 6), reason, left)
    if figures.variance_delta is not None and figures.largest_variance is not None:
        reason = (
            f"zeros must stay zeros, and with a variance of at most {_shown(figures.largest_variance)} δ is "
            f"then at least {_shown(figures.variance_delta)} at every ε, for any law."
        )
        yield Contradiction((4, 6, 7), reason, figures.variance_delta)
    if figures.bound_delta is not None:
        reason = (
            f"zeros must stay zeros, and with changes of at most {law.bound} δ is then at least "
            f"{_shown(figures.bound_delta)} at every ε, for any law."
        )
        yield Contradiction((4, 6, 8), reason, figures.bound_delta)
        reason = (
            f"the outermost values reveal their count: δ is at least {_shown(figures.lasting_delta)} "
            "at every ε."
        )
        yield Contradiction((8,), reason, figures.lasting_delta)


def _property(
    number: int, holds: bool | None, evidence: str, cost: str, numbers: dict[str, float]
) -> NoiseProperty:
    return NoiseProperty(number, holds, evidence, cost, MappingProxyType(numbers))


def _up_to(row: Row, value: int) -> float:
    """Return the probability of all values up to this one."""
    return math.fsum(row.probabilities[row.values <= value])


def _smallest(figures: Figures) -> str:
    if figures.law.bound is None and figures.lowest < 0:
        return "There is no smallest published value."
    return f"The smallest published value is {figures.lowest:,}."


def _counts(figures: Figures, count: int) -> str:
    """Return a count in words: from the last one on, the noise is the same for all."""
    if figures.law.settled is None or count < figures.counts[-1]:
        return f"a count of {count:,}"
    return "every count" if count == 0 else f"counts from {count:,} on"


def _at(figures: Figures) -> str:
    return f"ε = {show_fraction(figures.epsilon)}"


def _shown(value: float) -> str:
    return f"{value:.4g}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
