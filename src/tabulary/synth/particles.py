r"""Weighted rows that have given tables: drawn along a tree of the tables, then raked.

The tables agree with each other and are not negative, but no set of records need have them all, and the table of all
attributes is far too large to fit. So rows are drawn in large number from a simple distribution, and weighted until
they have the tables:

1. *Drawing.* The table with the most information goes first; then, one after another, the table that says most about
   attributes that are not drawn yet, given those that are: I(new; drawn) in nats. Each is drawn given the attributes
   that it shares with earlier ones. For pairs of attributes this is the tree of largest information of Chow & Liu
   (1968), and rows have the tables of the tree exactly.
2. *Raking.* For one table after another, the weight of a row is multiplied by (wanted / present)^(1/2) of its cell:
   iterative proportional fitting (Deming & Stephan 1940) over the rows that were drawn instead of over all cells.
   Half a step disturbs earlier tables less; where tables contradict each other a little, it settles between them.

Cells without a drawn row stay empty, and their share is missing: `fitted` says how much.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, Margin
from tabulary.core.progress import Progress
from tabulary.noise import Entropy
from tabulary.synth.rows import forbidden
from tabulary.synth.uniform import uniforms

_SWEEPS = 12
# The last sweep is the one that improves the tables by less than this share of the missing part. This rule skips the
# first sweeps, which still restore tables that the tree does not hold.
_WORTH_WHILE = 0.03
_LEAST = 4


@dataclass(frozen=True, eq=False)
class Particles:
    """Rows of codes with weights; `fitted` is the mean over the tables of the L1 distance from them, over the total."""

    codes: NDArray[np.int32]
    weights: Floats
    fitted: float

    def whole(self, rows: int, entropy: Entropy) -> NDArray[np.int32]:
        """Return `rows` whole rows: each particle as often as its weight, rounded up or down at random.

        Systematic sampling along the sorted rows: neighbours in that order are similar, so if one gets too much the
        next gets too little, and tables are rounded far better than by independent draws. Unbiased.
        """
        # Attributes with few levels first: their tables are rounded best.
        levels = self.codes.max(axis=0)
        order = np.lexsort(tuple(self.codes[:, place] for place in np.argsort(-levels, kind="stable")))
        reached = np.cumsum(self.weights[order])
        places = (np.arange(rows) + uniforms(entropy, 1)) * (reached[-1] / rows)
        chosen = order[np.minimum(np.searchsorted(reached, places, side="right"), order.size - 1)]
        # In random order: the position of a row says nothing.
        return np.asarray(self.codes[chosen[np.argsort(uniforms(entropy, rows), kind="stable")]])


def particles(
    domain: Domain,
    tables: Mapping[Margin, Floats],
    count: int,
    *,
    entropy: Entropy,
    sweeps: int = _SWEEPS,
    progress: Progress | None = None,
) -> Particles:
    """Return `count` weighted rows of a domain that have these tables, as nearly as the drawn rows allow.

    Every attribute must be in some table. Rows in impossible cells get no weight.
    """
    from tabulary.synth.kernels import scale_weights, weighted_counts

    codes = _drawn(domain, tables, count, entropy)
    wanted = [
        (_layout(domain, margin), table.ravel() / table.sum()) for margin, table in tables.items() if margin
    ]
    weights = np.where(forbidden(domain, codes), 0.0, 1.0)
    weights /= weights.sum()
    before = np.inf
    fitted = 0.0
    for sweep in range(sweeps):
        fitted = 0.0
        for (columns, strides), shares in wanted:
            present = np.empty(shares.size)
            weighted_counts(codes, columns, strides, weights, present)
            fitted += float(np.abs(present - shares).sum()) / len(wanted)
            factors = np.sqrt(np.divide(shares, present, out=np.zeros_like(shares), where=present > 0))
            scale_weights(codes, columns, strides, weights, factors)
        weights /= weights.sum()
        if progress:
            progress("fitting rows", sweep + 1, sweeps)
        if sweep >= _LEAST and fitted > (1 - _WORTH_WHILE) * before:
            break
        before = fitted
    if progress:
        progress("fitting rows", sweeps, sweeps)
    return Particles(codes, weights, fitted)


def _layout(domain: Domain, margin: Margin) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns of a margin's attributes and how far one level of each moves the cell."""
    shape = domain.shape_of(margin)
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    return np.array([domain.position(name) for name in margin]), np.array(strides, dtype=np.int64)


def _drawn(
    domain: Domain, tables: Mapping[Margin, Floats], count: int, entropy: Entropy
) -> NDArray[np.int32]:
    codes = np.zeros((count, len(domain.shape)), dtype=np.int32)
    drawn: set[str] = set()
    while len(drawn) < len(domain.shape):
        margin = max(
            (m for m in tables if not drawn.issuperset(m)),
            key=lambda m: (_information(domain, m, tables[m], drawn), -len(m)),
        )
        _draw_rest(domain, margin, tables[margin], drawn, codes, entropy)
        drawn.update(margin)
    return codes


def _information(domain: Domain, margin: Margin, table: Floats, drawn: set[str]) -> float:
    """Return the information of a table about new attributes given the drawn ones; if all are new, about each other."""
    shares = table / table.sum()
    old = tuple(place for place, name in enumerate(margin) if name in drawn)
    new = tuple(place for place, name in enumerate(margin) if name not in drawn)
    parts = [(place,) for place in new] if not old else [old, new]
    apart = sum(
        _entropy(shares.sum(axis=tuple(p for p in range(shares.ndim) if p not in part))) for part in parts
    )
    # A table that shares no attribute with the rows comes last, whatever its information, so that the tree stays
    # connected.
    return apart - _entropy(shares) if old or not drawn else -1.0


def _entropy(shares: Floats) -> float:
    positive = shares[shares > 0]
    return -float(np.sum(positive * np.log(positive)))


def _draw_rest(
    domain: Domain, margin: Margin, table: Floats, drawn: set[str], codes: NDArray[np.int32], entropy: Entropy
) -> None:
    """Draw the new attributes of a margin given those it shares with the rows."""
    old = [name for name in margin if name in drawn]
    new = [name for name in margin if name not in drawn]
    sizes = tuple(domain.shape_of(tuple(new)))
    laws = np.transpose(table, [margin.index(name) for name in old + new]).reshape(-1, int(np.prod(sizes)))
    given = np.zeros(codes.shape[0], dtype=np.int64)
    for name in old:
        place = domain.position(name)
        given = given * domain.shape[place] + codes[:, place]
    # A context that is empty in the table can only come from rounding: any level will do.
    laws = np.where(laws.sum(axis=1, keepdims=True) > 0, laws, 1.0)
    laws = laws / laws.sum(axis=1, keepdims=True)
    # One search for all rows: the law of context c lies between c and c + 1.
    reached = np.minimum(np.cumsum(laws, axis=1), 1.0)
    reached[:, -1] = 1.0
    ladder = (reached + np.arange(laws.shape[0])[:, None]).ravel()
    found = (
        np.searchsorted(ladder, given + uniforms(entropy, given.size), side="right") - given * laws.shape[1]
    )
    levels = np.unravel_index(np.clip(found, 0, laws.shape[1] - 1), sizes)
    for name, level in zip(new, levels, strict=True):
        codes[:, domain.position(name)] = level
