"""What every way of answering questions promises, checked on every one of them over random sequences of questions."""

from itertools import combinations, count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.cellkey import KeyedRecords, PTable, RecordKeys
from tabulary.confidential.records import Records
from tabulary.errors import PublicError
from tabulary.ledger import Ledger
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering.cell_key import CellKeyAnswers
from tabulary.workflows.answering.fixed import FixedAnswers
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tabulary.workflows.answering.questions import Question
from tabulary.workflows.answering.released import ReleasedAnswers
from tests.entropy import SeededEntropy

SECRET = bytes(range(32))
MODULUS = 256
PTABLE = PTable.from_rows([{0: 1}, {-1: "1/4", 0: "1/2", 1: "1/4"}], modulus=MODULUS)
ASKER = "asker"
PLENTY = tb.ZCDP(10**6)
numbers = count()


def _fixed(privacy, reconstruct):
    def opened(people, allowed, ledger, name):
        return FixedAnswers.open(
            Records.from_arrow(people, allowed.domain), allowed, privacy=privacy, neighbours="add-remove",
            account=ledger.account(name), secret=SECRET, dataset=name, version="1", reconstruct=reconstruct,
        )  # fmt: skip

    return opened


def _interactive(people, allowed, ledger, name):
    return InteractiveAnswers.open(
        Records.from_arrow(people, allowed.domain), allowed, cost=tb.PureDP(1), ledger=ledger,
        account=ledger.account(name), neighbours="add-remove", secret=SECRET, dataset=name, version="1",
    )  # fmt: skip


def _cell_key(people, allowed, ledger, name):
    records = KeyedRecords.from_frame(people, allowed.domain, keys=RecordKeys(modulus=MODULUS))
    return CellKeyAnswers.open(records, allowed, PTABLE, dataset=name, version="1", secret=SECRET)


def _released(people, allowed, ledger, name):
    planned = tb.plan(allowed.domain, allowed.workload(), privacy=tb.ZCDP("1/8"), mechanism="residual")
    records = Records.from_arrow(people, allowed.domain)
    # A release is made once: a second server has the same one.
    return ReleasedAnswers.of(tb.release(records, planned, entropy=SeededEntropy(int(name[1:]))))


AGREEING = {
    "fixed, Gaussian": _fixed(tb.ZCDP("1/8"), "none"),
    "fixed, Laplace": _fixed(tb.PureDP(1), "none"),
    "fixed, reconstructed": _fixed(tb.ZCDP("1/8"), "shrink"),
    "released": _released,
}
"""Those whose tables agree with each other."""

every_answerer = pytest.mark.parametrize(
    "opened", [*AGREEING.values(), _interactive, _cell_key], ids=[*AGREEING, "interactive", "cell-key"]
)
every_agreeing_answerer = pytest.mark.parametrize("opened", AGREEING.values(), ids=AGREEING)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    with Ledger.create(tmp_path_factory.mktemp("books") / "ledger.sqlite") as made:
        made.create_account(ASKER, PLENTY, tb.Neighbours())
        yield made


def new_dataset(ledger):
    """The name of a dataset that nobody has asked, with an account that can pay."""
    name = f"d{next(numbers)}"
    ledger.create_account(name, PLENTY, tb.Neighbours())
    return name


@st.composite
def rules(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4).filter(lambda s: max(s) > 1))
    domain = tb.Domain({f"x{i}": [f"v{j}" for j in range(k)] for i, k in enumerate(sizes)})
    pairs = st.lists(st.sampled_from(domain.attributes), min_size=2, max_size=2, unique=True)
    return AllowedTables(
        domain,
        order=draw(st.integers(1, 3).filter(lambda k: k <= len(sizes))),
        forbidden=draw(st.lists(pairs, max_size=1)),
    )


@st.composite
def questions(draw, allowed):
    """A question within the allowed: in any order, with filters and with chosen levels."""
    domain = allowed.domain
    margin = draw(st.permutations(draw(st.sampled_from(allowed.margins))))
    filters = draw(st.integers(0, len(margin)))
    where = {a: draw(st.sampled_from(domain.levels_of(a))) for a in margin[:filters]}
    by = margin[filters:]
    keep = {
        a: draw(st.lists(st.sampled_from(domain.levels_of(a)), min_size=1, unique=True))
        for a in by
        if draw(st.booleans())
    }
    return Question.of(domain, by, where, keep)


def sequences(allowed):
    return st.lists(questions(allowed), min_size=1, max_size=8)


def people_of(domain, seed):
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(1, 80))
    columns = {a: generator.choice(domain.levels_of(a), rows) for a in domain.attributes}
    return pa.table(columns | {"record_key": generator.integers(0, MODULUS, rows)})


def answer_to(answers, question):
    return answers.answer(question.margin(answers.domain), asker=ASKER).table


def bits(table):
    """Everything that a reader is told, to the last bit."""
    said = [np.ma.filled(table.counts, -99)]
    if hasattr(table, "errors"):
        said += [table.standard_errors, *table.interval()]
    return table.domain, [np.asarray(each).tobytes() for each in said]


@every_answerer
@given(data=st.data())
@settings(max_examples=6)
def test_the_same_question_has_the_same_answer_whatever_was_asked_before_and_after_a_restart(
    opened, ledger, data
):
    allowed = data.draw(rules())
    asked = data.draw(sequences(allowed))
    people, name = people_of(allowed.domain, data.draw(st.integers(0, 999))), new_dataset(ledger)
    first, again = (opened(people, allowed, ledger, name) for _ in range(2))
    told = {question: bits(question.cut(answer_to(first, question))) for question in asked}
    spent = ledger.account(name).spent()
    for question in data.draw(st.permutations(asked * 2)):
        assert bits(question.cut(answer_to(again, question))) == told[question]
    # A second server, and every question twice more, for nothing.
    assert ledger.account(name).spent() == spent


@every_answerer
@given(data=st.data())
@settings(max_examples=4)
def test_a_filtered_table_is_a_slice_of_the_larger_one(opened, ledger, data):
    allowed = data.draw(rules())
    people, name = people_of(allowed.domain, data.draw(st.integers(0, 999))), new_dataset(ledger)
    answers = opened(people, allowed, ledger, name)
    for question in data.draw(sequences(allowed)):
        whole = answer_to(answers, question)
        part = question.cut(whole)
        assert part.margin == question.by
        for cell in np.ndindex(*part.counts.shape):
            levels = dict(question.where)
            levels |= {a: part.domain.levels_of(a)[i] for a, i in zip(question.by, cell, strict=True)}
            place = tuple(whole.domain.code(a, levels[a]) for a in whole.margin)
            assert part.counts[cell] is np.ma.masked or part.counts[cell] == whole.counts[place]


@every_answerer
@given(data=st.data())
@settings(max_examples=2)
def test_what_is_refused_and_with_what_words_does_not_depend_on_the_records(opened, ledger, data):
    allowed = data.draw(rules())
    domain = allowed.domain
    both = [opened(people_of(domain, seed), allowed, ledger, new_dataset(ledger)) for seed in (1, 2)]
    for margin in (m for k in range(len(domain.attributes) + 1) for m in combinations(domain.attributes, k)):
        said = []
        for answers in both:
            for ask in (answers.answer, answers.expected, answers.price, answers.plan_of):
                try:
                    ask(margin, **({"asker": ASKER} if ask == answers.answer else {}))
                except PublicError as refusal:
                    said.append(f"{type(refusal).__name__}: {refusal}")
        assert len(said) == (0 if allowed.allows(margin) else 8)
        assert len(set(said)) <= 1


@every_agreeing_answerer
@given(data=st.data())
@settings(max_examples=12)
def test_all_answers_of_any_sequence_agree_on_what_they_share(opened, ledger, data):
    allowed = data.draw(rules())
    people, name = people_of(allowed.domain, data.draw(st.integers(0, 999))), new_dataset(ledger)
    answers = opened(people, allowed, ledger, name)
    heard = [(question, answer_to(answers, question)) for question in data.draw(sequences(allowed))]
    for question, table in heard:
        for _, other in heard:
            shared = tuple(a for a in table.margin if a in other.margin)
            here, there = (each.table.project(shared).counts for each in (table, other))
            assert here == pytest.approx(there, rel=1e-9, abs=1e-6)
            if shared == table.margin:
                # A filtered table too is what a larger table says of the same people.
                summed = other.table.project(table.margin)
                part = question.cut(table)
                seen = summed.select(dict(question.keep)).slice(dict(question.where)).transpose(question.by)
                assert part.counts == pytest.approx(seen.counts, rel=1e-9, abs=1e-6)
