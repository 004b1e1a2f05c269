import sys
from fractions import Fraction

import numpy as np
import pytest

from tabulary.errors import InvalidNoise, MissingExtra
from tabulary.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExactSampler,
    OpenDPSampler,
    RoundedGaussian,
    SystemEntropy,
)
from tests.entropy import SeededEntropy


def test_the_exact_sampler_asks_the_operating_system_unless_told_otherwise():
    assert isinstance(ExactSampler().entropy, SystemEntropy)


def test_the_exact_sampler_draws_from_the_entropy_it_was_given():
    noise = DiscreteLaplace(9)
    drawn = ExactSampler(SeededEntropy(2)).draw(noise, (3, 4))
    assert np.array_equal(drawn, noise.sample((3, 4), SeededEntropy(2)))


def test_two_exact_samplers_do_not_repeat_each_other():
    noise = DiscreteGaussian(10**6)
    assert not np.array_equal(ExactSampler().draw(noise, 50), ExactSampler().draw(noise, 50))


@pytest.mark.parametrize("noise", [DiscreteLaplace("7/3"), DiscreteGaussian("7/3")], ids=str)
def test_opendp_draws_integers_of_the_size_that_was_asked_for(noise):
    pytest.importorskip("opendp")
    drawn = OpenDPSampler().draw(noise, (5, 2))
    assert drawn.shape == (5, 2)
    assert drawn.dtype == np.int64


@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(2, 3), Fraction(105), Fraction(10**9, 7)])
def test_opendp_never_gets_less_noise_than_was_asked_for(parameter, monkeypatch):
    opendp = pytest.importorskip("opendp.prelude")
    sampler = OpenDPSampler()
    asked = {}
    for maker in ("make_laplace", "make_gaussian"):
        monkeypatch.setattr(
            opendp.m,
            maker,
            lambda *_, scale, maker=maker: asked.update({maker: scale}) or (lambda zeros: zeros),
        )
    sampler.draw(DiscreteLaplace(parameter), 1)
    sampler.draw(DiscreteGaussian(parameter), 1)
    assert 1 <= Fraction(asked["make_laplace"]) / parameter <= 1 + Fraction(1, 2**51)
    assert 1 <= Fraction(asked["make_gaussian"]) ** 2 / parameter <= 1 + Fraction(1, 2**50)


def test_opendp_refuses_a_noise_it_does_not_know():
    pytest.importorskip("opendp")
    with pytest.raises(InvalidNoise, match="ExactSampler"):
        OpenDPSampler().draw(object(), 1)


def test_opendp_refuses_the_rounded_gaussian():
    pytest.importorskip("opendp")
    with pytest.raises(InvalidNoise, match="ExactSampler"):
        OpenDPSampler().draw(RoundedGaussian(4), 1)


def test_a_missing_opendp_is_named_with_the_way_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtra, match=r"tabulary\[opendp\]"):
        OpenDPSampler()
