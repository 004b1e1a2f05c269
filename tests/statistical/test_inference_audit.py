"""Tests and intervals from releases keep what they state: behind shared noise, in a search, and in comparisons.

A test at 5 % rejects at most 7 % of true hypotheses, an interval of 95 % holds the truth at least 93 % of the time:
these are the claims, two points wide because the laws are matched by moments. A claim is given up when the number of
errors has a probability below 1e-6 under it. Every audit shows a twin, told of too little noise or of none, that is
found out by the same rule. All entropy is replayable.
"""

import numpy as np
import pytest
from scipy import stats

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.infer import CorrelatedNoise, IndependentNoise, noise_of
from tabulary.mechanisms import measure
from tabulary.noise import DiscreteLaplace, ExactSampler
from tabulary.reconstruct.linear import linear_estimates
from tests.entropy import SeededEntropy

ALPHA = 1e-6
LEVEL, MOST_REJECTED = 0.05, 0.07
LEAST_HELD = 0.93
TABLES = 1_000
SEARCHES = 400
COMPARED = 200

pytestmark = pytest.mark.audit


def too_often(times, trials, share):
    """Whether so many errors contradict that they happen with this probability at most."""
    return stats.binom.sf(times - 1, trials, share) < ALPHA


def too_seldom(times, trials, share):
    """Whether so few successes contradict that they happen with this probability at least."""
    return stats.binom.cdf(times, trials, share) < ALPHA


def released(plan, margin, tables, seed):
    """Return the linear estimates that the mechanism of a plan releases of these tables."""
    sampler = ExactSampler(SeededEntropy(seed))
    domain, law = plan.domain.project(margin), plan.error_of(margin)
    for counts in tables:
        tally = Tally.from_table(tb.Table(plan.domain, counts), plan.counted)
        found = linear_estimates(measure(tally, plan, sampler))[margin]
        yield tb.ReleasedTable(tb.Table(domain, found), law)


def with_less_noise(table):
    """The sabotaged twin: the same numbers, with a quarter of their standard deviations stated."""
    stated = noise_of(table)
    deviations = stated.standard_deviations.reshape(-1)
    covariance = stated.covariance if isinstance(stated, CorrelatedNoise) else np.diag(deviations**2)
    return {"table": table.table, "noise": CorrelatedNoise(covariance / 16, table.shape)}


# Log-linear models behind noise that cells share.

CHAIN = tb.Domain({"A": "xy", "B": "xyzw", "C": "xyz"})
SHARED = [
    ("residual", tb.PureDP("1/4"), 1_000),
    ("residual", tb.ZCDP("1/100"), 1_500),
    ("efron-stein", tb.PureDP(1), 1_500),
    ("fourier", tb.PureDP("1/2"), 1_500),
]
every_mechanism = pytest.mark.parametrize(("mechanism", "privacy", "people"), SHARED, ids=str)


def chained(domain, people):
    """Expected counts in which A depends on B and C depends on B, and nothing else."""
    a, b, c = domain.shape
    ab = 1 + np.arange(a)[:, np.newaxis] * np.arange(b) % 3
    bc = 1 + np.arange(b)[:, np.newaxis] * np.arange(c) % 2
    joint = (ab[:, :, np.newaxis] * bc[np.newaxis]).astype(float)
    return people * joint / joint.sum()


@every_mechanism
def test_log_linear_models_behind_shared_noise_keep_their_level(mechanism, privacy, people):
    domain = tb.Domain({"A": "xy", "B": "xyzw", "C": "xy"}) if mechanism == "fourier" else CHAIN
    plan = tb.plan(domain, "[ABC]", privacy=privacy, mechanism=mechanism, reconstruct="none")
    assert isinstance(
        noise_of(next(released(plan, tuple("ABC"), [np.zeros(domain.shape, int)], 1))), CorrelatedNoise
    )
    means = chained(domain, people)
    counts = np.random.default_rng(51).poisson(means, (TABLES, *means.shape))
    rejected = dict.fromkeys(("model", "within", "told of less", "naive"), 0)
    for table in released(plan, tuple("ABC"), counts, 51):
        fit = tb.infer.loglinear(table, "[AB][BC]")
        rejected["model"] += fit.p_value <= LEVEL
        rejected["within"] += fit.against(tb.infer.loglinear(table, "[AB][BC][AC]")).rejects(LEVEL)
        twin = with_less_noise(table)
        rejected["told of less"] += (
            tb.infer.loglinear(twin["table"], "[AB][BC]", noise=twin["noise"]).p_value <= LEVEL
        )
        rejected["naive"] += tb.infer.loglinear(table, "[AB][BC]", method="naive").p_value <= LEVEL
    for name in ("model", "within"):
        assert not too_often(rejected[name], TABLES, MOST_REJECTED), rejected
    for name in ("told of less", "naive"):
        assert too_often(rejected[name], TABLES, MOST_REJECTED), rejected


@every_mechanism
def test_shares_and_two_releases_behind_shared_noise_keep_their_level(mechanism, privacy, people):
    domain = tb.Domain({"a": range(8)})
    plan = tb.plan(domain, "[a]", privacy=privacy, mechanism=mechanism, reconstruct="none")
    shares = (1 + np.arange(8) % 3) / np.sum(1 + np.arange(8) % 3)
    given = [str(share) for share in shares]
    generator = np.random.default_rng(52)
    people //= 5
    ones, twos = (generator.multinomial(people, shares, TABLES) for _ in range(2))
    rejected = dict.fromkeys(("known total", "any total", "two releases", "told of less"), 0)
    pairs = zip(released(plan, ("a",), ones, 52), released(plan, ("a",), twos, 53), strict=True)
    for one, two in pairs:
        shared = noise_of(one)
        if not isinstance(shared, CorrelatedNoise):
            pytest.skip("this mechanism measures one attribute cell by cell")
        rejected["known total"] += tb.infer.goodness_of_fit(one, people, given).rejects(LEVEL)
        rejected["any total"] += tb.infer.goodness_of_fit(one, None, given).rejects(LEVEL)
        rejected["two releases"] += tb.infer.homogeneity(one, two).rejects(LEVEL)
        less = with_less_noise(one)["noise"]
        rejected["told of less"] += tb.infer.goodness_of_fit(one.counts, None, given, less).rejects(LEVEL)
    twin = rejected.pop("told of less")
    assert not any(too_often(times, TABLES, MOST_REJECTED) for times in rejected.values()), rejected
    assert too_often(twin, TABLES, MOST_REJECTED)


# The search for a model.

SMALL = tb.Domain({"A": "xy", "B": "xyz", "C": "xy"})
WIDE = [(DiscreteLaplace(30), 1_500), (DiscreteLaplace(100), 20_000), (DiscreteLaplace(3), 300)]


def wrong(model):
    """Whether a model has an interaction that a chain A - B - C has not."""
    return not {g for g in model.terms if len(g) > 1} <= {("A", "B"), ("B", "C")}


@pytest.mark.parametrize(("law", "people"), WIDE, ids=str)
@pytest.mark.parametrize("independent", [False, True], ids=["chain", "independent"])
def test_a_search_calls_an_absent_interaction_certain_at_most_as_often_as_it_says(law, people, independent):
    means = chained(SMALL, people)
    if independent:
        means = np.full(SMALL.shape, people / SMALL.size)
    generator, entropy = np.random.default_rng(54), SeededEntropy(54)
    noise = IndependentNoise(law, np.ones(SMALL.shape, dtype=np.int64))
    errors = dict.fromkeys(("certain", "simplest", "naive"), 0)
    for _ in range(SEARCHES):
        table = tb.Table(SMALL, generator.poisson(means) + law.sample(means.shape, entropy))
        found, blind = tb.infer.search(table, noise=noise), tb.infer.search(table)
        errors["certain"] += _has_more(found.certain, independent)
        errors["simplest"] += _has_more(found.model, independent)
        errors["naive"] += _has_more(blind.certain, independent)
    assert not too_often(errors["certain"], SEARCHES, LEVEL), errors
    assert too_often(errors["naive"], SEARCHES, LEVEL), errors


@pytest.mark.parametrize(
    ("mechanism", "privacy"),
    [("residual", tb.ZCDP("1/100")), ("efron-stein", tb.PureDP("1/3"))],
    ids=str,
)
def test_a_search_behind_shared_noise_is_as_often_right_as_it_says(mechanism, privacy):
    plan = tb.plan(SMALL, "[ABC]", privacy=privacy, mechanism=mechanism, reconstruct="none")
    counts = np.random.default_rng(61).poisson(chained(SMALL, 1_500), (SEARCHES, *SMALL.shape))
    errors = dict.fromkeys(("certain", "told of less"), 0)
    for table in released(plan, tuple("ABC"), counts, 61):
        assert isinstance(noise_of(table), CorrelatedNoise)
        less = with_less_noise(table)
        errors["certain"] += wrong(tb.infer.search(table).certain)
        errors["told of less"] += wrong(tb.infer.search(less["table"], noise=less["noise"]).certain)
    assert not too_often(errors["certain"], SEARCHES, LEVEL), errors
    assert too_often(errors["told of less"], SEARCHES, LEVEL), errors


def _has_more(model, independent):
    return any(len(g) > 1 for g in model.generators) if independent else wrong(model)


def test_a_search_finds_what_is_there():
    means, law = chained(SMALL, 20_000), DiscreteLaplace(10)
    generator, entropy = np.random.default_rng(55), SeededEntropy(55)
    found = 0
    for _ in range(40):
        table = tb.Table(SMALL, generator.poisson(means) + law.sample(means.shape, entropy))
        found += str(tb.infer.search(table, noise=law).certain) == "[AB][BC]"
    assert found >= 35


# Comparisons.

GROUPS = tb.Domain({"sex": ["F", "M"], "score": ["Low", "Medium", "High"]})
LARGE = np.array([[400.0, 150, 60], [380, 200, 90]])
FEW = np.array([[40.0, 3, 1], [50, 4, 2]])
ILL = {"score": ["Medium", "High"]}


def comparisons(one, two, noises=(None, None)):
    """What is asked of two releases, by name: within the first, and between both."""
    women, men = ({"sex": sex, **ILL} for sex in ("F", "M"))
    first, second = noises
    within = {"noise": first}
    between = {"other": two, "noise": first, "other_noise": second}
    return {
        "difference": (tb.infer.difference, (one, women, men), within),
        "ratio": (tb.infer.ratio, (one, women, men), within),
        "rates": (tb.infer.difference, (one, women, men), {"per": ["sex"], **within}),
        "ratio of rates": (tb.infer.ratio, (one, women, men), {"per": ["sex"], **within}),
        "shares": (tb.infer.difference, (one, women, men), {"per": [], **within}),
        "years": (tb.infer.difference, (one, women), between),
        "ratio of years": (tb.infer.ratio, (one, women), between),
        "rates of years": (tb.infer.difference, (one, women), {"per": ["sex"], **between}),
    }


def truths(one, two):
    ill, all_ = one[:, 1:].sum(axis=1), one.sum(axis=1)
    then, everybody = two[:, 1:].sum(axis=1), two.sum(axis=1)
    rates, before = ill / all_, then / everybody
    return {
        "difference": ill[0] - ill[1],
        "ratio": ill[0] / ill[1],
        "rates": rates[0] - rates[1],
        "ratio of rates": rates[0] / rates[1],
        "shares": (ill[0] - ill[1]) / all_.sum(),
        "years": ill[0] - then[0],
        "ratio of years": ill[0] / then[0],
        "rates of years": rates[0] - before[0],
    }


@pytest.mark.parametrize("target", ["records", "population"])
@pytest.mark.parametrize(
    ("means", "privacy"),
    [(LARGE, tb.PureDP("1/10")), (FEW, tb.ZCDP("1/20"))],
    ids=["large", "few"],
)
@pytest.mark.parametrize("mechanism", ["cells", "efron-stein"])
def test_intervals_of_comparisons_hold_as_often_as_they_say(mechanism, means, privacy, target):
    plan = tb.plan(GROUPS, "[sex score]", privacy=privacy, mechanism=mechanism, reconstruct="none")
    generator = np.random.default_rng(56)
    later = means * np.array([[1.0, 1.3, 1.5], [1, 1, 1]])
    tables = [generator.poisson(expected, (COMPARED, *expected.shape)) for expected in (means, later)]
    if target == "records":
        tables = [
            np.broadcast_to(np.rint(expected).astype(int), (COMPARED, 2, 3)) for expected in (means, later)
        ]
    held = dict.fromkeys(truths(means, later), 0)
    found_out = dict.fromkeys(held, 0)
    truth = truths(*(table[0] for table in tables)) if target == "records" else truths(means, later)
    margin = ("sex", "score")
    pairs = zip(released(plan, margin, tables[0], 57), released(plan, margin, tables[1], 58), strict=True)
    for number, (one, two) in enumerate(pairs):
        for name, (ask, asked, options) in comparisons(one, two).items():
            found = ask(*asked, target=target, **options).interval
            held[name] += found.lower - 1e-9 <= truth[name] <= found.upper + 1e-9
        if target == "records" and number < COMPARED // 3:
            less = [with_less_noise(each) for each in (one, two)]
            asking = comparisons(*(each["table"] for each in less), [each["noise"] for each in less])
            for name, (ask, asked, options) in asking.items():
                found = ask(*asked, target=target, **options).interval
                found_out[name] += found.lower - 1e-9 <= truth[name] <= found.upper + 1e-9
    assert not any(too_seldom(times, COMPARED, LEAST_HELD) for times in held.values()), held
    if target == "records":
        assert all(too_seldom(times, COMPARED // 3, LEAST_HELD) for times in found_out.values()), found_out


def test_the_verdicts_of_a_table_are_right_together():
    domain = tb.Domain({"a": range(5), "b": range(4)})
    plan = tb.plan(domain, "[a b]", privacy=tb.PureDP("1/2"), mechanism="cells", reconstruct="none")
    counts = np.full((TABLES, 5, 4), 200)
    together = alone = 0
    for one, two in zip(
        released(plan, ("a", "b"), counts, 59), released(plan, ("a", "b"), counts, 60), strict=True
    ):
        found = tb.infer.compare(one, two)
        together += any(verdict != "not clear" for verdict in found.verdicts)
        alone += any(each.verdict != "not clear" for each in found.compared)
    assert not too_often(together, TABLES, LEVEL), together
    # The twin: verdicts of each cell by itself.
    assert too_often(alone, TABLES, LEVEL), alone
