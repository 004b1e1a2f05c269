"""Answers that were paid for once: one debit, one noise, and the same tables for ever."""

import gc
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np
import pyarrow as pa
import pytest

import tabulary as tb
from tabulary.confidential.records import Records
from tabulary.confidential.store import Store
from tabulary.confidential.tally_cache import TallyCache
from tabulary.confidential.weights import Weights
from tabulary.core.cache import Cache
from tabulary.errors import (
    BudgetExceeded,
    DifferentDomains,
    InvalidArgument,
    LedgerBusy,
    ServiceError,
    TableRefused,
    UnreadableSource,
    WeightedRecords,
)
from tabulary.ledger import Account, Ledger
from tabulary.mechanisms.on_demand import MeasuredOnDemand
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering import fixed
from tabulary.workflows.answering.answers import Answerer, ProtectionMethod
from tabulary.workflows.answering.fixed import FixedAnswers

SECRET = bytes(range(32))
DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["0", "1", "2"], "job": ["none", "paid"]})
ALLOWED = AllowedTables(DOMAIN, order=2)
EVERY = ALLOWED.margins
RHO = tb.ZCDP("1/8")


def people(rows=300, seed=1, domain=DOMAIN):
    generator = np.random.default_rng(seed)
    return pa.table({a: generator.choice(domain.levels_of(a), rows) for a in domain.attributes})


PEOPLE = people()


@pytest.fixture
def account(tmp_path):
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        yield ledger.create_account("census", tb.ZCDP("1/2"), tb.Neighbours())


def opened(account, table=PEOPLE, allowed=ALLOWED, **options):
    return FixedAnswers.open(
        Records.from_arrow(table, allowed.domain),
        allowed,
        **{
            "privacy": RHO,
            "neighbours": "add-remove",
            "account": account,
            "secret": SECRET,
            "dataset": "census",
            "version": "2026",
            "reconstruct": "none",
            **options,
        },
    )


def bits(answer):
    table = answer.table
    return table.counts.tobytes(), table.standard_errors.tobytes(), table.half_widths(0.95).tobytes()


def all_bits(answers, margins=EVERY, **options):
    return {margin: bits(answers.answer(margin, **options)) for margin in margins}


def spent(account):
    return [(entry.cost, entry.plan_digest) for entry in account.entries()]


# What it is.


def test_it_is_an_answerer_whose_tables_all_rest_on_one_plan_and_are_free(account):
    answers: Answerer = opened(account)
    assert (answers.method, answers.version, answers.domain, answers.allowed_tables) == (
        ProtectionMethod.fixed,
        "2026",
        DOMAIN,
        ALLOWED,
    )
    assert answers.promise.statement == (
        "All answers together are ρ-zero-concentrated differentially private with ρ = 0.125."
    )
    for margin in EVERY:
        answer = answers.answer(margin)
        assert answer.plan is answers.plan_of(margin)
        assert answer.promise is answers.promise
        assert not answer.reconstructed
        assert answers.price(margin) is None
        expected = answers.expected(margin, 0.9)
        assert expected.margin == margin
        assert answer.table.standard_errors == pytest.approx(expected.standard_error)
        assert answer.table.half_widths(0.9) == pytest.approx(expected.half_width)
    assert repr(answers) == "<FixedAnswers of 7 tables at ρ = 0.125>"


def test_the_attributes_of_a_table_may_be_named_in_any_order(account):
    answers = opened(account)
    assert answers.answer(("age", "sex")).table.margin == ("sex", "age")


def test_a_table_that_is_not_allowed_is_refused_by_everything_that_could_tell_of_it(account):
    answers = opened(account, allowed=AllowedTables(DOMAIN, order=2, forbidden=[["sex", "job"]]))
    for ask in (answers.answer, answers.expected, answers.price, answers.plan_of):
        for margin, reason in [(("sex", "job"), "together"), (("sex", "age", "job"), "at most 2 attributes")]:
            with pytest.raises(TableRefused, match=reason):
                ask(margin)


def test_closing_forgets_the_records(account):
    records = Records.from_arrow(PEOPLE, DOMAIN)
    answers = FixedAnswers.open(
        records,
        ALLOWED,
        privacy=RHO,
        neighbours="add-remove",
        account=account,
        secret=SECRET,
        dataset="census",
        version="2026",
    )
    answers.close()
    with pytest.raises(UnreadableSource, match="closed"):
        records.tally([["sex"]])


# What it costs.


def test_it_is_paid_for_once_however_often_it_is_opened(account):
    answers = [opened(account) for _ in range(3)]
    assert spent(account) == [(RHO, answers[0].plan.digest())]
    (entry,) = account.entries()
    assert entry.purpose.startswith("table builder: census 2026, records ")


def test_threads_that_open_it_together_pay_once(account):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: all_bits(opened(account)), range(4)))
    assert all(each == found[0] for each in found)
    assert len(account.entries()) == 1


def test_a_new_version_has_its_own_entry_and_its_own_noise_even_for_the_same_records(account):
    old, new = opened(account), opened(account, version="2027")
    assert len(account.entries()) == 2
    for margin in EVERY:
        assert not (old.answer(margin).table.counts == new.answer(margin).table.counts).any()


@pytest.mark.parametrize(
    "changed",
    [
        pa.concat_tables([PEOPLE, PEOPLE.slice(0, 1)]),
        PEOPLE.slice(1),
        pa.concat_tables([PEOPLE.slice(1), people(1, seed=2).set_column(1, "age", [["0"]])]),
    ],
    ids=["a record more", "a record less", "another record"],
)
def test_changed_records_are_refused_under_the_old_version_and_cost_a_new_one(account, changed):
    opened(account)
    before = spent(account)
    with pytest.raises(ServiceError, match="not those that version '2026' was opened with"):
        opened(account, changed)
    assert spent(account) == before
    opened(account, changed, version="2027")
    assert len(account.entries()) == 2


def test_the_same_records_in_another_order_are_the_same_records(account):
    known = all_bits(opened(account))
    shuffled = PEOPLE.take(np.random.default_rng(3).permutation(len(PEOPLE)))
    assert all_bits(opened(account, shuffled)) == known
    assert len(account.entries()) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"allowed": AllowedTables(DOMAIN, order=1)},
        {"privacy": tb.ZCDP("1/16")},
        {"neighbours": "replace"},
        {"reconstruct": "shrink"},
    ],
    ids=str,
)
def test_another_plan_is_refused_under_the_old_version_for_it_would_answer_differently(account, other):
    opened(account)
    with pytest.raises(ServiceError, match="opened with another plan"):
        opened(account, **other)
    assert len(account.entries()) == 1


def test_another_key_is_refused_under_the_old_version_and_has_another_noise_under_a_new_one(account):
    one = opened(account)
    with pytest.raises(ServiceError, match="opened with another key"):
        opened(account, secret=SECRET[::-1])
    assert len(account.entries()) == 1
    other = opened(account, secret=SECRET[::-1], version="2027")
    assert not (one.answer(("sex", "age")).table.counts == other.answer(("sex", "age")).table.counts).any()


def test_an_account_that_cannot_pay_is_refused_before_anything_is_counted(account, monkeypatch):
    monkeypatch.setattr(Records, "tally", lambda *_, **__: pytest.fail("counted"))
    with pytest.raises(BudgetExceeded):
        opened(account, privacy=tb.ZCDP(1))
    assert not account.entries()


def test_an_old_version_opens_although_nothing_is_left(account):
    known = all_bits(opened(account, privacy=tb.ZCDP("1/2")))
    assert account.remaining() is None
    assert all_bits(opened(account, privacy=tb.ZCDP("1/2"))) == known


def test_what_cannot_be_measured_costs_nothing(account):
    weighted = PEOPLE.append_column("w", pa.array(np.ones(len(PEOPLE))))
    records = Records.from_arrow(weighted, DOMAIN, weights=Weights("w", 2, unit=1))
    broken = Records.from_arrow(PEOPLE, DOMAIN)
    named = {"account": account, "secret": SECRET, "dataset": "census", "version": "2026"}
    with pytest.raises(WeightedRecords, match="weights"):
        FixedAnswers.open(records, ALLOWED, privacy=RHO, neighbours="add-remove", **named)
    other = AllowedTables(tb.Domain({"sex": ["F", "M"]}), order=1)
    with pytest.raises(DifferentDomains, match="different domains"):
        FixedAnswers.open(broken, other, privacy=RHO, neighbours="add-remove", **named)
    broken.close()
    with pytest.raises(UnreadableSource, match="these records were closed"):
        FixedAnswers.open(broken, ALLOWED, privacy=RHO, neighbours="add-remove", **named)
    assert not account.entries()


def test_records_are_counted_before_the_debit_and_noise_is_drawn_after_it(account, monkeypatch):
    order = []
    for owner, name in [(TallyCache, "prepare"), (Account, "debit"), (MeasuredOnDemand, "__init__")]:
        plain = getattr(owner, name)

        def noted(self, *given, plain=plain, name=name, **options):
            order.append(name)
            return plain(self, *given, **options)

        monkeypatch.setattr(owner, name, noted)
    opened(account)
    assert order == ["prepare", "debit", "__init__"]


def test_without_the_debit_no_noise_is_drawn(account, monkeypatch):
    def busy(*_, **__):
        raise LedgerBusy("another process kept the ledger locked")

    monkeypatch.setattr(Account, "debit", busy)
    monkeypatch.setattr(MeasuredOnDemand, "values", lambda *_: pytest.fail("drawn"))
    with pytest.raises(LedgerBusy):
        opened(account, reconstruct="shrink")


# The same for ever.


def test_a_second_server_gives_the_same_answers_in_any_order_and_with_any_memory(account):
    known = all_bits(opened(account))
    second = opened(account, cache=Cache(1000))
    assert all_bits(second, reversed(EVERY)) == known
    assert all_bits(second, EVERY) == known


def test_the_answers_do_not_depend_on_the_ledger(account, tmp_path):
    known = all_bits(opened(account))
    with Ledger.create(tmp_path / "other.sqlite") as ledger:
        other = ledger.create_account("other", tb.ZCDP(1), tb.Neighbours())
        assert all_bits(opened(other)) == known


IN_ANOTHER_PROCESS = """
import hashlib, sys
from pathlib import Path
from tests.unit.workflows.answering.test_fixed import all_bits, opened
from tabulary.ledger import Ledger
with Ledger.open(sys.argv[1]) as ledger:
    for way in ("none", "shrink"):
        answers = opened(ledger.account("census"), version=way, reconstruct=way)
        print(hashlib.sha256(repr(all_bits(answers)).encode()).hexdigest())
"""


def test_another_process_gives_the_same_answers_and_pays_nothing(account, tmp_path):
    ours = [all_bits(opened(account, version=way, reconstruct=way)) for way in ("none", "shrink")]
    before = spent(account)
    root = Path(__file__).parents[4]
    # Other hashes of text, so that nothing may depend on the order of a set.
    environment = os.environ | {"PYTHONHASHSEED": "4711", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path / "ledger.sqlite")],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env=environment,
    )
    assert done.stdout.split() == [hashlib.sha256(repr(each).encode()).hexdigest() for each in ours]
    assert spent(account) == before


# Reconstructed tables.


def test_reconstructed_tables_are_not_negative_and_agree_and_the_linear_ones_are_those_of_the_same_parts(
    account,
):
    few = people(40)
    answers = opened(account, few, reconstruct="shrink", about=40)
    tables = {margin: answers.answer(margin) for margin in EVERY}
    assert all(answer.reconstructed for answer in tables.values())
    assert all((answer.table.counts >= 0).all() for answer in tables.values())
    for margin, answer in tables.items():
        for attribute in margin:
            assert answer.table.table.project(attribute).counts == pytest.approx(
                tables[attribute,].table.counts, abs=1e-6
            )
    linear = {margin: answers.answer(margin, linear=True) for margin in EVERY}
    assert not any(answer.reconstructed for answer in linear.values())
    assert any((answer.table.counts < 0).any() for answer in linear.values())
    assert all(answer.table.covariance is not None for answer in linear.values())
    assert answers.plan.records == 40
    row = answers.expected(("sex", "age"), 0.5)
    assert row.half_width == pytest.approx(0.6745 * row.standard_error, rel=1e-3)


def test_reconstructed_tables_are_kept_and_loaded_the_same(account, tmp_path, monkeypatch):
    known = all_bits(opened(account, reconstruct="shrink"))
    assert all_bits(opened(account, reconstruct="shrink", artifacts=tmp_path / "kept")) == known
    monkeypatch.setattr(MeasuredOnDemand, "measurement", lambda *_: pytest.fail("made again"))
    assert all_bits(opened(account, reconstruct="shrink", artifacts=tmp_path / "kept")) == known
    assert len(account.entries()) == 1


def test_kept_tables_name_the_entry_that_paid_for_them(account, tmp_path):
    for _ in range(2):
        answers = opened(account, reconstruct="shrink", artifacts=tmp_path / "kept")
        (entry,) = account.entries()
        assert answers.release.receipt == account.receipt(entry)


def test_a_kept_plan_outlives_a_planner_that_has_changed(account, tmp_path, monkeypatch):
    known = all_bits(opened(account, artifacts=tmp_path / "kept"))
    plain = fixed.plan
    monkeypatch.setattr(
        fixed, "plan", lambda *given, **options: plain(*given, **options | {"objective": "max"})
    )
    assert all_bits(opened(account, artifacts=tmp_path / "kept")) == known
    with pytest.raises(ServiceError, match="opened with another plan"):
        opened(account)


def test_a_changed_plan_is_made_anew_and_nothing_is_paid_for_twice(account, tmp_path):
    known = all_bits(opened(account, artifacts=tmp_path))
    (place,) = tmp_path.glob("plan-*/plan.json")
    weaker = opened(account, version="2027", privacy=tb.ZCDP("1/4")).plan
    place.write_text(json.dumps(weaker.describe()))
    warnings = []
    assert all_bits(opened(account, artifacts=tmp_path, warn=warnings.append)) == known
    assert len(warnings) == 1
    assert len(account.entries()) == 2


def test_a_changed_plan_that_would_be_made_otherwise_today_is_refused_and_nothing_is_spent_or_kept(
    account, tmp_path, monkeypatch
):
    known = all_bits(opened(account, artifacts=tmp_path))
    (place,) = tmp_path.glob("plan-*/plan.json")
    sound = place.read_bytes()
    place.write_bytes(sound.replace(b"1", b"2"))
    plain = fixed.plan
    monkeypatch.setattr(
        fixed, "plan", lambda *given, **options: plain(*given, **options | {"objective": "max"})
    )
    for _ in range(2):
        with pytest.raises(ServiceError, match=r"does not fit its seal.*opened with another plan"):
            opened(account, artifacts=tmp_path)
    assert len(account.entries()) == 1
    # A copy of what was kept is all that is needed.
    place.write_bytes(sound)
    assert all_bits(opened(account, artifacts=tmp_path)) == known


def test_changed_tables_are_computed_again_from_the_noise_that_was_paid_for(account, tmp_path):
    known = all_bits(opened(account, reconstruct="shrink", artifacts=tmp_path))
    (table,) = tmp_path.glob("tables-*/release/tables/sex.csv")
    table.write_bytes(table.read_bytes().replace(b"1", b"2"))
    warnings = []
    assert all_bits(opened(account, reconstruct="shrink", artifacts=tmp_path, warn=warnings.append)) == known
    assert len(warnings) == 1
    assert len(account.entries()) == 1


def test_reconstruction_is_chosen_by_the_size_of_the_allowed_tables(account, monkeypatch):
    assert opened(account, reconstruct="auto").release is not None
    monkeypatch.setattr(fixed, "MOST_RECONSTRUCTED", sum(map(DOMAIN.cells, EVERY)) - 1)
    assert opened(account, version="2027", reconstruct="auto").release is None
    with pytest.raises(InvalidArgument, match="'none', 'shrink' or 'auto', not 'lp'"):
        opened(account, version="2028", reconstruct="lp")


@pytest.mark.parametrize("reconstruct", ["auto", "none"])
def test_impossible_cells_are_zero_in_every_table(account, reconstruct):
    children = [{"age": "0", "job": "paid"}]
    domain = tb.Domain({a: DOMAIN.levels_of(a) for a in DOMAIN.attributes}, children)
    allowed = AllowedTables(domain, order=2)
    possible = PEOPLE.filter(
        pa.compute.or_(pa.compute.not_equal(PEOPLE["age"], "0"), pa.compute.equal(PEOPLE["job"], "none"))
    )
    answers = opened(account, possible, allowed, reconstruct=reconstruct)
    for linear in (False, True):
        table = answers.answer(("age", "job"), linear=linear).table
        assert table["0", "paid"] == 0
        assert table.standard_errors[0, 1] == 0
        assert (table.standard_errors[1:] > 0).all()


# What it shows.


def _reachable(thing):
    """Everything that can be reached from an object, code and types left out."""
    seen, waiting = {}, [thing]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(
            found, ModuleType | type | FunctionType | BuiltinFunctionType | property
        ):
            continue
        seen[id(found)] = found
        waiting += gc.get_referents(found)
    return seen.values()


def _numbers(answers):
    """Every number that can be reached from all answers; nothing confidential may be among what is reached."""
    reached = []
    for margin in EVERY:
        for linear in (False, True):
            answer = answers.answer(margin, linear=linear)
            answer.table.half_widths(0.95)
            reached += _reachable(answer)
    assert not any(
        isinstance(each, Records | Store | TallyCache | MeasuredOnDemand | bytes) for each in reached
    )
    arrays = [each for each in reached if isinstance(each, np.ndarray) and each.dtype.kind in "if"]
    assert len(arrays) > 10
    numbers = {float(n) for array in arrays for n in array.reshape(-1)}
    return numbers | {float(each) for each in reached if isinstance(each, int | float) and abs(each) < 1e15}


@pytest.mark.parametrize("way", ["none", "shrink"])
def test_nothing_exact_and_no_key_can_be_reached_from_an_answer(account, way):
    table = pa.concat_tables([pa.table({"sex": ["F"], "age": ["1"], "job": ["paid"]})] * 31_337 + [PEOPLE])
    with Records.from_arrow(table, DOMAIN) as records:
        tally = records.tally(EVERY)
        exact = {int(count) for margin in EVERY for count in tally.exact(margin).reshape(-1) if count > 1000}
    # Noise may meet an exact count by chance, but not the same one under every key.
    found = [
        _numbers(opened(account, table, reconstruct=way, version=str(k), secret=bytes([k]) * 32))
        for k in range(1, 5)
    ]
    assert not set.intersection(exact, *found)
