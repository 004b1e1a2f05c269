"""From a public description back to the noise."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from tabulary.errors import InvalidNoise
from tabulary.noise.gaussian import DiscreteGaussian
from tabulary.noise.integer import IntegerNoise
from tabulary.noise.laplace import DiscreteLaplace
from tabulary.noise.rounded_gaussian import RoundedGaussian
from tabulary.noise.square_root import SquareRootLaplace

_FAMILIES: dict[str, tuple[str, Callable[[Fraction], IntegerNoise]]] = {
    "discrete-laplace": ("scale", DiscreteLaplace),
    "discrete-gaussian": ("variance_parameter", DiscreteGaussian),
    "rounded-gaussian": ("variance_parameter", RoundedGaussian),
}
# Only the form that `describe` writes, and short: a description may come from a stranger.
_EXACT = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?", re.ASCII)


def noise_from_description(description: Mapping[str, object]) -> IntegerNoise:
    """Return the noise that `describe` described.

    Fails closed: an unknown family, a missing or an additional key, a number in any other form than an exact
    fraction is an error.

    >>> noise_from_description({"family": "discrete-laplace", "scale": "105"})
    DiscreteLaplace(scale=Fraction(105, 1))
    """
    family, value = _read(description, {family: parameter for family, (parameter, _) in _FAMILIES.items()})
    return _FAMILIES[family][1](value)


def law_from_description(description: Mapping[str, object], *, centre: int) -> SquareRootLaplace:
    """Return the law that `describe` described, about the count `centre`.

    A description never tells the count; an analyst supposes one. Apart from `noise_from_description`, because
    what replaces a count is no noise that a plan could ask for; fails closed as it does.

    >>> law = law_from_description({"family": "square-root-laplace", "rate": "1/4"}, centre=3)
    >>> law.rate, law.centre
    (Fraction(1, 4), 3)
    """
    _, rate = _read(description, {"square-root-laplace": "rate"})
    return SquareRootLaplace(rate, centre)


def _read(description: object, parameters: Mapping[str, str]) -> tuple[str, Fraction]:
    """Return the family and the value of its one parameter, or raise InvalidNoise."""
    if not isinstance(description, Mapping):
        raise InvalidNoise(f"A noise description must be a mapping, not a {type(description).__name__}.")
    family = description.get("family")
    if not isinstance(family, str) or family not in parameters:
        raise InvalidNoise(
            f"The noise family {family!r} is unknown. Known families: {', '.join(parameters)}."
        )
    parameter = parameters[family]
    expected = {"family", parameter}
    if set(description) != expected:
        raise InvalidNoise(
            f"A {family} noise is described by the keys {sorted(expected)}, "
            f"not {sorted(map(str, description))}."
        )
    value = description[parameter]
    if not isinstance(value, str) or not _EXACT.fullmatch(value):
        raise InvalidNoise(
            f"The {parameter} of a noise must be an exact fraction such as '3/2', not {value!r}."
        )
    return family, Fraction(value)
