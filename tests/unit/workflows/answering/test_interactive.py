"""Answers that are paid for one by one: a new question costs both accounts, an old one nobody, a refusal nothing."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.confidential.records import Records
from tabulary.confidential.tally_cache import TallyCache
from tabulary.confidential.weights import Weights
from tabulary.core.cache import Cache
from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.errors import (
    BudgetExceeded,
    DifferentDomains,
    LedgerError,
    LedgerMissing,
    PublicError,
    ServiceError,
    TableRefused,
    TooManyCells,
    UnreadableSource,
    WeightedRecords,
)
from tabulary.ledger import Ledger
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering import interactive
from tabulary.workflows.answering.answers import Answerer, ProtectionMethod
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tabulary.workflows.answering.questions import Question

SECRET = b"s" * 32
DOMAIN = Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
NEAR = Neighbours()
COST = ZCDP("1/8")
TABLES = [m for k in range(3) for m in combinations(DOMAIN.attributes, k)]


def people(rows=300, seed=1):
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 3, rows)
    codes = [generator.integers(0, 2, rows), age, generator.integers(0, 2, rows) * (age > 0)]
    return pa.table(
        {a: np.array(DOMAIN.levels_of(a))[c] for a, c in zip(DOMAIN.attributes, codes, strict=True)}
    )


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "ledger.sqlite") as created:
        open_accounts(created)
        yield created


def open_accounts(ledger, total="1", each="1/2"):
    ledger.create_account("census", ZCDP(total), NEAR)
    for asker in ("ada", "bob"):
        ledger.create_account(asker, ZCDP(each), NEAR)


def opened(ledger, *, table=None, allowed=None, account="census", **options):
    return InteractiveAnswers.open(
        Records.from_arrow(people() if table is None else table, DOMAIN),
        allowed or AllowedTables(DOMAIN, order=2),
        ledger=ledger,
        account=ledger.account(account),
        **{
            "cost": COST,
            "neighbours": "add-remove",
            "secret": SECRET,
            "dataset": "census",
            "version": "2026",
            **options,
        },
    )


def spent(ledger):
    return {account.name: len(account.entries()) for account in ledger.accounts()}


def counts(answer):
    return answer.table.counts.tolist()


def test_it_is_an_answerer_and_says_what_a_question_would_cost_without_asking(ledger, monkeypatch):
    answers: Answerer = opened(ledger)
    monkeypatch.setattr(TallyCache, "exact", None)
    assert (answers.method, answers.version, answers.domain) == (ProtectionMethod.interactive, "2026", DOMAIN)
    assert answers.allowed_tables == AllowedTables(DOMAIN, order=2)
    plan = answers.plan_of(("age", "sex"))
    assert plan.workload.margins == (("sex", "age"),)
    assert (plan.privacy, plan.neighbours, plan.mechanism) == (COST, NEAR, "margins")
    expected = answers.expected(("sex", "age"), 0.99)
    assert expected == plan.expected_error(0.99)["sex", "age"]
    assert expected.standard_error == pytest.approx(2)
    assert answers.price(("sex", "age")) == COST
    assert spent(ledger) == {"census": 0, "ada": 0, "bob": 0}
    assert "counts" not in repr(answers)


def test_a_new_question_is_paid_by_the_asker_and_the_dataset_and_an_old_one_by_nobody(database):
    with Ledger.create(database) as ledger:
        open_accounts(ledger)
        answers = opened(ledger)
        first = answers.answer(("sex", "age"), asker="ada")
        assert spent(ledger) == {"census": 1, "ada": 1, "bob": 0}
        assert ledger.account("census").remaining() == ZCDP("7/8")
        assert ledger.account("ada").remaining() == ZCDP("3/8")
        assert answers.price(("sex", "age")) is None
        for asker in ("ada", "bob", None, "census", "nobody"):
            assert counts(answers.answer(("age", "sex"), asker=asker)) == counts(first)
        answers.answer(("sex",), asker="bob")
        assert spent(ledger) == {"census": 2, "ada": 1, "bob": 1}
        for asker, entry in zip(("ada", "bob"), ledger.account("census").entries(), strict=True):
            (own,) = ledger.account(asker).entries()
            assert (own.cost, own.purpose, own.plan_digest) == (entry.cost, entry.purpose, entry.plan_digest)
        assert first.plan.digest() == ledger.account("census").entries()[0].plan_digest


def test_the_same_question_has_the_same_answer_after_a_restart_and_on_a_second_server(database):
    with Ledger.create(database) as ledger:
        open_accounts(ledger, total=4, each=4)
        first, second = opened(ledger), opened(ledger, cache=Cache(0))
        found = {margin: counts(first.answer(margin, asker="ada")) for margin in TABLES}
        assert {m: counts(second.answer(m)) for m in reversed(TABLES)} == found
        before = ledger.head()
    with Ledger.open(database) as ledger:
        restarted = opened(ledger)
        assert {m: counts(restarted.answer(m, asker="bob")) for m in TABLES} == found
        assert ledger.head() == before


@settings(max_examples=6)
@given(
    st.lists(
        st.tuples(st.sampled_from(TABLES), st.sampled_from(["ada", "bob", None]), st.integers(0, 1)),
        min_size=6,
        max_size=20,
    )
)
def test_whatever_is_asked_in_whatever_order_each_question_is_paid_for_once_and_answered_alike(
    tmp_path_factory, asked
):
    with Ledger.create(tmp_path_factory.mktemp("books") / "ledger.sqlite") as ledger:
        open_accounts(ledger, total="3/8", each="1/4")
        servers = [opened(ledger), opened(ledger)]
        seen, before = {}, spent(ledger)
        for margin, asker, server in asked:
            new = margin not in seen
            try:
                answer = counts(servers[server].answer(margin, asker=asker))
            except (BudgetExceeded, TableRefused):
                assert new
                assert spent(ledger) == before
                continue
            assert seen.setdefault(margin, answer) == answer
            after = spent(ledger)
            assert after["census"] == len(seen)
            assert sum(after.values()) == sum(before.values()) + 2 * new
            before = after
        assert len(seen) <= 3
        assert before["ada"] <= 2


def test_a_crash_between_debit_and_answer_costs_nothing_more_and_changes_nothing(ledger, monkeypatch):
    answers = opened(ledger)

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(interactive, "measure", crash)
        with pytest.raises(KeyboardInterrupt):
            answers.answer(("sex",), asker="ada")
    assert spent(ledger) == {"census": 1, "ada": 1, "bob": 0}
    restarted = opened(ledger)
    assert restarted.price(("sex",)) is None
    assert counts(restarted.answer(("sex",))) == counts(answers.answer(("sex",)))
    assert spent(ledger) == {"census": 1, "ada": 1, "bob": 0}


def test_no_noise_is_drawn_before_the_debit_is_written(ledger, monkeypatch):
    answers = opened(ledger)
    monkeypatch.setattr(interactive, "measure", None)

    def busy(*_, **__):
        raise LedgerError("the ledger is busy")

    monkeypatch.setattr(Ledger, "debit_together", busy)
    with pytest.raises(LedgerError, match="busy"):
        answers.answer(("sex",), asker="ada")
    assert answers.price(("sex",)) == COST


def test_a_source_that_breaks_costs_nothing(ledger, monkeypatch):
    answers = opened(ledger)

    def broken(*_):
        raise UnreadableSource("the file is gone")

    monkeypatch.setattr(TallyCache, "exact", broken)
    with pytest.raises(UnreadableSource, match="the file is gone"):
        answers.answer(("sex",), asker="ada")
    assert spent(ledger) == {"census": 0, "ada": 0, "bob": 0}


def test_of_many_who_ask_the_same_at_the_same_time_one_pays(database):
    with Ledger.create(database) as ledger:
        open_accounts(ledger, each=4)
        servers = [opened(ledger), opened(ledger)]

        def ask(i):
            return counts(servers[i % 2].answer(("sex", "age"), asker=("ada", "bob")[i // 2 % 2]))

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(16)))
        assert all(answer == found[0] for answer in found)
        paid = spent(ledger)
        assert (paid["census"], paid["ada"] + paid["bob"]) == (1, 1)


REFUSALS = [
    (("sex", "age", "job"), "ada", TableRefused, "at most 2 attributes"),
    (("sex", "job"), "ada", TableRefused, "'sex' and 'job' together"),
    (("age", "job"), "ada", TooManyCells, "the most is 5"),
    (("income",), "ada", PublicError, "income"),
    (("sex",), None, TableRefused, "nobody has asked for the table"),
    (("sex",), "census", TableRefused, "the dataset's own"),
    (("sex",), "zoe", LedgerMissing, "no account 'zoe'"),
    (("sex",), "poor", BudgetExceeded, "poor"),
]


@pytest.mark.parametrize(("margin", "asker", "error", "words"), REFUSALS)
def test_a_refusal_costs_nothing_and_reads_no_record(ledger, monkeypatch, margin, asker, error, words):
    ledger.create_account("poor", ZCDP("1/9"), NEAR)
    allowed = AllowedTables(DOMAIN, order=2, forbidden=[("sex", "job")], max_cells=5)
    answers = opened(ledger, allowed=allowed)
    monkeypatch.setattr(TallyCache, "exact", None)
    monkeypatch.setattr(Records, "tally", None)
    before = ledger.head()
    with pytest.raises(error, match=words) as refusal:
        answers.answer(margin, asker=asker)
    assert ledger.head() == before
    assert "ada" not in str(refusal.value)


def test_refusals_have_the_same_words_whatever_the_records_are(tmp_path):
    said = []
    for seed in (1, 2):
        with Ledger.create(tmp_path / f"{seed}.sqlite") as ledger:
            open_accounts(ledger, total="1/8", each="1/4")
            answers = opened(ledger, table=people(rows=100 * seed, seed=seed))
            answers.answer(("sex",), asker="ada")
            for margin, asker, reason in (
                (("sex", "age", "job"), "ada", "at most 2 attributes"),
                (("age",), None, "is paid for by whoever asks"),
                (("age",), "bob", "account 'census' has ρ = 0 left"),
            ):
                with pytest.raises(PublicError, match=reason) as refusal:
                    answers.answer(margin, asker=asker)
                said.append((margin, str(refusal.value)))
    assert said[:3] == said[3:]


def test_the_dataset_has_a_total_whoever_asks(ledger):
    ledger.create_account("small", ZCDP("1/4"), NEAR)
    answers = opened(ledger, account="small", dataset="small")
    answers.answer(("sex",), asker="ada")
    answers.answer(("age",), asker="bob")
    with pytest.raises(BudgetExceeded, match="small"):
        answers.answer(("job",), asker="ada")
    assert len(ledger.account("ada").entries()) == 1
    assert counts(answers.answer(("sex",), asker="bob"))


def test_impossible_cells_stay_zero_and_their_error_is_zero(ledger):
    table = opened(ledger).answer(("age", "job"), asker="ada").table
    impossible = DOMAIN.project(("age", "job")).impossible(("age", "job"))
    assert impossible.sum() == 1
    assert not table.counts[impossible].any()
    assert not table.standard_errors[impossible].any()
    assert (table.standard_errors[~impossible] > 0).all()


def test_an_answer_is_whole_numbers_with_the_errors_of_its_plan_and_linear_changes_nothing(ledger):
    answers = opened(ledger)
    answer = answers.answer(("sex", "age"), asker="ada")
    assert answer.table.counts.dtype == np.int64
    assert np.array_equal(answer.table.standard_errors, answer.plan.error_of(("sex", "age")).standard_errors)
    assert not answer.reconstructed
    assert counts(answers.answer(("sex", "age"), linear=True)) == counts(answer)


def test_a_filter_asks_for_the_larger_table_and_its_slices_are_paid_for_once(ledger):
    answers = opened(ledger)
    sums = np.zeros(3, dtype=np.int64)
    for sex in ("F", "M"):
        question = Question.of(DOMAIN, ["age"], {"sex": sex})
        whole = answers.answer(question.margin(DOMAIN), asker="ada").table
        cut = question.cut(whole)
        assert cut.counts.tolist() == whole.slice(sex=sex).counts.tolist()
        sums += cut.counts
    assert sums.tolist() == whole.counts.sum(axis=0).tolist()
    assert spent(ledger)["ada"] == 1


def noise(answers, margin, truth):
    return (answers.answer(margin, asker="ada").table.counts - truth).tolist()


def test_another_question_version_key_or_dataset_has_other_noise(tmp_path):
    """Thirty cells of the same true count: noise that is used twice would be seen."""
    wide = Domain({"a": range(30), "b": range(30)})
    table = pa.table({"a": [str(i) for i in range(30)], "b": [str(i) for i in range(30)]})
    seen = []
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        open_accounts(ledger, total=8, each=8)
        for named in (
            {},
            {"version": "2027"},
            {"version": "2028", "secret": b"t" * 32},
            {"dataset": "other"},
        ):
            answers = InteractiveAnswers.open(
                Records.from_arrow(table, wide),
                AllowedTables(wide, order=1),
                ledger=ledger,
                account=ledger.account("census"),
                cost=COST,
                neighbours=NEAR,
                **{"secret": SECRET, "dataset": "census", "version": "2026", **named},
            )
            seen += [noise(answers, margin, 1) for margin in (("a",), ("b",))]
    assert len({tuple(draws) for draws in seen}) == 8
    close = np.abs(np.corrcoef(np.array(seen, dtype=float))[np.triu_indices(8, 1)])
    assert close.max() < 0.75


def test_changed_records_are_refused_under_the_same_version_and_paid_for_under_a_new_one(ledger):
    opened(ledger).answer(("sex",), asker="ada")
    changed = people(rows=301)
    with pytest.raises(ServiceError, match="not those that version '2026' was opened with"):
        opened(ledger, table=changed)
    assert spent(ledger)["census"] == 1
    new = opened(ledger, table=changed, version="2027")
    assert new.price(("sex",)) == COST
    new.answer(("sex",), asker="ada")
    assert spent(ledger) == {"census": 2, "ada": 2, "bob": 0}


def test_another_price_for_the_same_version_is_refused_since_old_questions_would_have_a_second_answer(ledger):
    opened(ledger).answer(("sex",), asker="ada")
    for other in ({"cost": ZCDP("1/16")}, {"neighbours": Neighbours("add-remove", 2)}):
        with pytest.raises(ServiceError, match="at another price"):
            opened(ledger, **other)
    opened(ledger, cost=ZCDP("1/16"), version="2027")


def test_the_promise_is_that_of_the_whole_budget_for_every_answer(ledger):
    answers = opened(ledger)
    promise = answers.answer(("sex",), asker="ada").promise
    assert promise is answers.promise
    assert promise.statement == (
        "All answers together are ρ-zero-concentrated differentially private with ρ = 1."
    )
    assert "may depend on earlier answers" in promise.conditions[0]
    assert "key stays secret" in promise.conditions[-1]


def test_what_could_never_be_paid_or_planned_for_is_refused_when_it_is_opened(ledger):
    with pytest.raises(LedgerError, match="a budget of ρ = 1 cannot count"):
        opened(ledger, cost=ApproxDP(1, "1/1000"))
    ledger.create_account("replaced", ZCDP(1), Neighbours("replace"))
    with pytest.raises(LedgerError, match="replace"):
        opened(ledger, account="replaced")
    with pytest.raises(DifferentDomains, match="different domains"):
        opened(ledger, allowed=AllowedTables(Domain({"sex": ["F", "M"]}), order=1))
    weighted = people().append_column("w", pa.array([1.0] * 300))
    with pytest.raises(WeightedRecords, match="weights"):
        InteractiveAnswers.open(
            Records.from_arrow(weighted, DOMAIN, weights=Weights("w", 2, unit=1)),
            AllowedTables(DOMAIN, order=2),
            cost=COST,
            ledger=ledger,
            account=ledger.account("census"),
            neighbours=NEAR,
            secret=SECRET,
            dataset="census",
            version="1",
        )
    assert spent(ledger)["census"] == 0


def test_a_budget_that_is_spent_still_answers_old_questions_after_a_restart(ledger):
    ledger.create_account("small", PureDP("1/4"), NEAR)
    ledger.create_account("cy", PureDP("1/4"), NEAR)
    named = {"account": "small", "cost": PureDP("1/4"), "dataset": "small"}
    first = counts(opened(ledger, **named).answer(("sex",), asker="cy"))
    restarted = opened(ledger, **named)
    assert counts(restarted.answer(("sex",))) == first
    with pytest.raises(BudgetExceeded):
        restarted.answer(("age",), asker="cy")


def test_no_exact_count_is_in_an_answer_or_on_the_way_to_it(tmp_path):
    """Every cell holds the same exact count, which the noise is too wide to hit in more than a few."""
    wide = Domain({"a": range(200)})
    table = pa.table({"a": np.repeat([str(i) for i in range(200)], 97)})
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        open_accounts(ledger)
        answers = InteractiveAnswers.open(
            Records.from_arrow(table, wide), AllowedTables(wide, order=1), cost=ZCDP("1/5000"), ledger=ledger,
            account=ledger.account("census"), neighbours=NEAR, secret=SECRET, dataset="census", version="1",
        )  # fmt: skip
        answer = answers.answer(("a",), asker="ada")
    assert (answer.table.counts == 97).sum() < 15
    assert abs(answer.table.counts.mean() - 97) < 15


def test_a_closed_dataset_has_forgotten_its_records(ledger):
    answers = opened(ledger)
    answers.close()
    with pytest.raises(Exception, match="closed"):
        answers.answer(("sex",), asker="ada")
    assert spent(ledger)["census"] == 0
