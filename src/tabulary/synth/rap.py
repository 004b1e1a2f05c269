r"""Relaxed Adaptive Projection: synthetic records whose answers to chosen queries match the measured ones.

Aydore, Brown, Kearns, Kenthapadi, Melis, Roth & Siva (2021), Algorithm 2. The m queries are the cells of the
requested margins. Each of T rounds chooses the K queries on which the synthetic rows are farthest from the records,
by report noisy max at ρ/(2TK) each. It answers them with Gaussian noise at ρ/(2TK) each, and projects the relaxed
rows onto all answers so far. With T = 1 nothing is chosen: all m queries are answered at ρ/m each, and the rows are
projected once. By composition the whole is ρ-zCDP.
"""

import hashlib
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.records import Records
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ZCDP, ApproxDP
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, LedgerError
from tabulary.ledger import Account, Ledger
from tabulary.noise import Entropy, ExactSampler, Sampler, SystemEntropy
from tabulary.synth.checkpoint import Checkpoint, Progressed
from tabulary.synth.counting import counted, neighbours_of
from tabulary.synth.rap_plan import RELAXED_ROWS, STEPS, Accounting, RapPlan
from tabulary.synth.relaxed import RelaxedRows, project, require_jax
from tabulary.synth.rows import MEMORY, SyntheticRecords, check_rows
from tabulary.synth.selection import noisy_largest


def rap(
    records: Records | Table,
    work: Workload | str,
    privacy: ApproxDP | ZCDP,
    *,
    rounds: int = 1,
    per_round: int | None = None,
    rows: int | None = None,
    neighbours: Relation | Neighbours = "add-remove",
    accounting: Accounting = "tight",
    relaxed_rows: int = RELAXED_ROWS,
    steps: int = STEPS,
    ledger: Account | None = None,
    purpose: str = "rap",
    checkpoint: str | Path | None = None,
    sampler: Sampler | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> SyntheticRecords:
    """Return synthetic records by Relaxed Adaptive Projection. Spends `privacy` once.

    The account is debited before noise is drawn. With a `checkpoint` you can kill the run at any point and start it
    again with the same arguments: nothing is measured or paid for twice. Draws that a killed run had not yet written
    were seen by nobody, and are drawn again. A finished checkpoint gives more rows without reading a record. The
    checkpoint does not know the records, so give the same ones. Never continue from two copies of one checkpoint:
    that would measure twice for one debit.

    Needs the extra `synth`. Attributes in no margin are left out. Rows are biased, as all projections are: answers
    that no rows can have, such as negative ones, are met as nearly as possible.

    Args:
        records: `Records`, or a `Table` of exact counts that is still to be protected.
        work: the margins whose cells are the queries.
        privacy: (ε, δ) or ρ; Gaussian noise has no pure ε.
        rounds: T. A single round answers every query; several rounds choose `per_round` queries each.
        per_round: K, 10 by default.
        rows: the number of rows; by default the number of people, as far as it is public and memory allows.
        neighbours: what one person can change; "replace" is the algorithm as printed.
        accounting: "tight", or "printed" for the printed ρ and, in a single round, ρ/m per query.
        relaxed_rows: n', the number of fitted rows that the synthetic rows are drawn from.
        steps: gradient steps of each projection.
        ledger: the account that pays, from `Ledger.open(path).account(name)`; None keeps no books.
        purpose: a public word for the ledger's entry.
        checkpoint: a file that keeps the run's state.
        sampler: draws the noise; the exact sampler by default.
        entropy: the source of all randomness; the operating system by default.
        progress: called with (what, done, total).

    >>> import tabulary as tb
    >>> table = tb.datasets.load("rochdale")
    >>> made = rap(table, "[AB][AC]", tb.ApproxDP(1, 1e-6), rows=500, relaxed_rows=50, steps=20)
    >>> made
    <SyntheticRecords: 500 rows of 3 attributes>
    """
    if not isinstance(records, Records | Table):
        raise InvalidArgument(
            f"RAP reads Records or a Table, not a {type(records).__name__}. Nothing was measured."
        )
    plan = RapPlan.of(
        records.domain,
        work,
        privacy,
        rounds=rounds,
        per_round=per_round,
        neighbours=neighbours_of(records, neighbours),
        accounting=accounting,
        relaxed_rows=relaxed_rows,
        steps=steps,
    )
    if rows is not None:
        check_rows(rows, len(plan.queries.domain.shape))
    if isinstance(ledger, Ledger):
        raise LedgerError("name the account that pays: ledger.account('census'). Nothing was spent.")
    require_jax()
    source = entropy or SystemEntropy()
    held = Checkpoint(None if checkpoint is None else Path(checkpoint))
    with held.alone():
        state = held.load(plan.digest) or _beginning(plan, source)
        if state.measured < plan.rounds:
            # Written before the debit, so that for every debit the name of its run is on the disk.
            held.save(state)
            counts = _counts(records, plan, _Bill(plan, ledger, purpose, state.run), progress)
        while state.projected < plan.rounds:
            if state.measured == state.projected:
                state = measure_round(plan, counts, state, sampler or ExactSampler(source))
                held.save(state)
            state = project_round(plan, state, source, progress)
            held.save(state)
    relaxed = RelaxedRows(plan.queries.domain, state.logits)
    wanted = min(state.people, most_rows(len(relaxed.domain.shape))) if rows is None else rows
    return SyntheticRecords(
        relaxed.domain,
        relaxed.whole(wanted, source),
        guarantee=f"{privacy} ({plan.neighbours})",
        origin=f"by RAP from {state.cells.size:,} cells of {len(plan.queries.margins):,} tables",
    )


def most_rows(attributes: int) -> int:
    """Return how many rows with this many attributes `check_rows` accepts."""
    return MEMORY // (4 * attributes + 16)


def measure_round(
    plan: RapPlan, counts: NDArray[np.int64], state: Progressed, sampler: Sampler
) -> Progressed:
    """Return the state with the answers of one more round. Spends that round's share of ρ.

    `counts` are the exact counts of all cells. The first round also measures the number of people.
    """
    queries = plan.queries
    people = state.people
    if not people:
        first = queries.domain.cells(queries.margins[0])
        exact = int(counts[:first].sum())
        noise = 0 if plan.total_noise is None else int(sampler.draw(plan.total_noise, 1)[0])
        people = max(1, exact + noise)
    if plan.rounds == 1:
        chosen = queries.asked
    else:
        left = np.setdiff1d(queries.asked, state.cells)
        shares = RelaxedRows(queries.domain, state.logits).answers(queries)
        synthetic = np.rint(shares * people).astype(np.int64)
        places = noisy_largest(
            np.abs(counts - synthetic)[left],
            plan.per_round,
            rho=plan.share,
            sensitivity=plan.neighbours.records,
            sampler=sampler,
        )
        chosen = left[places]
    answers = counts[chosen] + sampler.draw(plan.noise, chosen.size)
    return replace(
        state,
        people=people,
        measured=state.measured + 1,
        cells=np.concatenate([state.cells, chosen]),
        answers=np.concatenate([state.answers, answers]),
    )


def project_round(
    plan: RapPlan, state: Progressed, entropy: Entropy, progress: Progress | None = None
) -> Progressed:
    """Return the state with the relaxed rows projected onto all answers so far. Spends nothing."""
    before = state.projected * plan.steps

    def tell(done: int) -> None:
        if progress is not None:
            progress("fitting relaxed rows", before + done, plan.rounds * plan.steps)

    fitted = project(
        plan.queries,
        state.cells,
        state.answers / state.people,
        RelaxedRows(plan.queries.domain, state.logits),
        steps=plan.steps,
        entropy=entropy,
        progress=tell,
    )
    return replace(state, projected=state.projected + 1, logits=fitted.logits)


def _beginning(plan: RapPlan, entropy: Entropy) -> Progressed:
    start = RelaxedRows.start(plan.queries.domain, plan.relaxed_rows, entropy)
    # Not from `entropy`: a run with the same seed as another would find the other's debit and pay nothing.
    return Progressed(plan.digest, secrets.token_hex(16), logits=start.logits)


@dataclass(frozen=True)
class _Bill:
    """The cost of a run, paid once however often it is started."""

    plan: RapPlan
    ledger: Account | None
    purpose: str
    run: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.plan.digest}:{self.run}".encode()).hexdigest()

    def paid(self) -> bool:
        """Return whether nothing is owed: there is no ledger, or it has the run's entry."""
        return self.ledger is None or any(e.plan_digest == self.digest for e in self.ledger.entries())

    def check(self) -> None:
        if not self.paid() and self.ledger is not None:
            self.ledger.check(self.plan.privacy, self.plan.neighbours)

    def pay(self) -> None:
        if not self.paid() and self.ledger is not None:
            self.ledger.debit(
                self.plan.privacy, self.plan.neighbours, purpose=self.purpose, plan_digest=self.digest
            )


def _counts(
    records: Records | Table, plan: RapPlan, bill: _Bill, progress: Progress | None
) -> NDArray[np.int64]:
    """Return the exact count of every cell, paid for. If the source or the account fails, nothing is spent."""
    bill.check()
    tally = counted(records, plan.queries.margins, plan.neighbours, progress)
    bill.pay()
    return plan.queries.exact(tally)
