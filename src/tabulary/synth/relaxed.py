r"""Relaxed rows and the projection onto answers: the rows whose answers are nearest to given ones.

A relaxed row has, for every attribute, a distribution over its levels instead of one level: the softmax of free
numbers. A cell's answer is then the mean over the rows of the product of its levels' shares, which agrees with the
share of records wherever the rows are whole, and which has a gradient. `project` moves the free numbers down that
gradient. Post-processing throughout: nothing here reads a record.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain
from tabulary.errors import MissingExtra
from tabulary.noise import Entropy
from tabulary.synth.queries import Queries, columns_of, offsets_of
from tabulary.synth.uniform import uniforms

# Prefixes in one gradient step. A step on a thousand rows then takes some tens of megabytes.
BATCH = 128
# Adam (Kingma & Ba 2015) with its usual decays; the step shrinks along half a cosine, so that it settles.
_STEP = 0.1
_DECAYS = (0.9, 0.999)
_TINY = 1e-12
# The number of joint distributions in memory at once while rows are made whole.
LAWS = 1 << 22
_REPORTED = 50


@dataclass(frozen=True, eq=False)
class RelaxedRows:
    """Rows of free numbers, one column for each level of each attribute; their softmax is the content of a row.

    >>> rows = RelaxedRows(Domain({"sex": ["F", "M"]}), np.log([[1.0, 3.0], [1.0, 1.0]]))
    >>> rows.shares().round(6).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """

    domain: Domain
    logits: NDArray[np.float32]

    def __post_init__(self) -> None:
        logits = np.array(self.logits, dtype=np.float32)
        logits.setflags(write=False)
        object.__setattr__(self, "logits", logits)

    def __len__(self) -> int:
        return int(self.logits.shape[0])

    @classmethod
    def start(cls, domain: Domain, rows: int, entropy: Entropy) -> "RelaxedRows":
        """Return starting rows: all different, none decided, no level favoured."""
        drawn = uniforms(entropy, rows * columns_of(domain)).reshape(rows, -1)
        return cls(domain, (2 * drawn - 1).astype(np.float32))

    def shares(self) -> Floats:
        """Return the distribution over its levels that each row has for each attribute."""
        offsets = offsets_of(self.domain)
        logits = self.logits.astype(np.float64)
        powers = np.exp(
            logits - np.repeat(np.maximum.reduceat(logits, offsets[:-1], axis=1), self.domain.shape, axis=1)
        )
        return np.asarray(
            powers / np.repeat(np.add.reduceat(powers, offsets[:-1], axis=1), self.domain.shape, axis=1)
        )

    def answers(self, queries: Queries) -> Floats:
        """Return the share of the rows in each cell."""
        shares = np.vstack([self.shares().T, np.ones(len(self))]).astype(np.float32)
        answers = np.empty(queries.prefix.size)
        order = np.argsort(queries.prefix, kind="stable")
        ends = np.searchsorted(queries.prefix[order], np.arange(len(queries.prefixes) + 1))
        for first in range(0, len(queries.prefixes), BATCH):
            batch = queries.prefixes[first : first + BATCH]
            table = np.prod(shares[batch], axis=1) @ shares.T / len(self)
            cells = order[ends[first] : ends[first + len(batch)]]
            answers[cells] = table[queries.prefix[cells] - first, queries.last[cells]]
        return answers

    def whole(self, rows: int, entropy: Entropy) -> NDArray[np.int32]:
        """Return whole rows by randomised rounding; each relaxed row is used as often as any other, or once more.

        Attributes are drawn independently given the relaxed row; those that structural zeros tie together are drawn
        jointly, given that the combination is possible. Draws from one relaxed row are spread evenly over each of its
        distributions, in random order: that keeps the law of every single draw and brings their tables closer.
        Unbiased, except for the share in impossible cells.
        """
        source = _sources(len(self), rows, entropy)
        shares, offsets = self.shares(), offsets_of(self.domain)
        codes = np.empty((rows, len(self.domain.shape)), dtype=np.int32)
        tied = {name for attributes, _ in self.domain.zero_blocks for name in attributes}
        free = [
            ((name,), np.zeros(len(self.domain.levels_of(name)), dtype=bool))
            for name in self.domain.attributes
        ]
        for attributes, impossible in (
            *self.domain.zero_blocks,
            *(part for part in free if part[0][0] not in tied),
        ):
            places = [self.domain.position(name) for name in attributes]
            heights = _strata(source, entropy)
            step = max(1, LAWS // impossible.size)
            for first in range(0, len(self), step):
                law = np.ones((min(step, len(self) - first), 1))
                for place in places:
                    one = shares[first : first + step, offsets[place] : offsets[place + 1]]
                    law = (law[:, :, None] * one[:, None, :]).reshape(law.shape[0], -1)
                mine = np.flatnonzero((source >= first) & (source < first + step))
                drawn = _levels(law, ~impossible.ravel(), source[mine] - first, heights[mine])
                for place, level in zip(places, np.unravel_index(drawn, impossible.shape), strict=True):
                    codes[mine, place] = level
        # In random order: the position of a row says nothing.
        return np.asarray(codes[np.argsort(uniforms(entropy, rows), kind="stable")])


def project(
    queries: Queries,
    cells: NDArray[np.int64],
    answers: Floats,
    start: RelaxedRows,
    *,
    steps: int,
    entropy: Entropy,
    progress: Callable[[int], None] | None = None,
) -> RelaxedRows:
    """Return the rows whose answers to some cells are nearest to `answers`, as descent from `start` finds them.

    Minimises the sum of squared differences over those cells and over the impossible ones, whose answer is known to be
    zero. `answers` are shares of all records, in the order of `cells`. Each of the `steps` is one step of Adam
    on a batch of prefixes (see `Queries`) drawn at random, all of them in as many steps as there are batches.
    The problem is not convex; the optimum is found as nearly as the steps allow.
    """
    step = _stepper(queries.domain.shape)
    fitted = np.concatenate([cells, queries.impossible])
    wanted = np.concatenate([answers, np.zeros(queries.impossible.size)])
    used, row = np.unique(queries.prefix[fitted], return_inverse=True)
    prefixes = queries.prefixes[used]
    targets = np.zeros((used.size, columns_of(queries.domain) + 1), dtype=np.float32)
    weights = np.zeros_like(targets)
    targets[row, queries.last[fitted]] = wanted
    weights[row, queries.last[fitted]] = 1.0
    # A power of two, filled up with prefixes of no weight: few sizes, so few compilations.
    size = min(BATCH, 1 << math.ceil(math.log2(max(used.size, 1))))
    state = (start.logits.T, *(np.zeros(start.logits.T.shape, dtype=np.float32) for _ in range(2)))
    order = np.empty(0, dtype=np.int64)
    for done in range(steps):
        if not order.size:
            order = np.argsort(uniforms(entropy, used.size), kind="stable")
        batch, order = order[:size], order[size:]
        filled = np.resize(batch, size)
        weight = weights[filled] * (np.arange(size) < batch.size)[:, None]
        pace = _STEP * (1 + math.cos(math.pi * done / steps)) / 2
        state = step(*state, done + 1.0, pace, prefixes[filled], targets[filled], weight)
        if progress and ((done + 1) % _REPORTED == 0 or done + 1 == steps):
            progress(done + 1)
    return RelaxedRows(start.domain, np.asarray(state[0]).T)


def require_jax() -> Any:
    """Return the package jax, or raise before anything is measured."""
    try:
        import jax
    except ImportError:
        raise MissingExtra(
            "relaxed rows need JAX, which is not installed. Nothing was measured. Install it: pip install "
            "'tabulary[synth]'."
        ) from None
    return jax


@lru_cache(maxsize=16)
def _stepper(shape: tuple[int, ...]) -> Callable[..., Any]:
    """Return one compiled step of Adam on the rows of a domain of this shape."""
    jax = require_jax()
    jnp = jax.numpy
    ends = np.cumsum(shape).tolist()

    def loss(logits: Any, prefixes: Any, targets: Any, weights: Any) -> Any:
        blocks = [
            jax.nn.softmax(logits[end - size : end], axis=0) for end, size in zip(ends, shape, strict=True)
        ]
        shares = jnp.concatenate([*blocks, jnp.ones((1, logits.shape[1]))])
        # In units of one relaxed row: shares of a cell are too small for squares of 32 bits.
        apart = jnp.prod(shares[prefixes], axis=1) @ shares.T - targets * logits.shape[1]
        return jnp.sum(weights * apart**2)

    def step(
        logits: Any, mean: Any, square: Any, count: Any, pace: Any, prefixes: Any, targets: Any, weights: Any
    ) -> tuple[Any, Any, Any]:
        slope = jax.grad(loss)(logits, prefixes, targets, weights)
        mean = _DECAYS[0] * mean + (1 - _DECAYS[0]) * slope
        square = _DECAYS[1] * square + (1 - _DECAYS[1]) * slope**2
        size = jnp.sqrt(square / (1 - _DECAYS[1] ** count)) + _TINY
        return logits - pace * mean / (1 - _DECAYS[0] ** count) / size, mean, square

    return jax.jit(step)  # type: ignore[no-any-return]


def _sources(relaxed: int, rows: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return which relaxed row each whole row comes from: all equally often, those that get one more at random."""
    each, more = divmod(rows, relaxed)
    drawn = np.argsort(uniforms(entropy, relaxed), kind="stable")[:more]
    return np.sort(np.concatenate([np.repeat(np.arange(relaxed), each), drawn]))


def _strata(source: NDArray[np.int64], entropy: Entropy) -> Floats:
    """Return a uniform number for each row, those of one source spread evenly over [0, 1) in random order."""
    order = np.lexsort((uniforms(entropy, source.size), source))
    counts = np.bincount(source)
    firsts = np.cumsum(counts) - counts
    rank = np.empty(source.size)
    rank[order] = np.arange(source.size) - firsts[source[order]]
    return np.asarray((rank + uniforms(entropy, source.size)) / counts[source])


def _levels(
    law: Floats, possible: NDArray[np.bool_], source: NDArray[np.int64], heights: Floats
) -> NDArray[np.int64]:
    """Return the possible level that each height reaches in the law of its source."""
    cells = np.flatnonzero(possible)
    kept = law[:, cells]
    # If an impossible combination was nearly certain, all others may be zero in 64 bits: any possible one will do.
    kept = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, 1.0)
    reached = np.cumsum(kept, axis=1)
    reached /= reached[:, -1:]
    # One search for all sources: the law of source i lies between i and i + 1.
    ladder = (reached + np.arange(law.shape[0])[:, None]).ravel()
    found = np.searchsorted(ladder, source + heights, side="right") - source * cells.size
    return np.asarray(cells[np.clip(found, 0, cells.size - 1)])
