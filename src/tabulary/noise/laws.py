"""The laws that a plan can have: registered by their families, read back from their descriptions."""

import re
from collections.abc import Collection, Mapping
from fractions import Fraction

from tabulary.core.privacy import ZCDP, GaussianDP, Loss, PureDP
from tabulary.errors import InvalidNoise
from tabulary.noise.gaussian import DiscreteGaussian
from tabulary.noise.integer import IntegerNoise
from tabulary.noise.laplace import DiscreteLaplace
from tabulary.noise.rounded_gaussian import RoundedGaussian
from tabulary.noise.square_root import SquareRootLaplace
from tabulary.registry import Registry

LAWS = Registry[type[IntegerNoise]]("law of noise", "tabulary.noise")
"""The laws that a plan, and so a release, can have. A law outside the package is added with `LAWS.register`."""

LAWS.register(DiscreteLaplace.family, DiscreteLaplace)
LAWS.register(DiscreteGaussian.family, DiscreteGaussian)
LAWS.register(RoundedGaussian.family, RoundedGaussian)

SPENDING: Mapping[type[Loss], type[IntegerNoise]] = {
    PureDP: DiscreteLaplace,
    ZCDP: DiscreteGaussian,
    GaussianDP: RoundedGaussian,
}
"""The law that a planner spends each currency with, unless it chooses another that earns it."""

# Only the form that `describe` writes, and short: a description may come from a stranger.
_EXACT = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?", re.ASCII)


def noise_from_description(description: Mapping[str, object]) -> IntegerNoise:
    """Return the noise that `describe` described.

    Fails closed: a family that is not registered, a missing or an additional key, and a number in any other form
    than an exact fraction are errors.

    >>> noise_from_description({"family": "discrete-laplace", "scale": "105"})
    DiscreteLaplace(scale=Fraction(105, 1))
    """
    family = _family(description, LAWS)
    law = LAWS[family]
    return law(**_parameters(description, family, law.parameters()))


def law_from_description(description: Mapping[str, object], *, centre: int) -> SquareRootLaplace:
    """Return the law that `describe` described, about the count `centre`.

    A description never contains the count; an analyst assumes one. It is separate from `noise_from_description`,
    because a law that replaces a count is no noise for a plan. It fails closed in the same way.

    >>> law = law_from_description({"family": "square-root-laplace", "rate": "1/4"}, centre=3)
    >>> law.rate, law.centre
    (Fraction(1, 4), 3)
    """
    family = _family(description, (SquareRootLaplace.family,))
    return SquareRootLaplace(_parameters(description, family, ("rate",))["rate"], centre)


def _family(description: object, known: Collection[str]) -> str:
    """Return the family of a description if it is known, or raise InvalidNoise."""
    if not isinstance(description, Mapping):
        raise InvalidNoise(f"a noise description must be a mapping, not a {type(description).__name__}.")
    family = description.get("family")
    if not isinstance(family, str) or family not in known:
        raise InvalidNoise(
            f"the noise family {family!r} is unknown. Known families: {', '.join(known)}. If another package adds it, "
            "install that package."
        )
    return family


def _parameters(
    description: Mapping[str, object], family: str, names: tuple[str, ...]
) -> dict[str, Fraction]:
    """Return the exact parameters of a description, or raise InvalidNoise."""
    expected = {"family", *names}
    if set(description) != expected:
        raise InvalidNoise(
            f"a {family} noise is described by the keys {sorted(expected)}, "
            f"not {sorted(map(str, description))}."
        )
    found = {}
    for name in names:
        value = description[name]
        if not isinstance(value, str) or not _EXACT.fullmatch(value):
            raise InvalidNoise(
                f"the {name} of a noise must be an exact fraction such as '3/2', not {value!r}."
            )
        found[name] = Fraction(value)
    return found
