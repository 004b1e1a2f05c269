"""The report on eight properties: what holds, what it costs, and what contradicts what, against plain computations."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise, InvalidPrivacy
from tabulary.noise import ExactSampler
from tabulary.perturb import Custom, Laplace, MaxEntropy, Normal, match_delta
from tabulary.perturb.hellinger import Hellinger
from tabulary.perturb.largest_entropy import largest_entropy
from tabulary.perturb.properties import NAMES, noise_properties
from tests.entropy import SeededEntropy

YES, NO, NOT_OF_A_LAW = True, False, None
LEAVES_ZEROS = MaxEntropy(2, bound=5, nonnegative=True)

# One law a line, what is asked, and which of the eight properties it grants.
GRANTED = [
    (Laplace(1.5, bound=7), {}, (NO, NO, NOT_OF_A_LAW, NO, YES, YES, YES, YES)),
    (Laplace(1.5, bound=7), {"minimum": 0}, (NO, NO, NOT_OF_A_LAW, YES, YES, NO, YES, YES)),
    (Laplace(1.5, bound=7), {"minimum": 2}, (YES, NO, NOT_OF_A_LAW, YES, YES, NO, YES, YES)),
    (Laplace(1), {}, (NO, NO, NOT_OF_A_LAW, NO, YES, YES, YES, NO)),
    (Laplace(1), {"variance_limit": "9/5"}, (NO, NO, NOT_OF_A_LAW, NO, YES, YES, NO, NO)),
    (Laplace(2, bound=6, sensitivity=3), {}, (NO, NO, NOT_OF_A_LAW, NO, YES, YES, YES, YES)),
    (Normal(0.5, bound=10), {}, (NO, YES, NOT_OF_A_LAW, NO, YES, YES, YES, YES)),
    (Normal(0.5, bound=10), {"minimum": 0}, (NO, NO, NOT_OF_A_LAW, YES, YES, NO, YES, YES)),
    (Hellinger(1), {}, (NO, NO, NOT_OF_A_LAW, YES, YES, NO, NO, NO)),
    (Hellinger(1), {"variance_limit": 10**9}, (NO, NO, NOT_OF_A_LAW, YES, YES, NO, NO, NO)),
    (MaxEntropy(2, bound=5), {}, (NO, YES, NOT_OF_A_LAW, NO, YES, YES, YES, YES)),
    (LEAVES_ZEROS, {"variance_limit": 2}, (NO, YES, NOT_OF_A_LAW, YES, YES, YES, YES, YES)),
    (Custom({-1: "1/4", 0: "1/2", 1: "1/4"}), {}, (NO, YES, NOT_OF_A_LAW, NO, YES, YES, YES, YES)),
    (Custom({2: "1/2", 3: "1/4", 4: "1/4"}), {}, (YES, YES, NOT_OF_A_LAW, YES, YES, NO, YES, YES)),
]
LAWS = [law for law, asked, _ in GRANTED if not asked]
every_law = pytest.mark.parametrize("law", LAWS, ids=str)


@st.composite
def custom_laws(draw):
    """One to three rows on the offsets -2, …, 2, with holes."""

    def row():
        weights = draw(st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(any))
        return {k: f"{w}/{sum(weights)}" for k, w in zip(range(-2, 3), weights, strict=True)}

    return Custom([row() for _ in range(draw(st.integers(1, 3)))])


def published(law, count, minimum):
    """What a count is published as, with probabilities, as a dictionary."""
    found = {}
    for offset, probability in law.pmf_at(count).items():
        value = count + offset if minimum is None else max(count + offset, minimum)
        found[value] = found.get(value, 0.0) + float(probability)
    return {value: probability for value, probability in found.items() if probability}


def delta_of(rows, epsilon):
    """δ of rows of successive counts, by the definition."""
    worst = 0.0
    for here, there in [*pairwise(rows), *pairwise(rows[::-1])]:
        excess = (p - math.exp(epsilon) * there.get(value, 0.0) for value, p in here.items())
        worst = max(worst, math.fsum(max(0.0, e) for e in excess))
    return worst


@pytest.mark.parametrize(
    ("law", "asked", "granted"), GRANTED, ids=[f"{law} {asked or ''}" for law, asked, _ in GRANTED]
)
def test_each_law_grants_the_wishes_it_does(law, asked, granted):
    report = noise_properties(law, **asked)
    assert tuple(row.holds for row in report.rows) == granted


@every_law
def test_a_report_has_the_eight_wishes_in_order_with_evidence_and_a_cost_in_numbers(law):
    report = noise_properties(law)
    assert [row.number for row in report.rows] == list(range(1, 9))
    assert tuple(row.name for row in report.rows) == NAMES
    for row in report.rows:
        assert row.evidence.endswith(".")
        assert row.cost.endswith(".")
        assert any(name.startswith(("delta", "bias")) for name in row.figures)
        assert all(math.isfinite(number) for number in row.figures.values())


@every_law
def test_the_text_of_a_report_names_the_law_every_verdict_and_every_contradiction(law):
    report = noise_properties(law)
    text = str(report)
    assert text.startswith(str(law))
    assert all(len(line) <= 110 for line in text.splitlines())
    # A line may be folded anywhere.
    flat = " ".join(text.split())
    for row in report.rows:
        assert f"{row.number} {row.name}: {row.verdict} {row.evidence} Cost: {row.cost}" in flat
    for found in report.contradictions:
        assert found.reason in flat


@every_law
def test_the_privacy_told_is_that_of_the_law(law):
    report = noise_properties(law)
    assert report.epsilon == (law.epsilon or 1)
    assert report.delta == law.delta_at(report.epsilon)
    assert report.pure_epsilon == law.epsilon_at(0)
    other = noise_properties(law, epsilon="1/3")
    assert (other.epsilon, other.delta) == (Fraction(1, 3), law.delta_at("1/3"))


def test_the_true_pure_epsilon_is_told_where_there_is_one():
    assert "ε = 0.9236 holds with δ = 0." in str(noise_properties(Hellinger(1)))
    assert "No ε holds with δ = 0." in str(noise_properties(Normal(1, bound=4)))


def test_a_minimum_is_told_and_costs_no_privacy():
    kept, raised = noise_properties(Laplace(1, bound=4)), noise_properties(Laplace(1, bound=4), minimum=0)
    assert "Values are published unchanged." in str(kept)
    assert "Values below 0 are published as 0." in str(raised)
    assert kept.delta == raised.delta


# 1: threshold


def test_a_threshold_by_post_processing_is_free_and_biases_a_zero_by_the_number_told():
    law = Laplace(1.5, bound=7)
    row = noise_properties(law, threshold=2).numbered(1)
    assert row.figures["bias of zero"] == law.bias(0, minimum=3) > 3
    assert row.figures["smallest published"] == -7
    assert row.figures["probability"] == pytest.approx(math.fsum(law.transition(0, b) for b in range(-7, 3)))
    granted = noise_properties(law, threshold=2, minimum=3)
    assert granted.numbered(1).holds
    assert granted.delta == noise_properties(law).delta


def test_a_threshold_within_the_law_costs_delta():
    figures = noise_properties(Laplace(1)).numbered(1).figures
    assert figures["delta"] == 0
    assert figures["delta of the law cut"] > 0.1


@given(custom_laws(), st.integers(1, 2), st.floats(0.1, 3))
@settings(max_examples=60, deadline=None)
def test_the_delta_of_a_law_that_is_cut_is_that_of_its_rows_weighed_anew(law, threshold, epsilon):
    rows = []
    for count in range(law.settled + threshold + 8):
        kept = {b: p for b, p in published(law, count, None).items() if b > threshold}
        rows.append({b: p / math.fsum(kept.values()) for b, p in kept.items()})
    found = noise_properties(law, threshold=threshold, epsilon=epsilon).numbered(1)
    if all(rows):
        assert found.figures["delta of the law cut"] == pytest.approx(delta_of(rows, epsilon), abs=1e-12)
    else:
        assert "delta of the law cut" not in found.figures
        assert "would have no other value" in found.cost


def test_a_law_that_is_cut_betrays_large_counts_no_less_than_before():
    # Small counts keep two values, half each; counts above 41 keep the far one too, which a neighbour forbids.
    law = Custom({-40: "3/5", 5: "1/5", 6: "1/5"})
    assert noise_properties(law).numbered(1).figures["delta of the law cut"] == pytest.approx(4 / 5)


def test_where_the_list_of_an_endless_row_stops_is_no_evidence():
    assert noise_properties(Hellinger(1)).numbered(1).figures["delta of the law cut"] == 0


def test_values_that_are_never_published_though_zero_is_are_named():
    table = MaxEntropy(2, bound=5, nonnegative=True, js=2)
    assert "The values from 1 to 2 never are." in noise_properties(table, threshold=2).numbered(1).evidence
    assert "never are" not in noise_properties(table, threshold=3).numbered(1).evidence
    assert "A one never is." in noise_properties(table).numbered(1).evidence


# 2: maximal entropy


def test_at_equal_privacy_the_normal_law_has_three_times_the_variance_of_laplace():
    law = Normal(0.5, bound=10)
    figures = noise_properties(law).numbered(2).figures
    laplace = match_delta(law, family=Laplace, never_more=True)
    assert figures["variance of Laplace at equal privacy"] == laplace.variance()
    assert figures["variance"] / laplace.variance() == pytest.approx(3.13, abs=0.005)
    assert laplace.delta_at("1/2") <= law.delta_at("1/2")


def test_at_equal_variance_and_delta_laplace_has_the_smaller_epsilon():
    law = Normal(0.5, bound=10)
    figures = noise_properties(law).numbered(2).figures
    assert figures["epsilon"] == law.epsilon_at(law.delta)
    # By its own formula: the variance 1/(cosh ε - 1), then the ε at that δ.
    same = Laplace(math.acosh(1 + 1 / law.variance()))
    assert same.variance() == pytest.approx(law.variance())
    assert figures["epsilon of Laplace at equal variance"] == pytest.approx(same.epsilon_at(law.delta))
    assert figures["epsilon of Laplace at equal variance"] < figures["epsilon"]


def test_more_entropy_than_laplace_costs_delta():
    law = Laplace(1.5, bound=7)
    figures = noise_properties(law).numbered(2).figures
    designed = MaxEntropy(law.variance(), bound=7)
    assert figures["largest entropy"] == pytest.approx(designed.entropy(0), abs=1e-9)
    assert figures["entropy"] == law.entropy(0) < figures["largest entropy"]
    assert figures["delta of largest entropy"] == pytest.approx(designed.delta_at(1.5), abs=1e-9)
    assert figures["delta of largest entropy"] > 1_000 * figures["delta"]


def test_other_wishes_cost_entropy():
    assert noise_properties(MaxEntropy(2, bound=5, nonnegative=True)).numbered(2).holds
    assert not noise_properties(MaxEntropy(2, bound=5, nonnegative=True, pstay="1/2")).numbered(2).holds


# 3: the sparse-table rule


@pytest.fixture
def sparse_table():
    domain = Domain(
        {"age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
        structural_zeros=[{"age": "0-14", "job": "paid"}],
    )
    return Table(domain, [[7, 0], [1, 12], [0, 30]])


def test_the_rule_about_sparse_tables_is_not_one_about_a_distribution():
    row = noise_properties(Laplace(1)).numbered(3)
    assert row.verdict == "not about a distribution"
    assert row.figures == {"delta on exact counts": 1.0, "delta on published counts": 0.0}
    assert "δ = 1 at every ε" in row.cost


@pytest.mark.parametrize(("share", "holds"), [("2/5", True), (0.39, False), (1, True), (0, False)])
def test_a_table_is_judged_by_the_share_of_small_possible_cells(sparse_table, share, holds):
    row = noise_properties(Laplace(1), table=sparse_table, sparse_share=share).numbered(3)
    assert row.figures["share"] == 2 / 5
    assert row.holds is holds


def test_a_table_that_is_not_published_may_not_be_judged_in_public(sparse_table):
    assert "must not be" in noise_properties(Laplace(1), table=sparse_table).numbered(3).cost


def test_a_published_table_is_judged_for_free(sparse_table):
    law = Laplace(1, bound=3)
    released = law.apply(sparse_table, sampler=ExactSampler(SeededEntropy(5)))
    row = noise_properties(law, table=released).numbered(3)
    possible = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert row.figures["share"] == np.mean([released.counts[cell] <= 1 for cell in possible])
    assert row.cost.startswith("none")


# 4 and 5: non-negative, and zeros


def test_negative_values_are_told_with_their_probability_and_the_bias_of_hiding_them():
    law = Normal(1, bound=4)
    row = noise_properties(law).numbered(4)
    assert row.figures["smallest published"] == -4
    assert row.figures["probability"] == pytest.approx(math.fsum(law.transition(0, b) for b in range(-4, 0)))
    assert row.figures["bias of zero"] == law.bias(0, minimum=0) > 0
    assert "no smallest" in noise_properties(Laplace(1)).numbered(4).evidence


@pytest.mark.parametrize("law", [Laplace(1, bound=2), Normal(2, bound=2)], ids=str)
@pytest.mark.parametrize("epsilon", [1, 5, 40])
def test_zeros_left_alone_cost_the_delta_told_at_every_epsilon(law, epsilon):
    told = noise_properties(law).numbered(5).figures["delta with zeros left"]
    assert told == pytest.approx(1 - law.transition(1, 0))
    noise = {k: law.transition(0, k) for k in range(-2, 3)}
    leaving = Custom([{0: 1}, noise])
    assert leaving.delta_at(epsilon) == pytest.approx(told, abs=1e-9)


def test_a_law_that_leaves_zeros_pays_for_it():
    report = noise_properties(LEAVES_ZEROS)
    least = 1 - LEAVES_ZEROS.transition(1, 0)
    assert report.numbered(5).figures["delta with zeros left"] == pytest.approx(least)
    assert report.numbered(5).figures["probability that a zero stays"] == 1
    assert f"at least {least:.4g} at every ε" in report.numbered(4).cost
    assert f"at least {least:.4g} at every ε" in report.numbered(5).cost
    assert LEAVES_ZEROS.delta_at(1) >= least


@every_law
def test_impossible_cells_are_published_as_they_are_by_every_law(law, sparse_table):
    assert noise_properties(law).numbered(5).holds
    released = law.apply(sparse_table, sampler=ExactSampler(SeededEntropy(11)))
    assert released["0-14", "paid"] == 0


# 6 and 7: bias and variance, over all counts


@given(custom_laws(), st.sampled_from([None, 0, 1, 5]))
@settings(max_examples=80, deadline=None)
def test_the_largest_bias_variance_and_change_are_those_over_all_counts(law, minimum):
    biases, variances, changes = {}, {}, set()
    for count in range(20):
        found = published(law, count, minimum)
        mean = math.fsum(value * p for value, p in found.items())
        biases[count] = mean - count
        variances[count] = math.fsum((value - mean) ** 2 * p for value, p in found.items())
        changes |= {abs(value - count) for value in found}
    report = noise_properties(law, minimum=minimum)
    bias = report.numbered(6).figures
    assert abs(bias["bias"]) == pytest.approx(max(map(abs, biases.values())), abs=1e-12)
    assert biases[int(bias["count"])] == pytest.approx(bias["bias"], abs=1e-12)
    assert report.numbered(6).holds == (max(map(abs, biases.values())) < 1e-9)
    variance = report.numbered(7).figures
    assert variance["variance"] == pytest.approx(max(variances.values()), abs=1e-12)
    assert variances[int(variance["count"])] == pytest.approx(variance["variance"], abs=1e-12)
    assert report.numbered(8).figures["largest change"] == max(changes)


def test_the_variance_is_held_against_the_limit():
    law = Custom([{0: 1}, {-1: "1/2", 1: "1/2"}, {-2: "1/2", 2: "1/2"}, {0: 1}])
    assert noise_properties(law, variance_limit=4).numbered(7).holds
    refused = noise_properties(law, variance_limit="39/10").numbered(7)
    assert not refused.holds
    assert refused.figures["count"] == 2
    assert "a count of 2 is 4, and of none larger. The limit is 3.9." in refused.evidence


def test_a_limit_of_the_variance_costs_the_epsilon_of_laplace_noise_that_keeps_it():
    figures = noise_properties(Normal(1, bound=9), variance_limit=3).numbered(7).figures
    assert Laplace(figures["epsilon of Laplace"]).variance() == pytest.approx(3)
    twice = noise_properties(Laplace(2, bound=6, sensitivity=3), variance_limit=3).numbered(7).figures
    assert Laplace(twice["epsilon of Laplace"], sensitivity=3).variance() == pytest.approx(3)


def test_a_law_whose_rows_never_settle_is_not_granted_what_some_counts_cannot_prove():
    row = noise_properties(Hellinger(1), variance_limit=10**12).numbered(7)
    assert row.figures["variance"] < 10**12
    assert not row.holds
    assert "no known limit" in row.evidence


# 8: truncated


@pytest.mark.parametrize("epsilon", ["1/2", "3/2", 4])
def test_truncation_costs_laplace_all_of_its_delta(epsilon):
    law = Laplace(epsilon, bound=6)
    figures = noise_properties(law).numbered(8).figures
    assert figures["delta"] == pytest.approx(law.transition(0, 6))
    assert figures["delta at every epsilon"] == pytest.approx(law.transition(0, 6))
    assert figures["delta without the bound"] == 0


def test_a_normal_law_has_a_delta_without_its_bound_too():
    law = Normal(1, bound=6)
    variance = 13 / 2
    weights = {k: math.exp(-(k**2) / (2 * variance)) for k in range(-100, 101)}
    total = math.fsum(weights.values())
    row = {k: w / total for k, w in weights.items()}
    moved = {k + 1: p for k, p in row.items()}
    assert noise_properties(law).numbered(8).figures["delta without the bound"] == pytest.approx(
        delta_of([row, moved], 1)
    )


@given(custom_laws(), st.sampled_from([None, 0, 2]))
@settings(max_examples=60, deadline=None)
def test_the_delta_that_no_epsilon_removes_is_the_probability_of_what_a_neighbour_cannot_have(law, minimum):
    rows = [published(law, count, minimum) for count in range(20)]
    report = noise_properties(law, minimum=minimum)
    lasting = delta_of(rows, 600)
    assert report.numbered(8).figures["delta at every epsilon"] == pytest.approx(lasting, abs=1e-12)


def test_without_a_bound_no_delta_is_paid():
    for law in (Laplace(1), Hellinger(1)):
        row = noise_properties(law).numbered(8)
        assert not row.holds
        assert row.figures == {"delta": 0.0, "delta at every epsilon": 0.0}


# Contradictions


def contradictions(law, **asked):
    return {found.properties: found for found in noise_properties(law, **asked).contradictions}


@pytest.mark.parametrize(
    ("law", "threshold", "expected"),
    [
        (Laplace(1, bound=5), 1, {(1, 5), (1, 6), (3,), (4, 6), (4, 6, 7), (4, 6, 8), (8,)}),
        (Laplace(1, bound=5), 5, {(1, 5), (1, 6), (1, 8), (3,), (4, 6), (4, 6, 7), (4, 6, 8), (8,)}),
        (Laplace(1), 5, {(1, 5), (1, 6), (3,), (4, 6), (4, 6, 7)}),
        (Hellinger(1), 1, {(1, 5), (1, 6), (3,), (4, 6)}),
        (LEAVES_ZEROS, 2, {(1, 5), (1, 6), (3,), (4, 6), (4, 6, 7), (4, 6, 8), (8,)}),
    ],
    ids=str,
)
def test_the_contradictions_are_those_of_the_law_and_of_what_is_asked(law, threshold, expected):
    found = contradictions(law, threshold=threshold)
    assert set(found) == expected
    assert {pair for pair, one in found.items() if one.delta is None} == expected & {(1, 5), (1, 6), (1, 8)}


def test_non_negative_and_unbiased_contradict_each_other_with_a_perturbed_zero():
    law = Laplace(1, bound=5)
    found = contradictions(law)[4, 6]
    assert f"biased, with this law by {law.bias(0, minimum=0):.4g}" in found.reason
    assert found.delta == pytest.approx(1 - law.row(1).at_least(0).probability(0))
    assert "as with this law" in contradictions(LEAVES_ZEROS)[4, 6].reason


def test_a_threshold_biases_a_zero_by_more_than_itself():
    law = Normal(1, bound=6)
    assert (
        f"with this law it is {law.bias(0, minimum=4):.4g}" in contradictions(law, threshold=3)[1, 6].reason
    )
    assert law.bias(0, minimum=4) >= 4


@given(st.integers(1, 8), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_no_non_negative_unbiased_law_has_less_delta_than_its_variance_and_bound_allow(bound, quarters):
    try:
        law = MaxEntropy(Fraction(quarters, 4), bound=bound, nonnegative=True, at_most=True)
    except InvalidNoise:
        return
    found = contradictions(law)
    for epsilon in (1, 10, 100):
        assert law.delta_at(epsilon) >= found[4, 6, 7].delta - 1e-9
        assert law.delta_at(epsilon) >= found[4, 6, 8].delta - 1e-9


@pytest.mark.parametrize("bound", [1, 3, 9])
def test_what_non_negative_unbiased_laws_must_cost_is_what_one_of_them_costs(bound):
    # A count of one becomes 0, or as large as it may: nothing else is as rarely not zero.
    rare = Fraction(1, bound + 1)
    found = contradictions(Custom([{0: 1}, {-1: 1 - rare, bound: rare}]), variance_limit=bound)
    assert found[4, 6].delta == pytest.approx(float(rare))
    assert found[4, 6, 8].delta == pytest.approx(float(rare))
    assert found[4, 6, 7].delta == pytest.approx(float(rare))


def test_the_costs_of_counts_that_move_by_more_than_one_are_those_of_the_largest_move():
    law = Laplace(2, bound=6, sensitivity=3)
    report = noise_properties(law)
    assert report.numbered(5).figures["delta with zeros left"] == pytest.approx(1 - law.transition(3, 0))
    _, designed = largest_entropy(law.row(0))
    noise = dict(zip(range(-6, 7), designed.probabilities, strict=True))
    moved = {k + 3: p for k, p in noise.items()}
    assert report.numbered(2).figures["delta of largest entropy"] == pytest.approx(
        delta_of([noise, moved], 2)
    )


def test_counts_that_move_by_more_than_one_must_cost_more():
    found = contradictions(Laplace(2, bound=6, sensitivity=3), variance_limit=3)
    assert found[4, 6, 7].delta == pytest.approx(9 / 12)
    assert found[4, 6, 8].delta == pytest.approx(3 / 9)


def test_a_bound_contradicts_pure_privacy_by_the_delta_told():
    law = Normal(1, bound=4)
    assert contradictions(law)[(8,)].delta == pytest.approx(law.transition(0, 4))
    assert (8,) not in contradictions(Laplace(1))


# Laws at the edge, and bad input


@pytest.mark.parametrize(
    "law", [Custom({0: 1}), Custom({-1: "1/2", 1: "1/2"}), Custom({1: 1})], ids=["exact", "odd", "moved"]
)
def test_a_law_that_hides_nothing_is_reported_with_a_delta_of_one(law):
    report = noise_properties(law)
    assert report.delta == report.numbered(8).figures["delta at every epsilon"] == 1
    assert math.isinf(report.pure_epsilon)
    assert str(report)


@pytest.mark.parametrize("number", [0, 9, -1])
def test_there_are_eight_wishes_and_no_other(number):
    with pytest.raises(InvalidNoise, match="1 to 8"):
        noise_properties(Laplace(1)).numbered(number)


@pytest.mark.parametrize(
    ("asked", "error", "named"),
    [
        ({"minimum": -1}, InvalidNoise, "minimum"),
        ({"minimum": 1.5}, InvalidNoise, "minimum"),
        ({"minimum": True}, InvalidNoise, "minimum"),
        ({"threshold": 0}, InvalidNoise, "threshold"),
        ({"threshold": "2"}, InvalidNoise, "threshold"),
        ({"variance_limit": 0}, InvalidNoise, "limit of the variance"),
        ({"variance_limit": math.nan}, InvalidNoise, "limit of the variance"),
        ({"sparse_share": 1.1}, InvalidNoise, "share of small cells"),
        ({"sparse_share": -0.1}, InvalidNoise, "share of small cells"),
        ({"epsilon": 0}, InvalidPrivacy, "epsilon"),
        ({"epsilon": "much"}, InvalidPrivacy, "epsilon"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(asked, error, named):
    with pytest.raises(error, match=named):
        noise_properties(Laplace(1), **asked)


def test_only_a_perturbation_has_wishes():
    with pytest.raises(InvalidNoise, match="not a dict"):
        noise_properties({0: 1})
