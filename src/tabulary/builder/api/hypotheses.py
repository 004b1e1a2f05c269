"""Tests of a table that account for its noise: independence of two attributes, and the difference of two cells."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.api.answering import Answering, payer_of
from tabulary.builder.api.answers import answer_to
from tabulary.builder.api.asking import json_only, refuse_unknown
from tabulary.builder.api.bodies import Body
from tabulary.builder.api.describing import BAD_BODY, PAID, DatasetName, operation
from tabulary.builder.api.models import AskedTest, HypothesisResult
from tabulary.builder.service import ServedDataset
from tabulary.core.domain import Domain
from tabulary.errors import InvalidNoise, InvalidWorkload, TooManyCells
from tabulary.infer import independence
from tabulary.infer.difference import ASSUMED, difference
from tabulary.release import ReleasedTable
from tabulary.workflows.answering.questions import Question

Cell = dict[str, str | list[str]]
"""A sum of cells by their levels, one level or several of each attribute."""

MOST_CELLS = 400
"""The most cells of a test of independence. Its time grows with their cube; 400 cells take a second or two."""


def add_tests(app: FastAPI, answering: Answering) -> None:
    """Add the routes of tests."""

    @app.post(
        "/api/datasets/{id}/tests",
        dependencies=[Depends(json_only)],
        **operation(
            "tests", "test_table", "Test a table", HypothesisResult, {**PAID, **BAD_BODY}, priced=True
        ),
    )
    async def test_table(request: Request, name: DatasetName, body: AskedTest) -> Response:
        """Test the independence of two attributes, or the difference of two cells, given the noise of the table.

        The test uses the linear estimate, whose noise has a known law. It simulates nothing: the same question has the
        same answer. If questions cost, a test costs as much as its table, and the table is free from then on.
        """
        dataset = answering.dataset(name)
        refuse_unknown(request.query_params.multi_items(), ())
        payer = await payer_of(request, dataset)
        return await answering.response(request, HypothesisQuestion.of(dataset, body, payer))


@dataclass(frozen=True, eq=False)
class HypothesisQuestion:
    """A test of a table: of the difference of two `cells`, as counts or `per` a group, or of independence.

    Made by `of`, which refuses an impossible test before anything is counted or paid.
    """

    dataset: ServedDataset
    question: Question
    cells: tuple[Cell, ...]
    per: tuple[str, ...] | None
    payer: str | None

    @classmethod
    def of(cls, dataset: ServedDataset, body: AskedTest, payer: str | None) -> "HypothesisQuestion":
        """Return the test that a body requests; refuse an impossible one."""
        question = _tested_table(dataset.answers.domain, body)
        # In the order of the table, so that two spellings of one cell are the same question.
        cells = tuple({a: cell[a] for a in question.by if a in cell} for cell in body.cells or ())
        per = None if body.per is None else tuple(a for a in question.by if a in body.per)
        return cls(dataset, question, cells, per, payer)

    @property
    def key(self) -> Hashable:
        """What the body depends on."""
        cells = tuple(tuple((a, tuple(_levels(v))) for a, v in cell.items()) for cell in self.cells)
        return "test", self.dataset.name, self.dataset.answers.version, self.question, cells, self.per

    @property
    def is_test(self) -> bool:
        """True."""
        return True

    def body(self) -> Body:
        """Return the written result of the test. May count, may debit, may take seconds."""
        dataset, cells = self.dataset, list(self.cells)
        if dataset.largest_plan is None:
            raise InvalidNoise(
                f"no test can be made: {dataset.name!r} is protected by the method {dataset.answers.method.value!r}, "
                "and the law of its errors is not known. Nothing was counted."
            )
        answer = answer_to(dataset, self.question, self.payer)
        assert isinstance(answer.table, ReleasedTable), "whatever has a plan is released"
        assert answer.plan is not None, "a dataset with a plan answers with one"
        return Body.json(
            {
                "dataset": dataset.name,
                "version": dataset.answers.version,
                "test": "difference" if cells else "independence",
                "question": self.question.describe(),
                "plan": answer.plan.digest(),
                **(_difference(answer.table, cells, self.per) if cells else _independence(answer.table)),
            }
        )


def _tested_table(domain: Domain, body: AskedTest) -> Question:
    """Return the linear estimate of the tested table."""
    question = Question.of(domain, body.by, body.where, body.keep, linear=True)
    if body.test == "independence":
        if len(question.by) != 2 or body.cells is not None or body.per is not None:
            raise InvalidWorkload(
                "independence is between the two attributes of 'by', and takes no cells and no 'per'. Nothing was "
                "counted."
            )
        cells = question.cells(domain)
        if cells > MOST_CELLS:
            raise TooManyCells(
                f"a test of independence of {cells:,} cells takes too long here; the most is {MOST_CELLS:,}. "
                "Nothing was counted. Ask for the table with estimate=linear and test it with "
                "tabulary.infer.independence."
            )
    else:
        if body.cells is None or len(body.cells) != 2:
            raise InvalidWorkload("a difference is that of two 'cells'. Nothing was counted.")
        kept = dict(question.keep)
        for cell in body.cells:
            if strangers := [a for a in cell if a not in question.by]:
                raise InvalidWorkload(
                    f"a cell names {strangers[0]!r}, which the table is not by. Nothing was counted."
                )
            for attribute, levels in cell.items():
                if not levels:
                    raise InvalidWorkload(f"a cell names no level of {attribute!r}. Nothing was counted.")
                for level in _levels(levels):
                    domain.code(attribute, level)
                    if level not in kept.get(attribute, (level,)):
                        raise InvalidWorkload(
                            f"a cell names the level {level!r} of {attribute!r}, which is not in 'keep'. Nothing was "
                            "counted."
                        )
            if missing := [a for a in body.per or () if a not in cell]:
                raise InvalidWorkload(
                    f"a percentage per {missing[0]!r} needs a level of it in both cells. Nothing was counted."
                )
    return question


def _independence(table: ReleasedTable) -> dict[str, object]:
    found = independence(table)
    return {
        "p_value": found.p_value,
        "assumed": list(found.assumed),
        "statistic": found.statistic,
        "degrees_of_freedom": found.degrees_of_freedom,
    }


def _levels(levels: str | list[str]) -> list[str]:
    return [levels] if isinstance(levels, str) else levels


def _difference(table: ReleasedTable, cells: list[Cell], per: tuple[str, ...] | None) -> dict[str, object]:
    first, second = cells
    found = difference(table, first, second, per=per)
    return {
        "p_value": found.p_value,
        "assumed": list(ASSUMED),
        "cells": cells,
        **({} if per is None else {"per": list(per)}),
        "estimate": found.estimate,
        # JSON has no infinity.
        "standard_error": found.standard_error if math.isfinite(found.standard_error) else None,
        "lower_95": found.interval.lower,
        "upper_95": found.interval.upper,
    }
