"""A reader's choices on a page: the table, and how to show it. Each set of choices has one address."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar
from urllib.parse import quote, urlencode

from tabulary.builder.api.asking import language_in_query, question_in_query, refuse_unknown
from tabulary.builder.problems import HTTPProblem
from tabulary.core.domain import Domain, Margin
from tabulary.errors import InvalidWorkload, listed
from tabulary.workflows.answering.questions import Question

Items = Collection[tuple[str, str]]
Levels = tuple[tuple[str, str], ...]
"""Attributes, each with one of its levels."""


class Show(StrEnum):
    """What a cell shows: a count, or a share of its row, its column or of all."""

    counts = "counts"
    row_percent = "row-percent"
    column_percent = "column-percent"
    total_percent = "total-percent"


class Chart(StrEnum):
    """The picture beside the table."""

    none = "none"
    heat = "heat"
    bars = "bars"


class Names(StrEnum):
    """The names of variables and levels: the custodian's labels, or the codes of the data."""

    labels = "labels"
    codes = "codes"


class Hypothesis(StrEnum):
    """The kind of test: whether two variables depend on each other, or whether two cells differ."""

    independence = "independence"
    difference = "difference"


_Choice = TypeVar("_Choice", bound=StrEnum)

PARAMETERS = (
    *("rows", "columns", "where", "keep"),
    *("show", "chart", "names", "language", "totals"),
    *("test", "first", "second"),
)
"""Every parameter of an address, in the order of writing."""

_TABLE = ("by", "where", "keep")
# The field names of a page's form: the place of a variable, and the level of its filter.
_PLACE, _LEVEL = "place:", "level:"
_PLACES = ("", "rows", "columns", "filter")


@dataclass(frozen=True)
class Choices:
    """A reader's choices: variables in rows and columns, filters and levels, and how the table is shown.

    `language` is that of the labels; empty for the default language of the dataset.
    `first` and `second` are cells to compare, given by their levels; a missing variable is summed over. The same
    choices have the same address for ever; the address leaves out everything that was not chosen.

    >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"]})
    >>> chosen = Choices.of(domain, [("rows", "age"), ("where", "sex:F"), ("chart", "bars")])
    >>> chosen.url("census")
    '/datasets/census/table?rows=age&where=sex%3AF&chart=bars'
    >>> chosen.question(domain).where
    (('sex', 'F'),)
    >>> chosen.api_url("census", "csv")
    '/api/datasets/census/tables.csv?by=age&where=sex%3AF'
    """

    rows: Margin = ()
    columns: Margin = ()
    where: Levels = ()
    keep: tuple[tuple[str, tuple[str, ...]], ...] = ()
    show: Show = Show.counts
    chart: Chart = Chart.none
    names: Names = Names.labels
    language: str = ""
    totals: bool = True
    test: Hypothesis | None = None
    first: Levels = ()
    second: Levels = ()

    @classmethod
    def of(cls, domain: Domain, items: Items) -> "Choices":
        """Return the choices in a query; refuse an unknown one, and list the known ones.

        The order of variables matters. Filters and levels are put in the domain's order.
        """
        refuse_unknown(items, PARAMETERS)
        given: dict[str, list[str]] = {name: [] for name in PARAMETERS}
        for name, value in items:
            # An empty field of a form chooses nothing.
            if value:
                given[name].append(value)
        rows, columns = tuple(given["rows"]), tuple(given["columns"])
        if both := [a for a in rows if a in columns]:
            raise InvalidWorkload(
                f"{both[0]!r} is to stand in the rows and in the columns. Choose one of them. Nothing was counted."
            )
        asked = question_in_query(
            domain,
            [
                *(("by", a) for a in (*rows, *columns)),
                *((name, value) for name in ("where", "keep") for value in given[name]),
            ],
            known=_TABLE,
        )
        return cls(
            rows,
            columns,
            asked.where,
            asked.keep,
            _one_of(Show, "show", given["show"]) or Show.counts,
            _one_of(Chart, "chart", given["chart"]) or Chart.none,
            _one_of(Names, "names", given["names"]) or Names.labels,
            language_in_query(items),
            _one_of(_Switch, "totals", given["totals"]) is not _Switch.off,
            _one_of(Hypothesis, "test", given["test"]),
            _levels(domain, given["first"], (*rows, *columns)),
            _levels(domain, given["second"], (*rows, *columns)),
        )

    @property
    def by(self) -> Margin:
        """The variables of the table, those of the rows first."""
        return (*self.rows, *self.columns)

    def question(self, domain: Domain) -> Question:
        """Return the question that the page answers."""
        return Question.of(domain, self.by, dict(self.where), dict(self.keep))

    def place(self, attribute: str) -> str:
        """Return the place of a variable: rows, columns, filter, or nothing."""
        if attribute in self.rows:
            return "rows"
        if attribute in self.columns:
            return "columns"
        return "filter" if attribute in dict(self.where) else ""

    def items(self) -> list[tuple[str, str]]:
        """Return the choices as the parameters of a query, from which `of` reads them back."""
        written = [
            *(("rows", a) for a in self.rows),
            *(("columns", a) for a in self.columns),
            *_parts(self.where, self.keep),
        ]
        for name, value, usual in (
            ("show", self.show, Show.counts),
            ("chart", self.chart, Chart.none),
            ("names", self.names, Names.labels),
            ("language", self.language, ""),
        ):
            if value != usual:
                written.append((name, str(value)))
        if not self.totals:
            written.append(("totals", "off"))
        if self.test is not None:
            written.append(("test", str(self.test)))
        cells = (("first", self.first), ("second", self.second))
        return [*written, *((name, f"{a}:{level}") for name, cell in cells for a, level in cell)]

    def url(self, dataset: str) -> str:
        """Return the address of the page with this table."""
        return _address(f"/datasets/{quote(dataset)}/table", self.items())

    def build_url(self, dataset: str) -> str:
        """Return the address of the page where this table can be changed."""
        return _address(f"/datasets/{quote(dataset)}", self.items())

    def api_url(self, dataset: str, suffix: str = "") -> str:
        """Return the API address of the same table, in the format of the suffix."""
        path = f"/api/datasets/{quote(dataset)}/tables" + (f".{suffix}" if suffix else "")
        return _address(path, [*self._asked(), *([("language", self.language)] if self.language else [])])

    def file_url(self, dataset: str, suffix: str) -> str:
        """Return the address of the same table as a file, for somebody who signed in."""
        return _address(f"/datasets/{quote(dataset)}/table.{suffix}", self.items())

    def accuracy_url(self, dataset: str) -> str:
        """Return the API address of the expected error of this table."""
        return _address(f"/api/datasets/{quote(dataset)}/accuracy", self._asked())

    def pivoted(self) -> "Choices":
        """Return the same table with rows and columns exchanged, and their shares too."""
        turned = {Show.row_percent: Show.column_percent, Show.column_percent: Show.row_percent}
        return replace(
            self, rows=self.columns, columns=self.rows, show=turned.get(self.show, self.show)
        ).untested()

    def moved(self, attribute: str) -> "Choices":
        """Return the same table with one variable moved to the end of the other axis."""
        rows, columns = _without(self.rows, attribute), _without(self.columns, attribute)
        if attribute in self.rows:
            return replace(self, rows=rows, columns=(*columns, attribute)).untested()
        return replace(self, rows=(*rows, attribute), columns=columns).untested()

    def dropped(self, attribute: str) -> "Choices":
        """Return the choices without a variable or its filter."""
        return replace(
            self,
            rows=_without(self.rows, attribute),
            columns=_without(self.columns, attribute),
            where=tuple(pair for pair in self.where if pair[0] != attribute),
            keep=tuple(pair for pair in self.keep if pair[0] != attribute),
        ).untested()

    def with_all_levels(self, attribute: str) -> "Choices":
        """Return the choices with every level of a variable."""
        return replace(self, keep=tuple(pair for pair in self.keep if pair[0] != attribute))

    def untested(self) -> "Choices":
        """Return the choices without a test: its result belongs to another table."""
        return replace(self, test=None, first=(), second=())

    def _asked(self) -> list[tuple[str, str]]:
        return [*(("by", a) for a in self.by), *_parts(self.where, self.keep)]


class _Switch(StrEnum):
    on = "on"
    off = "off"


def is_form(items: Items) -> bool:
    """Return whether a query comes from the form of a page, where every variable has its own fields."""
    return any(name.startswith(_PLACE) for name, _ in items)


def from_form(domain: Domain, items: Items) -> Choices:
    """Return the choices of a form that was sent without a script: `place:sex=rows`, `level:age=old`.

    Ticked levels of a variable outside the table choose nothing. Nor does a level of a variable that is not a filter.
    So readers can change their mind without clearing old fields.

    >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"]})
    >>> from_form(domain, [("place:sex", "filter"), ("level:sex", "F"), ("place:age", "rows")]).items()
    [('rows', 'age'), ('where', 'sex:F')]
    """
    places = {name.removeprefix(_PLACE): value for name, value in items if name.startswith(_PLACE)}
    levels = {name.removeprefix(_LEVEL): value for name, value in items if name.startswith(_LEVEL)}
    domain.margin(places)
    if wrong := [value for value in places.values() if value not in _PLACES]:
        raise HTTPProblem(
            422,
            "invalid-request",
            f"a variable stands in the rows, in the columns, in a filter or nowhere, not in {wrong[0][:80]!r}. "
            "Nothing was counted.",
        )
    written: list[tuple[str, str]] = [
        (place, a) for place in ("rows", "columns") for a in domain.attributes if places.get(a) == place
    ]
    shown = {a for _, a in written}
    for attribute in (a for a in domain.attributes if places.get(a) == "filter"):
        if not levels.get(attribute):
            raise InvalidWorkload(
                f"{attribute!r} is a filter without a level. Choose one of {listed(domain.levels_of(attribute))}. "
                "Nothing was counted."
            )
        written.append(("where", f"{attribute}:{levels[attribute]}"))
    for name, value in items:
        if name == "keep":
            if _named(domain, [value]).keys() <= shown:
                written.append((name, value))
        elif not name.startswith((_PLACE, _LEVEL)):
            written.append((name, value))
    return Choices.of(domain, written)


def _parts(where: Levels, keep: Iterable[tuple[str, tuple[str, ...]]]) -> list[tuple[str, str]]:
    return [
        *(("where", f"{a}:{level}") for a, level in where),
        *(("keep", f"{a}:{level}") for a, levels in keep for level in levels),
    ]


def _address(path: str, items: list[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(items)}" if items else path


def _without(attributes: Margin, left_out: str) -> Margin:
    return tuple(a for a in attributes if a != left_out)


def _levels(domain: Domain, values: list[str], by: Margin) -> Levels:
    """Return the levels of a cell in the order of the table."""
    found = _named(domain, values)
    if strangers := [a for a in found if a not in by]:
        raise InvalidWorkload(
            f"a cell names {strangers[0]!r}, which the table is not by. Nothing was counted. Leave it out."
        )
    return tuple((a, found[a]) for a in by if a in found)


def _named(domain: Domain, values: list[str]) -> dict[str, str]:
    """Return the attributes and levels of values such as `sex:F`, read as the API reads them."""
    return dict(question_in_query(domain, [("where", value) for value in values], known=_TABLE).where)


def _one_of(kind: type[_Choice], name: str, values: list[str]) -> _Choice | None:
    """Return the choice among a few options; None if nothing was chosen."""
    if not values:
        return None
    if len(values) > 1 or values[0] not in list(kind):
        raise HTTPProblem(
            422,
            "invalid-request",
            f"the query parameter {name!r} is one of {listed(kind)}. Nothing was counted.",
        )
    return kind(values[0])
