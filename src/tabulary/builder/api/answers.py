"""From a parsed question about a table to its answer, written in a format.

A body depends on the question, the version of the dataset and its noise. It does not depend on the call: not on the
time, the cost or the asker. So every byte is the same for ever, on every worker.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from itertools import combinations

from tabulary.builder.api.bodies import Body
from tabulary.builder.api.formats import AnswerFormat
from tabulary.builder.service import ServedDataset
from tabulary.core.privacy import describe_privacy
from tabulary.errors import TableRefused
from tabulary.release import ReleasedTable, SigningKey
from tabulary.release.exchange import Provenance, signature_headers, table_document
from tabulary.release.formats import file_stems, plan_facts
from tabulary.release.publication import Publication
from tabulary.release.totals import TotalledTable, can_have_totals, labelled_totals
from tabulary.workflows.answering.answers import ProtectionMethod, TableAnswer
from tabulary.workflows.answering.questions import Question


@dataclass(frozen=True, eq=False)
class TableQuestion:
    """A table of a dataset in a format; `payer` pays for it, and `signing_key` signs its JSON document.

    Only the JSON document names the question that it answers, so a signature of another format would prove little.
    """

    dataset: ServedDataset
    question: Question
    form: AnswerFormat
    payer: str | None
    signing_key: SigningKey | None = field(default=None, repr=False)

    @property
    def key(self) -> Hashable:
        """What the body depends on."""
        words = self.dataset.words.language
        return "table", self.dataset.name, self.dataset.answers.version, self.question, self.form.name, words

    @property
    def is_test(self) -> bool:
        """False: no hypothesis is tested."""
        return False

    def body(self) -> Body:
        """Return the table, written. May count, may debit, may take seconds."""
        # First, because a question may cost: do not ask for a table that cannot be written.
        self.form.refuse(self.question.cells(self.dataset.answers.domain))
        answered = AnsweredTable(
            self.dataset, self.question, answer_to(self.dataset, self.question, self.payer)
        )
        content = self.form.write(answered)
        file_name = f"{answered.stem}{self.form.suffix}" if self.form.suffix else None
        body = Body.of(content, self.form.media_type, file_name)
        if self.signing_key is None or self.form.writer is not None:
            return body
        return replace(body, signed=signature_headers(content, self.signing_key))


@dataclass(frozen=True, eq=False)
class AnsweredTable:
    """The answer to a question, with the labels of its dataset, ready to be written in any format."""

    dataset: ServedDataset
    question: Question
    answer: TableAnswer

    @property
    def stem(self) -> str:
        """The name of its file, without the suffix."""
        (stem,) = file_stems([(self.dataset.name, *self.question.by)]).values()
        return stem

    def document(self) -> dict[str, object]:
        """Return the table as plain data, with the question, the dataset and its version."""
        answers, answer = self.dataset.answers, self.answer
        provenance = Provenance(
            dataset=self.dataset.name,
            version=answers.version,
            method=answers.method.value,
            promise=answer.promise.statement,
            plan=None if answer.plan is None else answer.plan.digest(),
            reconstructed=answer.reconstructed,
            perturbation=None if isinstance(answer.table, ReleasedTable) else answer.table.ptable,
        )
        labels = {name: variable.label for name, variable in self.dataset.variables.items()}
        return table_document(answer.table, provenance, self.question.describe(), labels)

    def publication(self, *, for_people: bool = False) -> Publication:
        """Return the table with the labels of its dataset, and the filters in its title.

        A table for people has its totals, if they come from the same measurements and so cost nothing.
        """
        words, answer = replace(self.dataset.words, title=self.dataset.title), self.answer
        filters = [f"{words.name(a)}: {words.level(a, level)}" for a, level in self.question.where]
        totalled = self._totalled() if for_people else None
        told = Publication.of(
            answer.table if totalled is None else totalled,
            name=self.stem,
            words=words if totalled is None else labelled_totals(words, self.question.by),
            translations=self.dataset.labels[1:],
            edition=self.dataset.answers.version,
            notes=(answer.promise.statement,),
            facts={} if answer.plan is None else plan_facts(answer.plan),
        )
        if not filters:
            return told
        # The title names the filters in one language.
        return replace(told, title=f"{told.heading} ({'; '.join(filters)})", translations=())

    def _totalled(self) -> TotalledTable | None:
        """Return the table with its totals; None if smaller tables would cost, or are not the sums of this one."""
        question, answers, table = self.question, self.dataset.answers, self.answer.table
        costly = answers.method is ProtectionMethod.interactive
        if (
            costly
            or question.keep
            or not isinstance(table, ReleasedTable)
            or not can_have_totals(table.domain)
        ):
            return None
        parts = {question.by: table}
        for size in range(len(question.by)):
            for by in combinations(question.by, size):
                smaller = replace(question, by=by)
                try:
                    found = answer_to(self.dataset, smaller, None).table
                except TableRefused:
                    return None
                if not isinstance(found, ReleasedTable):
                    return None
                parts[by] = found
        return TotalledTable(parts, labelled_totals(self.dataset.words, question.by))


def answer_to(dataset: ServedDataset, question: Question, payer: str | None) -> TableAnswer:
    """Return the answer to a question: only the requested part. May count, may debit, may take seconds."""
    answers = dataset.answers
    answer = answers.answer(question.margin(answers.domain), asker=payer, linear=question.linear)
    return replace(answer, table=question.cut(answer.table))


def accuracy_of(dataset: ServedDataset, question: Question) -> dict[str, object]:
    """Return the size of a table, its expected error and its price as plain data; refuse one that is not allowed."""
    answers = dataset.answers
    margin = question.margin(answers.domain)
    answers.allowed_tables.refuse(margin)
    expected, price = answers.expected(margin), answers.price(margin)
    return {
        "dataset": dataset.name,
        "version": answers.version,
        "method": answers.method.value,
        "question": question.describe(),
        "table": list(margin),
        "cells": question.cells(answers.domain),
        "standard_error": None if expected is None else expected.standard_error,
        "half_width_95": None if expected is None else expected.half_width,
        "price": None if price is None else describe_privacy(price),
    }
