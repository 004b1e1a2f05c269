"""How surprising a statistic is among tables drawn from the fitted hypothesis through the actual noise."""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument, NotCertified
from tabulary.infer.hypothesis import LogLinearHypothesis, NullFit
from tabulary.infer.results import TestResult
from tabulary.infer.table_noise import TableNoise
from tabulary.noise import Entropy, SystemEntropy


def bootstrap_test(
    name: str,
    hypothesis: LogLinearHypothesis,
    fit: NullFit,
    *,
    repetitions: int = 999,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> TestResult:
    """Return the test of a fitted hypothesis whose p-value is a rank among tables drawn from it.

    p = (1 + #{T* ≥ T}) / (1 + repetitions), T* the statistics of Poisson tables with the fitted means, each put through
    the noise of the release anew (Davison & Hinkley 1997, section 4.2). Noise that cells share is drawn as the
    mechanism draws it; where only its covariance was given, it is drawn as normal. Post-processing: reads no data, and
    its randomness protects nobody. A drawn table whose own fit does not come to rest counts as one that is at least as
    surprising, so p errs to the cautious side.
    """
    if isinstance(repetitions, bool) or not isinstance(repetitions, int) or repetitions < 1:
        raise InvalidArgument(
            f"the number of repetitions of a bootstrap must be a positive whole number, not {repetitions!r}."
        )
    source = entropy or SystemEntropy()
    reached = 0
    for done in range(1, repetitions + 1):
        drawn = drawn_release(hypothesis.noises, fit.means, source)
        try:
            # Equal statistics differ by rounding.
            reached += hypothesis.fitted(drawn).statistic >= fit.statistic - 1e-9 * (1 + fit.statistic)
        except NotCertified:
            reached += 1
        if progress is not None:
            progress("redrawing the table", done, repetitions)
    rank = f"the p-value is the rank among {repetitions:,} tables drawn from the fitted hypothesis"
    return TestResult(
        name,
        fit.statistic,
        fit.degrees_of_freedom,
        (1 + reached) / (1 + repetitions),
        "bootstrap",
        (*fit.assumed, rank),
    )


def drawn_release(
    noises: tuple[TableNoise, ...], means: Floats, entropy: Entropy
) -> NDArray[np.int64] | Floats:
    """Return released counts of Poisson tables with these means, all tables in order."""
    counts = poisson_counts(means, entropy)
    parts: list[NDArray[np.int64] | Floats] = []
    begin = 0
    for noise in noises:
        end = begin + int(np.prod(noise.shape))
        own = counts[begin:end]
        parts.append(noise.released(own.reshape(noise.shape), entropy).reshape(-1))
        begin = end
    found: NDArray[np.int64] | Floats = np.concatenate(parts)  # type: ignore[assignment]
    return found


def poisson_counts(means: Floats, entropy: Entropy) -> NDArray[np.int64]:
    """Return a Poisson count for each mean, by inversion of one 53-bit uniform number each.

    >>> poisson_counts(np.array([0.0, 1e6]), SystemEntropy()).shape
    (2,)
    """
    from tabulary.infer.kernels import inverted_poisson
    from tabulary.reconstruct.rounding.full_table import uniforms_from

    flat = np.ascontiguousarray(means, dtype=np.float64).reshape(-1)
    return np.asarray(inverted_poisson(flat, uniforms_from(entropy)(flat.size))).reshape(np.shape(means))
