"""What the published face of every release promises, for random domains, workloads, mechanisms and budgets."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.errors import InvalidDomain, InvalidPlan, ReleaseDamaged, UnknownMargin
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.noise import ExactSampler
from tabulary.planning import ErrorCurve, Face, Measurement
from tabulary.reconstruct.reconstruction import OfficialTables
from tests.entropy import SeededEntropy
from tests.populations import SHAPES, true_table

every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
PRIVACIES = [tb.PureDP(1), tb.PureDP("1/20"), tb.PureDP(10), tb.ZCDP("1/2"), tb.ApproxDP(1, "1e-9")]


@st.composite
def requests(draw):
    """A table of up to five attributes, some of its margins, a budget, and whose records may differ."""
    shape = draw(
        st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=5).filter(lambda s: math.prod(s) <= 200)
    )
    names = [f"x{i}" for i in range(len(shape))]
    zeros = draw(
        st.lists(
            st.dictionaries(st.sampled_from(names), st.integers(0, 3), min_size=1, max_size=2), max_size=3
        )
    )
    zeros = [{a: v % shape[names.index(a)] for a, v in zero.items()} for zero in zeros]
    try:
        domain = tb.Domain(dict(zip(names, map(range, shape), strict=True)), zeros)
    except InvalidDomain:
        assume(False)
    every = list(tb.Workload.all_up_to(domain, min(3, len(shape))).margins)
    wanted = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    shares = generator.dirichlet(np.full(domain.size, draw(st.sampled_from([5.0, 0.3, 0.01]))))
    counts = generator.poisson(draw(st.sampled_from([0.0, 20.0, 3_000.0])) * shares).reshape(domain.shape)
    counts[domain.impossible(domain.attributes)] = 0
    return (
        tb.Table(domain, counts),
        tb.Workload(domain, wanted),
        draw(st.sampled_from(PRIVACIES)),
        draw(st.sampled_from(["add-remove", "replace"])),
        draw(st.integers(0, 2**32)),
    )


def released(mechanism, asked, **options):
    """The release of a request with replayable noise."""
    table, work, privacy, neighbours, seed = asked
    try:
        plan = tb.plan(
            table.domain, work, privacy=privacy, neighbours=neighbours, mechanism=mechanism, **options
        )
    except InvalidPlan:
        assume(False)  # Tables that hold nothing but the public number of records.
    tally = Tally.from_table(table, plan.counted)
    return tb.Release(measure(tally, plan, ExactSampler(SeededEntropy(seed))))


def every_margin(release):
    """Every set of attributes below a table that the release lists."""
    return {s for m in release.margins for n in range(len(m) + 1) for s in combinations(m, n)}


@every_mechanism
@given(requests())
@settings(max_examples=25)
def test_the_default_face_is_whole_non_negative_and_additive_to_the_last_unit(mechanism, asked):
    release = released(mechanism, asked)
    domain = release.plan.domain
    known = {margin: release[margin].counts for margin in every_margin(release)}
    for margin, counts in known.items():
        assert counts.dtype == np.int64
        assert (counts >= 0).all()
        assert not counts[domain.impossible(margin)].any()
        for place in range(len(margin)):
            smaller = margin[:place] + margin[place + 1 :]
            assert np.array_equal(counts.sum(axis=place), known[smaller])


@every_mechanism
@given(requests())
@settings(max_examples=15)
def test_no_interval_leaves_what_is_possible_in_either_face(mechanism, asked):
    release = released(mechanism, asked)
    for margin in release.margins:
        for face in (release[margin], release[margin].unbiased):
            lower, upper = face.interval(0.95)
            assert (lower >= 0).all()
            assert (upper >= lower).all()
            impossible = release.plan.domain.impossible(margin)
            assert not upper[impossible].any()


@every_mechanism
@given(requests())
@settings(max_examples=15)
def test_the_published_face_is_a_function_of_the_measurements_alone(mechanism, asked):
    release = released(mechanism, asked)
    again = tb.Release(Measurement(release.plan, tuple(np.array(v) for v in release.measurement.values)))
    for margin in release.margins:
        assert np.array_equal(release[margin].counts, again[margin].counts)
        assert np.array_equal(release[margin].half_widths(), again[margin].half_widths())
    assert release.verify().remade


@every_mechanism
@given(requests())
@settings(max_examples=15)
def test_the_unbiased_face_is_that_of_a_release_of_linear_estimates(mechanism, asked):
    release = released(mechanism, asked)
    linear = release.rebuild(reconstruct="none")
    for margin in every_margin(release):
        one, other = release[margin].unbiased, linear[margin]
        assert np.array_equal(one.counts, other.counts)
        assert np.array_equal(one.standard_errors, other.standard_errors)
        assert np.array_equal(release[margin].estimate, one.counts)
        assert other.unbiased is other


@every_mechanism
@given(requests())
@settings(max_examples=8)
def test_a_face_that_was_rebuilt_and_rebuilt_back_is_the_first_one(mechanism, asked):
    release = released(mechanism, asked)
    back = release.rebuild(reconstruct="none").rebuild()
    for margin in release.margins:
        assert np.array_equal(release[margin].counts, back[margin].counts)


DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]})
PEOPLE = tb.Table(DOMAIN, [[[30, 2], [40, 90], [50, 8]], [[33, 1], [20, 99], [38, 14]]])


@every_mechanism
def test_what_was_measured_beyond_the_listed_tables_is_there_before_and_after_saving(mechanism, tmp_path):
    plan = tb.plan(DOMAIN, "[sex age][age job]", privacy=tb.PureDP(1), mechanism=mechanism)
    release = tb.release(PEOPLE, plan)
    release.save(tmp_path / "out")
    loaded = tb.Release.load(tmp_path / "out")
    for margin in plan.estimator.covered:
        assert np.array_equal(loaded[margin].counts, release[margin].counts)
        assert np.array_equal(loaded[margin].estimate, release[margin].estimate)
        assert loaded[margin].half_widths() == pytest.approx(release[margin].half_widths())
        total = loaded[margin].counts.sum()
        assert total == loaded[()].counts


@pytest.mark.parametrize("mechanism", ["margins", "fourier", "efron-stein"])
def test_what_was_not_measured_is_refused_with_what_there_is(mechanism):
    plan = tb.plan(DOMAIN, "[sex age][age job]", privacy=tb.PureDP(1), mechanism=mechanism)
    with pytest.raises(UnknownMargin, match=r"no table on \[sex job\]\. It has \[sex age\]\[age job\]"):
        tb.release(PEOPLE, plan)["sex", "job"]


def test_tables_that_do_not_follow_from_the_measurements_are_found():
    plan = tb.plan(DOMAIN, "[sex age]", privacy=tb.PureDP(1))
    true = tb.release(PEOPLE, plan)
    for moved in (1, 500):
        counts = np.array(true["sex", "age"].counts)
        # Additive and not negative, so only making the table again can find it.
        counts[0, 0] += moved
        face = OfficialTables(
            true.measurement, plan.face, {("sex", "age"): counts}, true.face.facts, lambda: true.face.curves
        )
        forged = tb.Release(true.measurement, face)
        if moved == 1:
            # Another machine may round a coin otherwise; the certificate holds, and says what it cannot tell.
            found = forged.verify()
            assert not found.remade
            assert not found.complete
            assert "rounds a last digit otherwise" in str(found)
            assert "or somebody has moved counts within their errors" in str(found)
        else:
            with pytest.raises(ReleaseDamaged, match="does not follow from the measurements"):
                forged.verify()


def test_errors_that_are_stated_too_small_are_found():
    plan = tb.plan(DOMAIN, "[sex age]", privacy=tb.PureDP(1))
    true = tb.release(PEOPLE, plan)
    for share in (0.5, 0.999):
        curves = {
            m: ErrorCurve.from_description({name: share * value for name, value in curve.describe().items()})
            for m, curve in true.face.curves.items()
        }
        face = OfficialTables(
            true.measurement, plan.face, true.face.tables, true.face.facts, lambda curves=curves: curves
        )
        with pytest.raises(ReleaseDamaged, match=r"the errors of \[sex age\] do not follow"):
            tb.Release(true.measurement, face).verify()


@pytest.mark.parametrize(
    ("fact", "value"), [("bias_share", 0.0), ("total", 5), ("largest_move", 0.001), ("note", "not measured")]
)
def test_a_false_fact_about_the_making_is_named(fact, value):
    true = tb.release(PEOPLE, tb.plan(DOMAIN, "[sex age][age job]", privacy=tb.PureDP("1/10")))
    assert true.verify().complete
    facts = {**true.face.facts, fact: value}
    face = OfficialTables(true.measurement, true.plan.face, true.face.held, facts, lambda: true.face.curves)
    found = tb.Release(true.measurement, face).verify()
    assert found.facts == (fact,)
    assert not found.complete
    assert f"came out otherwise: {fact}." in str(found)


@pytest.mark.parametrize("value", ["none at all", True, 10**400], ids=["text", "yes", "huge"])
def test_a_fact_that_is_no_number_is_refused_before_it_is_put_into_words(value):
    true = tb.release(PEOPLE, tb.plan(DOMAIN, "[sex age]", privacy=tb.PureDP(1)))
    facts = {**true.face.facts, "bias_share": value}
    face = OfficialTables(true.measurement, true.plan.face, true.face.held, facts, lambda: true.face.curves)
    with pytest.raises(
        ReleaseDamaged, match="'bias_share' about the making of the tables is not of its kind"
    ):
        tb.Release(true.measurement, face).verify()


def test_whole_tables_cannot_pass_for_a_face_of_real_numbers():
    true = tb.release(PEOPLE, tb.plan(DOMAIN, "[sex age]", privacy=tb.PureDP(1)))
    named = Face("shrink", "none")
    face = OfficialTables(true.measurement, named, true.face.held, true.face.facts, lambda: true.face.curves)
    with pytest.raises(ReleaseDamaged, match="has whole numbers, but real numbers were promised"):
        tb.Release(true.measurement, face).verify()


@pytest.mark.parametrize(
    ("mechanism", "reconstruct"),
    # The first two measure a table that is not listed and holds those that are.
    [("cells", "shrink"), ("cells", "least-squares"), ("margins", "shrink"), ("fourier", "lp")],
)
def test_a_face_of_real_numbers_has_the_same_last_digit_in_every_margin_after_saving(
    mechanism, reconstruct, tmp_path
):
    plan = tb.plan(DOMAIN, "[age job][sex age][job]", privacy=tb.PureDP("1/3"), mechanism=mechanism)
    real = tb.release(PEOPLE, plan).rebuild(reconstruct=reconstruct, rounding="none")
    real.save(tmp_path / "out")
    loaded = tb.Release.load(tmp_path / "out")
    for margin in every_margin(real):
        assert np.array_equal(loaded[margin].counts, real[margin].counts)
    assert loaded.verify().complete


def test_tables_that_are_not_additive_are_found():
    plan = tb.plan(DOMAIN, "[sex age][age job]", privacy=tb.PureDP(1))
    true = tb.release(PEOPLE, plan)
    held = {m: np.array(true[m].counts) for m in true.margins}
    held["sex", "age"][0, 0] += 1
    face = OfficialTables(true.measurement, plan.face, held, true.face.facts, lambda: true.face.curves)
    with pytest.raises(ReleaseDamaged, match="do not agree"):
        tb.Release(true.measurement, face).verify()


def test_a_face_of_other_measurements_is_refused():
    plan = tb.plan(DOMAIN, "[sex age]", privacy=tb.PureDP(1))
    one, other = tb.release(PEOPLE, plan), tb.release(PEOPLE, plan)
    with pytest.raises(tb.errors.InvalidTable, match="other measurements"):
        tb.Release(one.measurement, other.face)


@pytest.mark.parametrize(
    "options",
    [{"reconstruct": "magic"}, {"rounding": "up"}, {"reconstruct": "none", "rounding": "controlled"}],
    ids=lambda options: "-".join(options.values()),
)
def test_a_face_that_does_not_exist_is_refused_and_nothing_is_lost(options):
    release = tb.release(PEOPLE, tb.plan(DOMAIN, "[sex age]", privacy=tb.PureDP(1)))
    with pytest.raises(InvalidPlan, match=r"reconstruct|rounding"):
        release.rebuild(**options)
    assert release.verify().remade


@pytest.mark.parametrize("sensitive", [("age",), ("sex", "job")], ids=" ".join)
def test_with_sensitive_attributes_the_default_face_is_official_too(sensitive):
    plan = tb.plan(
        DOMAIN, "[sex age][age job][sex job]", privacy=tb.PureDP(1), neighbours="replace", sensitive=sensitive
    )
    release = tb.release(PEOPLE, plan)
    assert release.face.face.official
    assert release.verify().remade
    for margin in release.margins:
        assert release[margin].counts.dtype == np.int64
        assert release[margin].counts.min() >= 0
        assert release[margin].total == release[()].total


def test_a_wanted_table_is_rounded_by_about_one_person_though_a_larger_one_was_measured():
    population = SHAPES["binary"](100)
    domain = population[0]
    work = tb.Workload.all_up_to(domain, 2)
    plan = tb.plan(domain, work, privacy=tb.ApproxDP(4, "1e-9"), mechanism="residual")
    assert plan.estimator.cover == (domain.attributes,)
    tally = Tally(domain, {m: true_table(population, m) for m in plan.counted})
    release = tb.Release(measure(tally, plan, ExactSampler(SeededEntropy(1))))
    real = release.rebuild(rounding="none").face
    moves = [(release.face.table(m) - real.table(m)).reshape(-1) for m in work]
    # Rounding the measured table alone moves the pairs, which sum many of its cells, by 1.8.
    assert np.sqrt(np.mean(np.concatenate(moves) ** 2)) < 0.8
