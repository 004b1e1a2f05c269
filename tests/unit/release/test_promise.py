import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.guessing import guessing
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP, zcdp_to_approx
from tabulary.core.workload import Workload
from tabulary.planning import plan
from tabulary.release.promise import exact_interactions, promise_of, promise_of_budget

DOMAIN = Domain({"sex": ["F", "M"]})
SENSITIVE = Neighbours("replace", 1, ("job",))


def promised(privacy, **options):
    return promise_of(plan(DOMAIN, "[sex]", privacy=privacy, **options))


def words_of(promise):
    return " ".join(
        [promise.statement, *promise.meaning, promise.protected, *promise.conditions, *promise.not_promised]
    )


@pytest.mark.parametrize(
    ("privacy", "statement"),
    [
        (PureDP("1/3"), "This release is ε-differentially private with ε = 1/3."),
        (ApproxDP(1, 1e-9), "This release is (ε, δ)-differentially private with ε = 1 and δ = 1e-9."),
        (ZCDP("1/8"), "This release is ρ-zero-concentrated differentially private with ρ = 0.125."),
    ],
)
def test_each_kind_of_privacy_is_stated_in_its_own_terms(privacy, statement):
    assert promised(privacy).statement == statement


@given(st.fractions(min_value="1/100", max_value=4))
def test_the_numbers_in_the_words_are_never_better_than_the_truth(epsilon):
    words = " ".join(promised(PureDP(epsilon)).meaning)
    factor = float(re.search(r"e\^ε = ([\d.,]+) times", words)[1].replace(",", ""))
    percent = float(re.search(r"at most ([\d.]+) %", words)[1])
    truth = math.exp(epsilon)
    assert truth <= factor <= truth * 1.011
    assert 100 * truth / (1 + truth) <= percent <= 100 * truth / (1 + truth) + 0.1001


@pytest.mark.parametrize("privacy", [PureDP("1/3"), ApproxDP(1, "1/100"), ZCDP("1/2"), ZCDP(3), PureDP(20)])
def test_the_guesser_of_every_kind_of_promise_is_told_by_one_function_rounded_up(privacy):
    (percent,) = re.findall(r"is right at most ([\d.]+) % of the time", words_of(promised(privacy)))
    assert percent == f"{math.ceil(1000 * guessing(privacy)) / 10:.1f}"


def test_a_concentrated_promise_is_translated_for_one_in_a_million():
    words = " ".join(promised(ZCDP("1/8")).meaning)
    shown = float(re.search(r"ε = ([\d.]+)\.", words)[1])
    truth = float(zcdp_to_approx(ZCDP("1/8"), "1/1000000").epsilon)
    assert truth <= shown <= truth * 1.01


def test_a_large_epsilon_is_said_to_promise_little():
    assert "promises little" in words_of(promised(PureDP(20)))
    assert "promises little" not in words_of(promised(PureDP(1)))


def test_who_is_protected_depends_on_the_neighbours():
    assert "with and without that person's record." in promised(PureDP(1)).protected
    replaced = promised(PureDP(1), neighbours=Neighbours("replace", records=3))
    assert "up to 3 of them and with any others in their place" in replaced.protected
    assert "number of records is hidden" in words_of(replaced)
    assert "number of records is hidden" not in words_of(promised(PureDP(1)))
    assert "No person has more than 3 records" in words_of(replaced)


def test_how_several_releases_add_up_is_said_in_the_right_currency():
    assert "k times ε" in words_of(promised(PureDP(1)))
    assert "Their ε and δ add up" in words_of(promised(ApproxDP(1, 1e-9)))
    assert "k² times ρ" in words_of(promised(ZCDP(1)))


def exact_parts(domain, work, **options):
    """What a plan says that it releases without noise, in words."""
    planned = plan(domain, work, privacy=PureDP(1), neighbours=SENSITIVE, reconstruct="none", **options)
    return promise_of(planned).not_promised[-1].split("Released exactly, without noise: ")[1]


def test_what_is_released_exactly_is_an_interaction_and_not_the_table_that_has_noise():
    domain = Domain({"sex": "FM", "age": range(3), "job": range(3), "region": "NS"})
    words = exact_parts(domain, "[sex age][age job][sex job]")
    assert words == "the interaction of sex and age, beyond their own tables."
    assert "[sex age]" not in words
    words = exact_parts(domain, "[sex age region][sex job][age job]")
    assert "the differences between the levels of region" in words
    assert "the interaction of sex, age and region, beyond the tables of fewer of them" in words
    assert exact_parts(domain, "[sex job]") == "none of the interactions."


def test_bits_are_named_by_the_attributes_that_they_belong_to():
    domain = Domain({"sex": "FM", "age": range(4), "job": "pq"})
    work = "[sex age][age job][sex job]"
    planned = plan(
        domain, work, privacy=PureDP(1), neighbours=SENSITIVE, mechanism="fourier", reconstruct="none"
    )
    assert planned.encoding == "bits"
    # Three coefficients of the two bits of an age with one of sex, as the interaction has in levels.
    assert exact_interactions(planned) == {("sex", "age"): 3}
    assert exact_parts(domain, work, mechanism="fourier") == exact_parts(
        domain, work, mechanism="efron-stein"
    )


def test_very_many_interactions_are_not_all_named():
    domain = Domain({f"x{i}": "01" for i in range(8)} | {"job": "01"})
    words = exact_parts(domain, Workload.k_way(domain, 3))
    assert words.count("the interaction of") == 12
    assert words.endswith(f"and {8 * 7 * 6 // 6 - 12} more, which the plan lists under 'exact'.")


@pytest.mark.parametrize("budget", [PureDP(3), ApproxDP(1, "1/1000000"), ZCDP("1/2")])
def test_a_budget_promises_for_all_answers_what_one_release_at_its_cost_promises(budget):
    near = Neighbours("replace", 2)
    one = promise_of(plan(Domain({"sex": ["F", "M"]}), "[sex]", privacy=budget, neighbours=near))
    all_answers = promise_of_budget(budget, near)
    assert all_answers.statement == one.statement.replace("This release is", "All answers together are")
    assert (all_answers.meaning, all_answers.protected) == (one.meaning, one.protected)
    assert all_answers.not_promised == one.not_promised
    assert all_answers.conditions[1:] == one.conditions[1:]
    # A release is chosen beforehand. A question may come of an earlier answer, which composition allows.
    assert "may depend on earlier answers" in all_answers.conditions[0]
    assert "choice of tables" in one.conditions[0]
