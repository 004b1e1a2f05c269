"""The main use case: check → count → debit → measure → reconstruct → release."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from tabulary.confidential.dropping import refuse_public_total
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import refuse_weights
from tabulary.core.domain import check_same_domain
from tabulary.core.labels import Labels
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, LedgerError, NotCertified
from tabulary.ledger import Account, Ledger
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler, Sampler
from tabulary.noise.entropy import Entropy, SystemEntropy
from tabulary.planning import Plan
from tabulary.reconstruct.reconstruction import LinearTables
from tabulary.release import Release, SigningKey, expected_bytes, staged_folder
from tabulary.release.manifest import EpsilonPlace
from tabulary.release.table_sheet import ErrorPlace
from tabulary.release.writers import FORMATS, extra_formats


def release(
    data: Records | Table,
    plan: Plan,
    ledger: Account | None = None,
    *,
    purpose: str = "release",
    title: str = "",
    labels: Labels | Iterable[Labels] = (),
    sampler: Sampler | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> Release:
    """Return the released tables of a plan. Spends the plan's privacy once, also if a later step fails.

    The order protects the people. First the account is asked if it can pay, so an account without budget costs no
    counting. The records are read and counted before the debit, so a broken file costs no budget; exact counts are
    confidential and are dropped. Then the debit is written to disk. Only then is noise drawn. A crash in between
    loses budget, never privacy.

    Args:
        data: `Records`, or a `Table` of exact counts that is still to be protected.
        plan: from `tb.plan`, for the same domain.
        ledger: the account that pays, from `Ledger.open(path).account(name)`; None keeps no books.
        purpose: a public word for the ledger's entry.
        title: what the report is called, if there are no labels.
        labels: the words for readers, one `Labels` per language, the default first.
        sampler: who draws the noise; the exact sampler by default.
        entropy: where all randomness comes from; the operating system by default. The same words make the same
            release of the same counts, so what has served for one release never serves for another.
        progress: called with (what, done, total) while counting and making tables; a total of zero is unknown.

    >>> import tabulary as tb
    >>> table = tb.datasets.load("rochdale")
    >>> released = tb.release(table, tb.plan(table.domain, "[AB][AC]", privacy=tb.PureDP(1)))
    >>> released["A", "B"].counts.shape
    (2, 2)
    """
    unbiased = _measured(data, plan, ledger, purpose, title, labels, sampler, entropy, progress)
    try:
        return _as_planned(unbiased, progress)
    except NotCertified as problem:
        # The measurement is paid for and public: the caller who gets the error can reconstruct it in another way.
        problem.measurement = unbiased.measurement
        problem.add_note(
            "The budget of this plan is spent; the noisy measurement is kept as error.measurement."
        )
        raise


def release_to_folder(
    data: Callable[[], Records | Table],
    plan: Plan,
    path: str | os.PathLike[str],
    ledger: Account | None = None,
    *,
    purpose: str = "release",
    labels: Labels | Iterable[Labels] = (),
    formats: Iterable[str] = (),
    errors: ErrorPlace = ErrorPlace.below,
    signing_key: SigningKey | None = None,
    epsilon: EpsilonPlace = EpsilonPlace.folded,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> Release:
    """Return the release of a plan, saved at `path` completely or not at all, in CSV, Parquet and further `formats`.

    The folder is prepared before the records are opened. So an output that already exists, a disk that is full or
    cannot be written, and a format that cannot be written are found before anything is read or spent. `errors` says
    where a workbook shows the ± of a number, and `epsilon` where the report names the parameter of the promise. A
    `signing_key` signs the release. `entropy` is that of `release`.

    Where the tables of the plan cannot be made, the folder has the unbiased estimates instead, and NotCertified is
    raised: what was paid for is not lost.
    """
    refusal = None
    extra = extra_formats(formats)
    for name in extra:
        FORMATS[name].refuse(max(map(plan.domain.cells, plan.workload)))
    given = (labels,) if isinstance(labels, Labels) else tuple(labels)
    with staged_folder(Path(path), expected_bytes=expected_bytes(plan, extra, given)) as staged:
        if progress is not None:
            progress("reading", 0, 0)
        source = data()
        try:
            made = _measured(source, plan, ledger, purpose, "", given, None, entropy, progress)
        finally:
            if isinstance(source, Records):
                source.close()
        try:
            planned = _as_planned(made, progress)
            # Errors are computed when they are first asked for: here, where a failure loses nothing.
            _ = planned.face.curves
            made = planned
        except NotCertified as problem:
            refusal = problem
        made.write_into(staged, formats=extra, errors=errors, signing_key=signing_key, epsilon=epsilon)
    if refusal is not None:
        refusal.add_note(
            f"The budget of this plan is spent. Its measurements are saved in {made.folder}, with the unbiased "
            "estimates as tables. `tabulary rebuild` makes other tables of them and spends nothing."
        )
        raise refusal
    return made


def _measured(
    data: Records | Table,
    plan: Plan,
    ledger: Account | None,
    purpose: str,
    title: str,
    labels: Labels | Iterable[Labels],
    sampler: Sampler | None,
    entropy: Entropy | None,
    progress: Progress | None,
) -> Release:
    """Return the release with its unbiased estimates as tables. Spends the plan's privacy."""
    if not isinstance(plan, Plan):
        raise InvalidArgument(
            f"a release needs a plan from tb.plan, not a {type(plan).__name__}. Nothing was spent."
        )
    if isinstance(ledger, Ledger):
        raise LedgerError("name the account that pays: ledger.account('census'). Nothing was spent.")
    labels = (labels,) if isinstance(labels, Labels) else tuple(labels)
    for each in labels:
        each.check(plan.domain)
    if ledger is not None:
        ledger.check(plan.privacy, plan.neighbours)
    tally = _count(data, plan, progress)
    receipt = None
    if ledger is not None:
        entry = ledger.debit(plan.privacy, plan.neighbours, purpose=purpose, plan_digest=plan.digest())
        receipt = ledger.receipt(entry)
    measurement = measure(tally, plan, sampler or ExactSampler(entropy or SystemEntropy()))
    return Release(
        measurement,
        LinearTables(measurement),
        labels=labels,
        title=title,
        dropping=tally.drops,
        engine=data.engine if isinstance(data, Records) else None,
        receipt=receipt,
    )


def _as_planned(unbiased: Release, progress: Progress | None) -> Release:
    plan = unbiased.plan
    return unbiased.rebuild(reconstruct=plan.reconstruct, rounding=plan.rounding, progress=progress)


def _count(data: Records | Table, plan: Plan, progress: Progress | None) -> Tally:
    if not isinstance(data, Records | Table):
        raise InvalidArgument(
            f"a release is made from Records or from a Table, not from {type(data).__name__}."
        )
    if isinstance(data, Records):
        refuse_weights(
            data.weights,
            use="a plan",
            state="Nothing was measured.",
            remedy="Publish weighted tables with tb.perturb.Tables; to release plain counts, open the records without "
            "weights.",
        )
    check_same_domain(data.domain, plan.domain, things="the data and the plan", state="Nothing was measured.")
    if isinstance(data, Table):
        return Tally.from_table(data, plan.counted)
    refuse_public_total(plan.neighbours, data.drops)
    return data.tally(plan.counted, progress=progress)
