import math
from dataclasses import FrozenInstanceError
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import (
    ZCDP,
    ApproxDP,
    PureDP,
    approx_to_zcdp,
    compose,
    describe_privacy,
    gaussian_delta,
    gaussian_rho,
    privacy_from_description,
    pure_to_zcdp,
    zcdp_to_approx,
)
from tabulary.errors import InvalidPrivacy

positive = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000)
small = st.floats(1e-12, 0.1)
parameters = st.one_of(
    positive.map(PureDP), st.tuples(positive, small).map(lambda p: ApproxDP(*p)), positive.map(ZCDP)
)

PRECISE = Context(prec=60)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def decimal(value):
    return (
        Decimal(value.numerator) / Decimal(value.denominator)
        if isinstance(value, Fraction)
        else Decimal(value)
    )


def normal_cdf(x):
    """Φ by Laplace's continued fraction in the lower tail and by its Taylor series elsewhere."""
    density = (-x * x / 2).exp() / (2 * PI).sqrt()
    if x < -5:
        fraction = -x
        for k in range(600, 0, -1):
            fraction = -x + k / fraction
        return density / fraction
    term = total = x
    k = 1
    while abs(term) > Decimal("1e-58") * abs(total):
        k += 2
        term *= x * x / k
        total += term
    return Decimal("0.5") + density * total


def exact_gaussian_delta(epsilon, rho):
    """The hockey-stick divergence of two normals √2ρ apart, to many digits, and the sum of its terms."""
    with localcontext(PRECISE):
        epsilon, mu = decimal(epsilon), (2 * decimal(rho)).sqrt()
        first, second = normal_cdf(mu / 2 - epsilon / mu), epsilon.exp() * normal_cdf(-mu / 2 - epsilon / mu)
        return first - second, first + second


def exact_zcdp_epsilon(rho, delta):
    """The least of the bounds of Canonne, Kamath & Steinke over α, by ternary search in many digits."""
    with localcontext(PRECISE):
        rho, delta = decimal(rho), decimal(delta)

        def bound(log_excess):
            excess = log_excess.exp()
            alpha = 1 + excess
            return alpha * rho + (-delta.ln() - alpha.ln()) / excess + (1 - 1 / alpha).ln()

        low, high = Decimal(-15), Decimal(25)
        for _ in range(110):
            third = (high - low) / 3
            if bound(low + third) < bound(high - third):
                high -= third
            else:
                low += third
        return bound((low + high) / 2)


@pytest.mark.parametrize("value", [0, -1, -0.5, "0", "-1/8", Fraction(-1, 3)])
@pytest.mark.parametrize("make", [PureDP, ZCDP, lambda v: ApproxDP(v, 1e-9), lambda v: ApproxDP(1, v)])
def test_a_parameter_that_is_not_positive_is_refused(make, value):
    with pytest.raises(InvalidPrivacy, match="must be positive, not"):
        make(value)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "nan", "inf", "little", "", "1/0", True, False, None, [1], 1j]
)
@pytest.mark.parametrize("make", [PureDP, ZCDP, lambda v: ApproxDP(v, 1e-9), lambda v: ApproxDP(1, v)])
def test_a_parameter_that_is_not_a_number_is_refused(make, value):
    with pytest.raises(InvalidPrivacy, match="must be a whole number, a decimal such as"):
        make(value)


@pytest.mark.parametrize("delta", [1, 1.5, "1", 10])
def test_a_delta_of_one_or_more_is_refused(delta):
    with pytest.raises(InvalidPrivacy, match="delta must be below 1"):
        ApproxDP(1, delta)
    with pytest.raises(InvalidPrivacy, match="delta must be below 1"):
        zcdp_to_approx(ZCDP(1), delta)


def test_parameters_are_the_fractions_their_writer_meant():
    assert PureDP(0.1).epsilon == PureDP("1/10").epsilon == Fraction(1, 10)
    assert PureDP(0.1) == PureDP("0.1")
    assert ApproxDP(1, 1e-9).delta == Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("part", "field"), [(PureDP(1), "epsilon"), (ApproxDP(1, 0.1), "delta"), (ZCDP(1), "rho")]
)
def test_a_parameter_cannot_be_changed(part, field):
    with pytest.raises(FrozenInstanceError):
        setattr(part, field, Fraction(0))


def test_a_neighbouring_relation_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Neighbours().records = 0


@pytest.mark.parametrize("relation", ["", "both", "Replace", None, ["replace"]])
def test_an_unknown_neighbouring_relation_is_refused(relation):
    with pytest.raises(InvalidPrivacy, match="'add-remove' or 'replace'"):
        Neighbours(relation)


@pytest.mark.parametrize("records", [0, -1, 1.0, "1", True, None])
def test_a_contribution_bound_that_cannot_be_is_refused(records):
    with pytest.raises(InvalidPrivacy, match="whole number of records"):
        Neighbours("add-remove", records)


def test_parameters_are_printed_exactly():
    assert str(PureDP("1/3")) == "ε = 1/3"
    assert str(ApproxDP(0.5, 1e-12)) == "ε = 0.5, δ = 1e-12"
    assert str(ZCDP("1/8")) == "ρ = 0.125"
    assert str(Neighbours("replace")) == "replace"
    assert str(Neighbours("add-remove", 2)) == "add-remove, up to 2 records per person"


@given(parameters)
def test_a_description_gives_the_parameter_back(privacy):
    assert privacy_from_description(describe_privacy(privacy)) == privacy


NOT_OURS = "not the description of a privacy parameter that Tabulary writes"


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        (None, NOT_OURS),
        ([], NOT_OURS),
        ("pure-dp", NOT_OURS),
        ({}, NOT_OURS),
        ({"kind": "pure-dp"}, NOT_OURS),
        ({"kind": "renyi", "epsilon": "1"}, NOT_OURS),
        ({"kind": "pure-dp", "epsilon": 1}, NOT_OURS),
        ({"kind": "pure-dp", "epsilon": "1", "delta": "1/10"}, NOT_OURS),
        ({"kind": "approx-dp", "epsilon": "1"}, NOT_OURS),
        ({"kind": "approx-dp", "epsilon": "1", "delta": "2"}, "delta must be below 1"),
        ({"kind": "pure-dp", "epsilon": "0"}, "epsilon must be positive"),
        ({"kind": "pure-dp", "epsilon": "nan"}, "epsilon must be a whole number, .* not 'nan'"),
        ({"kind": "zcdp", "rho": "1/8", "note": "x"}, NOT_OURS),
        ({"kind": "zcdp", "epsilon": "1"}, NOT_OURS),
    ],
)
def test_a_description_that_tabulary_did_not_write_is_refused(description, reason):
    with pytest.raises(InvalidPrivacy, match=reason):
        privacy_from_description(description)


@given(st.lists(positive, min_size=1, max_size=8))
def test_epsilons_and_rhos_add_up_exactly(values):
    assert compose(map(PureDP, values)) == PureDP(sum(values))
    assert compose(map(ZCDP, values)) == ZCDP(sum(values))


@given(st.lists(st.tuples(positive, small), min_size=1, max_size=8), st.lists(positive, max_size=3))
def test_epsilons_and_deltas_add_up_exactly_and_pure_parts_have_no_delta(approximate, pure):
    parts = [*(ApproxDP(*p) for p in approximate), *map(PureDP, pure)]
    assert compose(parts) == ApproxDP(
        sum(p.epsilon for p in parts), sum(p.delta for p in parts if isinstance(p, ApproxDP))
    )


@given(st.lists(positive, min_size=1, max_size=4), st.lists(positive, min_size=1, max_size=4))
def test_pure_parts_join_a_concentrated_total_as_half_their_square(rhos, epsilons):
    total = compose([*map(ZCDP, rhos), *map(PureDP, epsilons)])
    assert total == ZCDP(sum(rhos) + sum(e * e for e in epsilons) / 2)


def test_what_does_not_compose_is_refused():
    with pytest.raises(InvalidPrivacy, match="empty composition"):
        compose([])
    with pytest.raises(InvalidPrivacy, match="cannot be added directly"):
        compose([ZCDP(1), ApproxDP(1, 1e-9)])
    with pytest.raises(InvalidPrivacy, match="below 1"):
        compose([ApproxDP(1, 0.6), ApproxDP(1, 0.6)])


def test_pure_privacy_implies_concentrated_privacy_exactly():
    assert pure_to_zcdp(PureDP("1/3")) == ZCDP("1/18")


def test_the_conversions_give_the_known_numbers():
    assert float(approx_to_zcdp(ApproxDP(1, 1e-9)).rho) == pytest.approx(0.014973, abs=5e-7)
    assert float(gaussian_rho(ApproxDP(1, 1e-9))) == pytest.approx(0.016557, abs=5e-7)


@settings(max_examples=25)
@given(positive.filter(lambda rho: rho < 10), small)
def test_an_epsilon_that_is_promised_is_rounded_up_and_hardly_so(rho, delta):
    promised = zcdp_to_approx(ZCDP(rho), delta)
    exact = exact_zcdp_epsilon(rho, promised.delta)
    with localcontext(PRECISE):
        assert decimal(promised.epsilon) >= max(exact, 0)
        assert decimal(promised.epsilon) <= max(exact, 0) + Decimal("1e-9")


@settings(max_examples=25)
@given(positive, small)
def test_a_rho_that_may_be_spent_is_rounded_down_and_hardly_so(epsilon, delta):
    privacy = ApproxDP(epsilon, delta)
    rho = approx_to_zcdp(privacy).rho
    assert exact_zcdp_epsilon(rho, privacy.delta) <= decimal(epsilon)
    assert exact_zcdp_epsilon(rho * Fraction(1_000_001, 1_000_000), privacy.delta) > decimal(epsilon)


@settings(max_examples=50)
@given(
    st.fractions(min_value=Fraction(1, 100), max_value=8, max_denominator=100),
    st.fractions(min_value=Fraction(1, 100), max_value=8, max_denominator=100),
)
def test_a_gaussian_delta_is_rounded_up_and_hardly_so(epsilon, rho):
    exact, terms = exact_gaussian_delta(epsilon, rho)
    # What no float can hold to its full precision has a test of its own.
    assume(exact > Decimal("1e-300"))
    promised = Decimal(gaussian_delta(epsilon, rho))
    # Below 1e-250 the tail is bounded by Mills' ratio, which is a little coarser.
    slack = Decimal("2e-12") * terms + (exact / 1000 if exact < Decimal("1e-250") else 0)
    assert exact <= promised <= exact + slack


@settings(max_examples=40)
@given(st.fractions(min_value=Fraction(1, 100), max_value=8, max_denominator=100), small)
def test_a_gaussian_rho_is_rounded_down_and_hardly_so(epsilon, delta):
    privacy = ApproxDP(epsilon, delta)
    rho = gaussian_rho(privacy)
    assert exact_gaussian_delta(epsilon, rho)[0] <= decimal(privacy.delta)
    assert exact_gaussian_delta(epsilon, rho * Fraction(1_000_001, 1_000_000))[0] > decimal(privacy.delta)


@pytest.mark.parametrize(
    ("epsilon", "rho"), [(0.1, 0.01), (0.5, 0.125), (1, 0.05), (1, 1), (3, 2), (0.01, 2)]
)
def test_the_gaussian_delta_is_the_hockey_stick_divergence_of_two_normals(epsilon, rho):
    mu = math.sqrt(2 * rho)
    normal = stats.norm.pdf

    def excess(x):
        return normal(x, mu) - math.exp(epsilon) * normal(x)

    # The likelihood ratio rises in x; the densities cross where it is e^ε.
    crossing = epsilon / mu + mu / 2
    integral, _ = integrate.quad(excess, crossing, crossing + 40, epsabs=1e-14, epsrel=1e-12, limit=200)
    assert gaussian_delta(epsilon, rho) == pytest.approx(integral, rel=1e-8, abs=1e-14)


@settings(max_examples=40)
@given(st.fractions(min_value=Fraction(1, 100), max_value=4, max_denominator=100), small)
def test_what_concentrated_privacy_promises_is_true_of_gaussian_noise(rho, delta):
    # Gaussian noise is ρ-zCDP, so a conversion that promised too much would be caught by its exact curve.
    promised = zcdp_to_approx(ZCDP(rho), delta)
    if promised.epsilon > Fraction(1, 10**6):
        assert exact_gaussian_delta(promised.epsilon, rho)[0] <= decimal(promised.delta)


@given(positive, small)
def test_the_exact_curve_allows_at_least_what_concentrated_privacy_does(epsilon, delta):
    privacy = ApproxDP(epsilon, delta)
    assert gaussian_rho(privacy) > approx_to_zcdp(privacy).rho


@pytest.mark.parametrize(("epsilon", "rho"), [("492/91", "1/100"), ("7", "1/100")])
def test_a_gaussian_delta_too_small_for_a_float_is_not_rounded_down(epsilon, rho):
    exact, _ = exact_gaussian_delta(Fraction(epsilon), Fraction(rho))
    assert Decimal(gaussian_delta(epsilon, rho)) >= exact


@pytest.mark.parametrize(
    "convert",
    [
        lambda: gaussian_rho(ApproxDP(1, "1e-400")),
        lambda: approx_to_zcdp(ApproxDP(1, "1e-400")),
        lambda: zcdp_to_approx(ZCDP(1), "1e-400"),
        lambda: approx_to_zcdp(ApproxDP("1e400", 1e-9)),
        lambda: gaussian_rho(ApproxDP("1e400", 1e-9)),
        lambda: gaussian_delta(1, "1e-700"),
    ],
)
def test_parameters_beyond_the_floats_are_refused(convert):
    with pytest.raises(InvalidPrivacy, match="beyond all bounds"):
        convert()


def test_what_is_not_a_privacy_parameter_does_not_compose():
    with pytest.raises(InvalidPrivacy, match="the parts of a composition must be"):
        compose([PureDP(1), 1])
