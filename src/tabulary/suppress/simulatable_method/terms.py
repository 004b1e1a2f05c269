"""The public terms of a suppression: ε, δ and how decisions are made. With the people they determine all decisions."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any

from tabulary.core.domain import Domain
from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidArgument, InvalidPrivacy, listed
from tabulary.table_samplers.people import People
from tabulary.table_samplers.sampler_choice import SamplerChooser, sampler_chooser

RULES = ("computed", "sampled")
SAMPLERS = ("auto", "exact", "chain")

# A deviation this little above ε counts as ε. ChainRun numbers meet ε exactly (15 of 100 people where 30 were expected,
# at ε = ½) and often enough to decide about a cell; what is computed is then a rounding error above or below.
ROUNDING = 1e-6

Index = tuple[int, ...]


@dataclass(frozen=True)
class SuppressionTerms:
    r"""ε, δ and how decisions are made.

    With probability 1 - δ over the data, nobody's probability of having the private attribute, or of not having it,
    moves by more than a share ε of what it was. That δ is divided among the T cells of the table with all its sums
    (`parts`), so that a question is answered where an unsafe answer has a probability of at most δ/T:

    - rule `"computed"`: that probability is computed, and compared with δ/T;
    - rule `"sampled"`: Algorithms 2 and 3 of Nabar & Mishra (2010). `draws` = ⌈(T/δ) ln(T/δ)⌉ answers are simulated,
      and at most ½ ln(T/δ) of them may be unsafe. The logarithm is natural in both; the paper's "log" is read so. The
      probability 1 - δ is then over the random draws as well.

    `bins` limits the parts of an ordered attribute; `order` is the order in which cells are decided, rows first where
    it is None. `seed` is that of the public random numbers.

    >>> terms = SuppressionTerms(0.5, 0.2)
    >>> terms.parts(Domain({"eye": "abc", "hair": "abc"}))
    16
    >>> terms.draws(16), round(terms.allowed(16), 2)
    (351, 2.19)
    """

    epsilon: Fraction
    delta: Fraction
    bins: Mapping[str, int] = field(default_factory=dict)
    order: tuple[Index, ...] | None = None
    rule: str = "computed"
    sampler: str = "auto"
    seed: str = ""

    def __post_init__(self) -> None:
        epsilon = exact_fraction(self.epsilon, name="epsilon", error=InvalidPrivacy)
        delta = exact_fraction(self.delta, name="delta", error=InvalidPrivacy)
        if epsilon <= 0:
            raise InvalidPrivacy(
                f"epsilon must be above 0, not {show_fraction(epsilon)}. Nothing was released."
            )
        if not 0 < delta < 1:
            raise InvalidPrivacy(
                f"delta is a probability strictly between 0 and 1, not {show_fraction(delta)}. Nothing was released."
            )
        if self.rule not in RULES:
            raise InvalidArgument(
                f"unknown rule {self.rule!r}. Choose one of {listed(RULES)}. Nothing was released."
            )
        if self.sampler not in SAMPLERS:
            raise InvalidArgument(
                f"unknown sampler {self.sampler!r}. Choose one of {listed(SAMPLERS)}. Nothing was released."
            )
        if not isinstance(self.seed, str):
            raise InvalidArgument(
                f"the seed must be a text, not {type(self.seed).__name__}. Nothing was released."
            )
        if not isinstance(self.bins, Mapping):
            raise InvalidArgument(
                "`bins` must be given by attribute, such as {'age': 4}. Nothing was released."
            )
        for attribute, limit in self.bins.items():
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise InvalidArgument(
                    f"bins[{attribute!r}] must be the largest number of parts, a whole number of at least 1. Nothing "
                    "was released."
                )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "bins", MappingProxyType(dict(self.bins)))

    def check(self, domain: Domain) -> None:
        """Refuse terms that name what the domain does not have, or an order that is none of its cells."""
        strangers = [attribute for attribute in self.bins if attribute not in domain.attributes]
        if strangers:
            raise InvalidArgument(
                f"bins are given for {listed(strangers)}, which the table does not have. It has "
                f"{listed(domain.attributes)}. Nothing was released."
            )
        if self.order is None:
            return
        if self.bins:
            raise InvalidArgument(
                "`order` and `bins` are given together, but the cells of a binned table are not known in advance. "
                "Nothing was released. Leave `order` out."
            )
        if len(self.order) != domain.size or {*self.order} != {*product(*map(range, domain.shape))}:
            raise InvalidArgument(
                "`order` does not name every cell of the table exactly once. Nothing was released."
            )

    def limits(self, domain: Domain) -> tuple[int, ...]:
        """Return how many parts each attribute may have at most."""
        return tuple(
            min(self.bins.get(attribute, levels), levels)
            for attribute, levels in zip(domain.attributes, domain.shape, strict=True)
        )

    def parts(self, domain: Domain) -> int:
        """Return T, the number of cells with all the sums, among which δ is divided."""
        return math.prod(limit + 1 for limit in self.limits(domain))

    def questions(self, domain: Domain) -> int:
        """Return how many questions are answered at most: the total, the splits and the cells."""
        limits = self.limits(domain)
        return 1 + sum(limit - 1 for limit in limits) + math.prod(limits)

    def share(self, parts: int) -> float:
        """Return δ/T."""
        return float(self.delta / parts)

    def draws(self, parts: int) -> int:
        """Return how many answers are simulated for a decision."""
        inverse = float(parts / self.delta)
        return math.ceil(inverse * math.log(inverse))

    def allowed(self, parts: int) -> float:
        """Return how many of them may be unsafe at most."""
        return math.log(float(parts / self.delta)) / 2

    def sampler_chooser(self) -> SamplerChooser:
        """Return the function that chooses the sampler of each question."""
        # The chain looks no further at an unsafe value, so unsafe must mean the same to it as to the suppressor.
        return sampler_chooser(self.sampler, epsilon=float(self.epsilon) + ROUNDING)

    def describe(self) -> dict[str, Any]:
        """Return the terms as plain data, the inverse of `from_description`."""
        return {
            "epsilon": show_fraction(self.epsilon),
            "delta": show_fraction(self.delta),
            "bins": dict(self.bins),
            "order": None if self.order is None else [list(index) for index in self.order],
            "rule": self.rule,
            "sampler": self.sampler,
            "seed": self.seed,
        }

    @classmethod
    def from_description(cls, description: object) -> "SuppressionTerms":
        """Return the terms that `describe` wrote; refuse anything else."""
        match description:
            case {
                "epsilon": str(epsilon),
                "delta": str(delta),
                "bins": dict(bins),
                "order": list() | None as order,
                "rule": str(rule),
                "sampler": str(sampler),
                "seed": str(seed),
                **rest,
            } if not rest and all(isinstance(index, list) for index in order or ()):
                return cls(
                    exact_fraction(epsilon, name="epsilon", error=InvalidPrivacy),
                    exact_fraction(delta, name="delta", error=InvalidPrivacy),
                    bins=bins,
                    order=None if order is None else tuple(map(tuple, order)),
                    rule=rule,
                    sampler=sampler,
                    seed=seed,
                )
        raise InvalidArgument(
            "the description of the terms of the suppression is not in the form that Tabulary writes."
        )

    def sealed(self, people: People) -> "SuppressionTerms":
        """Return the terms with the seed that follows from them and the people, so that nobody chooses one."""
        return replace(self, seed=self.derived_seed(people))

    def derived_seed(self, people: People) -> str:
        """Return the SHA-256 of everything public that fixes the course, but for the seed."""
        described = {**self.describe(), "people": people_description(people)}
        del described["seed"]
        text = json.dumps(described, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def people_description(people: People) -> dict[str, Any]:
    """Return people as plain data: their domain, their number in each cell and kind, and their priors."""
    return {
        "domain": people.domain.describe(),
        "number": people.number.tolist(),
        "probability": people.probability.tolist(),
    }


def people_from(description: object) -> People:
    """Return the people that `people_description` wrote; refuse anything else."""
    match description:
        case {"domain": domain, "number": list(number), "probability": list(probability), **rest} if not rest:
            return People(Domain.from_description(domain), number, probability)  # type: ignore[arg-type]
    raise InvalidArgument(
        "the description of the people of the table is not in the form that Tabulary writes."
    )
