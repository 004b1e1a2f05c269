"""What every reconstruction promises, whatever was measured, over random small domains."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.errors import InvalidDomain, InvalidPlan
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.noise import ExactSampler
from tabulary.reconstruct import reconstruct
from tabulary.reconstruct.linear import linear_estimates
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

CONSTRAINED = ("least-squares", "lp")

# On cells alone the linear program is refused.
PAIRS = [(m, r) for m in sorted(MECHANISMS) for r in CONSTRAINED if (m, r) != ("cells", "lp")]
every_pair = pytest.mark.parametrize(("mechanism", "reconstructor"), PAIRS)
of_contrasts = pytest.mark.parametrize("mechanism", ["fourier", "efron-stein"])


@st.composite
def tables(draw, *, sizes=(1, 2, 3), most_zeros=2):
    """A small table, dense or sparse, perhaps with structural zeros, and margins that somebody wants of it."""
    shape = draw(
        st.lists(st.sampled_from(sizes), min_size=1, max_size=3).filter(lambda s: math.prod(s) <= 18)
    )
    names = [f"x{i}" for i in range(len(shape))]
    box = st.dictionaries(st.sampled_from(names), st.just(0), min_size=1)
    zeros = draw(st.lists(box, max_size=most_zeros))
    try:
        domain = tb.Domain(dict(zip(names, map(range, shape), strict=True)), zeros)
    except InvalidDomain:
        assume(False)
    every = list(tb.Workload.all_up_to(domain, len(shape)).margins)
    wanted = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    mean = draw(st.sampled_from([0.3, 4.0, 60.0]))
    counts = np.random.default_rng(draw(st.integers(0, 2**32))).poisson(mean, domain.shape)
    counts[domain.impossible(domain.attributes)] = 0
    return tb.Table(domain, counts), tb.Workload(domain, wanted)


seeds = st.integers(0, 2**32)
privacies = st.sampled_from([tb.PureDP(1), tb.PureDP("1/10"), tb.ZCDP("1/2")])


def measured(drawn, seed=None, **options):
    """The measurement of a table with replayable noise, or with none."""
    table, work = drawn
    try:
        plan = tb.plan(table.domain, work, **{"privacy": tb.PureDP(1), **options})
    except InvalidPlan:
        assume(False)  # A sensitive or empty request that no mechanism takes.
    sampler = ConstantSampler() if seed is None else ExactSampler(SeededEntropy(seed))
    return measure(Tally.from_table(table, plan.counted), plan, sampler)


def tables_of(measurement):
    """The reconstructed tables."""
    return reconstruct(measurement).tables


def shared_margins(found):
    """For any two tables, what each says about the attributes that both have."""
    for one, here in found.items():
        for other, there in found.items():
            yield (
                here.sum(axis=tuple(i for i, a in enumerate(one) if a not in other)),
                there.sum(axis=tuple(i for i, a in enumerate(other) if a not in one)),
            )


@every_pair
@given(tables(), privacies, seeds)
@settings(max_examples=25)
def test_reconstructed_tables_agree_with_each_other_and_are_nowhere_negative(
    mechanism, reconstructor, drawn, privacy, seed
):
    measurement = measured(
        drawn, seed, privacy=privacy, mechanism=mechanism, reconstruct=reconstructor, rounding="none"
    )
    found = tables_of(measurement)
    assert found.keys() == set(measurement.plan.workload.margins)
    for here, there in shared_margins(found):
        assert here == pytest.approx(there, rel=1e-9, abs=1e-6)
    for margin, counts in found.items():
        assert (counts >= 0).all()
        assert not counts[measurement.plan.domain.impossible(margin)].any()


@every_pair
@pytest.mark.parametrize("rounding", ["nearest", "controlled"])
@given(tables(), privacies, seeds)
@settings(max_examples=15)
def test_rounded_tables_are_whole_and_agree_to_the_last_person(
    mechanism, reconstructor, rounding, drawn, privacy, seed
):
    measurement = measured(
        drawn, seed, privacy=privacy, mechanism=mechanism, reconstruct=reconstructor, rounding=rounding
    )
    found = tables_of(measurement)
    for here, there in shared_margins(found):
        assert (here == there).all()
    for margin, counts in found.items():
        assert counts.dtype == np.int64
        assert (counts >= 0).all()
        assert not counts[measurement.plan.domain.impossible(margin)].any()


@pytest.mark.parametrize(("mechanism", "reconstructor"), [*PAIRS, *((m, "none") for m in sorted(MECHANISMS))])
@given(tables())
@settings(max_examples=20)
def test_a_measurement_without_noise_gives_the_true_tables(mechanism, reconstructor, drawn):
    table, _ = drawn
    measurement = measured(drawn, mechanism=mechanism, reconstruct=reconstructor, rounding="none")
    for margin, counts in tables_of(measurement).items():
        # Least squares are certified to a gap of 1e-6: to a thousandth of a standard error.
        allowed = 1e-3 * measurement.plan.error_of(margin).standard_errors if reconstructor != "none" else 0
        assert (np.abs(counts - table.project(margin).counts) <= allowed + 1e-9).all()


@every_pair
@pytest.mark.parametrize("rounding", ["nearest", "controlled"])
@given(tables())
@settings(max_examples=8)
def test_a_full_table_measured_without_noise_is_rounded_to_itself(mechanism, reconstructor, rounding, drawn):
    table, _ = drawn
    full = tb.Workload(table.domain, [table.domain.attributes])
    found = tables_of(
        measured((table, full), mechanism=mechanism, reconstruct=reconstructor, rounding=rounding)
    )
    assert (found[table.domain.attributes] == table.counts).all()


@st.composite
def shrinkable(draw):
    """A table of up to five attributes, with margins of up to four of them, of which no full table is made."""
    shape = draw(
        st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=5).filter(lambda s: math.prod(s) <= 200)
    )
    names = [f"x{i}" for i in range(len(shape))]
    level = st.integers(0, 3)
    zeros = draw(st.lists(st.dictionaries(st.sampled_from(names), level, min_size=1, max_size=2), max_size=3))
    zeros = [{a: v % shape[names.index(a)] for a, v in zero.items()} for zero in zeros]
    try:
        domain = tb.Domain(dict(zip(names, map(range, shape), strict=True)), zeros)
    except InvalidDomain:
        assume(False)
    every = list(tb.Workload.all_up_to(domain, min(4, len(shape))).margins)
    wanted = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    # Even, uneven, or only a few kinds of people.
    shares = generator.dirichlet(np.full(domain.size, draw(st.sampled_from([5.0, 0.3, 0.01]))))
    counts = generator.poisson(draw(st.sampled_from([0.0, 20.0, 3_000.0])) * shares).reshape(domain.shape)
    counts[domain.impossible(domain.attributes)] = 0
    return tb.Table(domain, counts), tb.Workload(domain, wanted)


SHRUNK = {"reconstruct": "shrink", "rounding": "none"}
every_mechanism = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
shrink_privacies = st.sampled_from([tb.PureDP(1), tb.PureDP("1/20"), tb.ZCDP("1/2"), tb.ApproxDP(1, "1e-9")])


@every_mechanism
@given(shrinkable(), shrink_privacies, seeds)
@settings(max_examples=20)
def test_shrunk_tables_agree_with_each_other_and_are_nowhere_negative(mechanism, drawn, privacy, seed):
    measurement = measured(drawn, seed, privacy=privacy, mechanism=mechanism, **SHRUNK)
    made = reconstruct(measurement)
    assert made.tables.keys() == set(measurement.plan.workload.margins)
    total = float(next(iter(made.tables.values())).sum())
    for here, there in shared_margins(made.tables):
        assert np.abs(here - there).max() <= 1e-6 * (1 + total)
    for margin, counts in made.tables.items():
        impossible = measurement.plan.domain.impossible(margin)
        assert np.isfinite(counts).all()
        assert (counts >= 0).all()
        assert not counts[impossible].any()
        law = made.errors(margin)
        assert np.isfinite(law.standard_errors).all()
        assert ((law.standard_errors > 0) == ~impossible).all()


def test_shrunk_tables_of_a_release_are_the_same_in_every_process():
    code = (
        "import itertools, numpy as np, tabulary as tb\n"
        "from tabulary.confidential.tally import Tally\n"
        "from tabulary.mechanisms import measure\n"
        "from tabulary.noise import ExactSampler\n"
        "from tabulary.reconstruct import reconstruct\n"
        "from tests.entropy import SeededEntropy\n"
        "domain = tb.Domain({a: range(k) for a, k in zip('abcd', (2, 3, 4, 2))})\n"
        "table = tb.Table(domain, np.arange(48).reshape(domain.shape))\n"
        "work = tb.Workload(domain, list(itertools.combinations('abcd', 3)))\n"
        "plan = tb.plan(domain, work, privacy=tb.ZCDP('1/50'), mechanism='residual', reconstruct='shrink')\n"
        "found = measure(Tally.from_table(table, plan.counted), plan, ExactSampler(SeededEntropy(0)))\n"
        "made = reconstruct(found)\n"
        "print([(m, t.tobytes().hex()) for m, t in made.tables.items()])\n"
        "print([(m, c.describe()) for m, c in made.curves.items()])\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(Path.cwd())},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(said) == 1


@given(shrinkable())
@settings(max_examples=15)
def test_with_hardly_any_noise_shrunk_tables_are_the_true_ones(drawn):
    table, _ = drawn
    # Nothing was added, and the noise that is reckoned with is far below a person.
    measurement = measured(drawn, privacy=tb.PureDP(10**6), mechanism="residual", **SHRUNK)
    made = reconstruct(measurement)
    mixed_in = made.facts["independence_mixed_in"] * 2 * int(table.counts.sum())
    for margin, counts in made.tables.items():
        assert np.abs(counts - table.project(margin).counts).max() <= 0.5 + mixed_in


@of_contrasts
@given(tables(sizes=(1, 2, 4), most_zeros=0), seeds)
@settings(max_examples=20)
def test_linear_tables_of_contrasts_agree_with_each_other(mechanism, drawn, seed):
    measurement = measured(drawn, seed, mechanism=mechanism, reconstruct="none")
    for here, there in shared_margins(tables_of(measurement)):
        assert here == pytest.approx(there, rel=1e-9, abs=1e-6)


@of_contrasts
@given(tables(sizes=(1, 2, 4), most_zeros=0), privacies, seeds)
@settings(max_examples=20)
def test_a_shift_raises_every_cell_of_a_table_by_its_share(mechanism, drawn, privacy, seed):
    measurement = measured(drawn, seed, privacy=privacy, mechanism=mechanism, reconstruct="shift")
    made = reconstruct(measurement)
    assert made.facts["shift"] == int(made.facts["shift"]) > 0
    for margin, linear in linear_estimates(measurement).items():
        assert made.tables[margin] == pytest.approx(linear + made.facts["shift"] / linear.size)


@of_contrasts
def test_a_shifted_table_is_hardly_ever_negative_and_says_how_often(mechanism):
    # An empty table is the worst that a shift can meet.
    domain = tb.Domain({"a": range(2), "b": range(4)})
    empty = tb.Table(domain, np.zeros(domain.shape, dtype=np.int64)), tb.Workload.k_way(domain, 2)
    shift = reconstruct(measured(empty, 0, mechanism=mechanism, reconstruct="shift")).facts["shift"]
    negative = 0
    for seed in range(400):
        found = linear_estimates(measured(empty, seed, mechanism=mechanism, reconstruct="shift"))
        negative += any((counts + shift / counts.size < 0).any() for counts in found.values())
    # Failures of 5 % are allowed; forty of 400 would be five standard deviations beyond that.
    assert negative < 40


ZEROS = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
PEOPLE = tb.Table(ZEROS, [[[30, 0], [40, 90], [50, 8]], [[33, 0], [20, 99], [38, 14]]])


@every_pair
def test_errors_are_positive_where_people_can_be_and_zero_where_nobody_can(mechanism, reconstructor):
    work = tb.Workload.parse("[sex age][age job]", ZEROS)
    release = tb.Release(measured((PEOPLE, work), 1, mechanism=mechanism, reconstruct=reconstructor))
    for margin in work:
        impossible = ZEROS.impossible(margin)
        for errors in (release[margin].standard_errors, release[margin].half_widths()):
            assert ((errors > 0) == ~impossible).all()


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("cells", {"reconstruct": "none"}),
        ("margins", {"reconstruct": "least-squares", "rounding": "nearest"}),
        ("efron-stein", {"reconstruct": "least-squares"}),
        ("fourier", {"reconstruct": "lp", "rounding": "controlled"}),
        ("fourier", {"reconstruct": "lp"}),
        ("residual", {"reconstruct": "shrink"}),
        ("residual", {"reconstruct": "shrink", "rounding": "controlled"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.values()),
)
def test_a_saved_reconstruction_is_loaded_as_it_was_and_verified(mechanism, options, tmp_path):
    plan = tb.plan(ZEROS, "[sex age][age job]", privacy=tb.PureDP(1), mechanism=mechanism, **options)
    _assert_saved_and_loaded(tb.release(PEOPLE, plan), tmp_path / "out")


@of_contrasts
@pytest.mark.parametrize("reconstructor", ["none", "shift"])
def test_a_saved_linear_release_of_contrasts_is_loaded_as_it_was(mechanism, reconstructor, tmp_path):
    table = tb.datasets.load("fungus")
    plan = tb.plan(
        table.domain, "[A B][B C]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct=reconstructor
    )
    _assert_saved_and_loaded(tb.release(table, plan), tmp_path / "out")


def _assert_saved_and_loaded(release, folder):
    release.save(folder)
    again = tb.Release.load(folder)
    assert again.verify(expected_digest=release.digest).remade
    assert again.plan == release.plan
    assert again.face.face == release.face.face
    assert again.face.facts == release.face.facts
    for margin in release.margins:
        before, after = release[margin], again[margin]
        assert (after.counts == before.counts).all()
        assert after.counts.dtype == before.counts.dtype
        assert (after.standard_errors == before.standard_errors).all()
        assert after.half_widths() == pytest.approx(before.half_widths(), rel=1e-9)
