"""Perturb the tables of a plan file count by count: debit, perturb, write into a new folder."""

import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from tabulary.cli.console import output, progress_bar
from tabulary.cli.payer import paying_account
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, listed
from tabulary.ledger import Account
from tabulary.perturb import Laplace, Normal
from tabulary.perturb.published_tables import PerturbedTables
from tabulary.perturb.tables import Tables
from tabulary.release import expected_bytes, staged_folder
from tabulary.release.formats import TABLES, csv_bytes, file_stems
from tabulary.workflows import PlanFile, read_plan_file
from tabulary.workflows.perturbing import perturb

_DESCRIPTION = "perturbation.json"


def perturb_plan_file(
    file: Path,
    folder: Path,
    *,
    family: type[Laplace] | type[Normal],
    bound: int | None,
    minimum: int | None,
    additive: bool,
    ledger: Path | None,
    account: str | None,
    witness: Path | None,
) -> None:
    """Publish the tables of a plan file in a new folder, every count perturbed separately: all tables or none."""
    planned = read_plan_file(file)
    if planned.formats:
        raise InvalidArgument(
            f"{file.name}: [output] formats: perturbed tables are written as CSV only; "
            f"{listed(planned.formats)} is for `tabulary release`. Nothing was counted, nothing was spent."
        )
    tables = _tables(planned, family, bound)
    tables.checked_options(minimum=minimum, margins="restored" if additive else "free")
    output.print(f"{tables}\n", markup=False)
    output.print(str(tables.standard_deviations()), markup=False, soft_wrap=True)
    with paying_account(planned, ledger, account, witness) as payer:
        made = _write(planned, tables, folder, payer, minimum=minimum, additive=additive)
        if payer is not None:
            left = payer.balance().remaining
            output.print(f"Paid {made.privacy} from account {payer.name!r}; {left} is left.", markup=False)
    output.print(f"\n{made.statement()}\n", markup=False)
    output.print(f"Published {len(made)} tables in {folder / TABLES}", markup=False, soft_wrap=True)
    output.print(f"The noise and the promise: {folder / _DESCRIPTION}", markup=False, soft_wrap=True)


def _tables(planned: PlanFile, family: type[Laplace] | type[Normal], bound: int | None) -> Tables:
    """Return the list of tables of the plan file; refuse a list whose δ is above the δ of the file."""
    made = planned.plan
    if isinstance(made.privacy, ZCDP):
        raise InvalidArgument(
            f"{planned.path.name}: [privacy] rho is for Gaussian noise; perturbed tables need `epsilon`, and `delta` "
            "for a bound. Nothing was counted, nothing was spent."
        )
    tables = Tables(
        made.domain,
        made.workload,
        **_budget(made.workload, made.privacy.epsilon, made.neighbours),
        family=family,
        bound=bound,
        neighbours=made.neighbours,
    )
    allowed = made.privacy.delta if isinstance(made.privacy, ApproxDP) else 0
    cost = tables.privacy()
    if isinstance(cost, ApproxDP) and cost.delta > allowed:
        raise InvalidArgument(
            f"{planned.path.name}: [privacy] promises {made.privacy}, but with --bound {bound} these tables "
            f"have δ = {show_fraction(cost.delta)}. Nothing was counted, nothing was spent. Allow that δ as "
            "`delta`, choose a larger bound, or, for laplace, no bound."
        )
    return tables


def _budget(work: Workload, epsilon: Fraction, neighbours: Neighbours) -> dict[str, Any]:
    """Return the ε of the list, the same for every cell; or one ε per table, if the file gives weights."""
    if len(set(work.weights)) == 1:
        return {"epsilon": epsilon}
    importance: dict[Iterable[str], object] = dict(zip(work.margins, work.weights, strict=True))
    split = Tables.allocated(work.domain, work, epsilon=epsilon, importance=importance, neighbours=neighbours)
    return {"epsilons": split.epsilons}


def _write(
    planned: PlanFile,
    tables: Tables,
    folder: Path,
    payer: Account | None,
    *,
    minimum: int | None,
    additive: bool,
) -> PerturbedTables:
    # The folder comes first: a problem with it is found before anything is read or spent.
    with (
        staged_folder(folder, expected_bytes=expected_bytes(planned.plan)) as staged,
        progress_bar() as progress,
    ):
        progress("reading", 0, 0)
        with planned.records() as records:
            made = perturb(
                records,
                tables,
                payer,
                minimum=minimum,
                margins="restored" if additive else "free",
                purpose=planned.path.name,
                progress=progress,
            )
        for margin, stem in file_stems(tables.margins).items():
            staged.write(f"{TABLES}/{stem}.csv", csv_bytes(made.tables[margin].to_arrow()))
        described = json.dumps(made.describe(), ensure_ascii=False, indent=2)
        staged.write(_DESCRIPTION, f"{described}\n".encode())
    return made
