"""What every way of spending on records promises where they cannot be counted: the ledger stays as it was.

An engine may fail late: a database goes away, an executor runs out of memory. Records are counted before the debit,
so that no budget is spent on counts that never came, and no entry has to explain one.
"""

from dataclasses import replace

import pytest

import tabulary as tb
from tabulary.confidential.records import Records
from tabulary.core.cache import Cache
from tabulary.errors import UnreadableSource
from tabulary.ledger import Ledger
from tabulary.perturb.tables import Tables
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.synth import graphical, mwem, rap
from tabulary.workflows import read_plan_file, release_to_folder
from tabulary.workflows.answering.fixed import FixedAnswers
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tabulary.workflows.perturbing import perturb
from tabulary.workflows.synthesizing import SynthesisMethod, synthesize

TABLE = tb.Table(tb.Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[40, 60], [30, 70]])
DOMAIN = TABLE.domain
PLAN = tb.plan(DOMAIN, "[sex job]", privacy=tb.PureDP(1))
PAID = tb.ZCDP("1/8")
SECRET = bytes(range(32))
LOST = "the database has gone away. Nothing was counted."


class LostEngine:
    """Counts as long as it is told to, and then loses its database in the middle of a count."""

    name, domain, weights, drops = "lost", DOMAIN, None, ()

    def __init__(self, counts=0):
        self.left = counts

    def count(self, margins, *, progress=None):
        if progress is not None:
            progress("counting", 50, 100)
        if not self.left:
            raise UnreadableSource(LOST)
        self.left -= 1
        return _counts(margins)

    def fingerprint(self, key):
        return "5" * 32

    def close(self):
        pass


class LostSource:
    """A source that opens, and cannot be counted."""

    def open(self, domain, codings):
        return Records(LostEngine())


PLAN_FILE = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.job]
levels = ["none", "paid"]
[privacy]
rho = "1/8"
[tables]
margins = "[sex job]"
[mechanism]
reconstruct = "shrink"
"""


def _folder(records, ledger, folder):
    release_to_folder(lambda: records, PLAN, folder / "out", ledger.account("census"))


def _synthesized(records, ledger, folder):
    (folder / "plan.toml").write_text(PLAN_FILE)
    planned = replace(read_plan_file(folder / "plan.toml"), source=LostSource())
    synthesize(planned, SynthesisMethod.release, ledger=ledger.account("census"))


def _fixed(records, ledger, folder):
    FixedAnswers.open(
        records, AllowedTables(DOMAIN, order=2), privacy=PAID, neighbours="add-remove",
        account=ledger.account("census"), secret=SECRET, dataset="census", version="1", reconstruct="none",
    )  # fmt: skip


def _interactive(records, ledger, folder):
    answers = InteractiveAnswers.open(
        records, AllowedTables(DOMAIN, order=2), cost=PAID, ledger=ledger, account=ledger.account("census"),
        neighbours="add-remove", secret=SECRET, dataset="census", version="1",
    )  # fmt: skip
    answers.answer(("sex",), asker="ann")


WAYS = {
    "release": lambda records, ledger, _: tb.release(records, PLAN, ledger.account("census")),
    "a folder": _folder,
    "perturb": lambda records, ledger, _: perturb(
        records, Tables(DOMAIN, "[sex job]", epsilon=1), ledger.account("census")
    ),
    "mwem": lambda records, ledger, _: mwem(records, "[sex job]", PAID, ledger=ledger.account("census")),
    "rap": lambda records, ledger, _: rap(records, "[sex job]", PAID, ledger=ledger.account("census")),
    "graphical": lambda records, ledger, _: graphical(
        records, "[sex job]", PAID, ledger=ledger.account("census")
    ),
    "rows of a release": _synthesized,
    "fixed answers": _fixed,
    "interactive answers": _interactive,
}


@pytest.fixture
def ledger(database):
    with Ledger.create(database) as made:
        for name in ("census", "ann"):
            made.create_account(name, tb.ZCDP(1), tb.Neighbours())
        yield made


@pytest.mark.parametrize("spend", WAYS.values(), ids=WAYS)
def test_a_count_that_fails_half_way_leaves_no_debit(spend, ledger, tmp_path):
    before = ledger.head()
    with Records(LostEngine()) as records, pytest.raises(UnreadableSource, match=LOST):
        spend(records, ledger, tmp_path)
    assert ledger.head() == before
    assert not any(account.entries() for account in ledger.accounts())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("spend", WAYS.values(), ids=WAYS)
def test_the_debit_comes_next_once_they_are_counted(spend, tmp_path, monkeypatch):
    """Without which the test above would pass for a way that never pays."""

    class Asked(Exception):
        pass

    def asked(*_, **__):
        raise Asked

    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        for name in ("census", "ann"):
            ledger.create_account(name, tb.ZCDP(1), tb.Neighbours())
        monkeypatch.setattr("tabulary.ledger.account.debit_together", asked)
        monkeypatch.setattr("tabulary.ledger.ledger.debit_together", asked)
        monkeypatch.setattr(LostEngine, "count", lambda self, margins, **_: _counts(margins))
        with Records(LostEngine()) as records, pytest.raises(Asked):
            spend(records, ledger, tmp_path)


def test_a_run_that_is_resumed_and_cannot_count_keeps_its_one_entry_and_goes_on_later(ledger, tmp_path):
    account = ledger.account("census")
    options = {
        **{"ledger": account, "purpose": "rows of 2026", "checkpoint": tmp_path / "run", "rows": 10},
        **{"rounds": 2, "per_round": 1, "steps": 2},
    }

    def interrupted(what, done, total):
        if what == "fitting relaxed rows":
            raise KeyboardInterrupt

    with Records(LostEngine(counts=1)) as records:
        with pytest.raises(KeyboardInterrupt):
            rap(records, "[sex job]", PAID, progress=interrupted, **options)
        (entry,) = account.entries()
        assert entry.purpose == "rows of 2026"
        with pytest.raises(UnreadableSource, match=LOST):
            rap(records, "[sex job]", PAID, **options)
    assert account.entries() == (entry,)
    with Records(LostEngine(counts=9)) as records:
        assert len(rap(records, "[sex job]", PAID, **options)) == 10
    assert account.entries() == (entry,)


def test_an_interactive_question_whose_recount_fails_is_answered_later_without_a_second_debit(ledger):
    def opened(records):
        return InteractiveAnswers.open(
            records, AllowedTables(DOMAIN, order=2), cost=PAID, ledger=ledger, account=ledger.account("census"),
            neighbours="add-remove", secret=SECRET, dataset="census", version="1", cache=Cache(0),
        )  # fmt: skip

    with Records(LostEngine(counts=1)) as records, pytest.raises(UnreadableSource, match=LOST):
        # The first count is asked for, paid for, and not kept; the second, for the noise, fails.
        opened(records).answer(("sex",), asker="ann")
    (entry,) = ledger.account("census").entries()
    with Records(LostEngine(counts=9)) as records:
        assert opened(records).answer(("sex",)).table.counts.shape == (2,)
    assert ledger.account("census").entries() == (entry,)


def _counts(margins):
    return {margin: TABLE.project(margin).counts for margin in margins}
