"""Everything that follows from published tables with suppressed cells."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tabulary.attacks.suppression.findings import AttackFindings
from tabulary.attacks.suppression.intervals import intervals
from tabulary.attacks.suppression.posteriors import Beliefs, beliefs, prior_knowledge
from tabulary.attacks.suppression.primary_sets import CountThreshold, PrimarySets, primary_sets
from tabulary.attacks.suppression.published_tables import AttackedTables, Parts
from tabulary.core.progress import Progress
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidTable
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.table_sampler import TableSampler

Prior = ArrayLike | Sequence[ArrayLike | None]


def attack(
    *tables: SuppressedTable,
    rule: CountThreshold | Sequence[CountThreshold | None] | None = None,
    minimal: bool = True,
    parts: Parts | None = None,
    probability: Prior | None = None,
    sampler: TableSampler | None = None,
    seed: str = "attack",
    progress: Progress | None = None,
) -> AttackFindings:
    r"""Return all that follows from published tables: intervals, exact values, certain people, likely values.

    Several tables are read together. Attributes of the same name are the same attribute. If tables divide it
    differently, `parts` says which finer levels a level consists of: `{"age": {"0-17": ["0-14", "15-17"]}}`. The
    difference of two tables may disclose what neither discloses alone.

    - Every suppressed cell and sum gets its `Interval`, by linear and integer programs.
    - With a `rule`, the possible sets of sensitive cells are listed, with what follows from each: Nabar & Mishra
      (2010), section 3. `minimal` says that as few cells as possible were suppressed. Give one rule for all tables, or
      a list with one for each; None if it is not known.
    - With a prior `probability`, and if the people of the cells are known, the posterior of each cell and person is
      computed, over the sets if there is a rule. Give one number for everybody, an array for a single table, or a list
      with one entry for each table; None if there is no prior. Each of several tables is treated by itself here, with
      the intervals of its cells that follow from all tables.

    Post-processing: reads published numbers only, spends no budget. A reader who knows more may find more: nothing here
    shows that a table is private. `seed` is that of the random numbers where a posterior is simulated.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.suppress import Threshold
    >>> domain = Domain({"eye": ["blue", "not blue"], "hair": ["blonde", "brown", "black"]})
    >>> sums = {("eye",): [110, 105], ("hair",): [55, 105, 55]}
    >>> people = [[300, 200, 300], [200, 100, 200]]
    >>> found = attack(SuppressedTable(domain, np.full((2, 3), np.nan), sums, people), rule=Threshold(5))
    >>> print(*found.verdict, sep="\n")
    The rule (counts up to 5 are sensitive, ...) leaves 2 possible sets of sensitive cells: {1, 3, 5} or {2, 4, 6}.
    If the sensitive cells are {2, 4, 6}, all 100 of not blue, brown have it.
    No suppressed number follows exactly from this table. That is no proof of privacy.
    """
    published = AttackedTables.of(tables, parts)
    rules, priors = _of_each(rule, len(tables), "rules"), _priors(tables, probability)
    found = AttackFindings(tables, intervals(published, progress=progress))
    sets: dict[int, PrimarySets] = {}
    for number, (table, known_rule) in enumerate(zip(tables, rules, strict=True)):
        if known_rule is not None and table.suppressed.any():
            sets[number] = primary_sets(
                published, number, rule=known_rule, minimal=minimal, progress=progress
            )
    believed: list[Beliefs] = []
    for number, prior in enumerate(priors):
        if prior is None:
            continue
        if progress is not None:
            progress("posteriors", number, len(tables))
        known = prior_knowledge(tables[number], prior, *found.bounds(number))
        possible = sets.get(number)
        cases = [case for each in possible.sets for case in each.cases] if possible is not None else []
        belief, weights = beliefs(known, cases, table=number, sampler=sampler, seed=PublicSeed(seed))
        believed.append(belief)
        if possible is not None and cases:
            sets[number] = _weighted(possible, list(weights))
    return replace(found, primary_sets=tuple(sets.values()), beliefs=tuple(believed))


def _weighted(possible: PrimarySets, weights: list[float]) -> PrimarySets:
    """Return the sets with their probabilities, each that of all its cases."""
    weighted = []
    for found in possible.sets:
        own, weights = weights[: len(found.cases)], weights[len(found.cases) :]
        weighted.append(replace(found, probability=float(sum(own))))
    return replace(possible, sets=tuple(weighted))


def _priors(tables: Sequence[SuppressedTable], probability: Any) -> list[Any]:
    """Return the prior of each table."""
    if isinstance(probability, list | tuple):
        return _of_each(probability, len(tables), "priors")
    if len(tables) > 1 and np.ndim(np.asarray(probability)):
        raise InvalidTable(
            "one array of priors was given for several tables. Give a list with one entry for each table."
        )
    if probability is not None and all(table.people is None for table in tables):
        raise InvalidTable(
            "a prior was given, but no table says how many people are in its cells. Give the people too."
        )
    return [None if table.people is None else probability for table in tables]


def _of_each(given: Any, tables: int, name: str) -> list[Any]:
    """Return one for each table: the same for all, or as listed."""
    if not isinstance(given, list | tuple):
        return [given] * tables
    if len(given) != tables:
        raise InvalidTable(
            f"there are {tables} tables and {len(given)} {name}: give one for each table, or one for all."
        )
    return list(given)
