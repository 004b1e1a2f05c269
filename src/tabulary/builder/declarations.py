"""A dataset as a service file declares it: what may be asked, how it is protected, who pays."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tabulary.builder.release_folders import ReleasedDataset
from tabulary.builder.service import LONGEST_NAME
from tabulary.cellkey import PTable, RecordKeys
from tabulary.cellkey.ptable import Above
from tabulary.cellkey.sparsity import Sparsity
from tabulary.confidential.coding import Coding
from tabulary.confidential.dropping import counted_neighbours, dropping
from tabulary.core.labels import Labels
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy
from tabulary.core.urls import scheme_of
from tabulary.errors import InvalidSettings, LedgerError, listed
from tabulary.ledger import Amount
from tabulary.ledger.amounts import cost_in_unit_of
from tabulary.planning import MECHANISMS
from tabulary.planning.allowed_tables import MOST_CELLS, AllowedTables
from tabulary.workflows.answering.answers import ProtectionMethod
from tabulary.workflows.answering.fixed import RECONSTRUCTIONS, USUAL
from tabulary.workflows.labelling import LabelReader
from tabulary.workflows.sections import Section, located, read_amount, read_domain, read_privacy

# A release is declared by its folder.
_METHODS = [method.value for method in ProtectionMethod if method is not ProtectionMethod.released]


@dataclass(frozen=True)
class Payment:
    """The payment, its neighbours and the account that pays; `budget` is the budget of a new account."""

    cost: Privacy
    neighbours: Neighbours
    account: str
    budget: Privacy | None


@dataclass(frozen=True)
class FixedProtection:
    """All allowed tables are paid for once, together."""

    payment: Payment
    mechanism: str
    reconstruct: str
    about: int | None


@dataclass(frozen=True)
class InteractiveProtection:
    """The dataset's account and the asker's account both pay for every new question."""

    payment: Payment


@dataclass(frozen=True)
class CellKeyProtection:
    """Perturbation by cell keys. It is not differentially private, and it is free."""

    keys: RecordKeys
    ptable_file: Path
    repeat: int | None
    minimum: int | None
    sparsity: Sparsity | None

    def ptable(self) -> PTable:
        """Return the perturbation table, read from its file.

        Counts beyond its last row use that row, or the rows from `repeat` on in turn. A refusal because of a large
        count would reveal something about the count.
        """
        above: Above = "last" if self.repeat is None else ("repeat", self.repeat)
        return PTable.from_csv(self.ptable_file, modulus=self.keys.modulus, above=above)


Protection = FixedProtection | InteractiveProtection | CellKeyProtection


@dataclass(frozen=True)
class Declaration:
    """One dataset of a service file. Its records have not been read."""

    name: str
    labels: tuple[Labels, ...]
    version: str
    source: Path
    allowed_tables: AllowedTables
    codings: Mapping[str, Coding]
    protection: Protection

    @property
    def title(self) -> str:
        """Its title in its default language."""
        return self.labels[0].title

    @property
    def method(self) -> ProtectionMethod:
        """How the dataset is protected."""
        match self.protection:
            case FixedProtection():
                return ProtectionMethod.fixed
            case InteractiveProtection():
                return ProtectionMethod.interactive
            case CellKeyProtection():
                return ProtectionMethod.cell_key

    @property
    def payment(self) -> Payment | None:
        """The payment for its tables; None if they are free."""
        return None if isinstance(self.protection, CellKeyProtection) else self.protection.payment


def read_declaration(name: str, section: Section, folder: Path) -> Declaration | ReleasedDataset:
    """Return the declaration in a table [dataset.NAME]; refuse an invalid one."""
    _refuse_unusable(name, f"{section.name}: the name of a dataset")
    if "release" in section.names():
        return _read_release(name, section, folder)
    version = section.take("version", str)
    _refuse_unusable(version, f"{section.name} version")
    method = section.take("method", str, default=ProtectionMethod.fixed.value)
    if method not in _METHODS:
        raise InvalidSettings(f"{section.name} method is {method!r}. It may be {listed(_METHODS)}.")
    # `source` is the file of the records, so the source line has another name here.
    words = LabelReader(section, title=name, source="source_line")
    source = folder / _refuse_address(section.take("source", str), section.name)
    attributes = section.section("domain")
    zeros = section.take("structural_zeros", list, default=[])
    tables = section.section("tables")

    domain, codings = read_domain(attributes, zeros, words.take_attribute)
    labels = words.labels(domain, attributes.name)
    order = tables.take("order", int)
    forbidden = tables.take("forbidden", list, default=[])
    max_cells = tables.take("max_cells", int, default=MOST_CELLS)
    tables.done()
    if not all(isinstance(each, list) and all(isinstance(a, str) for a in each) for each in forbidden):
        raise InvalidSettings(
            f'{tables.name} forbidden is a list of combinations such as [["faith", "village"]].'
        )
    allowed = located(
        tables.name, lambda: AllowedTables(domain, order=order, forbidden=forbidden, max_cells=max_cells)
    )

    protection: Protection
    match ProtectionMethod(method):
        case ProtectionMethod.fixed:
            protection = _read_fixed(section, name, codings)
        case ProtectionMethod.interactive:
            protection = InteractiveProtection(_read_payment(section, name, codings))
        case _:
            protection = _read_cell_keys(section, folder)
    section.done()
    return Declaration(name, labels, version, source, allowed, codings, protection)


def _read_release(name: str, section: Section, folder: Path) -> ReleasedDataset:
    """Return the release that a table names; its attributes, tables and words are in the folder."""
    place = folder / section.take("release", str)
    title = section.take("title", str, default="")
    description = section.take("description", str, default="")
    max_cells = section.take("max_cells", int, default=MOST_CELLS)
    section.done()
    return ReleasedDataset(name, place, title, description, max_cells)


def _refuse_address(source: str, place: str) -> str:
    """Return the path of the records; refuse an address. The error never shows it: it may hold a password."""
    if (scheme := scheme_of(source)) is not None:
        raise InvalidSettings(
            f"{place} source begins with {scheme}:, an address, but a table builder must know that its records have "
            "not changed, by a fingerprint of all of them, and so needs them here. Nothing was read. Export them to a "
            "Parquet file and name that; for one release of a table in a database, use `tabulary release`."
        )
    return source


def _read_payment(section: Section, name: str, codings: Mapping[str, Coding]) -> Payment:
    account = section.take("account", str, default=name)
    paid = section.section("privacy")
    cost, neighbours = read_privacy(paid)
    if neighbours.sensitive:
        raise InvalidSettings(
            f"{paid.name} sensitive: a table builder's account protects every attribute. Leave `sensitive` out."
        )
    total = section.section("budget", required=False)
    budget = read_amount(total) if total.names() else None
    if budget is not None:
        _refuse_too_little(total.name, budget, cost)
    return Payment(cost, counted_neighbours(neighbours, dropping(codings)), account, budget)


def _read_fixed(section: Section, name: str, codings: Mapping[str, Coding]) -> FixedProtection:
    payment = _read_payment(section, name, codings)
    options = section.section("mechanism", required=False)
    mechanism = options.take("name", str, default=USUAL)
    reconstruct = options.take("reconstruct", str, default="auto")
    about = options.take("records", int, default=None)
    options.done()
    if mechanism not in MECHANISMS:
        raise InvalidSettings(f"{options.name} name is {mechanism!r}. It may be {listed(MECHANISMS)}.")
    if reconstruct not in (ways := ("auto", *RECONSTRUCTIONS)):
        raise InvalidSettings(f"{options.name} reconstruct is {reconstruct!r}. It may be {listed(ways)}.")
    if about is not None and about < 1:
        raise InvalidSettings(f"{options.name} records is a positive whole number, about how many there are.")
    return FixedProtection(payment, mechanism, reconstruct, about)


def _read_cell_keys(section: Section, folder: Path) -> CellKeyProtection:
    keys = section.section("keys")
    column = keys.take("column", str, default="record_key")
    modulus = keys.take("modulus", int, default=None)
    digits = keys.take("digits", int, default=None)
    keys.done()
    record_keys = located(keys.name, lambda: RecordKeys(column, modulus=modulus, digits=digits))
    table = section.section("ptable")
    file = folder / table.take("file", str)
    repeat = table.take("repeat", int, default=None)
    minimum = table.take("minimum", int, default=None)
    table.done()
    return CellKeyProtection(record_keys, file, repeat, minimum, _read_sparsity(section))


def _read_sparsity(section: Section) -> Sparsity | None:
    if "sparsity" not in section.names():
        return None
    rule, usual, share = section.section("sparsity"), Sparsity(), (int, float, str)
    given = {n: rule.take(n, share, default=getattr(usual, n)) for n in ("ones", "ones_and_twos")}
    rule.done()
    return located(rule.name, lambda: Sparsity(**given))


def _refuse_too_little(place: str, budget: Privacy, cost: Privacy) -> None:
    """Refuse a budget that is too small for one payment, before the account is opened: a budget never changes."""
    try:
        price = cost_in_unit_of(budget, cost)
    except LedgerError as problem:
        raise InvalidSettings(f"{place}: {problem}") from None
    if not price <= Amount.of(budget):
        raise InvalidSettings(
            f"{place}: a budget of {budget} does not pay for {cost} even once. Nothing was spent."
        )


def _refuse_unusable(text: str, what: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text, re.ASCII) or len(text) > LONGEST_NAME:
        raise InvalidSettings(
            f"{what} is made of letters, digits, '.', '_' and '-', at most {LONGEST_NAME} of them, not {text!r}."
        )
