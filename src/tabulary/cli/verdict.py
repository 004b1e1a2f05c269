"""The results of tests for one question, side by side and in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.table import Table as Grid
from rich.text import Text

from tabulary.cli.console import output

TestMethod = Literal["naive", "noise-aware"]
NAIVE: Final = "naive"
AWARE: Final = "noise-aware"

_TAKES: dict[TestMethod, str] = {NAIVE: "as exact numbers", AWARE: "with their noise"}
_SELDOM = 1e-4
_ALMOST_ALWAYS = 0.985


@dataclass(frozen=True)
class TestQuestion:
    """A question that a test answers: its hypothesis, and the words for both verdicts.

    `supposed` is a clause after "if"; `found` is the verdict if the test rejects it, `missed` the verdict if it
    does not.
    """

    asked: str
    supposed: str
    found: str
    missed: str


@dataclass(frozen=True)
class TestVerdict:
    """The result of one test: its statistic, its p-value and the assumptions behind it."""

    method: TestMethod
    statistic: float
    degrees_of_freedom: int
    p_value: float
    assumed: tuple[str, ...]

    def rejects(self, alpha: float) -> bool:
        """Return whether the test rejects what the question supposes."""
        return self.p_value <= alpha


def print_verdicts(question: TestQuestion, verdicts: Sequence[TestVerdict], alpha: float) -> None:
    """Print the result of each test, side by side, and how to read it."""
    grid = Grid(show_lines=True)
    grid.add_column("")
    for verdict in verdicts:
        grid.add_column(Text(verdict.method))
    answers = [question.found if verdict.rejects(alpha) else question.missed for verdict in verdicts]
    rows = {
        "takes the counts": [_TAKES[verdict.method] for verdict in verdicts],
        "verdict": answers,
        "how often chance would do this": [chance(verdict.p_value) for verdict in verdicts],
        "p-value": [show_p_value(verdict.p_value) for verdict in verdicts],
        "statistic": [f"{v.statistic:,.2f} on {v.degrees_of_freedom:,} d.f." for v in verdicts],
    }
    for name, cells in rows.items():
        grid.add_row(Text(name), *(Text(cell, style="bold" if name == "verdict" else "") for cell in cells))
    output.print(grid)
    output.print(
        f"If {question.supposed}, chance alone would give a table at least this far from it that often. At "
        f"{chance(alpha)} or less (--alpha) a test calls it a finding.",
        markup=False,
        style="dim",
    )
    _print_meaning(verdicts, alpha)


def print_assumptions(verdicts: Sequence[TestVerdict]) -> None:
    """Print the assumptions of the p-values, each sentence once, with the tests that need it."""
    sentences: dict[str, list[str]] = {}
    for verdict in verdicts:
        for sentence in verdict.assumed:
            # The library's sentences are for people who call it from Python.
            told = sentence.replace("method='bootstrap'", "--bootstrap 999").rstrip(".")
            sentences.setdefault(told[:1].lower() + told[1:], []).append(verdict.method)
    output.print("\nAssumptions", style="bold")
    grid = Grid.grid(padding=(0, 1))
    for sentence, methods in sentences.items():
        grid.add_row("•", Text(f"{' and '.join(methods)}: {sentence}."))
    output.print(grid)


def warn(sentence: str) -> None:
    """Print a sentence that the reader must not miss."""
    output.print(f"▲ {sentence}", style="bold yellow", markup=False)


def chance(p_value: float) -> str:
    """Return how often something happens, in words.

    >>> chance(0.42), chance(0.003), chance(2e-9)
    ('42 times in 100', '3 times in 1,000', 'less than once in 10,000')
    """
    if p_value < _SELDOM:
        return "less than once in 10,000"
    if p_value > _ALMOST_ALWAYS:
        return "almost always"
    among = next(n for n in (100, 1_000, 10_000) if n == 10_000 or p_value * n >= 1.5)
    times = round(p_value * among)
    return f"{times} times in {among:,}" if times > 1 else f"once in {among:,}"


def show_p_value(p_value: float) -> str:
    """Return a p-value with two significant digits.

    >>> show_p_value(0.4237), show_p_value(0.00312), show_p_value(2e-9)
    ('0.42', '0.0031', 'below 0.0001')
    """
    return "below 0.0001" if p_value < _SELDOM else f"{p_value:.2g}"


def _print_meaning(verdicts: Sequence[TestVerdict], alpha: float) -> None:
    rejected = {verdict.method: verdict.rejects(alpha) for verdict in verdicts}
    if AWARE not in rejected:
        warn(
            "The naive test ignores the noise that protects the people behind this table, and can mistake "
            "it for a finding. Do not rely on the naive test alone."
        )
        return
    if NAIVE in rejected and rejected[NAIVE] != rejected[AWARE]:
        warn("The verdicts differ. Trust the noise-aware one.")
        output.print(
            "The noise alone can produce what the naive test calls a finding. The noise protects people "
            "and says nothing about them."
            if rejected[NAIVE]
            else "The naive test does not know how certain each count is, and shrunk counts can hide a finding. "
            "The noise-aware test reads the measurements with their noise.",
            markup=False,
        )
    elif NAIVE in rejected:
        output.print("Both tests agree: here the noise does not change the verdict.", markup=False)
    if not rejected[AWARE]:
        output.print(
            '"No sign" is not a proof: a weak relation can be hidden by the noise, or by a small number of '
            "people.",
            markup=False,
        )
