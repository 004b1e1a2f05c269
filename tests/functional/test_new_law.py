"""A law of noise that another package brings, from the plan to the tests of hypotheses, registered with one call.

Statistical tests are at a level of one in a million with seeded entropy: a failure is a defect, not bad luck. Each also
rejects a sabotaged twin.
"""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import tabulary as tb
from tabulary.builder.app import create_app
from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.state import State
from tabulary.cli.app import run
from tabulary.confidential.tally_cache import TallyCache
from tabulary.core.labels import Labels
from tabulary.errors import InvalidNoise, InvalidPlan
from tabulary.infer import IndependentNoise, goodness_of_fit, independence
from tabulary.infer.likelihood import NoisyCells
from tabulary.ledger import Ledger
from tabulary.mechanisms.on_demand import MeasuredOnDemand, noise_check
from tabulary.noise import LAWS, ExactSampler, noise_from_description, weighted_half_width
from tabulary.planning import plan_from_description
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.reconstruct.linear import TablesOnDemand
from tabulary.workflows.answering.fixed import FixedAnswers, plan_of_allowed_tables
from tabulary.workflows.auditing import audit
from tests import geometric_mixture
from tests.builders import GENEROUS, SECRET, Caller, people
from tests.entropy import ScriptedEntropy, SeededEntropy
from tests.extensions import install, tabulary
from tests.geometric_mixture import GeometricMixture
from tests.twins import bounds

LEVEL = 1e-6
DRAWS = 400_000
DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]})
COUNTS = np.array([[[310, 12], [240, 450], [190, 40]], [[320, 9], [180, 520], [160, 55]]])
TABLE = tb.Table(DOMAIN, COUNTS)
LAW = GeometricMixture(3)
ALONE = tb.Domain({"region": list("nesw"), "answer": list("abcde")})
MEANS = 2_000 * np.outer([0.1, 0.2, 0.3, 0.4], [0.1, 0.1, 0.2, 0.3, 0.3])

LAWS.register(GeometricMixture.family, GeometricMixture)


def with_the_law(plan):
    """The same plan, with noise of the new law that costs as much."""
    parts = (
        replace(part, noise=GeometricMixture.costing(type(plan.loss), part.noise.unit_cost(type(plan.loss))))
        for part in plan.measured
    )
    return replace(plan, measured=tuple(parts))


def planned(**options):
    return with_the_law(tb.plan(DOMAIN, "[sex age][age job]", privacy=tb.PureDP(1), **options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("mixture") / "release"
    tb.release(TABLE, planned(mechanism="margins")).save(place)
    return place


@pytest.mark.parametrize("mechanism", ["cells", "margins", "fourier", "efron-stein", "residual"])
def test_every_mechanism_can_be_planned_with_the_law_and_read_back(mechanism):
    plan = planned(mechanism=mechanism)
    assert plan.cost() <= 1
    assert {part.noise.family for part in plan.measured} == {"geometric-mixture"}
    assert plan_from_description(json.loads(json.dumps(plan.describe()))) == plan
    # The same ε with heavier tails: larger errors than with the Laplace law, and all of them are known.
    plain = tb.plan(DOMAIN, "[sex age][age job]", privacy=tb.PureDP(1), mechanism=mechanism)
    for row, other in zip(plan.expected_error(), plain.expected_error(), strict=True):
        assert row.standard_error > other.standard_error > 0


def test_a_plan_whose_noise_of_the_law_is_too_small_is_refused():
    plan = planned(mechanism="margins")
    thin = tuple(replace(part, noise=part.noise.narrowed(Fraction(99, 100))) for part in plan.measured)
    with pytest.raises(InvalidPlan, match="too small for its loss"):
        replace(plan, measured=thin)


def test_a_loss_that_the_law_does_not_earn_is_refused():
    gaussian = tb.plan(DOMAIN, "[sex age]", privacy=tb.ZCDP("1/2"), mechanism="cells")
    with pytest.raises(InvalidPlan, match="earns"):
        replace(gaussian, measured=tuple(replace(part, noise=LAW) for part in gaussian.measured))
    for refused in (lambda: LAW.unit_cost(tb.ZCDP), lambda: LAW.costing(tb.ZCDP, Fraction(1))):
        with pytest.raises(InvalidNoise, match="ZCDP"):
            refused()


@pytest.mark.parametrize(
    "described",
    [
        {"family": "geometric-mixture", "scale": "3"},
        {"family": "geometric-mixture", "scale": "3", "share": "0.25"},
        {"family": "geometric-mixture", "scale": "3", "share": "1/4", "seed": "1"},
        {"family": "geometric-mixture", "scale": "3", "share": "5/4"},
        {"family": "geometric-mixtures", "scale": "3", "share": "1/4"},
    ],
)
def test_a_description_of_the_law_is_read_as_strictly_as_any(described):
    assert noise_from_description(LAW.describe()) == LAW
    with pytest.raises(InvalidNoise, match=r"share|unknown|keys"):
        noise_from_description(described)


def test_a_release_with_the_law_is_saved_loaded_verified_and_reported(folder):
    loaded = tb.Release.load(folder)
    loaded.verify()
    assert loaded.plan == planned(mechanism="margins")
    page = (folder / "report.html").read_text()
    noise = loaded.plan.measured[0].noise
    assert noise.words == f"geometric mixture, scale {noise.scale}, share 0.25"
    assert noise.words in page
    assert "e<sup>−|k| / b</sup>" in page
    table = loaded["sex", "age"]
    assert table.interval(0.95)[0].shape == table.counts.shape


def test_the_commands_show_verify_and_test_a_release_with_the_law(folder, capsys):
    assert run(["verify", str(folder)]) == 0
    assert run(["show", str(folder), "sex", "age"]) == 0
    assert "15-64" in capsys.readouterr().out
    assert run(["test", str(folder), "age", "job"]) == 0
    # The association of age and job is far above the noise.
    assert "noise" in capsys.readouterr().out
    table = tb.Release.load(folder)["age", "job"]
    assert tb.infer.independence(table, method="noise-aware").rejects(1e-9)


def test_an_installed_package_offers_the_law_to_the_command(folder, tmp_path):
    code, said = tabulary("verify", str(folder), path=tmp_path)
    assert code == 2
    assert "install that package" in said
    law = Path(geometric_mixture.__file__).read_text()
    offered = {"geometric-mixture": "GeometricMixture"}
    install(tmp_path, "heavy_tails", law, group="tabulary.noise", **offered)
    code, said = tabulary("verify", str(folder), path=tmp_path)
    assert code == 0, said


def test_a_table_builder_serves_tables_and_tests_with_noise_of_the_law(tmp_path):
    allowed = AllowedTables(DOMAIN, order=2)
    plan = with_the_law(plan_of_allowed_tables(allowed, privacy=tb.PureDP(1), neighbours="add-remove"))
    records = tb.Records.from_arrow(people(COUNTS, DOMAIN), DOMAIN)
    tallies = TallyCache(records)
    tallies.prepare(plan.counted)
    measured = MeasuredOnDemand(tallies, plan, SECRET)
    tables = TablesOnDemand(plan, measured.values)
    answers = FixedAnswers(allowed, "2026", plan, tables, None, records, tallies, measured)
    dataset = ServedDataset("census", answers, (Labels("Census", "Everyone."),), "census")
    state, ledger = State.create(tmp_path / "state.sqlite"), Ledger.create(tmp_path / "ledger.sqlite")
    app = create_app(Service({"census": dataset}, state, ledger, "key", GENEROUS, "Tables"))
    asked = Caller(app).get("/api/datasets/census/tables?by=age&by=job")
    assert asked.status_code == 200
    assert "geometric-mixture" in json.dumps(plan.describe())
    tested = Caller(app).post("/api/datasets/census/tests", {"test": "independence", "by": ["age", "job"]})
    assert tested.status_code == 200
    assert tested.json()["p_value"] < 1e-6
    page = Caller(app).get("/datasets/census/table?rows=age&columns=job", Accept="text/html")
    assert page.status_code == 200


def test_the_check_of_the_noise_of_a_key_does_not_depend_on_what_is_registered():
    assert noise_check(bytes(32)) == "ebdfb70a52fbd423cdd86f1994a82a44"


def fit(draws, law):
    """The p-value of Pearson's chi-square over the values of the law, rare ones together."""
    values = np.arange(-law.reach, law.reach + 1)
    expected = law.pmf(values) * draws.size
    observed = np.bincount(draws + law.reach, minlength=values.size)
    kept = expected >= 5
    differences = [(observed[kept] - expected[kept]) ** 2 / expected[kept]]
    rare = expected[~kept].sum()
    differences.append([(observed[~kept].sum() - rare) ** 2 / rare])
    return float(stats.chi2.sf(np.concatenate(differences).sum(), kept.sum()))


@pytest.mark.parametrize("law", [GeometricMixture("1/2"), LAW, GeometricMixture(60, "1/100")], ids=str)
def test_draws_fit_the_law_and_no_law_a_tenth_away(law):
    draws = ExactSampler(SeededEntropy(21)).draw(law, DRAWS)
    assert fit(draws, law) > LEVEL
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert fit(draws, replace(law, scale=law.scale * factor)) < LEVEL


def test_a_tie_is_decided_with_more_bits_and_the_tail_has_no_end():
    outermost = [LAW.sample(1, ScriptedEntropy([2**64 - 1] * words + [2**63])).item() for words in (1, 2, 3)]
    # Another 64 bits lie as far out again, up to the start: 64 log 2 times the wide scale.
    assert np.diff([0, *outermost]) == pytest.approx(64 * np.log(2) * 6, abs=12)


def test_moments_and_half_widths_are_those_of_the_probabilities():
    values = np.arange(-2000, 2001)
    chances = LAW.pmf(values)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert LAW.variance == pytest.approx(chances @ values**2.0, rel=1e-12)
    assert LAW.fourth_cumulant == pytest.approx(chances @ values**4.0 - 3 * LAW.variance**2, rel=1e-9)
    assert LAW.cdf([-7, 0, 5]) == pytest.approx([chances[values <= k].sum() for k in (-7, 0, 5)], abs=1e-12)
    angles = np.array([0.0, 0.3, 2.0])
    assert LAW.characteristic(angles) == pytest.approx([chances @ np.cos(t * values) for t in angles])
    for terms in (1, 3):
        summed = chances
        for _ in range(terms - 1):
            summed = np.convolve(summed, chances)
        middle = summed.size // 2
        h = LAW.half_width(0.95, terms)
        assert summed[middle - h : middle + h + 1].sum() >= 0.95 > summed[middle - h + 1 : middle + h].sum()
        assert weighted_half_width(LAW, np.full(terms, 0.5), 0.95) == h / 2


@pytest.mark.parametrize(
    ("x", "terms", "minimum"),
    [(0, 1, None), (40, 1, None), (7, 3, None), (-9, 1, None), (0, 1, 0), (40, 1, 0)],
)
def test_the_likelihood_of_a_count_is_the_sum_over_all_counts_behind_it(x, terms, minimum):
    cells = NoisyCells([x], IndependentNoise(LAW, np.array([terms]), minimum))
    for mean in (0.5, 8.0, 50.0):
        counts = np.arange(600)
        values = np.arange(-1500, 1501)
        noise = LAW.pmf(values)
        for _ in range(terms - 1):
            noise = np.convolve(noise, LAW.pmf(values))
        middle = noise.size // 2
        if x == minimum:
            chances = np.array([noise[: middle + x - a + 1].sum() for a in counts])
        else:
            chances = noise[middle + x - counts]
        weights = stats.poisson.pmf(counts, mean) * chances
        logarithm, expected, variance = cells.evaluate(np.log([mean]))
        assert logarithm == pytest.approx(np.log(weights.sum()), abs=1e-9)
        assert expected == pytest.approx(weights @ counts / weights.sum(), rel=1e-9)
        spread = weights @ counts**2.0 / weights.sum() - (weights @ counts / weights.sum()) ** 2
        assert variance == pytest.approx(spread, rel=1e-6)


def rejections(believed, tables, seed):
    """How many tables without association a test at 5 % rejects, if the noise is LAW and the test believes another."""
    entropy, generator = SeededEntropy(seed), np.random.default_rng(seed)
    found = 0
    for _ in range(tables):
        released = generator.poisson(MEANS) + LAW.sample(MEANS.shape, entropy)
        found += independence(tb.Table(ALONE, released), noise=believed).rejects(0.05)
    return found


@pytest.mark.slow
def test_the_noise_aware_test_keeps_its_level_and_one_that_believes_less_noise_does_not():
    low, high = bounds(rejections(LAW, 700, 5), 700)
    assert low <= 0.05 <= high
    low, _ = bounds(rejections(GeometricMixture("3/4"), 300, 6), 300)
    assert low > 0.05


@pytest.mark.slow
def test_an_exact_p_value_is_as_rare_as_it_says_and_one_of_less_noise_is_not():
    law = GeometricMixture(1)
    released = np.random.default_rng(7).binomial(15, 0.3, 1_000) + law.sample(1_000, SeededEntropy(7))
    different, times = np.unique(released, return_counts=True)

    def rejected(believed):
        p_values = [goodness_of_fit(int(x), 15, 0.3, believed).p_value for x in different]
        return int(times[np.array(p_values) <= 0.05].sum())

    low, high = bounds(rejected(law), 1_000)
    assert low <= 0.05 <= high
    low, _ = bounds(rejected(GeometricMixture("1/3")), 1_000)
    assert low > 0.05


def test_an_audit_knows_the_law_and_catches_its_twin():
    report = audit(planned(mechanism="cells"), entropy=SeededEntropy(3))
    assert (report.verdict, report.twin_caught) == ("holds", True)
