"""The numbers behind the pictures of the pages below `docs/explanation`.

Expected errors come from plans, and δ from laws, which read no data; all else is measured on generated populations or
on a published table.
`python -m docs.results` prints what the pages quote.
"""

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tabulary as tb
from docs.populations import (
    distance,
    linear,
    measured,
    of_strength,
    of_two,
    populations,
    root_mean_square,
    shrunk,
)
from tabulary.core.residuals import centre
from tabulary.errors import NotCertified, PublicError
from tabulary.infer.chi_squared import upper_tail
from tabulary.noise import ExactSampler
from tabulary.planning import Plan
from tabulary.reconstruct.error_curves import shrink_curves
from tabulary.reconstruct.shrink import simplex
from tabulary.studies import RiskUtility, risk_utility
from tests.entropy import SeededEntropy

Row = dict[str, Any]

# The numbers of levels of the attributes of Adult (Becker & Kohavi 1996), the only thing used of it here.
ADULT_LEVELS = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
# At δ = 1e-9 this is about ε = 1.
USUAL_RHO = "0.015"
RHOS = (0.0001, 0.0005, 0.002, 0.015, 0.1, 0.5, 2.0)
SMALL_RHOS = (0.00001, 0.00003, 0.0001, 0.0005, 0.002, 0.015, 0.1)
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
EPSILONS = ("1/20", "1/10", "1/5", "1/2", "1", "2")
SIZES = ((0, 10, "0–9"), (10, 100, "10–99"), (100, 1_000, "100–999"), (1_000, math.inf, "1,000 and more"))
BOTH = ("region", "diagnosis")
# The cell with sixty people more than expected.
CLUSTER = (17, 12)


@cache
def growth() -> list[Row]:
    """Return the expected error of every mechanism for all pairs of more and more attributes."""
    rows = []
    for levels in (2, 8):
        for count in (2, 3, 4, 6, 8, 12, 20):
            domain = tb.Domain({f"x{i:02}": range(levels) for i in range(count)})
            pairs = tb.Workload.k_way(domain, 2)
            for privacy, shown in ((tb.PureDP(1), "ε = 1"), (tb.ApproxDP(1, 1e-9), "(ε, δ) = (1, 1e-9)")):
                for mechanism in ("residual", "margins", "cells", "fourier", "efron-stein"):
                    try:
                        plan = tb.plan(domain, pairs, privacy=privacy, mechanism=mechanism)
                    except PublicError:
                        # The full table is too large to be measured.
                        continue
                    rows.append(
                        {
                            "panel": f"{levels} levels each, {shown}",
                            "attributes": count,
                            "mechanism": mechanism,
                            "error": plan.expected_rmse,
                        }
                    )
    return rows


@cache
def spending() -> list[Row]:
    """Return which share of a Gaussian budget each order gets, for each objective."""
    rows = []
    adult = tb.Domain({f"x{i:02}": range(k) for i, k in enumerate(ADULT_LEVELS)})
    small = tb.Domain({f"x{i}": range(k) for i, k in enumerate((2, 3, 5, 8, 12, 16, 24, 2))})
    cases = (
        ("all tables of up to 2 of Adult's 14 attributes", adult, tb.Workload.all_up_to(adult, 2)),
        ("all tables of 3 of 8 attributes", small, tb.Workload.k_way(small, 3)),
    )
    for panel, domain, workload in cases:
        for objective in ("rmse", "max", "shrink"):
            variances = _planned(domain, workload, USUAL_RHO, objective=objective).residual_variances
            spent: dict[int, float] = {}
            for s, v in variances.items():
                cost = math.prod((k - 1) / k for k in domain.shape_of(s)) / v
                spent[len(s)] = spent.get(len(s), 0.0) + cost
            total = sum(spent.values())
            rows += [
                {"panel": panel, "objective": objective, "order": order, "share": cost / total}
                for order, cost in sorted(spent.items())
            ]
    return rows


@cache
def wins() -> list[Row]:
    """Return the errors of linear and of shrunk tables of every population over the budget."""
    rows = []
    for population in populations():
        exact = {s: population.exact(s) for s in population.workload.closure()}
        for rho in RHOS:
            plain = _planned(population.domain, population.workload, rho, objective="rmse")
            other = _planned(population.domain, population.workload, rho, objective="shrink")
            found: dict[str, list[tuple[float, float]]] = {"linear": [], "cut": [], "shrunk": []}
            for seed in range(3 if max(population.domain.shape) > 10 else 20):
                # The same draws for both, so that their ratio depends less on luck.
                residuals = measured(plain, exact, np.random.default_rng(seed))
                tables = linear(plain, residuals)
                total = max(float(residuals[()]), 1.0)
                cut = {m: simplex(t.reshape(-1), total).reshape(t.shape) for m, t in tables.items()}
                _, result = shrunk(other, measured(other, exact, np.random.default_rng(seed)))
                for name, given in (
                    ("linear", tables),
                    ("cut", cut),
                    ("shrunk", {m: result.table(m) for m in tables}),
                ):
                    found[name].append((root_mean_square(given, exact) ** 2, distance(given, exact)))
            means = {name: np.mean(values, axis=0) for name, values in found.items()}
            rows.append(
                {
                    "population": population.name,
                    "rho": rho,
                    **{f"{name} rmse": math.sqrt(v[0]) for name, v in means.items()},
                    **{f"{name} l1": float(v[1]) for name, v in means.items()},
                }
            )
    return rows


@cache
def cluster() -> tuple[list[Row], Row]:
    """Return one column of a sparse table with a cluster in it, as released once, and facts over many releases."""
    rng = np.random.default_rng(3)
    regions, diagnoses = np.arange(1, 21) ** -0.5, np.arange(1, 16) ** -1.0
    expected = 20_000 * np.outer(regions / regions.sum(), diagnoses / diagnoses.sum())
    table = rng.poisson(expected).astype(float)
    table[CLUSTER] += 60
    domain = tb.Domain({"region": range(1, 21), "diagnosis": range(1, 16)})
    exact = of_two(domain, table)
    plan = tb.plan(
        domain,
        "[region diagnosis]",
        privacy=tb.PureDP("1/10"),
        mechanism="residual",
        objective="rmse",
        reconstruct="shrink",
    )
    linear_width = np.broadcast_to(plan.error_of(BOTH).half_widths(0.95), table.shape)
    rows: list[Row] = []
    seen: dict[str, list[float]] = {}
    for seed in range(40):
        residuals = measured(plan, exact, np.random.default_rng(seed))
        shrinkage, result = shrunk(plan, residuals)
        curves = shrink_curves(plan, shrinkage, result, result.tables)
        shrunk_width = curves[BOTH].half_widths(result.table(BOTH))
        for kind, found, width in (
            ("linear", linear(plan, residuals)[BOTH], linear_width),
            ("shrunk", result.table(BOTH), shrunk_width),
        ):
            inside = np.abs(found - table) <= width
            for name, value in (
                ("rmse", root_mean_square({BOTH: found}, exact)),
                ("cluster", found[CLUSTER]),
                ("cluster ±", width[CLUSTER]),
                ("cluster held", inside[CLUSTER]),
                ("all held", inside.mean()),
            ):
                seen.setdefault(f"{kind} {name}", []).append(float(value))
            # A draw in which nothing out of the ordinary happened.
            if seed == 3:
                column = zip(found[:, 12].tolist(), width[:, 12].tolist(), strict=True)
                rows += [
                    {
                        "region": region,
                        "kind": kind,
                        "count": count,
                        "low": count - half,
                        "high": count + half,
                    }
                    for region, (count, half) in enumerate(column, start=1)
                ]
        seen.setdefault("bias share", []).append(result.bias_share)
    rows += [{"region": i, "kind": "truth", "count": n} for i, n in enumerate(table[:, 12].tolist(), start=1)]
    return rows, {"truth": float(table[CLUSTER])} | {name: float(np.mean(v)) for name, v in seen.items()}


@cache
def attenuation() -> list[Row]:
    """Return which share of true interactions of known strength is left in linear and in shrunk tables."""
    domain = tb.Domain({"group": range(12), "answer": range(8)})
    rows = []
    for rho in SMALL_RHOS:
        plan = tb.plan(
            domain,
            "[group answer]",
            privacy=tb.ZCDP(rho),
            mechanism="residual",
            reconstruct="shrink",
            objective="rmse",
        )
        for strength in STRENGTHS:
            kept: dict[str, list[float]] = {"linear": [], "shrunk": []}
            for seed in range(15):
                table, apart = of_strength(domain.shape, 50_000, strength, seed)
                exact = of_two(domain, table)
                true = centre(table - apart)
                residuals = measured(plan, exact, np.random.default_rng([seed, 1]))
                # The same noise with the other sign: what is linear in it cancels.
                opposite = {s: 2 * centre(exact[s]) - r for s, r in residuals.items()}
                for given in (residuals, opposite):
                    for kind, found in (
                        ("linear", linear(plan, given)[domain.attributes]),
                        ("shrunk", shrunk(plan, given)[1].table(domain.attributes)),
                    ):
                        kept[kind].append(float((centre(found - apart) * true).sum() / (true**2).sum()))
            rows += [
                {
                    "rho": rho,
                    "strength": strength,
                    "kind": kind,
                    "kept": float(np.mean(v)),
                    "spread": float(np.std(v)),
                }
                for kind, v in kept.items()
            ]
    return rows


@cache
def coverage() -> list[Row]:
    """Return how often the 95 % intervals of shrunk tables hold the truth, by the size of the true count."""
    rows = []
    for population in populations():
        exact = {s: population.exact(s) for s in population.workload.closure()}
        plan = _planned(population.domain, population.workload, USUAL_RHO, objective="shrink")
        held: dict[str, list[NDArray[np.bool_]]] = {shown: [] for _, _, shown in SIZES}
        for seed in range(1 if max(population.domain.shape) > 10 else 4):
            shrinkage, result = shrunk(plan, measured(plan, exact, np.random.default_rng(seed)))
            curves = shrink_curves(plan, shrinkage, result, result.tables)
            for margin in plan.workload:
                found = result.table(margin)
                inside = np.abs(found - exact[margin]) <= curves[margin].half_widths(found)
                for low, high, shown in SIZES:
                    held[shown].append(inside[(exact[margin] >= low) & (exact[margin] < high)])
        for shown, values in held.items():
            together = np.concatenate(values)
            # Fewer cells than this say nothing about a share of 95 %.
            if together.size >= 100:
                rows.append(
                    {
                        "population": population.name,
                        "size": shown,
                        "held": float(together.mean()),
                        "cells": together.size,
                    }
                )
    return rows


@cache
def fresh() -> list[Row]:
    """Return the errors on populations from other seeds than those of the pictures, all of them, one release each."""
    rows = []
    for seed in range(101, 106):
        for population in populations(seed):
            exact = {s: population.exact(s) for s in population.workload.closure()}
            row: Row = {"population": population.name, "seed": seed}
            for objective in ("rmse", "shrink"):
                plan = _planned(population.domain, population.workload, USUAL_RHO, objective=objective)
                residuals = measured(plan, exact, np.random.default_rng([seed, 1]))
                if objective == "shrink":
                    result = shrunk(plan, residuals)[1]
                    row["shrunk"] = root_mean_square({m: result.table(m) for m in plan.workload}, exact)
                    continue
                tables = linear(plan, residuals)
                total = max(float(residuals[()]), 1.0)
                row["linear"] = root_mean_square(tables, exact)
                row["cut"] = root_mean_square(
                    {m: simplex(t.reshape(-1), total).reshape(t.shape) for m, t in tables.items()}, exact
                )
            rows.append(row)
    return rows


@cache
def bias() -> list[Row]:
    """Return which share of the squared error of shrunk pairs is bias: as the release states it, and measured."""
    rows = []
    for population in populations():
        exact = {s: population.exact(s) for s in population.workload.closure()}
        plan = _planned(population.domain, population.workload, USUAL_RHO, objective="shrink")
        repetitions = 12 if max(population.domain.shape) > 10 else 40
        results = [
            shrunk(plan, measured(plan, exact, np.random.default_rng(seed)))[1] for seed in range(repetitions)
        ]
        squared_bias = squared_error = 0.0
        for margin in (m for m in plan.workload if len(m) == 2):
            errors = np.array([result.table(margin) - exact[margin] for result in results])
            squared_error += float((errors**2).mean(axis=0).sum())
            # The mean of few errors has a variance of its own.
            luck = errors.var(axis=0, ddof=1) / repetitions
            squared_bias += float((errors.mean(axis=0) ** 2 - luck).sum())
        rows.append(
            {
                "population": population.name,
                "stated": float(np.mean([result.bias_share for result in results])),
                "measured": squared_bias / squared_error,
            }
        )
    return rows


@cache
def rejections() -> list[Row]:
    """Return how often Pearson's test rejects independence if released tables are taken for data."""
    domain = tb.Domain({"group": range(12), "answer": range(8)})
    plan = tb.plan(
        domain,
        "[group answer]",
        privacy=tb.ZCDP("0.0001"),
        mechanism="residual",
        reconstruct="shrink",
        objective="rmse",
    )
    rows = []
    for strength in (0.0, 0.001, 0.01):
        rejected: dict[str, list[bool]] = {"exact": [], "linear": [], "shrunk": []}
        for seed in range(100):
            dependent, independent = of_strength(domain.shape, 50_000, strength or 0.001, seed)
            shares = (dependent if strength else independent).reshape(-1) / 50_000
            drawn = np.random.default_rng([seed, 2]).multinomial(50_000, shares / shares.sum())
            table = drawn.reshape(domain.shape).astype(float)
            residuals = measured(plan, of_two(domain, table), np.random.default_rng([seed, 1]))
            for kind, found in (
                ("exact", table),
                ("linear", linear(plan, residuals)[domain.attributes]),
                ("shrunk", shrunk(plan, residuals)[1].table(domain.attributes)),
            ):
                rejected[kind].append(_chi_squared(found) > _CRITICAL)
        rows.append({"strength": strength} | {kind: float(np.mean(v)) for kind, v in rejected.items()})
    return rows


@cache
def perturbed_census() -> RiskUtility:
    """Return what two laws do to the published census table, a hundred times for each of six ε."""
    return risk_utility(tb.datasets.load("uk-census"), sampler=ExactSampler(SeededEntropy(2018)))


@cache
def true_privacy() -> list[Row]:
    """Return δ(ε) of the laws that Rinott et al. compare at two ε, and of Laplace without a bound."""
    rows = []
    for named in ("1/2", "3/2"):
        laplace = tb.perturb.Laplace(named, bound=7)
        normal = tb.perturb.match_delta(laplace, family=tb.perturb.Normal)
        laws = {
            "Laplace, m = 7": laplace,
            "Normal, m of the same δ": normal,
            "Laplace without a bound": tb.perturb.Laplace(named),
        }
        panel = f"named ε = {float(laplace.epsilon):g}, Normal m = {normal.bound}"
        for shown, law in laws.items():
            # In steps of 1/20 of the named ε, and a little beyond it.
            for step in range(23):
                epsilon = laplace.epsilon * Fraction(step, 20)
                delta = law.delta_at(epsilon)
                # A logarithmic scale has no zero.
                if delta > 0:
                    rows.append({"panel": panel, "law": shown, "epsilon": float(epsilon), "delta": delta})
    return rows


@cache
def false_findings() -> list[Row]:
    """Return how often two tests reject the independence of tables that are independent, by the ε of their noise.

    10 × 10 tables of Poisson counts about exp(4) a cell, as in section 6.1 of Rinott et al., with Laplace noise.
    """
    domain = tb.Domain({"row": range(10), "column": range(10)})
    rows = []
    for bound, panel in ((None, "Laplace without a bound"), (10, "Laplace, m = 10")):
        for epsilon in EPSILONS:
            law = tb.perturb.Laplace(epsilon, bound=bound)
            entropy, random = SeededEntropy(2018), np.random.default_rng(2018)
            noise = tb.infer.noise_of(tb.Table(domain, np.zeros(domain.shape, dtype=np.int64)), law)
            rejected = {"naive": 0, "noise-aware": 0}
            for _ in range(_TABLES):
                effects = random.uniform(-0.5, 0.5, (2, 10))
                counts = random.poisson(np.exp(4 + effects[0][:, None] + effects[1]))
                released = tb.Table(domain, noise.released(counts, entropy))
                rejected["naive"] += tb.infer.independence(released, "naive").rejects()
                rejected["noise-aware"] += tb.infer.independence(released, noise=noise).rejects()
            rows += [
                {
                    "panel": panel,
                    "epsilon": float(Fraction(epsilon)),
                    "test": test,
                    "rejected": count / _TABLES,
                }
                for test, count in rejected.items()
            ]
    return rows


@cache
def shared_noise_levels() -> list[Row]:
    """Return how often independence is rejected in independent tables that linear mechanisms released.

    `chi-squared` is the noise-aware statistic held against χ², as if noise of its covariance were normal.
    """
    rows = []
    for mechanism, sides in (("residual", (8, 6)), ("efron-stein", (8, 6)), ("fourier", (8, 4))):
        domain = tb.Domain({"row": range(sides[0]), "column": range(sides[1])})
        work = "[row column][row][column]"
        for privacy in (tb.PureDP("1/2"), tb.ZCDP("1/50")):
            plan = tb.plan(domain, work, privacy=privacy, mechanism=mechanism, reconstruct="none")
            for mean in (20, 100):
                sampler, random = ExactSampler(SeededEntropy(6)), np.random.default_rng(5)
                rejected = {"naive": 0, "noise-aware": 0, "chi-squared": 0, "no fit": 0}
                for _ in range(_RELEASES):
                    effects = [random.uniform(0.7, 1.4, side) for side in sides]
                    table = tb.Table(domain, random.poisson(mean * np.outer(*effects)))
                    released = tb.release(table, plan, sampler=sampler)["row", "column"]
                    rejected["naive"] += tb.infer.independence(released, "naive").rejects()
                    try:
                        found = tb.infer.independence(released)
                    except NotCertified:
                        rejected["no fit"] += 1
                        continue
                    rejected["noise-aware"] += found.rejects()
                    rejected["chi-squared"] += upper_tail(found.statistic, found.degrees_of_freedom) <= 0.05
                rows.append(
                    {
                        "mechanism": mechanism,
                        "privacy": str(privacy),
                        "mean count": mean,
                        "standard error": float(released.standard_errors.mean()),
                    }
                    | {test: count / _RELEASES for test, count in rejected.items()}
                )
    return rows


_RELEASES = 600
_TABLES = 300

# The 95 % quantile of χ² with 77 degrees of freedom.
_CRITICAL = 98.48


def _chi_squared(table: NDArray[np.float64]) -> float:
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())


def _planned(domain: tb.Domain, workload: tb.Workload, rho: object, *, objective: str) -> Plan:
    """Return the plan of residuals at zCDP."""
    return tb.plan(
        domain,
        workload,
        privacy=tb.ZCDP(rho),
        mechanism="residual",
        reconstruct="shrink" if objective == "shrink" else "none",
        objective=objective,
    )


def main() -> None:
    """Print all numbers."""
    rows, facts = cluster()
    for found in (
        growth(),
        spending(),
        wins(),
        rows,
        [facts],
        attenuation(),
        coverage(),
        fresh(),
        bias(),
        rejections(),
        true_privacy(),
        false_findings(),
        shared_noise_levels(),
    ):
        for row in found:
            shown = {key: f"{v:.4g}" if isinstance(v, float) else str(v) for key, v in row.items()}
            print(", ".join(f"{key} {value}" for key, value in shown.items()))


if __name__ == "__main__":
    main()
