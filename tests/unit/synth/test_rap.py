"""Relaxed Adaptive Projection: what is measured, what it costs, and what a restart keeps."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.core.privacy import approx_to_zcdp
from tabulary.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidPrivacy,
    InvalidWorkload,
    LedgerError,
    MissingExtra,
    ReleaseError,
    TooManyCells,
    UnusableCheckpoint,
    WeightedRecords,
)
from tabulary.ledger import Ledger
from tabulary.noise import DiscreteGaussian, ExactSampler
from tabulary.synth.checkpoint import Checkpoint, Progressed
from tabulary.synth.queries import Queries
from tabulary.synth.rap import measure_round, rap
from tabulary.synth.rap_plan import RapPlan, printed_rho
from tabulary.synth.relaxed import RelaxedRows, project
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

DOMAIN = tb.Domain({"a": range(3), "b": range(2), "c": range(4)})
PAIRS = tb.Workload.k_way(DOMAIN, 2)
APPROX = tb.ApproxDP(1, 1e-6)
# Few rows and steps: these tests are about what is measured, not about how well it is fitted.
SMALL = {"relaxed_rows": 20, "steps": 10, "rows": 100}


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


def a_table(seed=0, domain=DOMAIN, people=5000):
    draw = np.random.default_rng(seed)
    possible = ~domain.impossible(domain.attributes).ravel()
    shares = draw.dirichlet(np.full(domain.size, 0.5)) * possible
    counts = draw.multinomial(people, shares / shares.sum())
    return tb.Table(domain, counts.reshape(domain.shape))


TABLE = a_table()


class CountingSampler:
    """Draws exactly, and remembers how often it was asked, and for what."""

    def __init__(self):
        self.asked = []
        self._exact = ExactSampler(SeededEntropy(11))

    def draw(self, noise, size):
        self.asked.append((noise, size))
        return self._exact.draw(noise, size)


# What it costs.


@given(st.floats(0.01, 20), st.floats(1e-12, 0.1))
@settings(max_examples=40, deadline=None)
def test_the_printed_rho_solves_the_printed_equation_and_spends_less_than_the_tight_one(epsilon, delta):
    privacy = tb.ApproxDP(epsilon, delta)
    rho = float(printed_rho(privacy))
    spent = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert epsilon * (1 - 1e-7) < spent <= epsilon
    assert printed_rho(privacy) <= approx_to_zcdp(privacy).rho


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize(("rounds", "per_round"), [(1, None), (2, 3), (4, 5)])
def test_choices_and_answers_add_up_to_rho_as_printed(relation, records, rounds, per_round):
    plan = RapPlan.of(
        DOMAIN,
        PAIRS,
        tb.ZCDP("1/3"),
        rounds=rounds,
        per_round=per_round,
        neighbours=tb.Neighbours(relation, records),
        accounting="printed",
    )
    moved = Fraction(records) ** 2
    each = moved / (2 * plan.noise.variance_parameter)
    asked = plan.queries.asked.size if rounds == 1 else rounds * per_round
    spent = asked * each if rounds == 1 else asked * (plan.share + each)
    if relation == "add-remove":
        spent += moved / (2 * plan.total_noise.variance_parameter)
    else:
        assert plan.total_noise is None
    assert spent == Fraction(1, 3)
    if relation == "replace":
        assert each == (Fraction(1, 3) / 26 if rounds == 1 else Fraction(1, 3) / (2 * rounds * per_round))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_one_round_is_calibrated_to_what_one_person_changes_in_all_cells_together(relation):
    """By brute force over all pairs of records, the loss of the worst is the ρ that the queries share, exactly."""
    plan = RapPlan.of(DOMAIN, PAIRS, tb.ZCDP(1), neighbours=relation)
    cells = list(np.ndindex(*DOMAIN.shape))
    single = {}
    for cell in cells:
        counts = np.zeros(DOMAIN.shape, int)
        counts[cell] = 1
        single[cell] = plan.queries.exact(Tally.from_table(tb.Table(DOMAIN, counts), PAIRS.margins))
    if relation == "add-remove":
        worst = max(int((one**2).sum()) for one in single.values())
    else:
        worst = max(int(((single[x] - single[y]) ** 2).sum()) for x in cells for y in cells)
    assert worst / (2 * plan.noise.variance_parameter) == plan.shared


def test_one_round_has_less_noise_than_as_printed():
    tight, printed = (
        RapPlan.of(DOMAIN, PAIRS, APPROX, neighbours="replace", accounting=kind)
        for kind in ("tight", "printed")
    )
    assert tight.noise.variance < printed.noise.variance / 4


# What is measured.


def measured(plan, sampler, state=None, table=TABLE):
    counts = plan.queries.exact(Tally.from_table(table, plan.queries.margins))
    start = RelaxedRows.start(plan.queries.domain, plan.relaxed_rows, SeededEntropy(3)).logits
    return measure_round(plan, counts, state or Progressed(plan.digest, "run", logits=start), sampler)


def test_one_round_answers_every_query_with_whole_noise_of_the_stated_law():
    sampler = CountingSampler()
    plan = RapPlan.of(DOMAIN, PAIRS, APPROX)
    state = measured(plan, sampler)
    assert sampler.asked == [(plan.total_noise, 1), (plan.noise, 26)]
    assert state.answers.dtype == np.int64
    assert state.cells.tolist() == list(range(26))


def test_the_number_of_people_is_taken_as_public_where_neighbours_replace():
    plan = RapPlan.of(DOMAIN, PAIRS, APPROX, neighbours="replace")
    sampler = CountingSampler()
    assert measured(plan, sampler).people == 5000
    assert [noise for noise, _ in sampler.asked] == [plan.noise]
    other = RapPlan.of(DOMAIN, PAIRS, APPROX)
    assert measured(other, ConstantSampler(7)).people == 5007


def test_later_rounds_choose_among_what_is_left_where_the_rows_are_farthest():
    """Almost without noise: the largest differences from the rows, in whole people, one after the other."""
    plan = RapPlan.of(DOMAIN, PAIRS, tb.ZCDP(10**6), rounds=3, per_round=4, relaxed_rows=20)
    exact = plan.queries.exact(Tally.from_table(TABLE, PAIRS.margins))
    state = measured(plan, ExactSampler(SeededEntropy(1)))
    rows = RelaxedRows(DOMAIN, state.logits).answers(plan.queries)
    apart = np.abs(exact - np.rint(rows * state.people))
    assert sorted(apart[state.cells].tolist()) == sorted(apart.tolist())[-4:]
    again = measured(plan, ExactSampler(SeededEntropy(2)), state)
    assert again.cells.size == 8 == len(set(again.cells.tolist()))
    assert np.abs(again.answers - exact[again.cells]).max() <= 2


@given(st.integers(0, 1000), st.data())
def test_one_person_moves_a_score_by_at_most_one(seed, data):
    """The difference from a whole synthetic count; what the choice's sensitivity rests on."""
    exact = np.random.default_rng(seed).integers(0, 50, 30)
    shares = np.random.default_rng(seed + 1).random(30)
    near = exact + np.array(data.draw(st.lists(st.integers(-1, 1), min_size=30, max_size=30)))
    synthetic = np.rint(shares * 50).astype(np.int64)
    assert np.abs(np.abs(exact - synthetic) - np.abs(near - synthetic)).max() <= 1


def test_one_round_is_the_projection_of_the_noisy_answers(jax):
    """RAP with T = 1, put together by hand from the same words."""
    made = rap(TABLE, PAIRS, APPROX, entropy=SeededEntropy(9), **SMALL)
    entropy = SeededEntropy(9)
    sampler = ExactSampler(entropy)
    queries = Queries.of(PAIRS)
    start = RelaxedRows.start(DOMAIN, 20, entropy)
    rho = approx_to_zcdp(APPROX).rho
    people = 5000 + int(sampler.draw(DiscreteGaussian(1 / (2 * rho / 20)), 1)[0])
    noise = DiscreteGaussian(3 / (2 * rho * Fraction(19, 20)))
    exact = queries.exact(Tally.from_table(TABLE, PAIRS.margins))
    noisy = exact + sampler.draw(noise, exact.size)
    fitted = project(queries, np.arange(exact.size), noisy / people, start, steps=10, entropy=entropy)
    assert made.codes.tolist() == fitted.whole(100, entropy).tolist()


def test_records_and_their_table_give_the_same_rows(jax):
    cells = np.repeat(np.arange(DOMAIN.size), TABLE.counts.ravel())
    codes = np.stack(np.unravel_index(cells, DOMAIN.shape), axis=1)
    import pandas as pd

    frame = pd.DataFrame(codes, columns=list(DOMAIN.attributes))
    with tb.Records.from_pandas(frame, DOMAIN) as records:
        one = rap(records, PAIRS, APPROX, entropy=SeededEntropy(9), **SMALL)
    other = rap(TABLE, PAIRS, APPROX, entropy=SeededEntropy(9), **SMALL)
    assert one.codes.tolist() == other.codes.tolist()


def test_rows_are_as_many_as_asked_for_or_as_people_are_counted(jax):
    few = {**SMALL, "rows": None}
    assert len(rap(TABLE, PAIRS, APPROX, neighbours="replace", **few)) == 5000
    assert len(rap(TABLE, PAIRS, APPROX, **{**SMALL, "rows": 7})) == 7


def test_structural_zeros_are_never_produced(jax):
    domain = tb.Domain(
        {"a": range(3), "b": range(2), "c": range(4)}, [{"a": 0, "b": 1}, {"a": 1, "c": [0, 1]}]
    )
    table = a_table(1, domain)
    made = rap(table, "[ab][bc]", APPROX, rounds=2, per_round=3, entropy=SeededEntropy(1), **SMALL)
    assert made.table("a", "b").counts[0, 1] == 0
    assert made.domain.attributes == ("a", "b", "c")


def test_rows_follow_the_records_where_there_is_little_noise(jax):
    made = rap(
        TABLE,
        PAIRS,
        tb.ZCDP(1000),
        neighbours="replace",
        relaxed_rows=100,
        steps=500,
        entropy=SeededEntropy(1),
    )
    for margin in PAIRS.margins:
        assert np.abs(made.table(*margin).counts - TABLE.project(*margin).counts).sum() / 5000 < 0.02


def test_progress_goes_on_over_the_rounds(jax):
    told = []
    rap(
        TABLE,
        PAIRS,
        APPROX,
        rounds=3,
        per_round=2,
        progress=lambda *step: told.append(step),
        relaxed_rows=5,
        steps=60,
        rows=10,
    )
    fitting = [(done, total) for what, done, total in told if what == "fitting relaxed rows"]
    assert fitting == [(50, 180), (60, 180), (110, 180), (120, 180), (170, 180), (180, 180)]


# Who pays.


@pytest.fixture
def account(tmp_path):
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        yield ledger.create_account("census", tb.ApproxDP(2, 1e-5), tb.Neighbours())


def test_the_account_pays_before_anything_is_drawn(jax, account):
    class Watching(CountingSampler):
        def draw(self, noise, size):
            assert len(account.entries()) == 1
            return super().draw(noise, size)

    rap(TABLE, PAIRS, APPROX, ledger=account, sampler=Watching(), **SMALL)
    (entry,) = account.entries()
    assert entry.cost == APPROX
    assert entry.purpose == "rap"


def test_an_account_that_cannot_pay_costs_nothing(jax, account):
    sampler = CountingSampler()
    with pytest.raises(BudgetExceeded):
        rap(TABLE, PAIRS, tb.ApproxDP(3, 1e-6), ledger=account, sampler=sampler, **SMALL)
    assert sampler.asked == []
    assert account.entries() == ()


def test_every_run_without_a_checkpoint_pays_even_if_seeded_alike(jax, account):
    for _ in range(2):
        rap(TABLE, PAIRS, APPROX, ledger=account, entropy=SeededEntropy(1), **SMALL)
    assert len(account.entries()) == 2


# Restarts.

ADAPTIVE = {"rounds": 3, "per_round": 2, **SMALL}


class Killed(Exception):
    """The process goes away at this point."""


def run(path, account, sampler, seed=1):
    return rap(
        TABLE,
        PAIRS,
        APPROX,
        ledger=account,
        checkpoint=path,
        sampler=sampler,
        entropy=SeededEntropy(seed),
        **ADAPTIVE,
    )


@pytest.mark.parametrize(
    ("when", "save"), [*(("before", n) for n in range(7)), *(("after", n) for n in range(1, 8))]
)
def test_a_run_killed_at_any_write_goes_on_without_measuring_or_paying_again(
    jax, account, tmp_path, monkeypatch, when, save
):
    """Seven states are written: the beginning, and after each of three rounds of measuring and projecting."""
    path = tmp_path / "run.npz"
    writes = []
    write = Checkpoint.save

    def killing(self, state):
        if len(writes) == save and when == "before":
            raise Killed
        write(self, state)
        writes.append(state)
        if len(writes) == save and when == "after":
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", killing)
    with pytest.raises(Killed):
        run(path, account, CountingSampler())
    monkeypatch.setattr(Checkpoint, "save", write)
    kept = Checkpoint(path).load(RapPlan.of(DOMAIN, PAIRS, APPROX, **without_rows()).digest)
    again = CountingSampler()
    made = run(path, account, again, seed=2)
    assert len(made) == 100
    assert len(account.entries()) == 1
    left = 3 - (kept.measured if kept else 0)
    answered = [size for noise, size in again.asked if isinstance(noise, DiscreteGaussian)]
    # The number of people stands with the first round.
    assert answered == ([1] if left == 3 else []) + [2] * left
    finished = Checkpoint(path).load(RapPlan.of(DOMAIN, PAIRS, APPROX, **without_rows()).digest)
    if kept:
        assert finished.cells[: kept.cells.size].tolist() == kept.cells.tolist()
        assert finished.answers[: kept.answers.size].tolist() == kept.answers.tolist()
    assert finished.cells.size == 6 == len(set(finished.cells.tolist()))


def without_rows():
    return {name: value for name, value in ADAPTIVE.items() if name != "rows"}


def test_a_run_killed_between_the_debit_and_the_first_draw_is_not_paid_for_twice(jax, account, tmp_path):
    class Dying:
        def draw(self, noise, size):
            raise Killed

    path = tmp_path / "run.npz"
    with pytest.raises(Killed):
        run(path, account, Dying())
    assert len(account.entries()) == 1
    run(path, account, CountingSampler())
    assert len(account.entries()) == 1


def test_a_finished_checkpoint_gives_more_rows_without_reading_or_spending(
    jax, account, tmp_path, monkeypatch
):
    path = tmp_path / "run.npz"
    run(path, account, CountingSampler())
    monkeypatch.setattr(Tally, "from_table", None)
    sampler = CountingSampler()
    more = rap(
        TABLE, PAIRS, APPROX, ledger=account, checkpoint=path, sampler=sampler, **{**ADAPTIVE, "rows": 3000}
    )
    assert len(more) == 3000
    assert sampler.asked == []
    assert len(account.entries()) == 1


def test_a_checkpoint_holds_nothing_but_noisy_answers(jax, tmp_path):
    path = tmp_path / "run.npz"
    run(path, None, CountingSampler())
    with np.load(path, allow_pickle=False) as held:
        assert set(held) == {"format", *Progressed.__dataclass_fields__}
        noisy = held["answers"]
        exact = Queries.of(PAIRS).exact(Tally.from_table(TABLE, PAIRS.margins))[held["cells"]]
    assert (noisy != exact).any()


def test_another_runs_checkpoint_is_refused(jax, tmp_path):
    path = tmp_path / "run.npz"
    run(path, None, CountingSampler())
    sampler = CountingSampler()
    with pytest.raises(UnusableCheckpoint, match="run with another request"):
        rap(TABLE, PAIRS, tb.ApproxDP(2, 1e-6), checkpoint=path, sampler=sampler, **ADAPTIVE)
    assert sampler.asked == []


@pytest.mark.parametrize("damage", [b"", b"no zip", None])
def test_a_damaged_checkpoint_is_refused_before_anything_is_measured(jax, tmp_path, damage):
    path = tmp_path / "run.npz"
    run(path, None, CountingSampler())
    path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    sampler = CountingSampler()
    with pytest.raises(UnusableCheckpoint, match="not a checkpoint of RAP, or it is damaged"):
        run(path, None, sampler)
    assert sampler.asked == []


def test_a_checkpoint_that_cannot_be_written_is_found_before_the_debit(jax, account, tmp_path):
    sampler = CountingSampler()
    with pytest.raises(ReleaseError, match="Nothing was measured"):
        run(tmp_path / "nowhere" / "run.npz", account, sampler)
    assert sampler.asked == []
    assert account.entries() == ()


def test_two_processes_do_not_go_on_from_one_checkpoint(jax, tmp_path):
    path = tmp_path / "run.npz"
    sampler = CountingSampler()
    with Checkpoint(path).alone(), pytest.raises(UnusableCheckpoint, match="another process uses"):
        run(path, None, sampler)
    assert sampler.asked == []


# What cannot be.


def refused(error, match, **asked):
    sampler = CountingSampler()
    given = {"work": PAIRS, "privacy": APPROX, "records": TABLE, **SMALL, **asked}
    with pytest.raises(error, match=match):
        rap(given.pop("records"), given.pop("work"), given.pop("privacy"), sampler=sampler, **given)
    assert sampler.asked == []


def test_more_choices_than_queries_are_refused():
    refused(InvalidArgument, "choose 30, but the margins have 26 cells", rounds=3, per_round=10)
    refused(InvalidArgument, "choose 27, but", rounds=1, per_round=27)
    refused(InvalidArgument, "choose 30, but", rounds=3)


def test_a_query_outside_the_domain_is_refused():
    refused(InvalidWorkload, "no attribute 'd'", work="[ad]")
    other = tb.Domain({"a": range(4), "b": range(2)})
    refused(InvalidWorkload, "of the records' domain", work=tb.Workload.k_way(other, 1))


def test_pure_privacy_is_refused_for_want_of_a_delta():
    refused(InvalidPrivacy, "Choose a δ", privacy=tb.PureDP(1))


def test_sensitive_attributes_are_refused():
    refused(InvalidPrivacy, "every attribute", neighbours=tb.Neighbours("replace", sensitive=("a",)))


@pytest.mark.parametrize("number", [0, -3, 2.5, True])
def test_relaxed_rows_and_steps_are_counted(number):
    refused(InvalidArgument, "relaxed_rows must be a whole number", relaxed_rows=number)
    refused(InvalidArgument, "steps must be a whole number", steps=number)


def test_more_rows_than_memory_are_refused_before_anything_is_measured():
    refused(TooManyCells, "relaxed rows take about", relaxed_rows=10**9)
    refused(TooManyCells, "Nothing was made", rows=10**12)


def test_an_unknown_accounting_is_refused():
    refused(InvalidArgument, "'tight' or 'printed'", accounting="loose")


def test_a_ledger_is_not_an_account(tmp_path):
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        refused(LedgerError, "name the account", ledger=ledger)


def test_other_data_than_records_are_refused():
    refused(InvalidArgument, "Records or a Table, not a list", records=[1, 2])


def test_weighted_records_are_refused(jax):
    import pyarrow

    data = pyarrow.table({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1"], "w": [1.0, 2.0]})
    with tb.Records.from_arrow(data, DOMAIN, weights=tb.Weights("w", 5, unit=1)) as records:
        refused(WeightedRecords, "survey weights", records=records)


def test_without_jax_nothing_is_measured(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    refused(MissingExtra, r"tabulary\[synth\]")


def test_the_digest_tells_plans_apart():
    plan = RapPlan.of(DOMAIN, PAIRS, APPROX)
    others = [
        replace(plan, **{name: value})
        for name, value in {"rounds": 2, "per_round": 2, "accounting": "printed", "steps": 3}.items()
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == 5
