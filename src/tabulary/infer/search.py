r"""Which interactions are in a table: one model that fits, and those that are certainly there.

Two questions, two answers. *Which simple model describes the table?* Backward elimination drops interactions one by one
while a test finds nothing lost. Many tests are made and the data choose among them, so the model that is left may have
interactions that are not there, more often than each test errs. It describes the table, and proves nothing.

*Which interactions are certainly there?* For each interaction S of the first model, the hypothesis that S and all
interactions that include S are absent is tested once, whatever the others do: the largest model without S within the
same model with S. These are valid tests whatever hierarchical model is true, and no data chose them. Holm's step-down
rule then keeps the probability that any absent interaction is called certain at `alpha` or below (Holm 1979). An
interaction that is there makes all that it includes present, so the certain ones form a model.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from tabulary.core.domain import Domain, Margin
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidArgument, NotCertified
from tabulary.infer.fitted_model import FittedModel
from tabulary.infer.loglinear import naive
from tabulary.infer.models import LogLinearModel
from tabulary.infer.noisy_loglinear import noise_aware
from tabulary.infer.results import TestResult, holm
from tabulary.infer.table_noise import GivenNoise, noise_of, published_table, unbiased_table
from tabulary.release import ReleasedTable

Fitter = Callable[[LogLinearModel], FittedModel]

# Every interaction of a table of this many attributes, else those of so many at most.
_SATURATED, _ORDER = 4, 3


@dataclass(frozen=True, eq=False)
class Step:
    """One interaction put to the test: what each method says of leaving it out of the model as it then was.

    None where a fit could not be found, and for `aware` where no noise is known.
    """

    generator: Margin
    model: LogLinearModel
    """What is left without it."""
    naive: TestResult | None
    aware: TestResult | None


@dataclass(frozen=True, eq=False)
class Elimination:
    """The path of one method: what it dropped, in order, and the best candidate that it kept in the end."""

    method: str
    start: LogLinearModel
    steps: tuple[Step, ...]
    kept: Step | None
    """None if no interaction was left to drop."""

    @property
    def model(self) -> LogLinearModel:
        """Where the path ends."""
        return self.steps[-1].model if self.steps else self.start


@dataclass(frozen=True, eq=False)
class TestedInteraction:
    """One interaction, the test that it is absent, and the p-value adjusted for all interactions tested (Holm)."""

    # pytest must not collect this class.
    __test__: ClassVar[bool] = False

    interaction: Margin
    test: TestResult | None
    """None where no fit could be found."""
    adjusted_p_value: float


@dataclass(frozen=True, eq=False)
class ModelSearch:
    """Two backward eliminations from one model, and every interaction of that model with its own test.

    The eliminations use the test that knows the noise, and the one that does not; on a table without noise there is the
    naive one only. The tests of `interactions` know the noise where there is any.
    """

    alpha: float
    naive: Elimination
    aware: Elimination | None
    interactions: tuple[TestedInteraction, ...]

    @property
    def model(self) -> LogLinearModel:
        """The simplest model that fits: behind the noise, where one is known."""
        return (self.aware or self.naive).model

    @property
    def certain(self) -> LogLinearModel:
        """The model of the interactions that are certainly there: all of them are, with probability 1 - alpha."""
        found = [each.interaction for each in self.interactions if each.adjusted_p_value <= self.alpha]
        domain = self.naive.start.domain
        return LogLinearModel(domain, (*((a,) for a in domain.attributes), *found))

    @property
    def differ(self) -> bool:
        """Whether the noise, taken for data, leads to another model."""
        return self.aware is not None and self.aware.model != self.naive.model

    def __str__(self) -> str:
        path = self.aware or self.naive
        lines = [f"backward elimination at α = {self.alpha:g} from {path.start}"]
        columns = ["noise-aware"] if self.aware else []
        lines.append(
            f"{'without':<16}" + "".join(f"{name:^34}" for name in [*columns, "as if exact"]).rstrip()
        )
        for step in (*path.steps, *((path.kept,) if path.kept else ())):
            tests = ([step.aware] if self.aware else []) + [step.naive]
            said = "".join(f"{self._verdict(test):>34}" for test in tests)
            lines.append(f"{show_margin(step.generator):<16}{said}")
        lines.append(f"the simplest model that fits: {self.model}")
        lines.append(f"certainly there, at α = {self.alpha:g} for all together: {self.certain}")
        if self.differ:
            lines.append(
                f"as if the counts were exact: {self.naive.model}. Noise was taken for interaction, or hid one."
            )
        return "\n".join(lines)

    def _verdict(self, test: TestResult | None) -> str:
        if test is None:
            return "not found"
        verdict = "keep" if test.rejects(self.alpha) else "drop"
        return f"{test.statistic:.2f} on {test.degrees_of_freedom}, p = {test.p_value:.3g}: {verdict}"


def search(
    table: Table | ReleasedTable,
    *,
    alpha: float = 0.05,
    start: str | Workload | Iterable[Iterable[str]] | LogLinearModel | None = None,
    noise: GivenNoise | None = None,
    progress: Progress | None = None,
) -> ModelSearch:
    """Return a simple model that fits, behind the noise and as if there were none, and what is certainly there.

    `model` is from backward elimination: at each step every interaction that is in no larger one is tested against the
    model without it, and the one with the largest p-value goes, while that is above `alpha`. Main effects stay.
    `start` is the saturated model for up to four attributes, all three-way interactions for more. This describes the
    table; `alpha` is the level of each test, not of the search.

    `certain` has a level: the probability that it has any interaction that is not there is at most `alpha`, if the
    truth is within `start` and each test keeps its level (`FittedModel.against`). It may miss some that are there.
    Post-processing: reads the released table only.

    >>> from tabulary import datasets
    >>> print(search(datasets.load("hair-eye-gene")))
    backward elimination at α = 0.05 from [eye hair]
    without                    as if exact
    [eye hair]         131.40 on 4, p = 1.95e-27: keep
    the simplest model that fits: [eye hair]
    certainly there, at α = 0.05 for all together: [eye hair]
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidArgument(
            f"the level of a test lies strictly between 0 and 1, not {alpha!r}. Nothing was searched."
        )
    first = _start(table.domain) if start is None else LogLinearModel.parse(start, table.domain)
    published, counts = published_table(table), unbiased_table(table)
    fits = {"naive": _remembered(lambda model: naive(published, model))}
    if noise is not None or isinstance(table, ReleasedTable):
        stated = noise_of(table, noise)
        fits["noise-aware"] = _remembered(lambda model: noise_aware(counts, stated, model))
    found = {method: _eliminated(method, first, fits, alpha, progress) for method in fits}
    interactions = _interactions(first, fits.get("noise-aware", fits["naive"]))
    return ModelSearch(alpha, found["naive"], found.get("noise-aware"), interactions)


def _interactions(start: LogLinearModel, fit: Fitter) -> tuple[TestedInteraction, ...]:
    """Return every interaction of a model with the test of its absence, and Holm's p-values."""
    tests: dict[Margin, TestResult | None] = {}
    for interaction in start.terms:
        if len(interaction) > 1:
            absent = start.without(interaction)
            tests[interaction] = _tested(fit, absent.added(interaction), absent)
    adjusted = holm([1.0 if test is None else test.p_value for test in tests.values()])
    return tuple(
        TestedInteraction(interaction, test, p_value)
        for (interaction, test), p_value in zip(tests.items(), adjusted, strict=True)
    )


def _eliminated(
    method: str, start: LogLinearModel, fits: dict[str, Fitter], alpha: float, progress: Progress | None
) -> Elimination:
    model = start
    steps: list[Step] = []
    # The start must be fitted; the parts without a fit stay in the model.
    fits[method](start)
    while True:
        candidates: list[tuple[float, Margin]] = []
        for generator in model.generators:
            if len(generator) > 1:
                test = _tested(fits[method], model, model.without(generator))
                if test is not None:
                    candidates.append((test.p_value, generator))
        if not candidates:
            return Elimination(method, start, tuple(steps), None)
        # Ties go to the first in the order of the domain.
        largest, generator = max(candidates, key=lambda pair: pair[0])
        smaller = model.without(generator)
        tests = {name: _tested(fit, model, smaller) for name, fit in fits.items()}
        step = Step(generator, smaller, tests["naive"], tests.get("noise-aware"))
        if largest <= alpha:
            return Elimination(method, start, tuple(steps), step)
        steps.append(step)
        model = smaller
        if progress is not None:
            progress(f"{method} search", len(steps), 0)


def _tested(fit: Fitter, larger: LogLinearModel, smaller: LogLinearModel) -> TestResult | None:
    try:
        return fit(smaller).against(fit(larger))
    except NotCertified:
        return None


def _remembered(fit: Fitter) -> Fitter:
    """Return the same fitter, each model fitted once."""
    known: dict[LogLinearModel, FittedModel] = {}

    def remembered(model: LogLinearModel) -> FittedModel:
        if model not in known:
            known[model] = fit(model)
        return known[model]

    return remembered


def _start(domain: Domain) -> LogLinearModel:
    few = len(domain.attributes) <= _SATURATED
    return LogLinearModel.saturated(domain) if few else LogLinearModel.k_way(domain, _ORDER)
