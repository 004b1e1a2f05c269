"""The content of the page of a table: the table, and ways to change it, to download it and to test it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from tabulary.builder.api.answers import answer_to
from tabulary.builder.api.formats import FORMATS, AnswerFormat
from tabulary.builder.api.hypotheses import Cell, HypothesisQuestion
from tabulary.builder.api.models import AskedTest
from tabulary.builder.pages.building import TableForecast, filter_name
from tabulary.builder.pages.charts import bars_svg, heat_map_svg
from tabulary.builder.pages.choices import Chart, Choices, Hypothesis, Levels, Names, Show
from tabulary.builder.pages.grid import smaller_tables
from tabulary.builder.pages.layout import BuiltTable
from tabulary.builder.pages.sessions import SIGN_OUT, sign_in_url
from tabulary.builder.pages.words import (
    SUMMARY,
    cell_name,
    difference_sentences,
    independence_sentences,
    level_name,
    size_sentence,
    variable_name,
)
from tabulary.builder.service import ServedDataset
from tabulary.errors import InvalidNoise, InvalidTable, InvalidWorkload, TooManyCells
from tabulary.workflows.answering.answers import ProtectionMethod

SHOWN = (
    (Show.counts, "Counts"),
    (Show.row_percent, "Per cent of the row"),
    (Show.column_percent, "Per cent of the column"),
    (Show.total_percent, "Per cent of all"),
)
CHARTS = ((Chart.none, "None"), (Chart.heat, "Heat map"), (Chart.bars, "Bars with intervals"))
NAMES = ((Names.labels, "Labels"), (Names.codes, "Codes"))
TOTALS = (("on", "Shown"), ("off", "Left out"))

MANY = 2_000
"""Beyond this number of cells the page is simpler: each element in a cell costs a browser as much as the cell."""


NOT_TESTABLE = (InvalidWorkload, InvalidTable, InvalidNoise, TooManyCells)
"""The refusals of a test that a page shows beside the table."""


@dataclass(frozen=True)
class HypothesisOutcome:
    """The result of a test on the page: a sentence as the answer, its basis, and the assumptions."""

    answer: str
    basis: str = ""
    assumed: tuple[str, ...] = ()

    @classmethod
    def refused(cls, refusal: Exception) -> "HypothesisOutcome":
        """Return the reason why a test is not possible. The table is still shown."""
        said = str(refusal)
        return cls(said[:1].upper() + said[1:])


@dataclass(frozen=True)
class Payer:
    """An analyst who signed in: the account that pays, what it has left, and the token of their forms."""

    account: str
    left: str
    form_token: str


def heading(dataset: ServedDataset, chosen: Choices) -> str:
    """Return the name of a table: its variables and its filters."""
    names = [variable_name(dataset, a, chosen.names) for a in chosen.by]
    by = dataset.words.heading(names)
    of = "; ".join(filter_name(dataset, a, level, chosen.names) for a, level in chosen.where)
    return f"{by} ({of})" if of else by


def ask_page(
    dataset: ServedDataset, chosen: Choices, forecast: TableForecast, origin: str, asker: Payer | None
) -> dict[str, Any]:
    """Return the content of the page of a table that costs: its expected accuracy, and how to ask for it.

    `asker` is the analyst who signed in, None if nobody did.
    """
    return {
        **_around(dataset, chosen, origin, asker),
        "forecast": forecast,
        "sign_in": sign_in_url(chosen.url(dataset.name)),
        "here": chosen.url(dataset.name),
        "promise": dataset.answers.promise,
    }


def table_page(
    dataset: ServedDataset,
    chosen: Choices,
    origin: str,
    asker: Payer | None = None,
    outcome: HypothesisOutcome | None = None,
) -> dict[str, Any]:
    """Return the content of the page of a table; may count, may debit, may take seconds.

    `asker` is the analyst who signed in and pays; None if the table is free. `outcome` is the result of a test; None
    without a test.
    """
    payer = None if asker is None else asker.account
    answer = answer_to(dataset, chosen.question(dataset.answers.domain), payer)
    smaller = smaller_tables(dataset.answers, chosen)
    view = BuiltTable.of(answer, chosen, dataset.words, smaller=smaller)
    return {
        **_around(dataset, chosen, origin, asker),
        "view": view,
        "size": size_sentence(answer.table.counts.size),
        "many": answer.table.counts.size > MANY,
        "chart": _drawn(chosen.chart, view),
        "promise": answer.promise,
        "outcome": outcome,
        "may_test": answer.plan is not None and bool(chosen.by),
        "may_test_independence": len(chosen.by) == 2,
        "cells": [
            (name, words, _picked(dataset, chosen, dict(cell)))
            for name, words, cell in (
                ("first", "First cell", chosen.first),
                ("second", "Second cell", chosen.second),
            )
        ],
    }


def _drawn(chart: Chart, view: BuiltTable) -> Markup:
    """Return the picture of a table; empty if none was chosen."""
    match chart:
        case Chart.heat:
            return heat_map_svg(view)
        case Chart.bars:
            return bars_svg(view)
        case Chart.none:
            return Markup()


def _around(dataset: ServedDataset, chosen: Choices, origin: str, asker: Payer | None) -> dict[str, Any]:
    """Return the content around a table, for a shown table and for one that is not paid for yet."""
    title = heading(dataset, chosen)
    name, method = dataset.name, dataset.answers.method
    return {
        "dataset": dataset,
        "heading": title,
        "private": method is not ProtectionMethod.cell_key,
        "summary": SUMMARY[method],
        "chosen": chosen,
        "asker": asker,
        "sign_out": SIGN_OUT,
        "axes": [
            (words, [_variable(dataset, chosen, a, other) for a in attributes])
            for words, attributes, other in (
                ("Rows", chosen.rows, "columns"),
                ("Columns", chosen.columns, "rows"),
            )
        ],
        "filters": [
            (filter_name(dataset, a, level, chosen.names), chosen.dropped(a).url(name))
            for a, level in chosen.where
        ],
        "pivot_url": chosen.pivoted().url(name) if chosen.by else "",
        "build_url": chosen.build_url(name),
        "selects": (
            ("show", "Numbers", SHOWN, chosen.show),
            ("chart", "Chart", CHARTS, chosen.chart),
            ("names", "Names", NAMES, chosen.names),
            *_language_select(dataset),
            ("totals", "Totals", TOTALS, "on" if chosen.totals else "off"),
        ),
        "table_items": _table_items(chosen),
        "all_items": [pair for pair in chosen.items() if pair[0] not in ("test", "first", "second")],
        "action": Choices().url(name),
        "permalink": origin + chosen.url(name),
        "downloads": _downloads(dataset, chosen),
        "api_url": origin + chosen.api_url(name),
        "curl": _curl(dataset, chosen, origin),
        "python": _python(dataset, chosen, origin),
        "citation": f"{dataset.title}, version {dataset.answers.version}. {title}. "
        f"{origin}{chosen.untested().url(name)}",
    }


def _language_select(dataset: ServedDataset) -> list[tuple[Any, ...]]:
    """Return the choice of a language, if there are several."""
    tags = sorted(labels.language for labels in dataset.labels)
    return (
        [("language", "Language", [(tag, tag) for tag in tags], dataset.words.language)] if tags[1:] else []
    )


def _table_items(chosen: Choices) -> list[tuple[str, str]]:
    """Return the parameters that select the table, without the display options."""
    return [pair for pair in chosen.items() if pair[0] in ("rows", "columns", "where", "keep")]


def _variable(dataset: ServedDataset, chosen: Choices, attribute: str, other: str) -> dict[str, Any]:
    kept = dict(chosen.keep).get(attribute, ())
    return {
        "name": variable_name(dataset, attribute, chosen.names),
        "other": other,
        "move_url": chosen.moved(attribute).url(dataset.name),
        "drop_url": chosen.dropped(attribute).url(dataset.name),
        "kept": f"{len(kept)} of {len(dataset.answers.domain.levels_of(attribute))} levels" if kept else "",
        "all_url": chosen.with_all_levels(attribute).url(dataset.name),
    }


def _downloads(dataset: ServedDataset, chosen: Choices) -> list[tuple[str, str]]:
    """Return every format with its address: in the API, or of a page if the reader must sign in."""
    address = chosen.file_url if _needs_token(dataset) else chosen.api_url
    cells = chosen.question(dataset.answers.domain).cells(dataset.answers.domain)
    # Files first; formats without a file are for programs.
    forms = sorted(FORMATS.values(), key=lambda form: not form.suffix)
    return [(form.title, address(dataset.name, form.name)) for form in forms if _can_write(form, cells)]


def _can_write(form: AnswerFormat, cells: int) -> bool:
    try:
        form.refuse(cells)
    except TooManyCells:
        return False
    return True


def _curl(dataset: ServedDataset, chosen: Choices, origin: str) -> str:
    token = ["-H", "Authorization: Bearer TOKEN"] if _needs_token(dataset) else []
    return shlex.join(["curl", *token, origin + chosen.api_url(dataset.name, "csv")])


def _python(dataset: ServedDataset, chosen: Choices, origin: str) -> str:
    """Return the call in Python that gives the same table."""
    token = ", token=TOKEN" if _needs_token(dataset) else ""
    call = "table" if dataset.answers.method is not ProtectionMethod.cell_key else "perturbed_table"
    keep = {attribute: list(levels) for attribute, levels in chosen.keep}
    given = [repr(dataset.name), repr(list(chosen.by))]
    given += [f"where={dict(chosen.where)!r}"] if chosen.where else []
    given += [f"keep={keep!r}"] if keep else []
    connected = f'builder = tb.connect("{origin}"{token})'
    return f"import tabulary as tb\n\n{connected}\ntable = builder.{call}({', '.join(given)})"


def _needs_token(dataset: ServedDataset) -> bool:
    return dataset.answers.method is ProtectionMethod.interactive


def _picked(dataset: ServedDataset, chosen: Choices, cell: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the fields that select one of two cells: for each variable one of its levels, or all levels."""
    kept = dict(chosen.keep)
    return [
        {
            "name": attribute,
            "label": variable_name(dataset, attribute, chosen.names),
            "levels": [
                (f"{attribute}:{level}", level_name(dataset, attribute, level, chosen.names))
                for level in kept.get(attribute, dataset.answers.domain.levels_of(attribute))
            ],
            "value": f"{attribute}:{cell[attribute]}" if attribute in cell else "",
        }
        for attribute in chosen.by
    ]


def tested(
    dataset: ServedDataset, chosen: Choices, payer: str | None
) -> HypothesisQuestion | HypothesisOutcome | None:
    """Return the chosen test; None without one, and the reason if the test is not possible."""
    if chosen.test is None:
        return None
    if chosen.test is Hypothesis.difference and chosen.first == chosen.second:
        return HypothesisOutcome("Choose two cells that are not the same.")
    cells: list[Cell] | None = None
    if chosen.test is Hypothesis.difference:
        cells = [dict(chosen.first), dict(chosen.second)]
    # A test is about the shown levels, as the totals beside it are.
    keep = {attribute: list(levels) for attribute, levels in chosen.keep}
    body = AskedTest(
        test=chosen.test.value, by=list(chosen.by), where=dict(chosen.where), keep=keep, cells=cells
    )
    try:
        return HypothesisQuestion.of(dataset, body, payer)
    except NOT_TESTABLE as refusal:
        return HypothesisOutcome.refused(refusal)


def outcome_in_words(dataset: ServedDataset, chosen: Choices, found: Mapping[str, Any]) -> HypothesisOutcome:
    """Return the API's result of a test, in sentences."""
    if chosen.test is Hypothesis.difference:
        named = [_quoted(dataset, cell, chosen.names) for cell in (chosen.first, chosen.second)]
        answer, basis = difference_sentences(found, *named)
    else:
        answer, basis = independence_sentences(
            found, *(variable_name(dataset, a, chosen.names) for a in chosen.by)
        )
    return HypothesisOutcome(
        answer, basis, tuple(f"{each[:1].upper()}{each[1:]}." for each in found["assumed"])
    )


def _quoted(dataset: ServedDataset, cell: Levels, names: Names) -> str:
    return f"“{cell_name(dataset, cell, names)}”"
