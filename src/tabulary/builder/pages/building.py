"""The content of the pages before a table: the datasets, the variables of one, and the forecast for a choice."""

from dataclasses import dataclass
from typing import Any

from tabulary.builder.api.answers import accuracy_of
from tabulary.builder.pages.choices import Choices, Names
from tabulary.builder.pages.words import (
    ACCURACY,
    PRICE,
    SUMMARY,
    UNKNOWN,
    accuracy_sentence,
    level_name,
    price_sentence,
    size_sentence,
    variable_name,
)
from tabulary.builder.service import ServedDataset
from tabulary.errors import TableRefused, TooManyCells
from tabulary.workflows.answering.answers import ProtectionMethod

PLACES = (("", "Not used"), ("rows", "Rows"), ("columns", "Columns"), ("filter", "Filter"))
"""The places of a variable, with their names."""

# A page lists no more tables of a release than a reader looks through.
_MOST_LISTED = 200


@dataclass(frozen=True)
class TableForecast:
    """The size, accuracy and price of a table, or the reason of its refusal. It uses only the plan."""

    size: str = ""
    accuracy: str = ""
    price: str = ""
    refusal: str = ""
    free: bool = True

    @classmethod
    def of(cls, dataset: ServedDataset, chosen: Choices) -> "TableForecast":
        """Return the forecast of the chosen table. Counts nobody, and costs nothing."""
        method = dataset.answers.method
        try:
            found: dict[str, Any] = accuracy_of(dataset, chosen.question(dataset.answers.domain))
        except (TableRefused, TooManyCells) as refusal:
            said = str(refusal)
            return cls(refusal=said[:1].upper() + said[1:])
        return cls(
            size_sentence(found["cells"]),
            accuracy_sentence(found["half_width_95"]),
            price_sentence(found["price"], method),
            free=found["price"] is None,
        )


def dataset_line(dataset: ServedDataset) -> dict[str, Any]:
    """Return the entry of one dataset in the list."""
    answers = dataset.answers
    private = answers.method is not ProtectionMethod.cell_key
    return {
        "name": dataset.name,
        "title": dataset.title,
        "description": dataset.description,
        "url": Choices().build_url(dataset.name),
        "summary": SUMMARY[answers.method],
        # For cell keys the summary already says this.
        "statement": answers.promise.statement if private else "",
        "private": private,
        "variables": len(answers.domain.attributes),
        "order": answers.allowed_tables.order,
        "version": answers.version,
    }


def build_page(dataset: ServedDataset, chosen: Choices) -> dict[str, Any]:
    """Return the content of the page of a dataset, given the choices so far."""
    answers = dataset.answers
    # All questions cost the same.
    plan = dataset.largest_plan if answers.method is ProtectionMethod.interactive else None
    return {
        "dataset": dataset,
        "chosen": chosen,
        "summary": SUMMARY[answers.method],
        "private": answers.method is not ProtectionMethod.cell_key,
        "promise": answers.promise,
        "order": answers.allowed_tables.order,
        "forbidden": [
            " and ".join(variable_name(dataset, a, Names.labels) for a in together)
            for together in answers.allowed_tables.forbidden
        ],
        "within": [
            dataset.words.table_name(together) if together else dataset.words.counted()
            for together in (answers.allowed_tables.within or ())[:_MOST_LISTED]
        ],
        "places": PLACES,
        "variables": [_variable(dataset, attribute, chosen) for attribute in answers.domain.attributes],
        "in_rows": [variable_name(dataset, a, Names.labels) for a in chosen.rows],
        "in_columns": [variable_name(dataset, a, Names.labels) for a in chosen.columns],
        "in_filters": [filter_name(dataset, a, level, Names.labels) for a, level in chosen.where],
        # The display options stay the same while the variables change.
        "hidden": [
            pair for pair in chosen.items() if pair[0] in ("show", "chart", "names", "language", "totals")
        ],
        "table_url": Choices().url(dataset.name),
        "build_url": Choices().build_url(dataset.name),
        "accuracy_url": Choices().accuracy_url(dataset.name),
        "forecast": TableForecast.of(dataset, chosen),
        # The same sentences for the script, which fills in the numbers.
        "words": {
            "accuracy": ACCURACY,
            "unknown": UNKNOWN,
            "price": "" if plan is None else PRICE.format(plan.privacy),
            "free": price_sentence(None, answers.method),
        },
    }


def filter_name(dataset: ServedDataset, attribute: str, level: str, names: Names) -> str:
    """Return the name of a filter: the variable and its level."""
    return f"{variable_name(dataset, attribute, names)}: {level_name(dataset, attribute, level, names)}"


def _variable(dataset: ServedDataset, attribute: str, chosen: Choices) -> dict[str, Any]:
    variable = dataset.variables[attribute]
    levels = [(code, variable.level(code)) for code in dataset.answers.domain.levels_of(attribute)]
    return {
        "name": attribute,
        "label": variable.label,
        "description": variable.description,
        "levels": levels,
        "words": " ".join(
            dict.fromkeys([attribute, variable.label, variable.description, *(label for _, label in levels)])
        ),
        "place": chosen.place(attribute),
        "level": dict(chosen.where).get(attribute),
        "kept": dict(chosen.keep).get(attribute, ()),
    }
