"""Replay: make the decisions of a published table again, and see whether they are the same."""

import math
from dataclasses import dataclass

import numpy as np

from tabulary.core.progress import Progress
from tabulary.errors import InvalidTable
from tabulary.suppress.simulatable_method.decisions import Decision
from tabulary.suppress.simulatable_method.simulatable import SimulatableTable
from tabulary.suppress.simulatable_method.suppressor import Block, run_suppressor
from tabulary.table_samplers.sampler_choice import SamplerChooser

# Another processor may round the last digits of a probability otherwise.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Replay:
    """Whether the decisions of a table came out the same, and where they first did not.

    `derived_seed` says that the seed of the public random numbers follows from the public inputs. Another seed is no
    error, but whoever chose it may have tried several.
    """

    difference: str | None
    derived_seed: bool

    @property
    def ok(self) -> bool:
        """Whether every decision came out the same."""
        return self.difference is None


def replay(
    table: SimulatableTable, *, choose: SamplerChooser | None = None, progress: Progress | None = None
) -> Replay:
    """Return whether the published record follows from what is public: the proof that it gives nothing away.

    The suppressor runs again on the people, the priors and the terms; where it decides to release, the published
    table answers. Nothing confidential is needed, and it takes as long as the suppression did. Decisions that were
    simulated are drawn again with the same seed. `progress` is called with (what, done, total).

    >>> from tabulary.suppress.simulatable_method.simulatable import simulatable
    >>> table = simulatable([[60, 50], [70, 80]], [[25, 20], [31, 40]], 0.45)
    >>> replay(table)
    Replay(difference=None, derived_seed=True)
    """
    people, terms = table.people_by_kind, table.terms
    derived = terms.seed == terms.derived_seed(people)
    witness = _Witness(table)
    choose = choose or terms.sampler_chooser()
    try:
        again = run_suppressor(
            people, witness, terms, choose=choose, record=witness.compare, progress=progress
        )
    except _Differs as difference:
        return Replay(str(difference), derived)
    except InvalidTable as contradiction:
        return Replay(f"the published numbers contradict each other: {contradiction}", derived)
    if len(again.decisions) < len(table.decisions):
        return Replay(
            f"the record has one decision more, on {table.decisions[len(again.decisions)].asked}", derived
        )
    if again.outcome != table.outcome:
        return Replay(f"the outcome is {again.outcome!r}, not {table.outcome!r}", derived)
    return Replay(None, derived)


class _Differs(Exception):
    pass


class _Witness:
    """The published table as an oracle, with its record at hand."""

    def __init__(self, table: SimulatableTable) -> None:
        self._table = table
        self._record = iter(table.decisions)
        self._recorded: Decision | None = None

    def compare(self, decision: Decision) -> None:
        """Compare a decision, as it is made again, with the next one of the record."""
        self._recorded = recorded = next(self._record, None)
        if recorded is None:
            raise _Differs(f"the record ends before {decision.asked}")
        if recorded.question != decision.question or recorded.labels != decision.labels:
            raise _Differs(f"the record asks for {recorded.asked} where it should ask for {decision.asked}")
        if recorded.released != decision.released:
            by_record, again = ("", " not") if recorded.released else (" not", "")
            raise _Differs(
                f"by the record {decision.asked} is{by_record} released, and made again it is{again}"
            )
        if not _alike(recorded, decision):
            raise _Differs(
                f"the decision on {decision.asked} has a different reason or different numbers in the record"
            )
        if decision.value is not None and decision.value != recorded.value:
            raise _Differs(f"the record has a wrong answer for {decision.asked}")

    def answer(self, block: Block) -> int:
        """Return what the table has published for a block of cells."""
        table = self._table
        parts = [
            [
                number
                for number, (first, last) in enumerate(groups)
                if levels[0] <= first and last <= levels[1]
            ]
            for groups, levels in zip(table.groups, block, strict=True)
        ]
        partial = [axis for axis, groups in enumerate(table.groups) if len(parts[axis]) < len(groups)]
        if not partial:
            value = float(table.sums.get((), np.array(np.nan)))
        elif len(partial) == 1:
            attribute = table.domain.attributes[partial[0]]
            value = float(table.sums[attribute,][parts[partial[0]]].sum())
        else:
            value = float(table.counts[np.ix_(*parts)].sum())
        recorded = self._recorded
        if recorded is None or value != recorded.value:
            asked = "a question" if recorded is None else recorded.asked
            raise _Differs(f"the record and the table have different answers for {asked}")
        return int(value)


def _alike(first: Decision, second: Decision) -> bool:
    """Return whether two decisions have the same grounds, up to rounding."""
    plain = [(d.reason, d.sampler, d.draws, d.unsafe is None) for d in (first, second)]
    numbers = [(d.unsafe or 0.0, d.limit, d.error) for d in (first, second)]
    return plain[0] == plain[1] and all(
        math.isclose(one, other, rel_tol=1e-6, abs_tol=_ROUNDING) for one, other in zip(*numbers, strict=True)
    )
