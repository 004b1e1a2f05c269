"""`tabulary audit`: check whether a mechanism keeps the promise of a plan, by computation and by drawing."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid
from rich.text import Text

from tabulary.cli.console import output, progress_bar
from tabulary.core.privacy import Loss, PureDP
from tabulary.errors import InvalidArgument
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning import Plan
from tabulary.release import Release
from tabulary.workflows import read_plan_file
from tabulary.workflows.auditing import AuditReport, audit
from tabulary.workflows.auditing.audit import CONFIDENCE
from tabulary.workflows.auditing.evidence import SABOTAGED, Evidence

# Exit codes in addition to those of every command.
BROKEN, INCONCLUSIVE = 1, 3
_CODES = {"holds": 0, "broken": BROKEN, "inconclusive": INCONCLUSIVE}
_SHOWN = {
    "holds": ("The promise holds.", "bold green"),
    "broken": ("THE PROMISE IS BROKEN.", "bold red"),
    "inconclusive": ("INCONCLUSIVE: this audit could have missed noise that is too small.", "bold yellow"),
}


def audit_plan(
    plan: Annotated[Path, typer.Argument(help="A plan file in TOML, or a release folder.")],
    draws: Annotated[
        int | None,
        typer.Option(
            help="How many times to measure each of the two inputs. Default: as many times as the test needs."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="The confidence of a finding.")] = CONFIDENCE,
    seed: Annotated[
        str | None,
        typer.Option(help="Any text. The same seed gives the same audit. Default: fresh random draws."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> int:
    """Compute the cost of a plan again, draw from its mechanism, and say if the promise holds. Reads no records.

    The audit also tests a sabotaged copy whose noise is too small: an audit that does not catch it proves nothing.
    Exit code 0: the promise holds. 1: it is broken. 3: the audit needs more draws to decide.

    Examples: tabulary audit census.toml, or: tabulary audit census.toml --json
    """
    made, digest = _plan_of(plan)
    # The audit reads no records, so a known seed can reveal nothing.
    entropy = None if seed is None else KeyedEntropy(sha256(seed.encode()).digest(), "audit")
    with progress_bar() as progress:
        report = audit(made, draws=draws, confidence=confidence, entropy=entropy, progress=progress)
    if as_json:
        described = {"source": str(plan), "release_digest": digest, "seed": seed, **report.describe()}
        typer.echo(json.dumps(described, ensure_ascii=False, indent=2))
    else:
        _print(report, plan, digest)
    return _CODES[report.verdict]


def _plan_of(path: Path) -> tuple[Plan, str | None]:
    """Return the plan of a plan file, or the plan and the digest of a verified release."""
    if not path.exists():
        raise InvalidArgument(f"there is no plan file and no release folder at {path}. Nothing was audited.")
    if not path.is_dir():
        return read_plan_file(path).plan, None
    release = Release.load(path)
    return release.plan, release.digest


def _print(report: AuditReport, path: Path, digest: str | None) -> None:
    plan, cost, drawn = report.plan, report.cost, report.drawn
    if digest is not None:
        output.print(
            f"{path}: the folder was verified. Every file and every claim is correct (digest "
            f"{digest[:12]}…).",
            markup=False,
            soft_wrap=True,
        )
    grid = Grid(title="Audit of a plan", title_justify="left", show_header=False, show_lines=True)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    grid.add_column(justify="center")

    def row(name: str, said: str, holds: bool | None = None) -> None:
        mark = "" if holds is None else "✓" if holds else "✗"
        grid.add_row(Text(name), Text(said), Text(mark, style="green" if holds else "red"))

    noise = (
        ""
        if plan.loss == plan.privacy
        else (f" Its noise satisfies {plan.loss}, which implies that promise.")
    )
    row("promised", f"{plan.privacy} ({plan.neighbours}), mechanism '{plan.mechanism}'.{noise}")
    row("cost, computed again", _said_of_cost(report), not cost.problems)
    row("draws", _said_of_draws(report))
    row(
        "loss that they show",
        f"{_said_of_loss(report, drawn)}, with confidence {report.confidence:.10g}.",
        not set(report.problems) - set(cost.problems),
    )
    row(
        f"twin at scale × {float(SABOTAGED)}",
        f"{_said_of_loss(report, report.twin)}: {'caught' if report.twin_caught else 'not caught'}.",
        report.twin_caught,
    )
    output.print(grid)
    for problem in report.problems:
        output.print(f"✗ {problem[:1].upper()}{problem[1:]}.", style="red", markup=False)
    said, style = _SHOWN[report.verdict]
    output.print(said, style=style, markup=False)
    if report.verdict == "inconclusive":
        output.print(
            f"The sabotaged copy passed too. Use more draws: --draws {4 * drawn.draws}.", markup=False
        )
    elif report.verdict == "broken":
        output.print(
            "Do not publish a release with this plan and this installation. Please report the defect.",
            markup=False,
        )
    if digest is not None:
        output.print(
            "This audit tests the mechanism of this installation with the plan of the release. The noise "
            "that was drawn for the release is secret; no audit can check it.",
            markup=False,
        )


def _said_of_cost(report: AuditReport) -> str:
    cost = report.cost
    among = f"{cost.pairs:,} pairs of {cost.records:,} records"
    if report.plan.neighbours.relation == "add-remove":
        among = f"{cost.records:,} records"
    if cost.every_pair:
        return (
            f"{_amount(report.plan.loss, float(cost.found))}, the largest of all {among}; each pair was "
            "measured separately."
        )
    return (
        f"at most {_amount(report.plan.loss, float(cost.certificate))}, by the plan's own proof. There are "
        f"too many records to try all pairs. The largest of {among} is "
        f"{_amount(report.plan.loss, float(cost.found))}."
    )


def _said_of_draws(report: AuditReport) -> str:
    drawn = report.drawn
    apart = "one person" if drawn.people == 1 else f"{drawn.people:,} persons who change in the same way"
    return (
        f"{drawn.draws:,} measurements of each of two inputs that differ by {apart}: the two inputs that "
        "differ most."
    )


def _said_of_loss(report: AuditReport, evidence: Evidence) -> str:
    shown = report.loss_shown(evidence)
    if shown is None:
        return "nothing"
    said = f"at least {_amount(shown, float(shown.epsilon if isinstance(shown, PureDP) else shown.rho))}"
    epsilon = report.epsilon_shown(evidence)
    if epsilon is not None and not isinstance(shown, PureDP):
        said += f", which is ε = {epsilon:.3g} at the promised δ"
    allowed = report.plan.loss
    amount = float(allowed.epsilon if isinstance(allowed, PureDP) else allowed.rho)
    return f"{said} of {_amount(allowed, amount)} for one person"


def _amount(loss: Loss, amount: float) -> str:
    return f"{'ε' if isinstance(loss, PureDP) else 'ρ'} = {amount:.4g}"
