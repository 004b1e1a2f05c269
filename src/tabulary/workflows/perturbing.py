"""Perturbed tables from records: check → count → debit → perturb."""

from tabulary.confidential.dropping import refuse_public_total
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.core.domain import check_same_domain
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, LedgerError, WeightedRecords
from tabulary.ledger import Account, Ledger
from tabulary.noise import Sampler
from tabulary.perturb.published_tables import PerturbedTables
from tabulary.perturb.tables import Margins, Tables


def perturb(
    data: Records | Table,
    tables: Tables,
    ledger: Account | None = None,
    *,
    minimum: object = None,
    margins: Margins = "free",
    purpose: str = "perturbed tables",
    sampler: Sampler | None = None,
    progress: Progress | None = None,
) -> PerturbedTables:
    """Return the perturbed tables of a list. Spends the list's privacy once, also if a later step fails.

    The order is the same as in `tb.release`: options are checked and the account is asked before anything is
    counted, and the debit is on disk before noise is drawn. A crash in between loses budget, never privacy.

    Args:
        data: `Records`, with weights if the list has a unit, or a `Table` of exact counts or of weights in whole units.
        tables: the list, for the same domain.
        ledger: the account that pays, from `Ledger.open(path).account(name)`; None keeps no books.
        minimum: what smaller numbers are published as; None keeps negative ones.
        margins: "free", or "restored" for tables that add up.
        purpose: a public word for the ledger's entry.
        sampler: who draws the noise; the exact sampler by default.
        progress: called with (what, done, total) while counting.

    >>> import tabulary as tb
    >>> table = tb.datasets.load("rochdale")
    >>> perturb(table, Tables(table.domain, "[AB][A]", epsilon=1), minimum=0)
    <PerturbedTables [AB][A] at ε = 1>
    """
    if not isinstance(tables, Tables):
        raise InvalidArgument(
            f"a list of tables must be a tb.perturb.Tables, not a {type(tables).__name__}. Nothing was spent."
        )
    if isinstance(ledger, Ledger):
        raise LedgerError("name the account that pays: ledger.account('census'). Nothing was spent.")
    tables.checked_options(minimum=minimum, margins=margins)
    cost = tables.privacy()
    if ledger is not None:
        ledger.check(cost, tables.neighbours)
    tally = _count(data, tables, progress)
    counted = {m: Table(tables.domain.project(m), tally.exact(m)) for m in tables.margins}
    if ledger is not None:
        ledger.debit(cost, tables.neighbours, purpose=purpose, plan_digest=tables.digest())
    return tables.apply(counted, minimum=minimum, margins=margins, sampler=sampler)


def _count(data: Records | Table, tables: Tables, progress: Progress | None) -> Tally:
    if not isinstance(data, Records | Table):
        raise InvalidArgument(
            f"tables are perturbed from Records or from a Table, not from {type(data).__name__}."
        )
    check_same_domain(
        data.domain, tables.domain, things="the data and the list", state="Nothing was perturbed."
    )
    if isinstance(data, Table):
        return Tally.from_table(data, tables.margins)
    _check_weights(data, tables)
    refuse_public_total(tables.neighbours, data.drops)
    return data.tally(tables.margins, progress=progress)


def _check_weights(records: Records, tables: Tables) -> None:
    """Refuse noise that was made for other weights, because its promise would be false."""
    weights = records.weights
    if weights is None:
        if tables.weighted:
            raise WeightedRecords(
                "the list is for weighted counts, but these records have no weights. Nothing was perturbed. Open the "
                "records with weights, or leave out sensitivity and unit."
            )
    elif (tables.sensitivity, tables.unit) != (weights.sensitivity, weights.unit):
        raise WeightedRecords(
            f"these records have {weights}, but the list was made for other weights. Nothing was perturbed. "
            f"Make it with sensitivity={weights.sensitivity}, unit={show_fraction(weights.unit)!r}."
        )
