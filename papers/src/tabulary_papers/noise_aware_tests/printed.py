"""What Rinott, O'Keefe, Shlomo & Skinner (2018) print of tests: their Table 3, and the numbers of section 6.2."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A line of Table 3: the share of p ≤ 0.05, the mean statistic and the mean p with their standard errors."""

    share: float
    statistic: float
    statistic_error: float
    p: float
    p_error: float


ORIGINAL, NAIVE, RATIO = "original", "naive", "likelihood ratio"
INDEPENDENT, WEAKLY, DEPENDENT = "independent", "weakly dependent", "dependent"

DELTAS = {("0.1", 10): "0.0283", ("0.1", 7): "0.0470", ("0.5", 10): "0.0017", ("0.5", 7): "0.0076"}

TABLE_3: dict[tuple[str, int, str, str], Line] = {
    ("0.1", 10, INDEPENDENT, ORIGINAL): Line(0.050, 81.6, 0.395, 0.487, 0.009),
    ("0.1", 10, INDEPENDENT, NAIVE): Line(0.867, 124.5, 0.616, 0.027, 0.002),
    ("0.1", 10, INDEPENDENT, RATIO): Line(0.030, 78.6, 0.388, 0.555, 0.009),
    ("0.1", 10, DEPENDENT, ORIGINAL): Line(0.793, 118.8, 0.587, 0.044, 0.003),
    ("0.1", 10, DEPENDENT, NAIVE): Line(0.996, 162.1, 0.792, 0.001, 0.000),
    ("0.1", 10, DEPENDENT, RATIO): Line(0.510, 103.6, 0.526, 0.140, 0.006),
    ("0.1", 7, INDEPENDENT, ORIGINAL): Line(0.060, 81.7, 0.423, 0.487, 0.009),
    ("0.1", 7, INDEPENDENT, NAIVE): Line(0.533, 105.1, 0.524, 0.123, 0.006),
    ("0.1", 7, INDEPENDENT, RATIO): Line(0.040, 80.1, 0.400, 0.521, 0.009),
    ("0.1", 7, DEPENDENT, ORIGINAL): Line(0.873, 124.8, 0.620, 0.027, 0.003),
    ("0.1", 7, DEPENDENT, NAIVE): Line(0.983, 149.2, 0.742, 0.004, 0.001),
    ("0.1", 7, DEPENDENT, RATIO): Line(0.733, 114.5, 0.583, 0.066, 0.004),
    ("0.5", 10, INDEPENDENT, ORIGINAL): Line(0.058, 81.7, 0.414, 0.485, 0.009),
    ("0.5", 10, INDEPENDENT, NAIVE): Line(0.254, 92.9, 0.476, 0.274, 0.008),
    ("0.5", 10, INDEPENDENT, RATIO): Line(0.069, 82.5, 0.419, 0.467, 0.009),
    ("0.5", 10, DEPENDENT, ORIGINAL): Line(0.821, 118.3, 0.551, 0.041, 0.003),
    ("0.5", 10, DEPENDENT, NAIVE): Line(0.913, 129.3, 0.601, 0.017, 0.002),
    ("0.5", 10, DEPENDENT, RATIO): Line(0.763, 114.8, 0.532, 0.054, 0.004),
    ("0.5", 7, INDEPENDENT, ORIGINAL): Line(0.047, 81.4, 0.395, 0.485, 0.009),
    ("0.5", 7, INDEPENDENT, NAIVE): Line(0.187, 90.8, 0.435, 0.299, 0.008),
    ("0.5", 7, INDEPENDENT, RATIO): Line(0.053, 82.0, 0.391, 0.473, 0.009),
    ("0.5", 7, DEPENDENT, ORIGINAL): Line(0.813, 119.6, 0.591, 0.040, 0.003),
    ("0.5", 7, DEPENDENT, NAIVE): Line(0.910, 128.6, 0.627, 0.018, 0.002),
    ("0.5", 7, DEPENDENT, RATIO): Line(0.769, 116.2, 0.567, 0.051, 0.003),
}

REPETITIONS = 1_000
"""Of every line of Table 3."""

LARGE_COUNTS = {NAIVE: 0.12, RATIO: 0.05}
"""Section 6.1: the levels at ε = 0.1 and m = 10 where cells have about 400 people."""

CRITICAL = {5: 3.36, 10: 3.82}
"""Section 6.2: the empirical points with 95 % of 500 statistics below them, by m."""

POWER = {5: 0.95, 10: 0.92}
EXACT_POWER = 0.96
"""Of the same test on the count without noise."""

FIT_DELTAS = {5: "0.02", 10: "0.00166"}
ASYMPTOTIC = 3.84
