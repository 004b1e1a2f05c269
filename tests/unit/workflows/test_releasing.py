import sys

import numpy as np
import pyarrow as pa
import pytest

import tabulary as tb
from tabulary.confidential.weights import Weights
from tabulary.core.labels import Labels
from tabulary.errors import (
    BudgetExceeded,
    DifferentDomains,
    InvalidArgument,
    InvalidTable,
    LedgerError,
    MissingExtra,
    NotCertified,
    ReleaseExists,
    WeightedRecords,
)
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning import Measurement
from tabulary.reconstruct.reconstruction import OfficialTables
from tabulary.workflows import release_to_folder

TABLE = tb.datasets.load("rochdale")
PLAN = tb.plan(TABLE.domain, "[AB][C]", privacy=tb.PureDP(1))


@pytest.fixture
def ledger(tmp_path):
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as opened:
        opened.create_account("rochdale", tb.PureDP("3/2"), tb.Neighbours())
        yield opened


def test_a_release_is_paid_for_once(ledger):
    account = ledger.account("rochdale")
    tb.release(TABLE, PLAN, ledger=account, purpose="a test")
    (entry,) = account.entries()
    assert entry.cost == tb.PureDP(1)
    assert entry.plan_digest == PLAN.digest()


def test_without_enough_budget_nothing_is_measured(ledger, monkeypatch):
    account = ledger.account("rochdale")
    tb.release(TABLE, PLAN, ledger=account)
    monkeypatch.setattr("tabulary.workflows.releasing.measure", pytest.fail)
    with pytest.raises(BudgetExceeded):
        tb.release(TABLE, PLAN, ledger=account)
    assert len(account.entries()) == 1


def test_the_debit_comes_before_the_measurement(ledger, monkeypatch):
    account = ledger.account("rochdale")
    spent = []

    def crash(*_):
        spent.append(account.spent())
        raise KeyboardInterrupt

    monkeypatch.setattr("tabulary.workflows.releasing.measure", crash)
    with pytest.raises(KeyboardInterrupt):
        tb.release(TABLE, PLAN, ledger=account)
    assert spent == [tb.PureDP(1)]
    assert account.spent() == tb.PureDP(1)


def test_data_that_cannot_be_counted_cost_nothing(ledger):
    account = ledger.account("rochdale")
    with pytest.raises(InvalidTable, match="a cell is not a whole number"):
        tb.release(tb.Table(TABLE.domain, np.full(TABLE.shape, 0.5)), PLAN, ledger=account)
    with pytest.raises(InvalidTable, match="a cell is negative"):
        tb.release(tb.Table(TABLE.domain, np.full(TABLE.shape, -1)), PLAN, ledger=account)
    assert account.spent() is None


def test_weighted_records_are_not_released_by_a_plan_and_cost_nothing(ledger, monkeypatch):
    account = ledger.account("rochdale")
    monkeypatch.setattr("tabulary.workflows.releasing.measure", pytest.fail)
    rows = {attribute: [levels[0]] for attribute, levels in zip("ABCDEFGH", TABLE.domain.levels, strict=True)}
    survey = pa.table({**rows, "w": [2.5]})
    with (
        tb.Records.from_arrow(survey, TABLE.domain, weights=Weights("w", 5, unit="1/2")) as records,
        pytest.raises(WeightedRecords, match=r"survey weights.* tb\.perturb\.Tables"),
    ):
        tb.release(records, PLAN, ledger=account)
    assert account.spent() is None


def test_an_output_that_is_taken_is_found_before_the_data_are_opened(ledger, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ReleaseExists, match="already exists, and a release is never overwritten"):
        release_to_folder(pytest.fail, PLAN, tmp_path / "out", ledger.account("rochdale"))
    assert ledger.account("rochdale").spent() is None


@pytest.mark.parametrize(
    ("formats", "package", "error", "reason"),
    [
        (["pdf"], None, InvalidArgument, "no format 'pdf'"),
        (["xlsx"], "xlsxwriter", MissingExtra, "Excel needs xlsxwriter"),
        (["sdmx-csv"], "pysdmx", MissingExtra, "SDMX-CSV 2.0 needs pandas and pysdmx"),
    ],
)
def test_a_format_that_cannot_be_written_is_found_before_anything_is_opened_or_spent(
    ledger, tmp_path, monkeypatch, formats, package, error, reason
):
    if package:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(error, match=reason):
        release_to_folder(pytest.fail, PLAN, tmp_path / "out", ledger.account("rochdale"), formats=formats)
    assert ledger.account("rochdale").spent() is None
    assert not (tmp_path / "out").exists()


def test_the_saved_release_is_the_returned_one(tmp_path):
    made = release_to_folder(lambda: TABLE, PLAN, tmp_path / "out", labels=Labels(title="Rochdale"))
    loaded = tb.Release.load(tmp_path / "out")
    assert made.digest == loaded.digest
    assert loaded.title == "Rochdale"
    assert (made["A", "B"].counts == loaded["A", "B"].counts).all()


def test_two_releases_of_one_plan_differ(tmp_path):
    plan = tb.plan(TABLE.domain, "[ABCDEFGH]", privacy=tb.PureDP("1/10"))
    first, second = (tb.release(TABLE, plan)[TABLE.domain.attributes].counts for _ in range(2))
    assert (first != second).any()


@pytest.mark.parametrize("data", [None, 3, np.zeros(3)])
def test_only_records_and_tables_can_be_released(data):
    with pytest.raises(InvalidArgument, match="from Records or from a Table"):
        tb.release(data, PLAN)


def test_data_of_another_domain_are_refused():
    with pytest.raises(DifferentDomains, match="different domains"):
        tb.release(tb.datasets.load("fungus"), PLAN)


def test_what_is_not_a_plan_or_an_account_is_refused(ledger):
    with pytest.raises(InvalidArgument, match=r"needs a plan from tb\.plan, not a str"):
        tb.release(TABLE, "[AB]")
    with pytest.raises(LedgerError, match="name the account"):
        tb.release(TABLE, PLAN, ledger=ledger)


@pytest.fixture
def doubt(monkeypatch):
    """No table but the unbiased ones can be made."""

    def refuse(*_, **options):
        raise NotCertified("not certified.")

    monkeypatch.setattr(tb.Release, "rebuild", refuse)


def test_a_measurement_that_cannot_be_reconstructed_is_kept_for_whoever_paid_for_it(ledger, doubt):
    with pytest.raises(NotCertified, match="not certified") as caught:
        tb.release(TABLE, PLAN, ledger=ledger.account("rochdale"))
    assert isinstance(caught.value.measurement, Measurement)
    assert "spent" in caught.value.__notes__[0]
    assert ledger.account("rochdale").spent() == tb.PureDP(1)


def test_a_folder_whose_tables_cannot_be_made_keeps_the_measurements_and_their_estimates(
    doubt, tmp_path, monkeypatch
):
    folder = tmp_path / "out"
    with pytest.raises(NotCertified, match="not certified") as caught:
        release_to_folder(lambda: TABLE, PLAN, folder)
    assert f"saved in {folder}" in caught.value.__notes__[0]
    monkeypatch.undo()
    kept = tb.Release.load(folder)
    assert kept.face.face.linear
    assert kept.verify().remade
    assert kept.rebuild(reconstruct=PLAN.reconstruct, rounding=PLAN.rounding)["A", "B"].counts.min() >= 0


def test_a_folder_whose_errors_cannot_be_computed_keeps_the_measurements(tmp_path, monkeypatch):
    def refuse(_):
        raise NotCertified("not certified.")

    monkeypatch.setattr(OfficialTables, "curves", property(refuse))
    with pytest.raises(NotCertified, match="not certified"):
        release_to_folder(lambda: TABLE, PLAN, tmp_path / "out")
    monkeypatch.undo()
    kept = tb.Release.load(tmp_path / "out")
    assert kept.face.face.linear
    assert kept.rebuild()["A", "B"].counts.min() >= 0


def test_making_tables_and_their_errors_reports_its_progress(tmp_path):
    heard = []
    release_to_folder(
        lambda: TABLE,
        PLAN,
        tmp_path / "out",
        progress=lambda what, done, total: heard.append((what, done, total)),
    )
    assert ("making the tables", 0, 0) in heard
    errors = [(done, total) for what, done, total in heard if what == "computing the errors"]
    assert [done for done, _ in errors] == list(range(errors[0][1]))
    again = []
    tb.Release.load(tmp_path / "out").verify(progress=lambda what, done, total: again.append(what))
    assert set(again) == {"making the tables", "computing the errors"}


def test_a_release_of_records_names_the_engine_that_counted_them_and_one_of_a_table_names_none(tmp_path):
    people = pa.table(
        {attribute: [TABLE.domain.levels_of(attribute)[0]] for attribute in TABLE.domain.attributes}
    )
    made = release_to_folder(lambda: tb.Records.from_arrow(people, TABLE.domain), PLAN, tmp_path / "out")
    assert made.engine == tb.Release.load(tmp_path / "out").engine == "compiled"
    assert tb.release(TABLE, PLAN).engine is None


@pytest.mark.parametrize("options", [{}, {"reconstruct": "shrink", "rounding": "controlled"}])
def test_the_same_words_of_entropy_make_the_same_release_and_others_another(options):
    plan = tb.plan(TABLE.domain, "[AB][AC][BC]", privacy=tb.PureDP(1), **options)
    one, again, other = (
        tb.release(TABLE, plan, entropy=KeyedEntropy(bytes(32), context)) for context in ("a", "a", "b")
    )
    for table, same in zip(one, again, strict=True):
        assert (table.counts == same.counts).all()
        assert (table.standard_errors == same.standard_errors).all()
    assert any((table.counts != changed.counts).any() for table, changed in zip(one, other, strict=True))
