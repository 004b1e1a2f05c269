"""`tabulary test`: test a released table, with and without its noise."""

from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tabulary import infer
from tabulary.cli.console import output, progress_bar
from tabulary.cli.model_search import print_search
from tabulary.cli.options import named_levels
from tabulary.cli.show import named_margin
from tabulary.cli.verdict import (
    AWARE,
    NAIVE,
    TestMethod,
    TestQuestion,
    TestVerdict,
    print_assumptions,
    print_verdicts,
)
from tabulary.core.exact_numbers import exact_fraction
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidArgument, InvalidNoise, InvalidTable, listed
from tabulary.infer.hypothesis import ASYMPTOTIC
from tabulary.infer.independence import EXACT, NEGATIVE
from tabulary.planning import show_width
from tabulary.release import Release, ReleasedTable
from tabulary.release.table import CONFIDENCE

Answered = tuple[TestQuestion, list[TestVerdict]]


class WhichTests(StrEnum):
    """Which tests to run."""

    both = "both"
    naive = NAIVE
    aware = AWARE

    @property
    def tests(self) -> tuple[TestMethod, ...]:
        """The methods to use, in the order in which they are shown."""
        return _TESTS[self]


_TESTS: dict[WhichTests, tuple[TestMethod, ...]] = {
    WhichTests.both: (NAIVE, AWARE),
    WhichTests.naive: (NAIVE,),
    WhichTests.aware: (AWARE,),
}


def judge(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    margin: Annotated[list[str], typer.Argument(help="The attributes of the table.")],
    method: Annotated[
        WhichTests, typer.Option(help="The test that accounts for the noise, the naive test, or both.")
    ] = WhichTests.both,
    alpha: Annotated[
        float, typer.Option(help="How often a test may call chance a finding: 0.05 means 5 times in 100.")
    ] = 0.05,
    model: Annotated[
        str | None, typer.Option(help='Test a log-linear model instead, such as "[sex age][age job]".')
    ] = None,
    expected: Annotated[
        str | None, typer.Option(help="For one attribute: the shares to compare with, such as 1,1,2.")
    ] = None,
    bootstrap: Annotated[
        int | None,
        typer.Option(
            min=19, help="For two attributes with small counts: compute p from this many redrawn tables."
        ),
    ] = None,
    merge: Annotated[
        list[str] | None,
        typer.Option(
            help="Merge levels of an attribute into one, such as score=Medium+High. May be given again."
        ),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Look for the simplest log-linear model that fits.")
    ] = False,
) -> None:
    """Test a table of a release: naively, and with the noise that the release states. Verifies the release first.

    Two attributes: are they related? One attribute: are its levels equally frequent, or as in --expected? More: are
    all of them unrelated, or does the --model fit?

    Examples: tabulary test census-2026 sex age,
    or: tabulary test census-2026 sex --expected 1,1,
    or: tabulary test census-2026 sex age job --model "[sex age][age job]",
    or: tabulary test census-2026 sex age --merge age=15-64+65+,
    or: tabulary test census-2026 sex age job --search
    """
    _check_options(alpha, method, model=model, expected=expected, bootstrap=bootstrap, search=search)
    release = Release.load(folder)
    table = release[named_margin(margin, release)]
    together = named_levels("--merge", merge, table.domain, "Nothing was tested.")
    if together:
        table = infer.merged(table, together)
    if not table.shape or min(table.shape) < 2:
        raise InvalidTable(
            f"{show_margin(table.margin)} cannot be tested: a test needs at least one attribute, and at "
            "least two levels of each. Choose another table."
        )
    try:
        if search:
            print_search(table, alpha)
            return
        question, verdicts = _answered(table, method, model=model, expected=expected, bootstrap=bootstrap)
        if all(verdict.degrees_of_freedom == 0 for verdict in verdicts):
            raise InvalidTable(
                f"{show_margin(table.margin)} cannot be tested: the hypothesis fits every such table, or "
                "nearly all people are in one level. Choose a smaller model, or another table."
            )
    except InvalidNoise as problem:
        problem.add_note(
            "Nothing was tested. --method naive ignores the noise and can mistake it for a finding."
        )
        raise
    output.print(f"\n{question.asked}", style="bold", markup=False)
    output.print(_described(table), markup=False)
    print_verdicts(question, verdicts, alpha)
    if len(table.margin) == 2 and model is None and method is not WhichTests.naive:
        _print_strength(table)
    print_assumptions(verdicts)


def _check_options(
    alpha: float,
    method: WhichTests,
    *,
    model: str | None,
    expected: str | None,
    bootstrap: int | None,
    search: bool,
) -> None:
    if not 0 < alpha < 1:
        raise InvalidArgument(
            f"--alpha {alpha:g} is not between 0 and 1. Nothing was tested. Choose for example 0.05."
        )
    chosen = {"--search": search, "--model": model, "--expected": expected, "--bootstrap": bootstrap}
    given = [name for name, value in chosen.items() if value]
    if len(given) > 1:
        raise InvalidArgument(
            f"{given[1]} does not go with {given[0]}. Nothing was tested. Leave one of them out."
        )
    if method is not WhichTests.both and search:
        raise InvalidArgument("--search shows both verdicts. Nothing was tested. Leave --method out.")
    if method is WhichTests.naive and bootstrap:
        raise InvalidArgument(
            "--bootstrap redraws the noise, and --method naive ignores it. Nothing was tested. Leave one "
            "of them out."
        )


def _answered(
    table: ReleasedTable,
    method: WhichTests,
    *,
    model: str | None,
    expected: str | None,
    bootstrap: int | None,
) -> Answered:
    """Return the question that the options ask of a table, and what each test says."""
    attributes = len(table.margin)
    if expected is not None and attributes != 1:
        raise InvalidArgument(
            f"--expected gives the shares of one attribute, but this table has {attributes}. Nothing was "
            "tested."
        )
    if bootstrap is not None and attributes != 2:
        raise InvalidArgument(
            f"--bootstrap is for two attributes, but this table has {attributes}. Nothing was tested."
        )
    if model is not None:
        return _of_model(table, method, model)
    if attributes == 1:
        return _of_shares(table, method, expected)
    if attributes == 2:
        return _of_two(table, method, bootstrap)
    return _of_more(table, method)


def _of_two(table: ReleasedTable, method: WhichTests, bootstrap: int | None) -> Answered:
    pair = " and ".join(table.margin)
    question = TestQuestion(
        asked=f"Are {pair} related?",
        supposed=f"{pair} were unrelated",
        found="yes, they are related",
        missed="no sign that they are related",
    )
    found = [
        _redrawn(table, bootstrap) if each == AWARE and bootstrap else infer.independence(table, each)
        for each in method.tests
    ]
    return question, [
        TestVerdict(each, one.statistic, one.degrees_of_freedom, one.p_value, one.assumed)
        for each, one in zip(method.tests, found, strict=True)
    ]


def _redrawn(table: ReleasedTable, repetitions: int) -> infer.TestResult:
    with progress_bar() as progress:
        return infer.independence(table, "bootstrap", repetitions=repetitions, progress=progress)


def _of_more(table: ReleasedTable, method: WhichTests) -> Answered:
    *first, last = table.margin
    named = f"{', '.join(first)} and {last}"
    question = TestQuestion(
        asked=f"Are any of {named} related?",
        supposed=f"{named} were all unrelated",
        found="yes, at least two of them are",
        missed="no sign that any are",
    )
    return question, _fitted(table, method, [(name,) for name in table.margin])


def _of_model(table: ReleasedTable, method: WhichTests, model: str) -> Answered:
    question = TestQuestion(
        asked=f"Does the model {model} leave anything out?",
        supposed=f"{model} were all there is",
        found="yes, it leaves something out",
        missed="no sign that it does",
    )
    return question, _fitted(table, method, model)


def _fitted(table: ReleasedTable, method: WhichTests, model: str | list[tuple[str]]) -> list[TestVerdict]:
    found = [infer.loglinear(table, model, method=each) for each in method.tests]
    return [
        TestVerdict(each, fit.g2, fit.degrees_of_freedom, fit.p_value, fit.assumed)
        for each, fit in zip(method.tests, found, strict=True)
    ]


def _of_shares(table: ReleasedTable, method: WhichTests, expected: str | None) -> Answered:
    (name,) = table.margin
    if expected is None:
        shares = [Fraction(1, table.counts.size)] * table.counts.size
        wanted = "equally frequent"
    else:
        shares = _shares(expected, table.counts.size)
        wanted = f"as frequent as {' : '.join(expected.split(','))}"
    question = TestQuestion(
        asked=f"Are the levels of {name} {wanted}?",
        supposed="they were",
        found="no, they are not",
        missed="no sign that they are not",
    )
    return question, [_compared(table, each, shares) for each in method.tests]


def _compared(table: ReleasedTable, method: TestMethod, shares: list[Fraction]) -> TestVerdict:
    """Return the test that the levels of one attribute have these shares, for any total."""
    if method == NAIVE:
        possible = ~np.asarray(table.domain.impossible(table.margin))
        counts = np.maximum(np.rint(table.counts), 0)[possible]
        wanted = [share for share, held in zip(shares, possible, strict=True) if held]
        wanted = [share / sum(wanted) for share in wanted]
        found = infer.goodness_of_fit(counts, None, wanted, method="chi-squared")
        negative = (NEGATIVE,) if np.any(table.counts < 0) else ()
        assumed = (EXACT, *negative, ASYMPTOTIC)
    else:
        found = infer.goodness_of_fit(table, None, shares)
        assumed = found.assumed
    return TestVerdict(method, found.statistic, found.degrees_of_freedom, found.p_value, assumed)


def _shares(expected: str, levels: int) -> list[Fraction]:
    """Return the shares that --expected gives, scaled to the sum one."""
    given = [exact_fraction(part, name="--expected", error=InvalidArgument) for part in expected.split(",")]
    if len(given) != levels or min(given) <= 0:
        raise InvalidArgument(
            f"--expected {expected}: give a positive number for each of the {levels} levels, such as "
            f"{','.join('1' * levels)}. Only the ratios matter. Nothing was tested."
        )
    return [share / sum(given) for share in given]


def _described(table: ReleasedTable) -> str:
    """Return which table is tested, and how large the noise of its measurements is."""
    sides = " × ".join(f"{side:,}" for side in table.shape)
    widths = table.unbiased.half_widths(CONFIDENCE)
    low, high = widths[widths > 0].min(initial=widths.max()), widths.max()
    near = f"±{show_width(high)}" if low == high else f"±{show_width(low)} to ±{show_width(high)}"
    return (
        f"{show_margin(table.margin)}, {sides} measured counts, each within {near} of the true count "
        f"({CONFIDENCE:.0%})."
    )


def _print_strength(table: ReleasedTable) -> None:
    """Print how strong the association is, with and without the noise."""
    found = infer.cramers_v(table, target="population")
    output.print(
        f"\nHow strong: Cramér's V = {found.estimate:.2f}, with {CONFIDENCE:.0%} confidence "
        f"{found.lower:.2f} to {found.upper:.2f}. 0 means no relation, 1 the strongest possible one. "
        f"Without regard to the noise, V would be {found.naive:.2f}.",
        markup=False,
    )
    if found.left_out:
        levels = listed(f"{attribute} {level}" for attribute, level in found.left_out)
        output.print(
            f"Left out, because the noise hides whether these levels have any people: {levels}.", markup=False
        )
