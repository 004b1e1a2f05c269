r"""A graphical model of adaptively chosen margins, for domains whose full table would not fit the memory.

`adaptive` chooses and measures; the library `mbi` (McKenna, Sheldon & Miklau 2019) finds, among the distributions of
largest entropy that margins allow, the one nearest to all measurements in least squares. Such a distribution factors
along a *junction tree* of cliques,

    P(x) = Π P(new attributes of a clique | those that it shares with earlier cliques),

so only the tables of the cliques are kept. They grow fast where chosen margins overlap. Therefore a margin is a
candidate only if the tables of the resulting tree fit the stated memory. A round may use the same part of the memory
as the part of the budget that is spent after it (McKenna et al. 2022). Attributes that structural zeros tie together
form a clique, in which the model is zero in impossible cells.

The memory is that of one set of tables, eight bytes per cell. Fitting keeps several sets at a time.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.records import Records
from tabulary.core.arrays import Floats, sum_onto
from tabulary.core.byte_size import byte_size
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ZCDP, ApproxDP
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.core.workload import Workload, maximal_margins
from tabulary.errors import InvalidArgument, MissingExtra, TooManyCells
from tabulary.ledger import Account
from tabulary.noise import Entropy, ExactSampler, Sampler, SystemEntropy
from tabulary.synth.adaptive import AdaptivePlan, Observed, learned
from tabulary.synth.counting import neighbours_of, paid_tally
from tabulary.synth.particles import particles
from tabulary.synth.rows import SyntheticRecords, check_rows

_STEPS, _LAST_STEPS = 200, 1_000
# The number of weighted particles: enough for tables of some ten thousand cells.
_FEWEST, _PER_ROW = 100_000, 2


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A distribution, as tables of a junction tree's cliques, each clique after its parent. Public.

    >>> domain = Domain({"a": "xy", "b": "xy", "c": "xy"})
    >>> same = np.eye(2) / 2
    >>> model = TreeModel(domain, (("a", "b"), ("b", "c")), (same, same), people=10)
    >>> model.table(("a", "c")).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """

    domain: Domain
    cliques: tuple[Margin, ...]
    tables: tuple[Floats, ...]
    people: float

    def table(self, margin: Margin) -> Floats:
        """Return the model's counts of a margin, whether or not a clique holds it."""
        homes = [place for place, clique in enumerate(self.cliques) if set(margin) <= set(clique)]
        if homes:
            home = min(homes, key=lambda place: self.tables[place].size)
            return np.asarray(self.people * sum_onto(self.tables[home], self.cliques[home], margin))
        # Leaves first, each attribute is summed out of the one product that has it. A clique whose new attributes are
        # not needed below it sums to one, and is left out.
        needed, messages = set(margin), list[tuple[Margin, Floats]]()
        for clique, new, law in reversed(self._laws):
            if not needed & new:
                continue
            needed |= set(clique)
            taken = [(clique, law), *(message for message in messages if new.intersection(message[0]))]
            messages = [message for message in messages if not new.intersection(message[0])]
            names = {name for scope, _ in taken for name in scope}
            kept = self.domain.margin(names - (new - set(margin)))
            messages.append((kept, _contracted(taken, kept)))
        return self.people * _contracted(messages, margin)

    @cached_property
    def _laws(self) -> list[tuple[Margin, set[str], Floats]]:
        """Each clique with the attributes that are new in it, and their law given the others."""
        seen, laws = set[str](), []
        for clique, table in zip(self.cliques, self.tables, strict=True):
            new = set(clique) - seen
            given = table.sum(axis=tuple(i for i, name in enumerate(clique) if name in new), keepdims=True)
            laws.append((clique, new, np.divide(table, given, out=np.zeros_like(table), where=given > 0)))
            seen |= new
        return laws


@dataclass
class GraphicalLearner:
    """Fits graphical models with `mbi`; each fit starts from the previous model."""

    domain: Domain
    memory: int
    _potentials: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        first = [(name,) for name in self.domain.attributes]
        needed = self._bytes(first)
        if needed > self.memory:
            raise TooManyCells(
                "the smallest model, with tables by one attribute and with the structural zeros, needs "
                f"{needed:,} bytes, but only {self.memory:,} may be used. Nothing was measured. Allow more "
                "memory, or coarsen an attribute."
            )

    def eligible(
        self, candidates: Sequence[Margin], measured: Sequence[Margin], part: Fraction
    ) -> list[Margin]:
        """Return the candidates inside the present tree, and those whose tree fits this part of the memory."""
        present = [set(clique) for clique in self._tree(measured)[1]]
        limit = self.memory * part
        return [
            margin
            for margin in candidates
            if any(clique.issuperset(margin) for clique in present)
            or (8 * self.domain.cells(margin) <= limit and self._bytes([*measured, margin]) <= limit)
        ]

    def fit(self, observed: Sequence[Observed], people: float, *, last: bool) -> TreeModel:
        """Return the model nearest to the measurements. Spends nothing."""
        jax, mbi = require_mbi()
        # Counts of a hundred thousand people and more are too fine for 32 bits.
        with jax.enable_x64(True):
            graph, cliques = self._tree([each.margin for each in observed])
            zeros = self._constraints()
            oracles = mbi.marginal_oracles
            # The faster of the two cannot handle empty cells.
            passing = oracles.message_passing_shafer_shenoy if zeros else oracles.message_passing_hugin
            oracle = partial(passing, jtree=graph)
            fitted = mbi.estimation.MirrorDescent(marginal_oracle=oracle).estimate(
                self._mbi_domain,
                [
                    mbi.LinearMeasurement(
                        each.counts.ravel().astype(np.float64), each.margin, float(each.noise.variance) ** 0.5
                    )
                    for each in observed
                ],
                known_total=people,
                constraints=zeros,
                iters=_LAST_STEPS if last else _STEPS,
                warm_start=self._potentials,
            )
            self._potentials = fitted.potentials
            shares = oracle(fitted.potentials.expand(cliques), 1.0, constraints=zeros)
            tables = tuple(np.asarray(shares[clique].values, dtype=np.float64) for clique in cliques)
        return TreeModel(self.domain, cliques, tables, people)

    def _bytes(self, margins: Sequence[Margin]) -> int:
        return 8 * sum(self.domain.cells(clique) for clique in self._tree(margins)[1])

    def _tree(self, margins: Sequence[Margin]) -> tuple[Any, tuple[Margin, ...]]:
        tied = [attributes for attributes, _ in self.domain.zero_blocks]
        return _junction_tree(self._mbi_domain, tuple(sorted(maximal_margins([*margins, *tied]))))

    @cached_property
    def _mbi_domain(self) -> Any:
        return require_mbi()[1].Domain(self.domain.attributes, self.domain.shape)

    def _constraints(self) -> tuple[Any, ...]:
        mbi = require_mbi()[1]
        return tuple(
            mbi.Constraint(self._mbi_domain.project(attributes), invalid=np.argwhere(mask))
            for attributes, mask in self.domain.zero_blocks
        )


def graphical(
    records: Records | Table,
    work: Workload | str,
    privacy: ApproxDP | ZCDP,
    *,
    memory: int | str = "64 MiB",
    rounds: int | None = None,
    rows: int | None = None,
    neighbours: Relation | Neighbours = "add-remove",
    ledger: Account | None = None,
    purpose: str = "graphical",
    sampler: Sampler | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> SyntheticRecords:
    """Return synthetic records drawn from a graphical model of adaptively chosen margins. Spends `privacy` once.

    Needs the extra `synth`. The account is debited before noise is drawn. Attributes in no margin are left out. The
    rows know only the chosen margins: apart from these, attributes are conditionally independent.

    Args:
        records: `Records`, or a `Table` of exact counts that is still to be protected.
        work: the margins that the rows should reproduce; the run chooses from these and their margins.
        privacy: (ε, δ) or ρ; Gaussian noise has no pure ε.
        memory: the most memory for the model's tables, in bytes or as text such as "64 MiB".
        rounds: the number of parts of the budget, and so the largest number of measured margins; 16 per attribute by
            default.
        rows: the number of rows; by default the number of people, as far as it is public.
        neighbours: what one person can change.
        ledger: the account that pays, from `Ledger.open(path).account(name)`; None keeps no books.
        purpose: a public word for the ledger's entry.
        sampler: draws the noise; the exact sampler by default.
        entropy: the source of all randomness; the operating system by default.
        progress: called with (what, done, total).

    >>> import tabulary as tb
    >>> table = tb.datasets.load("rochdale")
    >>> graphical(table, "[AB][AC][BD]", tb.ApproxDP(1, 1e-6), rounds=6, rows=500)
    <SyntheticRecords: 500 rows of 4 attributes>
    """
    plan = AdaptivePlan.of(
        records.domain,
        work,
        privacy,
        memory=byte_size(memory, name="the memory of a graphical model", error=InvalidArgument),
        rounds=rounds,
        neighbours=neighbours_of(records, neighbours),
    )
    if rows is not None:
        check_rows(rows, len(plan.domain.shape))
    learner = GraphicalLearner(plan.domain, plan.memory)
    source = entropy or SystemEntropy()
    tally = paid_tally(
        records,
        plan.candidates,
        privacy,
        plan.neighbours,
        ledger=ledger,
        purpose=purpose,
        digest=plan.digest,
        progress=progress,
    )
    exact = {margin: tally.exact(margin) for margin in plan.candidates}
    model, observed = learned(plan, exact, learner, sampler or ExactSampler(source), progress)
    wanted = max(1, round(model.people)) if rows is None else rows
    check_rows(wanted, len(plan.domain.shape))
    return SyntheticRecords(
        plan.domain,
        rows_of(model, wanted, source, progress),
        guarantee=f"{privacy} ({plan.neighbours})",
        origin=f"by a graphical model of {len({each.margin for each in observed}):,} tables",
    )


def rows_of(
    model: TreeModel, rows: int, entropy: Entropy, progress: Progress | None = None
) -> NDArray[np.int32]:
    """Return the codes of whole rows that have the model's tables. Spends nothing.

    Particles are drawn clique after clique and raked. In any order, their law is a product of factors inside cliques,
    and raking multiplies by such factors; the only such law with the tables of all cliques is the model.
    """
    tables = dict(zip(model.cliques, model.tables, strict=True))
    made = particles(model.domain, tables, max(_FEWEST, _PER_ROW * rows), entropy=entropy, progress=progress)
    return made.whole(rows, entropy)


def require_mbi() -> tuple[Any, Any]:
    """Return the packages jax and mbi, or raise before anything is measured."""
    try:
        import jax

        with warnings.catch_warnings():
            # It warns about settings of the whole process, which we must not change.
            warnings.simplefilter("ignore")
            import mbi
    except ImportError:
        raise MissingExtra(
            "graphical models need mbi and JAX, and at least one of them is not installed. Nothing was "
            "measured. Install them: pip install 'tabulary[synth]'."
        ) from None
    return jax, mbi


# The same margins give the same graph object, so its compiled program is used again.
@lru_cache(maxsize=4096)
def _junction_tree(domain: Any, margins: tuple[Margin, ...]) -> tuple[Any, tuple[Margin, ...]]:
    """Return a junction tree, and its cliques in an order in which each comes after its parent."""
    trees = require_mbi()[1].junction_tree
    graph = trees.make_junction_tree(domain, margins)[0]
    return graph, tuple(trees.maximal_cliques(graph))


def _contracted(parts: Sequence[tuple[Margin, Floats]], kept: Margin) -> Floats:
    """Return the product of tables, summed over all attributes but those that are kept."""
    names = sorted({name for scope, _ in parts for name in scope})
    operands: list[Any] = []
    for scope, table in parts:
        operands += [table, [names.index(name) for name in scope]]
    return np.asarray(np.einsum(*operands, [names.index(name) for name in kept], optimize=True))
