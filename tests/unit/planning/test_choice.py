import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import GaussianDP, implies
from tabulary.errors import (
    InvalidPlan,
    InvalidPrivacy,
    InvalidWorkload,
    PublicError,
    TooManyCells,
)
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from tabulary.planning import MECHANISMS, plan_from_description
from tabulary.planning.request import Request

DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
PROMISES = [tb.PureDP(1), tb.ApproxDP(1, 1e-9), tb.ZCDP("1/8")]


@st.composite
def requests(draw):
    """A small random domain, workload and promise."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=4))
    domain = tb.Domain({f"x{i}": range(size) for i, size in enumerate(sizes)})
    every = list(tb.Workload.all_up_to(domain, len(sizes)).margins)
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    weights = draw(st.lists(st.integers(1, 20), min_size=len(chosen), max_size=len(chosen)))
    return {
        "domain": domain,
        "workload": tb.Workload(domain, chosen, weights),
        "privacy": draw(st.sampled_from([tb.PureDP("1/3"), tb.ApproxDP(2, 1e-6), tb.ZCDP("1/8")])),
        "neighbours": draw(st.sampled_from(["add-remove", "replace"])),
        "contribution": draw(st.integers(1, 3)),
    }


def test_equal_noise_on_every_margin_has_the_number_of_margins_as_its_scale():
    plan = tb.plan(DOMAIN, "[sex][age][sex age]", privacy=tb.PureDP("1/2"), mechanism="margins")
    assert [part.noise for part in plan.measured] == [DiscreteLaplace(6)] * 3
    assert plan.sensitivity == 3


def test_replacing_a_record_doubles_the_scale_of_laplace_noise():
    plan = tb.plan(
        DOMAIN, "[sex][age]", privacy=tb.PureDP(1), mechanism="margins", neighbours="replace", contribution=2
    )
    assert [part.noise for part in plan.measured] == [DiscreteLaplace(8)] * 2
    assert plan.sensitivity == 8


@given(requests(), st.sampled_from(["rmse", "max"]))
def test_no_fourier_plan_is_better_than_the_bound_that_is_known_without_it(request, objective):
    asked = Request(
        request["workload"],
        request["privacy"],
        Neighbours(request["neighbours"], request["contribution"]),
        objective=objective,
    )
    fourier = MECHANISMS["fourier"]
    for loss in (tb.PureDP("1/3"), tb.ZCDP("1/8")):
        if implies(loss, request["privacy"]):
            found = fourier.plan(asked, loss)
            assert fourier.least_error(asked, loss) <= asked.expected(found)
            # With one table, it is that but for the slack.
            if request["neighbours"] == "add-remove" and len(request["workload"]) == 1:
                assert fourier.least_error(asked, loss) > 0.8 * asked.expected(found)


def test_large_attributes_are_planned_without_listing_a_million_coefficients(monkeypatch):
    def listed(*given):
        raise AssertionError("the Fourier coefficients of this domain must not be listed")

    monkeypatch.setattr(type(MECHANISMS["fourier"]), "plan", listed)
    domain = tb.Domain({"tract": range(1_000), "job": range(1_000)})
    plan = tb.plan(domain, "[tract job][tract][job]", privacy=tb.ApproxDP(1, 1e-9))
    assert plan.mechanism == "residual"


def test_weights_split_the_budget():
    work = tb.Workload.parse("[sex][age]", DOMAIN).weighted({("sex",): 3})
    plan = tb.plan(DOMAIN, work, privacy=tb.PureDP(1), mechanism="margins")
    assert [part.noise.scale for part in plan.measured] == [Fraction(4, 3), Fraction(4)]


def test_gaussian_variance_follows_from_the_squared_sensitivity():
    plan = tb.plan(DOMAIN, "[sex][age]", privacy=tb.ZCDP("1/8"), mechanism="margins")
    assert [part.noise for part in plan.measured] == [DiscreteGaussian(8)] * 2
    assert plan.norm == "L2"
    assert plan.sensitivity == pytest.approx(2**0.5)


def test_cells_measures_only_the_attributes_that_are_asked_for():
    plan = tb.plan(DOMAIN, "[sex][age]", privacy=tb.PureDP(1), mechanism="cells")
    assert [part.margin for part in plan.measured] == [("sex", "age")]


def test_an_approximate_promise_takes_the_noise_with_the_smaller_error():
    few = tb.plan(DOMAIN, "[sex]", privacy=tb.ApproxDP(1, 1e-9))
    domain = tb.Domain({f"x{i}": range(10) for i in range(14)})
    many = tb.plan(domain, tb.Workload.k_way(domain, 2), privacy=tb.ApproxDP(1, 1e-9))
    assert isinstance(few.measured[0].noise, DiscreteLaplace)
    assert isinstance(many.measured[0].noise, RoundedGaussian)
    assert isinstance(many.loss, GaussianDP)


@given(requests())
@settings(max_examples=40)
def test_auto_is_never_worse_than_a_single_mechanism(request):
    chosen = tb.plan(**request)
    for name in ("cells", "margins", "residual"):
        # Ties go to the simpler mechanism.
        assert chosen.expected_rmse <= tb.plan(**request, mechanism=name).expected_rmse * (1 + 1e-8)


@given(requests(), st.sampled_from(["cells", "margins"]))
def test_a_plan_costs_exactly_its_loss(request, mechanism):
    plan = tb.plan(**request, mechanism=mechanism)
    allowed = plan.loss.epsilon if isinstance(plan.loss, tb.PureDP) else plan.loss.rho
    assert plan.cost() == allowed


@given(requests(), st.sampled_from(["cells", "margins"]))
def test_a_plan_survives_its_description(request, mechanism):
    plan = tb.plan(**request, mechanism=mechanism)
    again = plan_from_description(json.loads(json.dumps(plan.describe())))
    assert again == plan
    assert again.digest() == plan.digest()


def test_auto_passes_over_an_interior_that_is_too_large():
    domain = tb.Domain({f"x{i}": range(10) for i in range(12)})
    # What remains measures each table, and what all of them say of the total is combined.
    assert tb.plan(domain, tb.Workload.k_way(domain, 1), privacy=tb.PureDP(1)).mechanism == "residual"


def test_a_table_above_the_cap_is_refused_with_its_number():
    domain = tb.Domain({"post": range(10_000), "a": range(50), "b": range(50)})
    with pytest.raises(TooManyCells, match="25,000,000 cells"):
        tb.plan(domain, "[post a b]", privacy=tb.PureDP(1))


def test_nothing_to_protect_is_refused():
    with pytest.raises(InvalidPlan, match="no person can change"):
        tb.plan(DOMAIN, "[]", privacy=tb.PureDP(1), neighbours="replace")


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"mechanism": "magic"}, InvalidPlan, "mechanism must be one of"),
        ({"reconstruct": "magic"}, InvalidPlan, "reconstruct must be one of"),
        ({"rounding": "magic"}, InvalidPlan, "rounding must be one of"),
        ({"neighbours": "cousins"}, InvalidPrivacy, "not 'cousins'"),
        ({"contribution": 0}, InvalidPrivacy, "the contribution bound must be"),
        ({"privacy": 1.0}, InvalidPrivacy, "not float"),
        ({"workload": "[sex planet]"}, InvalidWorkload, "no attribute 'planet'"),
        ({"workload": "[sex sex]"}, InvalidWorkload, "attribute 'sex' twice"),
        (
            {"workload": tb.Workload.k_way(tb.Domain({"other": "xy"}), 1)},
            InvalidWorkload,
            "of the same domain",
        ),
    ],
)
def test_an_option_that_cannot_be_is_refused(options, error, reason):
    asked = {"domain": DOMAIN, "workload": "[sex]", "privacy": tb.PureDP(1)} | options
    with pytest.raises(error, match=reason) as caught:
        tb.plan(**asked)
    assert isinstance(caught.value, PublicError)


def _described():
    plan = tb.plan(DOMAIN, "[sex][age]", privacy=tb.PureDP(1), mechanism="margins")
    return json.loads(json.dumps(plan.describe()))


def _changed(path, value):
    """The description of a sound plan in which one thing is another, and everything else is as it was."""
    described = _described()
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    place = described
    for step in way:
        place = place[step]
    place[last] = value
    return described


def test_the_description_that_the_next_test_changes_is_accepted():
    described = _described()
    assert plan_from_description(described).describe() == described


CLAIMS = [
    ("privacy.epsilon", "1/2", "a loss of ε = 1 does not imply the promised ε = 0.5"),
    ("loss.epsilon", "1/2", "too small for its loss of ε = 0.5"),
    ("loss", {"kind": "zcdp", "rho": "1/2"}, "a loss of ρ = 0.5 does not imply the promised ε = 1"),
    ("neighbours.relation", "replace", "too small for its loss of ε = 1"),
    ("neighbours.records", 2, "too small for its loss of ε = 1"),
    ("sensitivity.value", "1", "claims something that does not follow from the rest"),
    ("mechanism", "unheard-of", "mechanism must be one of .* not 'unheard-of'"),
    ("extra", True, "claims something that does not follow from the rest"),
    ("measured", [], "does not measure what this plan lists"),
    ("measured", _described()["measured"][:1], r"measures nothing that contains \[age\]"),
    ("measured.1.noise.scale", "7/5", "too small for its loss of ε = 1"),
    (
        "measured.0.noise",
        {"family": "discrete-gaussian", "variance_parameter": "9"},
        "not of the family that earns a loss of ε = 1",
    ),
]


@pytest.mark.parametrize(("path", "value", "reason"), CLAIMS, ids=[path for path, _, _ in CLAIMS])
def test_a_description_that_claims_too_much_is_refused_for_what_it_claims(path, value, reason):
    with pytest.raises(PublicError, match=reason):
        plan_from_description(_changed(path, value))


@pytest.mark.parametrize("description", [None, [], {}, {"domain": 3}])
def test_what_is_not_a_description_is_refused(description):
    with pytest.raises(PublicError, match="this is not the description of a"):
        plan_from_description(description)
