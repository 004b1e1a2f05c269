"""Answers by cell keys: the same for ever, labelled as not differentially private, refused by stated rules."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.cellkey import CellKeyTable, KeyedRecords, PTable, RecordKeys, perturb, record_keys
from tabulary.cellkey.promise import PROMISE
from tabulary.cellkey.sparsity import Sparsity
from tabulary.core.cache import ENTRY_BYTES, Cache
from tabulary.core.domain import Domain
from tabulary.errors import (
    DifferentDomains,
    InvalidArgument,
    InvalidNoise,
    PublicError,
    TableRefused,
    TooManyCells,
)
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering.answers import Answerer, ProtectionMethod
from tabulary.workflows.answering.cell_key import CellKeyAnswers
from tabulary.workflows.answering.questions import Question
from tests.entropy import SeededEntropy
from tests.unit.cellkey.ptables import wide_ptable

MODULUS = 256
SECRET = b"s" * 32
DOMAIN = Domain({"sex": ["F", "M"], "age": ["0", "1", "2"], "region": ["N", "S"]})
PTABLE = wide_ptable(MODULUS, 0)


def people(rows=400, seed=1, domain=DOMAIN):
    generator = np.random.default_rng(seed)
    columns = {
        a: [domain.levels_of(a)[c] for c in generator.integers(0, len(domain.levels_of(a)), rows)]
        for a in domain.attributes
    }
    return pa.table(columns | {"record_key": record_keys(rows, MODULUS, SeededEntropy(seed))})


def read(table=None, domain=DOMAIN):
    return KeyedRecords.from_frame(
        people() if table is None else table, domain, keys=RecordKeys(modulus=MODULUS)
    )


def opened(records=None, ptable=PTABLE, *, allowed=None, dataset="people", version="1", **options):
    return CellKeyAnswers.open(
        read() if records is None else records,
        allowed or AllowedTables(DOMAIN, order=2),
        ptable,
        dataset=dataset,
        version=version,
        **{"secret": SECRET, **options},
    )


def counts(answers, *margin):
    return answers.answer(margin).table.counts.tolist()


def test_it_is_an_answerer_without_a_plan_an_expected_error_or_a_price():
    answers: Answerer = opened(version="2026")
    assert (answers.method, answers.version, answers.domain) == (ProtectionMethod.cell_key, "2026", DOMAIN)
    assert answers.allowed_tables == AllowedTables(DOMAIN, order=2)
    assert answers.plan_of(("sex",)) is answers.expected(("sex",)) is answers.price(("sex",)) is None
    answer = answers.answer(("sex",))
    assert isinstance(answer.table, CellKeyTable)
    assert answer.plan is None
    assert not answer.reconstructed


def test_every_answer_says_that_it_is_not_differentially_private():
    answers = opened()
    for promise in (answers.promise, answers.answer(("sex", "age")).promise):
        assert promise is PROMISE
        assert "NOT differentially private" in promise.statement
    assert "not differentially private" in repr(answers)


def test_the_same_question_has_the_same_answer_in_whatever_order_after_a_restart_and_without_a_cache():
    tables = [m for k in range(3) for m in combinations(DOMAIN.attributes, k)]
    first, again, forgetful = opened(), opened(), opened(cache=Cache(0))
    found = {m: counts(first, *m) for m in tables}
    for answers in (first, again, forgetful):
        for margin in reversed(tables):
            assert counts(answers, *margin) == found[margin]
            # A margin is named in any order; the answer comes in the domain's.
            assert counts(answers, *reversed(margin)) == found[margin]
            assert (
                counts(answers, *margin)
                == answers.answer(margin, asker="ada", linear=True).table.counts.tolist()
            )


def test_an_answer_is_what_perturb_publishes():
    records = read()
    answers = opened(records, ptable=wide_ptable(MODULUS, 1), minimum=5)
    published, _ = perturb(records, ["sex", "age"], wide_ptable(MODULUS, 1), minimum=5)
    answer = answers.answer(("sex", "age")).table
    assert answer.counts.tolist() == published.counts.tolist()
    assert answer.describe() == published.describe()


def test_a_filter_is_a_slice_of_the_larger_table():
    answers = opened(minimum=40)
    question = Question.of(DOMAIN, ["age"], {"sex": "M"}, {"age": ["0", "2"]})
    whole = answers.answer(question.margin(DOMAIN)).table
    cut = question.cut(whole)
    assert cut.margin == ("age",)
    assert cut.domain.levels_of("age") == ("0", "2")
    assert cut.counts.tolist() == [whole["M", "0"], whole["M", "2"]]
    assert (cut.minimum, cut.ptable) == (whole.minimum, whole.ptable)


@pytest.mark.parametrize("asked", ["answer", "plan_of", "expected", "price"])
def test_tables_that_are_not_allowed_are_refused_before_anything_is_counted(monkeypatch, asked):
    answers = opened(allowed=AllowedTables(DOMAIN, order=2, forbidden=[("sex", "region")], max_cells=5))
    monkeypatch.setattr(KeyedRecords, "sums", None)
    ask = getattr(answers, asked)
    with pytest.raises(TableRefused, match="at most 2 attributes"):
        ask(("sex", "age", "region"))
    with pytest.raises(TableRefused, match="'sex' and 'region' together"):
        ask(("region", "sex"))
    with pytest.raises(TooManyCells, match="6 cells, filters included, and the most is 5"):
        ask(("sex", "age"))
    with pytest.raises(PublicError, match="no attribute 'income'"):
        ask(("income",))


def test_a_margin_is_counted_once_while_there_is_room(monkeypatch):
    calls = []
    sums = KeyedRecords.sums
    monkeypatch.setattr(KeyedRecords, "sums", lambda self, m, **k: calls.append(m) or sums(self, m, **k))
    answers = opened(cache=Cache(8 * 6 + ENTRY_BYTES))
    for _ in range(3):
        answers.answer(("sex", "age"))
    assert calls == [(), ("sex", "age")]
    answers.answer(("sex",))
    answers.answer(("sex", "age"))
    assert calls == [(), ("sex", "age"), ("sex",), ("sex", "age")]


def test_what_could_not_answer_every_table_is_refused_when_it_is_opened():
    records = read()
    with pytest.raises(InvalidArgument, match="must not depend on an exact count"):
        opened(records, PTable.from_array(np.zeros((9, MODULUS), dtype=int)))
    with pytest.raises(InvalidArgument, match="secret"):
        opened(records, secret=None)
    with pytest.raises(InvalidNoise, match="at least 32 bytes"):
        opened(records, secret=b"short")
    with pytest.raises(InvalidArgument, match="256 keys and the ptable has 16"):
        opened(records, wide_ptable(16, 1))
    with pytest.raises(InvalidArgument, match="smallest published count"):
        opened(records, minimum=-1)
    with pytest.raises(DifferentDomains, match="different domains"):
        opened(records, allowed=AllowedTables(Domain({"sex": ["F", "M"]}), order=1))
    opened(records, wide_ptable(MODULUS, 1), secret=None)


def test_empty_cells_keep_their_perturbation_from_version_to_version_but_not_in_another_dataset():
    """The people of most cells stay the same from one version to the next: nobody must too."""
    crowded = Domain({"place": [str(i) for i in range(300)]})
    few = pa.table({"place": ["0"], "record_key": [7]})
    allowed = AllowedTables(crowded, order=1)

    def zeros(**named):
        return counts(opened(read(few, crowded), allowed=allowed, **named), "place")[1:]

    assert any(zeros())
    assert zeros(version="1") == zeros(version="2")
    assert zeros(dataset="people") != zeros(dataset="others")
    assert zeros() != zeros(secret=b"t" * 32)


def test_a_closed_dataset_has_forgotten_its_records():
    answers = opened()
    answers.answer(("sex",))
    answers.close()
    with pytest.raises(Exception, match="closed"):
        answers.answer(("sex",))


def a_table(cells):
    return CellKeyTable(Domain({"a": [str(i) for i in range(len(cells))]}), np.ma.MaskedArray(cells), {})


def is_refused_by_superstar(cells, a, b):
    """The rule as SuperSTAR's documentation states it, word by word."""
    c, c0, c1, c2 = len(cells), cells.count(0), cells.count(1), cells.count(2)
    return c - c0 == 0 or c1 / (c - c0) > a or (c1 + c2) / (c - c0) > b


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=16), st.sampled_from([(0.25, 0.5), (0.5, 0.75), (0, 1)])
)
def test_the_sparsity_rule_is_superstars(cells, thresholds):
    assert Sparsity(*thresholds).is_too_sparse(a_table(cells)) == is_refused_by_superstar(cells, *thresholds)


def test_a_share_of_exactly_the_threshold_is_not_too_sparse():
    assert not Sparsity("1/3", "2/3").is_too_sparse(a_table([1, 2, 3, 0]))
    assert Sparsity("0.333", "2/3").is_too_sparse(a_table([1, 2, 3, 0]))


@pytest.mark.parametrize("wrong", [-1, "3/2", float("nan"), True, None])
def test_a_threshold_that_is_no_share_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="largest share of ones"):
        Sparsity(wrong)


def shifting(offset):
    """A ptable that adds the same to every count but zero: what is published then differs from what was counted."""
    return PTable.from_array(np.full((3, MODULUS), offset), above="last")


def lonely(ones, threes):
    """As many cells of one person, and of three, as are asked for."""
    place = [f"{i}" for i in range(ones)] + [f"{ones + i}" for i in range(threes) for _ in range(3)]
    domain = Domain({"place": [f"{i}" for i in range(ones + threes + 1)]})
    keys = record_keys(len(place), MODULUS, SeededEntropy(3))
    return read(pa.table({"place": place, "record_key": keys}), domain), AllowedTables(domain, order=1)


def test_sparsity_looks_at_the_perturbed_counts_and_not_at_the_exact_ones():
    records, allowed = lonely(ones=8, threes=2)
    rule = {"allowed": allowed, "sparsity": Sparsity()}
    with pytest.raises(TableRefused, match="too sparse"):
        opened(records, shifting(0), **rule).answer(("place",))
    assert opened(records, shifting(2), **rule).answer(("place",)).table["0"] == 3
    records, allowed = lonely(ones=0, threes=10)
    rule = {"allowed": allowed, "sparsity": Sparsity()}
    assert opened(records, shifting(0), **rule).answer(("place",)).table["0"] == 3
    falling = PTable.from_array(np.array([[0], [-1], [-2]]).repeat(MODULUS, 1), above="last")
    with pytest.raises(TableRefused, match="too sparse"):
        opened(records, falling, **rule).answer(("place",))


def test_sparsity_looks_at_counts_before_any_is_withheld():
    records, allowed = lonely(ones=8, threes=2)
    with pytest.raises(TableRefused, match="too sparse"):
        opened(records, shifting(0), allowed=allowed, sparsity=Sparsity(), minimum=3).answer(("place",))


def test_that_the_sparsity_rule_depends_on_data_is_said_in_the_promise_and_in_the_refusal():
    records, allowed = lonely(ones=9, threes=0)
    answers = opened(records, shifting(0), allowed=allowed, sparsity=Sparsity("1/8", "1/3"))
    assert answers.promise.not_promised[-1] == (
        "That a refusal tells nothing. A table is refused if it is empty, if more than 1/8 of its counts above zero "
        "are 1, or if more than 1/3 of them are 1 or 2. That depends on the data, through the perturbed counts."
    )
    assert answers.promise.statement == PROMISE.statement
    with pytest.raises(TableRefused, match=r"too sparse.* depends on the data") as refusal:
        answers.answer(("place",))
    # No number in it: neither a count nor how many cells there are.
    assert not set("3456789") & set(str(refusal.value))


def test_without_the_rule_a_sparse_table_is_shown():
    records, allowed = lonely(ones=9, threes=0)
    assert counts(opened(records, shifting(0), allowed=allowed), "place")[:9] == [1] * 9
