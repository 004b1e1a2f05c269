"""Backward elimination: interactions dropped one by one, by tests that know the noise or by naive ones."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tabulary.core.domain import Domain, Margin
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidArgument, NotCertified
from tabulary.infer.fitted_model import FittedModel
from tabulary.infer.loglinear import naive
from tabulary.infer.models import LogLinearModel
from tabulary.infer.noisy_loglinear import noise_aware
from tabulary.infer.results import TestResult
from tabulary.infer.table_noise import GivenNoise, noise_of
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
class ModelSearch:
    """Two backward eliminations from one model: by the test that knows the noise, and by the one that does not.

    On a table without noise there is the naive one only.
    """

    alpha: float
    naive: Elimination
    aware: Elimination | None

    @property
    def model(self) -> LogLinearModel:
        """The model chosen: behind the noise, where one is known."""
        return (self.aware or self.naive).model

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
        lines.append(f"chosen: {self.model}")
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
    """Return the models that backward elimination ends with, behind the noise and as if there were none.

    At each step every interaction that is in no larger one is tested against the model without it (the likelihood
    ratio of nested models), and the one with the largest p-value goes, while that is above `alpha`. Main effects
    stay. `start` is the saturated model for up to four attributes, all three-way interactions for more. Where
    noise exceeds most counts, the noise-aware test of nested models keeps too much rather than too little.
    Post-processing: reads the released table only. Of many tests some err: a model found so describes, it
    proves nothing.

    >>> from tabulary import datasets
    >>> print(search(datasets.load("hair-eye-gene")))
    backward elimination at α = 0.05 from [eye hair]
    without                    as if exact
    [eye hair]         131.40 on 4, p = 1.95e-27: keep
    chosen: [eye hair]
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidArgument(
            f"the level of a test lies strictly between 0 and 1, not {alpha!r}. Nothing was searched."
        )
    first = _start(table.domain) if start is None else LogLinearModel.parse(start, table.domain)
    counts = table if isinstance(table, Table) else table.table
    fits = {"naive": _remembered(lambda model: naive(counts, model))}
    if noise is not None or isinstance(table, ReleasedTable):
        stated = noise_of(table, noise)
        fits["noise-aware"] = _remembered(lambda model: noise_aware(counts, stated, model))
    found = {method: _eliminated(method, first, fits, alpha, progress) for method in fits}
    return ModelSearch(alpha, found["naive"], found.get("noise-aware"))


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
