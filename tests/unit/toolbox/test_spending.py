import pytest

import tabulary as tb
from tabulary.errors import BudgetExceeded, InvalidPrivacy, LedgerError, TabularyError
from tabulary.toolbox import (
    Bounds,
    RandomizedResponse,
    count,
    exponential_mechanism,
    laplace,
    mean,
    quantile,
    report_noisy_max,
    standard_deviation,
    total,
)
from tests.unit.toolbox.samplers import Untouchable

BOUNDS = Bounds(0, 9)
EPSILON = tb.PureDP("1/2")
COIN = RandomizedResponse("ab", epsilon="1/2")

# Each tool that reads data: how it is called, data that it takes and data that it refuses.
TOOLS = {
    "laplace": (lambda x, **o: laplace(x, sensitivity=1, privacy=EPSILON, **o), 3, float("nan")),
    "count": (lambda x, **o: count(x, privacy=EPSILON, **o), [True, False], ["yes"]),
    "total": (lambda x, **o: total(x, BOUNDS, privacy=EPSILON, **o), [1, 2], [11]),
    "mean": (lambda x, **o: mean(x, BOUNDS, privacy=EPSILON, **o), [1, 2], [11]),
    "deviation": (lambda x, **o: standard_deviation(x, BOUNDS, privacy=EPSILON, **o), [1, 2], [11]),
    "quantile": (lambda x, **o: quantile(x, "1/2", BOUNDS, privacy=EPSILON, **o), [1, 2], [11]),
    "exponential": (
        lambda x, **o: exponential_mechanism("ab", x, sensitivity=1, privacy=EPSILON, **o),
        [1, 2],
        [1.5, 2],
    ),
    "noisy max": (
        lambda x, **o: report_noisy_max("ab", x, sensitivity=1, privacy=EPSILON, **o),
        [1, 2],
        [1.5, 2],
    ),
    "response": (
        lambda x, **o: COIN.respond(x, **{k: v for k, v in o.items() if k != "neighbours"}),
        ["a"],
        ["c"],
    ),
}
every_tool = pytest.mark.parametrize(("use", "good", "bad"), TOOLS.values(), ids=TOOLS.keys())


class Crash(Exception):
    """The machine goes down while noise is drawn."""


class Crashing:
    def draw(self, noise, size):
        raise Crash


@pytest.fixture
def account(tmp_path):
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        yield ledger.create_account("census", tb.PureDP("3/4"), tb.Neighbours("replace"))


@every_tool
def test_a_use_is_paid_for_once(use, good, bad, account):
    use(good, ledger=account, neighbours="replace", purpose="a first look")
    assert account.spent() == EPSILON
    (entry,) = account.entries()
    assert entry.purpose == "a first look"


@every_tool
def test_what_an_account_cannot_pay_is_refused_before_the_data_are_read(use, good, bad, account):
    use(good, ledger=account, neighbours="replace")
    with pytest.raises(BudgetExceeded):
        use(Untouchable(), ledger=account, neighbours="replace")
    assert account.spent() == EPSILON


WHY = {
    "laplace": "not a finite number",
    "count": "a column of truth values",
    **dict.fromkeys(("total", "mean", "deviation", "quantile"), "outside its bounds 0 to 9"),
    **dict.fromkeys(("exponential", "noisy max"), "at least one is neither"),
    "response": "not among the answers",
}


@pytest.mark.parametrize(
    ("use", "bad", "reason"),
    [(use, bad, WHY[name]) for name, (use, _, bad) in TOOLS.items()],
    ids=TOOLS.keys(),
)
def test_data_that_are_refused_cost_nothing(use, bad, reason, account):
    with pytest.raises(TabularyError, match=reason):
        use(bad, ledger=account, neighbours="replace")
    assert account.spent() is None


@every_tool
def test_a_crash_while_noise_is_drawn_loses_budget_and_never_privacy(use, good, bad, account):
    with pytest.raises(Crash):
        use(good, ledger=account, neighbours="replace", sampler=Crashing())
    assert account.spent() == EPSILON


def test_the_debit_has_another_name_for_another_measurement(account):
    for bounds in (Bounds(0, 9), Bounds(0, 8)):
        total([1, 2], bounds, privacy=tb.PureDP("1/10"), neighbours="replace", ledger=account)
    first, second = account.entries()
    assert first.plan_digest != second.plan_digest
    assert first.purpose == "total"


def test_an_account_of_another_relation_does_not_pay(account):
    with pytest.raises(LedgerError, match="neighbours"):
        count([True], privacy=EPSILON, ledger=account)


def test_a_ledger_without_an_account_is_refused(tmp_path):
    with (
        tb.Ledger.create(tmp_path / "ledger.sqlite") as ledger,
        pytest.raises(LedgerError, match="name the account"),
    ):
        count([True], privacy=EPSILON, ledger=ledger)


def test_attributes_that_alone_are_protected_are_refused():
    with pytest.raises(InvalidPrivacy, match="protect all of them"):
        count([True], privacy=EPSILON, neighbours=tb.Neighbours("replace", sensitive=("diagnosis",)))
