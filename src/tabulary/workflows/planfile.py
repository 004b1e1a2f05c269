"""The plan file: what to publish, written in TOML before anybody looks at the data."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tabulary.confidential.coding import Coding
from tabulary.confidential.dropping import counted_neighbours, dropping
from tabulary.confidential.records import Records
from tabulary.confidential.sources import Source
from tabulary.core.domain import MAX_CELLS, Domain
from tabulary.core.labels import Labels
from tabulary.core.progress import Progress
from tabulary.core.workload import Workload
from tabulary.errors import InvalidSettings, InvalidWorkload
from tabulary.planning import Plan, plan
from tabulary.planning.budgets import Planner
from tabulary.planning.comparison import Comparison, compare_plans, request_of
from tabulary.release.manifest import EpsilonPlace
from tabulary.release.table_sheet import ErrorPlace
from tabulary.release.writers import ALWAYS, extra_formats
from tabulary.workflows.labelling import LabelReader
from tabulary.workflows.sections import Section, located, read_domain, read_privacy, read_toml


@dataclass(frozen=True)
class PlanFile:
    """A plan file that was read: the plan, and where the records are.

    No records are opened before `records()` is called. `about` is the number of records that the file states.
    `planner` plans the same tables with the same options at another promise. `formats` are the formats of the release
    in addition to CSV and Parquet. `labels` are the words for readers, one `Labels` per language, the default language
    first. `errors` says where a workbook shows the ± of a number, and `epsilon` where the report names the parameter of
    the promise.
    """

    path: Path
    plan: Plan
    planner: Planner
    source: Source
    codings: Mapping[str, Coding]
    ledger: Path | None = None
    account: str | None = None
    witness: Path | None = None
    labels: tuple[Labels, ...] = (Labels(),)
    objective: str = "auto"
    about: int | None = None
    max_cells: int = MAX_CELLS
    formats: tuple[str, ...] = ()
    errors: ErrorPlace = ErrorPlace.below
    epsilon: EpsilonPlace = EpsilonPlace.folded

    @property
    def title(self) -> str:
        """The title of the release in its default language."""
        return self.labels[0].title

    def comparison(self, progress: Progress | None = None) -> Comparison:
        """Return the expected errors of every mechanism for this file; the plan's own mechanism is the chosen one."""
        request = request_of(
            self.plan, objective=self.objective, records=self.about, max_cells=self.max_cells
        )
        return compare_plans(request, planned=self.plan, progress=progress)

    def records(self) -> Records:
        """Return the records that the file names, opened and recoded."""
        return self.source.open(self.plan.domain, self.codings)


def read_plan_file(path: Path) -> PlanFile:
    """Return what a plan file says; refuse an unknown key, a missing key and an invalid value.

    Reads no records and asks no database: the source need not exist yet. Paths are relative to the folder of the
    plan file.
    """
    top = read_toml(path, "plan file")
    data = top.section("data")
    attributes = top.section("domain")
    zeros = top.take("structural_zeros", list, default=[])
    privacy_section = top.section("privacy")
    tables = top.section("tables")
    mechanism = top.section("mechanism", required=False)
    output = top.section("output", required=False)
    ledger = top.section("ledger", required=False)
    top.done()

    words = LabelReader(output)
    domain, codings = read_domain(attributes, zeros, words.take_attribute)
    labels = words.labels(domain, attributes.name)
    privacy, promised = read_privacy(privacy_section)
    neighbours = located(privacy_section.name, lambda: counted_neighbours(promised, dropping(codings)))
    work, max_cells = _workload(tables, domain)
    options = _mechanism(mechanism)
    named = output.take("formats", list, default=list(ALWAYS))
    formats = located(output.name, lambda: extra_formats(map(str, named)))
    place = output.take("errors", str, default=ErrorPlace.below.value)
    errors = located(output.name, lambda: ErrorPlace.named(place))
    named_in = output.take("epsilon", str, default=EpsilonPlace.folded.value)
    epsilon = located(output.name, lambda: EpsilonPlace.named(named_in))
    output.done()
    source = _source(data, path.parent)
    book = ledger.take("file", str, default=None)
    account = ledger.take("account", str, default=None)
    witness = ledger.take("witness", str, default=None)
    ledger.done()
    if (book is None) != (account is None) or (witness and not book):
        raise InvalidSettings(f"{ledger.name} needs both `file` and `account`.")
    # Last, because planning can be slow: mistakes in the file are reported at once.
    planner = partial(plan, domain, work, neighbours=neighbours, max_cells=max_cells, **options)
    made = located(path.name, lambda: planner(privacy=privacy))
    return PlanFile(
        path=path,
        plan=made,
        planner=planner,
        source=source,
        codings=codings,
        ledger=path.parent / book if book else None,
        account=account,
        witness=path.parent / witness if witness else None,
        labels=labels,
        objective=options["objective"],
        about=options["records"],
        max_cells=max_cells,
        formats=formats,
        errors=errors,
        epsilon=epsilon,
    )


def _source(section: Section, folder: Path) -> Source:
    source = section.take("source", str)
    table = section.take("table", str, default=None)
    engine = section.take("engine", str, default=None)
    section.done()
    return located(section.name, lambda: Source.read(folder, source, table, engine))


def _workload(section: Section, domain: Domain) -> tuple[Workload, int]:
    margins = section.take("margins", (str, list), default=None)
    orders = section.take("k_way", (int, list), default=None)
    weights = section.take("weights", dict, default={})
    max_cells = section.take("max_cells", int, default=MAX_CELLS)
    section.done()
    if margins is None and orders is None:
        raise InvalidSettings(f'{section.name} needs `margins`, such as "[sex age]", or `k_way`, such as 2.')

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

    return located(section.name, build), max_cells


def _mechanism(section: Section) -> dict[str, Any]:
    """Return the options of `plan` that the file gives."""
    options = {
        "mechanism": section.take("name", str, default="auto"),
        "reconstruct": section.take("reconstruct", str, default="auto"),
        "rounding": section.take("rounding", str, default="auto"),
        "objective": section.take("objective", str, default="auto"),
        "records": section.take("records", int, default=None),
    }
    section.done()
    return options


def _bracketed(text: str) -> str:
    return text if text.startswith("[") else f"[{text}]"
