import numpy as np
import pyarrow
import pytest

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import Weights
from tabulary.errors import (
    BudgetExceeded,
    DifferentDomains,
    InvalidArgument,
    InvalidTable,
    LedgerError,
    PublicError,
    WeightedRecords,
)
from tabulary.noise import ExactSampler
from tabulary.perturb.tables import Tables
from tabulary.workflows.perturbing import perturb
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

TABLE = tb.datasets.load("rochdale")
TABLES = Tables(TABLE.domain, "[AB][A][C]", epsilon=1)
SURVEY = tb.Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
PEOPLE = pyarrow.table(
    {
        "sex": ["F", "M", "F", "F"],
        "job": ["none", "paid", "paid", "none"],
        "w": [2.5, 4.0, 1.25, 9.0],
    }
)


@pytest.fixture
def account(tmp_path):
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as opened:
        yield opened.create_account("rochdale", tb.PureDP("3/2"), tb.Neighbours())


def test_a_list_is_paid_for_once(account):
    perturb(TABLE, TABLES, account, purpose="a test")
    (entry,) = account.entries()
    assert entry.cost == tb.PureDP(1)
    assert entry.plan_digest == TABLES.digest()


def test_without_enough_budget_nothing_is_counted_or_drawn(account, monkeypatch):
    perturb(TABLE, TABLES, account)
    monkeypatch.setattr(Tally, "from_table", pytest.fail)
    monkeypatch.setattr(Tables, "apply", pytest.fail)
    with pytest.raises(BudgetExceeded):
        perturb(TABLE, TABLES, account)
    assert len(account.entries()) == 1


def test_the_debit_comes_before_the_noise(account):
    spent = []

    class Crash:
        def draw(self, noise, size):
            spent.append(account.spent())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perturb(TABLE, TABLES, account, sampler=Crash())
    assert spent == [tb.PureDP(1)]
    assert account.spent() == tb.PureDP(1)


def test_a_list_with_a_bound_costs_its_delta_too(tmp_path):
    tables = Tables(TABLE.domain, "[AB][A]", epsilon=1, bound=20)
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as opened:
        account = opened.create_account("rochdale", tb.ApproxDP(2, "1/10"), tb.Neighbours())
        perturb(TABLE, tables, account)
        assert account.spent() == tables.privacy() == tb.ApproxDP(1, tables.privacy().delta)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"minimum": -1}, "0 or more, not -1"),
        ({"minimum": 0, "margins": "restored"}, "a minimum contradict each other"),
        ({"margins": "nice"}, "not 'nice'"),
    ],
)
def test_an_option_that_cannot_be_costs_nothing(account, options, reason):
    with pytest.raises(PublicError, match=reason):
        perturb(TABLE, TABLES, account, **options)
    assert account.spent() is None


def test_data_that_cannot_be_counted_cost_nothing(account):
    with pytest.raises(InvalidTable, match="a cell is not a whole number"):
        perturb(tb.Table(TABLE.domain, np.full(TABLE.shape, 0.5)), TABLES, account)
    with pytest.raises(DifferentDomains, match="different domains"):
        perturb(tb.datasets.load("fungus"), TABLES, account)
    assert account.spent() is None


def test_other_neighbours_than_the_account_promises_are_refused(account):
    with pytest.raises(LedgerError, match="'replace' but account 'rochdale' promises 'add-remove'"):
        perturb(TABLE, Tables(TABLE.domain, "[A]", epsilon=1, neighbours="replace"), account)


def test_only_records_tables_lists_and_accounts_will_do(account, tmp_path):
    for data in (None, np.zeros(3)):
        with pytest.raises(InvalidArgument, match="from Records or from a Table"):
            perturb(data, TABLES)
    with pytest.raises(InvalidArgument, match="not a Plan"):
        perturb(TABLE, tb.plan(TABLE.domain, "[A]", privacy=tb.PureDP(1)))
    with (
        tb.Ledger.create(tmp_path / "other.sqlite") as ledger,
        pytest.raises(LedgerError, match="name the account"),
    ):
        perturb(TABLE, TABLES, ledger)


def test_records_and_their_table_give_the_same():
    records = tb.Records.from_arrow(PEOPLE, SURVEY)
    table = tb.Table(SURVEY, [[2, 1], [0, 1]])
    tables = Tables(SURVEY, "[sex job][sex]", epsilon=1)
    made = [
        perturb(data, tables, margins="restored", sampler=ExactSampler(SeededEntropy(4)))
        for data in (records, table)
    ]
    assert (made[0]["sex", "job"].counts == made[1]["sex", "job"].counts).all()


WEIGHTS = Weights("w", 5, unit="1/4")


@pytest.mark.filterwarnings("ignore::tabulary.errors.WeightsClipped")
def test_weighted_records_are_published_in_their_unit():
    records = tb.Records.from_arrow(PEOPLE, SURVEY, weights=WEIGHTS)
    tables = Tables(SURVEY, "[sex job][sex]", epsilon=1, sensitivity=20, unit="1/4")
    bare = perturb(records, tables, sampler=ConstantSampler())
    # The weight 9 is clipped at 5.
    assert bare["sex", "job"].counts.tolist() == [[7.5, 1.25], [0, 4]]
    assert bare["sex"].counts.tolist() == [8.75, 4]
    assert bare["sex"].standard_errors == pytest.approx(np.full(2, 5 * 2 * 2**0.5), rel=0.01)


@pytest.mark.filterwarnings("ignore::tabulary.errors.WeightsClipped")
@pytest.mark.parametrize(
    ("weights", "options", "told"),
    [
        (WEIGHTS, {}, "sensitivity=20, unit='0.25'"),
        (WEIGHTS, {"sensitivity": 20}, "made for other weights"),
        (WEIGHTS, {"sensitivity": 5, "unit": "1/4"}, "made for other weights"),
        (None, {"sensitivity": 20, "unit": "1/4"}, "no weights"),
        (None, {"sensitivity": 1, "unit": 1}, "no weights"),
    ],
)
def test_noise_that_was_made_for_other_weights_is_refused(account, weights, options, told):
    records = tb.Records.from_arrow(PEOPLE, SURVEY, weights=weights)
    with pytest.raises(WeightedRecords, match=told):
        perturb(records, Tables(SURVEY, "[sex]", epsilon=1, **options), account)
    assert account.spent() is None
