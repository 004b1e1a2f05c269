"""The plan file: what to publish, written down in TOML before the data are looked at."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tabulary.confidential.coding import Coding
from tabulary.confidential.records import Records
from tabulary.core.domain import MAX_CELLS, Domain, bin_labels
from tabulary.core.privacy import ZCDP, ApproxDP, Neighbours, Privacy, PureDP
from tabulary.core.workload import Workload
from tabulary.errors import InvalidPlan, InvalidWorkload, TabularyError, listed
from tabulary.planning import Plan, plan
from tabulary.planning.comparison import Comparison, Progress, compare_plans, request_of

FORMATS = ("csv", "parquet")

T = TypeVar("T")


@dataclass(frozen=True)
class PlanFile:
    """A plan file that was read and understood: the plan, and where the records are.

    Nothing of the records is opened until `records()` is called; `about` is how many the file says there are.
    """

    path: Path
    plan: Plan
    source: Path
    codings: Mapping[str, Coding]
    ledger: Path | None = None
    account: str | None = None
    title: str = ""
    objective: str = "auto"
    about: int | None = None
    max_cells: int = MAX_CELLS

    def comparison(self, progress: Progress | None = None) -> Comparison:
        """Return what every mechanism would make of this file, the plan's own being the chosen one."""
        request = request_of(
            self.plan, objective=self.objective, records=self.about, max_cells=self.max_cells
        )
        return compare_plans(request, planned=self.plan, progress=progress)

    def records(self) -> Records:
        """Return the records that the file names, opened and recoded."""
        return Records.from_file(self.source, self.plan.domain, self.codings)


def read_plan_file(path: Path) -> PlanFile:
    """Return what a plan file says; refuse an unknown key, a missing one and a value that cannot be.

    Reads no records: the source need not exist yet. Paths are relative to the plan file's folder.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidPlan(f"there is no plan file {str(path)!r}.") from None
    except (OSError, UnicodeDecodeError):
        raise InvalidPlan(f"the plan file {str(path)!r} cannot be read as UTF-8 text.") from None
    try:
        top = _Section(str(path.name), tomllib.loads(text))
    except tomllib.TOMLDecodeError as problem:
        raise InvalidPlan(f"{path.name} is not valid TOML: {problem}.") from None
    data = top.section("data")
    attributes = top.section("domain")
    zeros = top.take("structural_zeros", list, default=[])
    privacy_section = top.section("privacy")
    tables = top.section("tables")
    mechanism = top.section("mechanism", required=False)
    output = top.section("output", required=False)
    ledger = top.section("ledger", required=False)
    top.done()

    domain, codings = _domain(attributes, zeros)
    privacy, neighbours = _privacy(privacy_section)
    work, max_cells = _workload(tables, domain)
    options = _mechanism(mechanism)
    formats = output.take("formats", list, default=list(FORMATS))
    title = output.take("title", str, default="")
    output.done()
    if sorted(map(str, formats)) != sorted(FORMATS):
        raise InvalidPlan(f"{output.name} formats: a release always holds {listed(FORMATS)}, both of them.")
    source = path.parent / data.take("source", str)
    data.done()
    book = ledger.take("file", str, default=None)
    account = ledger.take("account", str, default=None)
    ledger.done()
    if (book is None) != (account is None):
        raise InvalidPlan(f"{ledger.name} needs both `file` and `account`.")
    # Last, for it may take a while: what is wrong with the file is said at once.
    made = _located(
        path.name,
        lambda: plan(domain, work, privacy=privacy, neighbours=neighbours, max_cells=max_cells, **options),
    )
    return PlanFile(
        path=path,
        plan=made,
        source=source,
        codings=codings,
        ledger=path.parent / book if book else None,
        account=account,
        title=title,
        objective=options["objective"],
        about=options["records"],
        max_cells=max_cells,
    )


class _Section:
    """One table of the file, from which keys are taken until none is left."""

    def __init__(self, name: str, content: Mapping[str, Any]) -> None:
        self.name = name
        self._left = dict(content)
        self._known: list[str] = []

    def section(self, key: str, *, required: bool = True) -> "_Section":
        content = self.take(key, dict, default=None if required else {}, required=required)
        return _Section(f"[{key}]", content)

    def take(self, key: str, kind: Any, *, default: Any = ..., required: bool = False) -> Any:
        self._known.append(key)
        if key not in self._left:
            if default is ... or required:
                raise InvalidPlan(f"{self.name} lacks the key {key!r}.")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidPlan(f"{self.name} {key} has the wrong type: {_kind(kind)} is expected.")
        return value

    def names(self) -> list[str]:
        return list(self._left)

    def done(self) -> None:
        if self._left:
            raise InvalidPlan(
                f"{self.name} holds the unknown key {listed(self._left)}. It may hold {listed(self._known)}."
            )


def _domain(attributes: _Section, zeros: list[Any]) -> tuple[Domain, dict[str, Coding]]:
    levels: dict[str, Iterable[str | int]] = {}
    codings: dict[str, Coding] = {}
    for name in attributes.names():
        entry = _Section(f"[domain.{name}]", attributes.take(name, dict))
        levels[name], codings[name] = _located(entry.name, partial(_attribute, entry))
    if not levels:
        raise InvalidPlan("[domain] names no attribute. Add a table such as [domain.sex] with its levels.")
    domain = _located("[domain]", lambda: Domain(levels, zeros))
    for name, coding in codings.items():
        _located(f"[domain.{name}]", partial(coding.resolve, domain, name))
    return domain, codings


def _attribute(entry: _Section) -> tuple[Iterable[str | int], Coding]:
    bins = entry.take("bins", list, default=None)
    levels = entry.take("levels", list, default=None)
    if (bins is None) == (levels is None):
        raise InvalidPlan("an attribute needs either `levels` or `bins`.")
    coding = Coding(
        column=entry.take("from", str, default=None),
        mapping=entry.take("map", dict, default=None),
        bins=bins,
        unknown=entry.take("unknown", str, default="error"),
    )
    entry.done()
    return (levels if bins is None else bin_labels(bins)), coding


def _privacy(section: _Section) -> tuple[Privacy, Neighbours]:
    number = (int, float, str)
    epsilon = section.take("epsilon", number, default=None)
    delta = section.take("delta", number, default=None)
    rho = section.take("rho", number, default=None)
    relation = section.take("neighbours", str, default="add-remove")
    records = section.take("contribution", int, default=1)
    sensitive = section.take("sensitive", list, default=[])
    section.done()
    neighbours = _located(section.name, lambda: Neighbours(relation, records, tuple(map(str, sensitive))))
    match (epsilon is None, delta is None, rho is None):
        case (False, True, True):
            return _located(section.name, lambda: PureDP(epsilon)), neighbours
        case (False, False, True):
            return _located(section.name, lambda: ApproxDP(epsilon, delta)), neighbours
        case (True, True, False):
            return _located(section.name, lambda: ZCDP(rho)), neighbours
    raise InvalidPlan(f"{section.name} needs `epsilon`, `epsilon` and `delta`, or `rho` alone.")


def _workload(section: _Section, domain: Domain) -> tuple[Workload, int]:
    margins = section.take("margins", (str, list), default=None)
    orders = section.take("k_way", (int, list), default=None)
    weights = section.take("weights", dict, default={})
    max_cells = section.take("max_cells", int, default=MAX_CELLS)
    section.done()
    if margins is None and orders is None:
        raise InvalidPlan(f'{section.name} needs `margins`, such as "[sex age]", or `k_way`, such as 2.')

    def build() -> Workload:
        wanted: list[Any] = []
        for order in orders if isinstance(orders, list) else [] if orders is None else [orders]:
            wanted += Workload.k_way(domain, order).margins
        if isinstance(margins, str):
            wanted += Workload.parse(margins, domain).margins
        elif margins is not None:
            if not all(isinstance(m, list) and all(isinstance(a, str) for a in m) for m in margins):
                raise InvalidWorkload('margins are text such as "[sex age]", or lists of attribute names.')
            wanted += margins
        named = {Workload.parse(_bracketed(m), domain).margins[0]: w for m, w in weights.items()}
        return Workload(domain, wanted, named)

    return _located(section.name, build), max_cells


def _mechanism(section: _Section) -> dict[str, Any]:
    """Return the options of `plan` that the file gives."""
    options = {
        "mechanism": section.take("name", str, default="auto"),
        "reconstruct": section.take("reconstruct", str, default="auto"),
        "rounding": section.take("rounding", str, default="none"),
        "objective": section.take("objective", str, default="auto"),
        "records": section.take("records", int, default=None),
    }
    section.done()
    return options


def _bracketed(text: str) -> str:
    return text if text.startswith("[") else f"[{text}]"


def _located(place: str, build: Callable[[], T]) -> T:
    """Return what `build` makes, adding the place to the error if it refuses."""
    try:
        return build()
    except TabularyError as problem:
        # A section's own errors name it already.
        said = str(problem)
        raise type(problem)(said if said.startswith(place) else f"{place}: {said}") from None


def _kind(kind: Any) -> str:
    words = {str: "text", int: "a whole number", float: "a number", list: "a list", dict: "a table"}
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(dict.fromkeys(words[each] for each in kinds))
