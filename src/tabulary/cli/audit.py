"""`tabulary audit`: whether the mechanism keeps what a plan promises, computed and drawn again."""

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

# Exit codes besides those of every command.
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
        typer.Option(help="How often each of the two inputs is measured; otherwise as often as it takes."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure a finding is.")] = CONFIDENCE,
    seed: Annotated[
        str | None, typer.Option(help="Any text: the same seed gives the same audit. Otherwise fresh draws.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> int:
    """Check the cost of a plan again, draw from its mechanism, and say whether the promise holds. Reads no records.

    The same is done to a sabotaged twin, whose noise is too small: an audit that does not catch it proves nothing.
    Exit code 0: the promise holds. 1: it is broken. 3: more draws are needed to tell.

    Examples: tabulary audit census.toml, or: tabulary audit census.toml --json
    """
    made, digest = _plan_of(plan)
    # There are no records here, and so nothing that a known seed could betray.
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
    """Return the plan of a plan file, or that of a verified release and its digest."""
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
            f"{path}: the folder was verified, every file and claim holds (digest {digest[:12]}…).",
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

    noise = "" if plan.loss == plan.privacy else f" Its noise satisfies {plan.loss}, which implies that."
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
            f"The sabotaged twin passed as well. Draw more often: --draws {4 * drawn.draws}.", markup=False
        )
    elif report.verdict == "broken":
        output.print("Do not release by this plan with this installation. Report it.", markup=False)
    if digest is not None:
        output.print(
            "This is an audit of the mechanism in this installation, by the release's plan. The noise that was drawn "
            "for the release is secret, and no audit can look at it.",
            markup=False,
        )


def _said_of_cost(report: AuditReport) -> str:
    cost = report.cost
    among = f"{cost.pairs:,} pairs of {cost.records:,} records"
    if report.plan.neighbours.relation == "add-remove":
        among = f"{cost.records:,} records"
    if cost.every_pair:
        return f"{_amount(report.plan.loss, float(cost.found))}, the largest of all {among}, each measured by itself."
    return (
        f"at most {_amount(report.plan.loss, float(cost.certificate))}, by the plan's own proof: there are too many "
        f"records to try all. Among {among} the largest is {_amount(report.plan.loss, float(cost.found))}."
    )


def _said_of_draws(report: AuditReport) -> str:
    drawn = report.drawn
    apart = "one person" if drawn.people == 1 else f"{drawn.people:,} persons who change alike"
    return f"{drawn.draws:,} measurements of each of two inputs that differ by {apart}: the ones that differ most."


def _said_of_loss(report: AuditReport, evidence: Evidence) -> str:
    shown = report.loss_shown(evidence)
    if shown is None:
        return "nothing"
    said = f"at least {_amount(shown, float(shown.epsilon if isinstance(shown, PureDP) else shown.rho))}"
    epsilon = report.epsilon_shown(evidence)
    if epsilon is not None and not isinstance(shown, PureDP):
        said += f", that is ε = {epsilon:.3g} at the promised δ"
    allowed = report.plan.loss
    amount = float(allowed.epsilon if isinstance(allowed, PureDP) else allowed.rho)
    return f"{said} of {_amount(allowed, amount)} for one person"


def _amount(loss: Loss, amount: float) -> str:
    return f"{'ε' if isinstance(loss, PureDP) else 'ρ'} = {amount:.4g}"
