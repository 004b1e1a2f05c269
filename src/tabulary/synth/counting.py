"""Exact counts for a synthesizer: first the account is checked, then records are counted, then it pays."""

from collections.abc import Sequence

from tabulary.confidential.dropping import counted_neighbours, refuse_public_total
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import refuse_weights
from tabulary.core.domain import Margin
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import Privacy
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, LedgerError
from tabulary.ledger import Account, Ledger


def paid_tally(
    records: Records | Table,
    margins: Sequence[Margin],
    privacy: Privacy,
    neighbours: Neighbours,
    *,
    ledger: Account | None,
    purpose: str,
    digest: str,
    progress: Progress | None = None,
) -> Tally:
    """Return the exact counts of margins, after debiting the account. Confidential.

    If the account cannot pay, nothing is counted; if the source fails, nothing is spent. Noise is drawn afterwards.
    """
    if isinstance(ledger, Ledger):
        raise LedgerError("name the account that pays: ledger.account('census'). Nothing was spent.")
    if ledger is not None:
        ledger.check(privacy, neighbours)
    tally = counted(records, margins, neighbours, progress)
    if ledger is not None:
        ledger.debit(privacy, neighbours, purpose=purpose, plan_digest=digest)
    return tally


def neighbours_of(records: Records | Table, neighbours: Relation | Neighbours) -> Neighbours:
    """Return what one person can change in the counts of these records, if some of them may be dropped."""
    promised = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)
    return counted_neighbours(promised, records.drops if isinstance(records, Records) else ())


def counted(
    records: Records | Table,
    margins: Sequence[Margin],
    neighbours: Neighbours,
    progress: Progress | None = None,
) -> Tally:
    """Return the exact counts of margins. Confidential.

    It refuses records that do not count one each, and neighbours that assume a public total where it is confidential.
    """
    if isinstance(records, Table):
        return Tally.from_table(records, margins)
    if not isinstance(records, Records):
        raise InvalidArgument(
            f"rows are made from Records or from a Table, not from a {type(records).__name__}."
        )
    refuse_weights(records.weights, use="a synthesizer", state="Nothing was measured.")
    refuse_public_total(neighbours, records.drops)
    return records.tally(margins, progress=progress)
