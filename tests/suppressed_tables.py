"""Small tables, and all that can be known of them by going through every table, or every data set, one by one.

Nothing here shares arithmetic with the package: laws are convolved person by person, tables are listed, and sums are
taken over the list. What a sampler computes or simulates is compared with it.
"""

from itertools import product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion, TableQuestion
from tabulary.table_samplers.people import People
from tabulary.table_samplers.poisson_binomial import PoissonBinomial
from tabulary.table_samplers.table_sampler import PossibleAnswers

# ---- every table ----------------------------------------------------------------------------------------------------


def law(probabilities: list[float]) -> NDArray[np.float64]:
    """How likely 0, 1, ... of these people have the attribute."""
    weights = np.ones(1)
    for probability in probabilities:
        weights = np.convolve(weights, [1 - probability, probability])
    return weights


def priors(count_law: PoissonBinomial) -> list[float]:
    """The prior of each person of a count_law, one by one."""
    return [float(p) for n, p in zip(count_law.people, count_law.probability, strict=True) for _ in range(n)]


def weighted_tables(known: PartialTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every table that agrees with what is known, and the prior probability of each.

    The table grows cell by cell; a beginning that no end can bring to the sums is dropped.
    """
    tables = np.zeros((1, 0), dtype=np.int64)
    weights = np.ones(1)
    left = [np.tile(sums, (1, 1)) for sums in known.sums]
    cells = list(np.ndindex(known.shape))
    for number, index in enumerate(cells):
        values = np.arange(known.lower[index], known.upper[index] + 1)
        tables = np.hstack([np.repeat(tables, values.size, axis=0), np.tile(values, len(tables))[:, None]])
        weights = np.repeat(weights, values.size) * np.tile(
            law(priors(known.count_law(index)))[values], weights.size
        )
        possible = np.ones(len(tables), dtype=bool)
        for axis, group in enumerate(index):
            left[axis] = np.repeat(left[axis], values.size, axis=0)
            left[axis][:, group] -= tables[:, -1]
            ahead = [later for later in cells[number + 1 :] if later[axis] == group]
            least = sum(int(known.lower[later]) for later in ahead)
            most = sum(int(known.upper[later]) for later in ahead)
            possible &= (left[axis][:, group] >= least) & (left[axis][:, group] <= most)
        tables, weights = tables[possible], weights[possible]
        left = [rest[possible] for rest in left]
    return tables.reshape(-1, *known.shape), weights


def consistent_tables(known: PartialTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every table that agrees with what is known, and its probability given that."""
    tables, weights = weighted_tables(known)
    return tables, weights / weights.sum()


def true_marginals(known: PartialTable) -> NDArray[np.object_]:
    """The law of each cell given what is known, over 0, ..., its people."""
    tables, probability = consistent_tables(known)
    marginals = np.empty(known.shape, dtype=object)
    for index in np.ndindex(known.shape):
        size = known.count_law(index).size
        marginals[index] = np.bincount(tables[:, *index], weights=probability, minlength=size + 1)
    return marginals


def true_posteriors(known: PartialTable) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """The probability that a person of each kind (as `Crowd.probability` lists them) has it, for each cell."""
    marginals = true_marginals(known)
    return {index: _chances(known.count_law(index)) @ marginals[index] for index in np.ndindex(known.shape)}


def true_deviation(known: PartialTable) -> float:
    """The largest |1 - posterior/prior| of any person, for either value of the attribute."""
    worst = 0.0
    for index, posteriors in true_posteriors(known).items():
        for prior, posterior in zip(known.count_law(index).probability, posteriors, strict=True):
            worst = max(worst, abs(1 - posterior / prior), abs(1 - (1 - posterior) / (1 - prior)))
    return worst


def true_answers(known: PartialTable, question: TableQuestion) -> PossibleAnswers:
    """What the question may be answered, by answering it in every way there is."""
    if isinstance(question, CellQuestion):
        least, most = int(known.lower[question.index]), int(known.upper[question.index])
    else:
        least, most = 0, int(known.sums[question.axis][question.group])
    found = []
    for value in range(least, most + 1):
        try:
            refined = known.answered(question, value)
        except InvalidTable:
            continue
        weight = weighted_tables(refined)[1].sum()
        if weight > 0:
            found.append((value, weight, true_deviation(refined)))
    values, weights, deviations = map(np.array, zip(*found, strict=True))
    return PossibleAnswers(values, weights / weights.sum(), deviations)


def _chances(count_law: PoissonBinomial) -> NDArray[np.float64]:
    """The probability that a person of each kind has it when v of the count_law do, by leaving that person out."""
    everyone = law(priors(count_law))
    chances = np.zeros((count_law.people.size, count_law.size + 1))
    for kind, prior in enumerate(count_law.probability):
        others = priors(count_law)
        others.remove(float(prior))
        chances[kind, 1:] = prior * law(others) / everyone[1:]
    return chances


# ---- every data set -------------------------------------------------------------------------------------------------


def posteriors_by_data_sets(known: PartialTable) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """The same as `true_posteriors`, through all 2**N data sets of N people."""
    person_cell, person_prior = [], []
    for index in np.ndindex(known.shape):
        for prior in priors(known.count_law(index)):
            person_cell.append(index)
            person_prior.append(prior)
    prior = np.array(person_prior)
    data = np.array(list(product([0, 1], repeat=prior.size)), dtype=np.int64).reshape(2**prior.size, -1)
    probability = np.where(data, prior, 1 - prior).prod(axis=1)
    tables = np.zeros((len(data), *known.shape), dtype=np.int64)
    for person, index in enumerate(person_cell):
        tables[:, *index] += data[:, person]
    cells = tuple(range(1, tables.ndim))
    agrees = ((tables >= known.lower) & (tables <= known.upper)).all(axis=cells)
    for axis, sums in enumerate(known.sums):
        others = tuple(a for a in cells if a != axis + 1)
        agrees &= (tables.sum(axis=others) == sums).all(axis=1)
    has_it = probability[agrees] @ data[agrees] / probability[agrees].sum()
    found = {}
    for index in np.ndindex(known.shape):
        here = [person for person, cell in enumerate(person_cell) if cell == index]
        kinds = known.count_law(index).probability
        # People of one kind are interchangeable: any one of them stands for all.
        found[index] = np.array([next(has_it[k] for k in here if prior[k] == kind) for kind in kinds])
    return found


# ---- small tables ---------------------------------------------------------------------------------------------------


def known_table(
    people, probability, counts, *, released=None, groups: tuple[tuple[int, ...], ...] | None = None
) -> PartialTable:
    """What is known of a table of these counts: its sums, and the cells where `released` is true.

    `groups` are the cuts between the groups of levels of each axis; every level is a group of its own if None.
    """
    counts = np.asarray(counts)
    domain = Domain({f"x{axis}": range(levels) for axis, levels in enumerate(counts.shape)})
    folk = People.of(domain, people, probability)
    if groups is None:
        groups = tuple(tuple(range(1, levels)) for levels in counts.shape)
    known = PartialTable.total(folk, int(counts.sum()))
    for axis, cuts in enumerate(groups):
        others = tuple(a for a in range(counts.ndim) if a != axis)
        along = counts.sum(axis=others)
        start = 0
        for group, cut in enumerate(cuts):
            known = known.answered(SplitQuestion(axis, group, cut), int(along[start:cut].sum()))
            start = cut
    if released is not None:
        for index in np.argwhere(released):
            known = known.answered(CellQuestion(tuple(map(int, index))), int(counts[tuple(index)]))
    return known


@st.composite
def small_tables(
    draw, axes=2, levels=3, people=5, kinds=2, cells=9, released=True, bounded=True, grouped=False
):
    """What is known of a random small table: people of several kinds, released cells, cells known within bounds."""
    shape = tuple(
        draw(
            st.lists(st.integers(1, levels), min_size=axes, max_size=axes).filter(
                lambda s: np.prod(s) <= cells
            )
        )
    )
    many = draw(st.integers(1, kinds))
    number = np.array(
        [
            draw(st.lists(st.integers(0, people // many), min_size=many, max_size=many))
            for _ in np.ndindex(shape)
        ]
    ).reshape(*shape, many)
    chance = st.sampled_from([0.02, 0.1, 0.3, 0.45, 0.5, 0.7, 0.9])
    probability = np.array([draw(chance) for _ in range(number.size)]).reshape(number.shape)
    counts = np.array([draw(st.integers(0, int(n))) for n in number.sum(axis=-1).ravel()]).reshape(shape)
    if grouped:
        cuts = tuple(
            tuple(sorted(draw(st.sets(st.sampled_from(range(1, size)))))) if size > 1 else ()
            for size in shape
        )
        return known_table(number, probability, counts, groups=cuts)
    known = known_table(number, probability, counts)
    if released:
        for index in np.ndindex(shape):
            what = draw(st.sampled_from(["nothing", "nothing", "the value", *["bounds"] * bounded]))
            size, value = int(known.upper[index]), int(counts[index])
            if what == "the value":
                known = known.answered(CellQuestion(index), value)
            elif what == "bounds":
                known = known.bounded(
                    index,
                    draw(st.integers(max(0, value - 2), value)),
                    draw(st.integers(value, min(size, value + 2))),
                )
    return known


@st.composite
def questions(draw, known: PartialTable) -> TableQuestion:
    """A question that may be asked of this table: a cell, or a group parted."""
    partings = [
        SplitQuestion(axis, group, cut)
        for axis, of_axis in enumerate(known.groups)
        for group, (first, last) in enumerate(of_axis)
        for cut in range(first + 1, last)
    ]
    if partings and draw(st.booleans()):
        return draw(st.sampled_from(partings))
    return CellQuestion(tuple(draw(st.integers(0, size - 1)) for size in known.shape))


# ---- draws ----------------------------------------------------------------------------------------------------------


def frequencies(draws: NDArray[np.int64], tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each of the tables was drawn; a draw that is none of them is an error."""
    place = {
        table.tobytes(): number for number, table in enumerate(np.ascontiguousarray(tables, dtype=np.int64))
    }
    seen = [place[table.tobytes()] for table in np.ascontiguousarray(draws, dtype=np.int64)]
    return np.bincount(seen, minlength=len(tables))


def total_variation(observed: NDArray[np.int64], probability: NDArray[np.float64]) -> float:
    """Half the sum of the differences between what was seen and what is true."""
    return float(np.abs(observed / observed.sum() - probability).sum() / 2)


def chi_square(observed: NDArray[np.int64], probability: NDArray[np.float64]) -> float:
    """The p-value of Pearson's test; outcomes of fewer than five expected draws are taken together."""
    expected = probability * observed.sum()
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if expected.size < 2:
        return 1.0
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)
