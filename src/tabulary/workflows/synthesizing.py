"""Synthetic rows as a use case: from a release folder, or from the records of a plan file."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from tabulary.confidential.records import Records
from tabulary.core.privacy import ZCDP, ApproxDP
from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument
from tabulary.ledger import Account
from tabulary.release import Release
from tabulary.synth import from_release, graphical, mwem, rap
from tabulary.synth.rows import SyntheticRecords
from tabulary.workflows.planfile import PlanFile
from tabulary.workflows.releasing import release


class SynthesisMethod(StrEnum):
    """The methods that make rows from records."""

    release = "release"
    mwem = "mwem"
    rap = "rap"
    graphical = "graphical"


def synthesize(
    planned: PlanFile,
    method: SynthesisMethod,
    *,
    rows: int | None = None,
    rounds: int | None = None,
    ledger: Account | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> tuple[SyntheticRecords, Release | None]:
    """Return rows from the records of a plan file, and the release that they were made from, if there is one.

    `release` measures the plan and makes the rows from its tables. The other methods choose themselves what to
    measure; they take the tables, the privacy and the neighbours from the plan. The plan's privacy is debited once.
    """
    _check(planned, method, rounds, checkpoint)
    source = planned.records()
    try:
        if method is SynthesisMethod.release:
            made = release(source, planned.plan, ledger, purpose=planned.path.name, progress=progress)
            return from_release(made, rows, progress=progress), made
        return _chosen(source, planned, method, rows, rounds, ledger, checkpoint, progress), None
    finally:
        source.close()


def _check(planned: PlanFile, method: SynthesisMethod, rounds: int | None, checkpoint: Path | None) -> None:
    if checkpoint is not None and method is not SynthesisMethod.rap:
        raise InvalidArgument("only the method rap uses a checkpoint. Nothing was measured.")
    if method is SynthesisMethod.release:
        if rounds is not None:
            raise InvalidArgument("only rap, mwem and graphical have rounds. Nothing was measured.")
    elif method is not SynthesisMethod.mwem and not isinstance(planned.plan.privacy, ApproxDP | ZCDP):
        raise InvalidArgument(
            f"{method} adds Gaussian noise, which needs a delta or a rho. Nothing was measured. Set one in "
            "[privacy] of the plan file, or use the method mwem."
        )


def _chosen(
    source: Records,
    planned: PlanFile,
    method: SynthesisMethod,
    rows: int | None,
    rounds: int | None,
    ledger: Account | None,
    checkpoint: Path | None,
    progress: Progress | None,
) -> SyntheticRecords:
    plan = planned.plan
    options: dict[str, Any] = {
        "rows": rows,
        "neighbours": plan.neighbours,
        "ledger": ledger,
        "purpose": planned.path.name,
        "progress": progress,
        # Each method has its own default number of rounds.
        **({} if rounds is None else {"rounds": rounds}),
    }
    if method is SynthesisMethod.mwem:
        return mwem(source, plan.workload, plan.privacy, **options)
    assert isinstance(plan.privacy, ApproxDP | ZCDP)
    if method is SynthesisMethod.graphical:
        return graphical(source, plan.workload, plan.privacy, **options)
    return rap(source, plan.workload, plan.privacy, checkpoint=checkpoint, **options)
