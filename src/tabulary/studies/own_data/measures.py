"""What a custodian calls useful: tables, log-linear models and tests, all answerable from the tables of a plan."""

from collections.abc import Iterable
from dataclasses import dataclass

from tabulary.core.domain import Margin
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidArgument, InvalidWorkload, TooManyCells, UnknownMargin
from tabulary.infer import LogLinearModel

MOST_MODEL_CELLS = 1_000_000
"""The largest table that a model is fitted on, again and again."""


@dataclass(frozen=True)
class Measures:
    """Tables whose errors count, models that are fitted and pairs of attributes that are tested for independence.

    A model has the domain of its own attributes. Where one table of the plan holds them all, its G² can be computed;
    where each of its margins is held by some table, its fit alone.

    >>> from tabulary import Domain
    >>> work = Workload.parse("[AB][BC]", Domain({"A": "xy", "B": "xy", "C": "xy"}))
    >>> Measures.read(work, margins=["[A]"], models=["[AB][BC]"], tests=["[BC]"]).margins
    (('A',),)
    """

    margins: tuple[Margin, ...]
    models: tuple[LogLinearModel, ...] = ()
    tests: tuple[Margin, ...] = ()

    @classmethod
    def read(
        cls,
        tables: Workload,
        *,
        margins: Iterable[str] = (),
        models: Iterable[str] = (),
        tests: Iterable[str] = (),
    ) -> "Measures":
        """Return the measures that are written as on the command line; without margins, all tables of the plan."""
        wanted = [m for text in margins for m in _parsed("the margin", text, tables)]
        tested = [m for text in tests for m in _parsed("the test", text, tables)]
        for margin in tested:
            if len(margin) != 2:
                raise InvalidArgument(
                    f"the test {show_margin(margin)}: independence is between two attributes, and these are "
                    f"{len(margin)}. Nothing was done. Name two of them, such as [sex job]."
                )
        for named, asked in (("the margin", wanted), ("the test", tested)):
            for margin in asked:
                _check_held(named, show_margin(margin), [margin], tables)
        return cls(
            tuple(dict.fromkeys(wanted)) or tables.margins,
            tuple(dict.fromkeys(_model(text, tables) for text in models)),
            tuple(dict.fromkeys(tested)),
        )


def holder(margin: Margin, tables: Workload) -> Margin | None:
    """Return the table of a plan that a reader takes a margin from: itself, or the smallest that contains it."""
    if margin in tables.margins:
        return margin
    holding = [table for table in tables if set(margin) <= set(table)]
    return min(holding, key=tables.domain.cells, default=None)


def needed(model: LogLinearModel, tables: Workload) -> tuple[Margin, ...]:
    """Return the margins that a model is fitted from: all of its attributes together, or else its generators."""
    whole = model.domain.attributes
    return (whole,) if holder(whole, tables) is not None else model.generators


def _model(text: str, tables: Workload) -> LogLinearModel:
    generators = _parsed("the model", text, tables)
    named = tables.domain.margin({a for margin in generators for a in margin})
    if not named:
        raise InvalidArgument(
            "the model []: a model without attributes has nothing to fit. Nothing was done."
        )
    model = LogLinearModel(tables.domain.project(named), tuple(generators))
    if holder(named, tables) is None:
        _check_held("the model", text, model.generators, tables)
    try:
        tables.domain.check_cells(named, MOST_MODEL_CELLS)
    except TooManyCells as problem:
        raise TooManyCells(f"the model {text}: {problem} Nothing was done.") from None
    return model


def _parsed(named: str, text: str, tables: Workload) -> list[Margin]:
    try:
        found = Workload.parse(text, tables.domain).margins
    except InvalidWorkload as problem:
        raise InvalidWorkload(f"{named} {text}: {problem} Nothing was done.") from None
    return list(found)


def _check_held(named: str, text: str, margins: Iterable[Margin], tables: Workload) -> None:
    missing = [margin for margin in margins if holder(margin, tables) is None]
    if missing:
        lacking = "".join(map(show_margin, missing))
        raise UnknownMargin(
            f"{named} {text}: no table of the plan holds {lacking}. Nothing was done. Add {lacking} to [tables] of "
            f"the plan file, or choose what the plan publishes: {tables}."
        )
