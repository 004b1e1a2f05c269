import numpy as np
import pytest

from tabulary import Domain, Table, datasets
from tabulary.errors import InvalidArgument
from tabulary.infer import loglinear, search
from tabulary.infer.models import LogLinearModel
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors, StatedErrors
from tabulary.release import ReleasedTable
from tests.entropy import SeededEntropy

DOMAIN = Domain({"A": "xy", "B": "xyz", "C": "xy"})


def released(means, scale, seed):
    law = DiscreteLaplace(scale)
    counts = np.random.default_rng(seed).poisson(means) + law.sample(means.shape, SeededEntropy(seed))
    return ReleasedTable(Table(DOMAIN, counts), CellErrors(law, np.ones(means.shape, dtype=np.int64)))


def chain(total):
    """A depends on B and C depends on B, and nothing else."""
    ab, bc = np.array([[3.0, 1, 1], [1, 2, 1]]), np.array([[1.0, 3], [1, 1], [3, 1]])
    joint = ab[:, :, None] * bc[None]
    return total * joint / joint.sum()


def test_every_step_drops_the_interaction_with_the_largest_p_value():
    table = Table(DOMAIN, np.random.default_rng(5).poisson(chain(900)))
    found = search(table)
    model = found.naive.start
    assert str(model) == "[ABC]"
    for step in (*found.naive.steps, found.naive.kept):
        larger = loglinear(table, model)
        p_values = {
            g: loglinear(table, model.without(g)).against(larger).p_value
            for g in model.generators
            if len(g) > 1
        }
        assert step.naive.p_value == max(p_values.values()) == p_values[step.generator]
        assert (step.naive.p_value > found.alpha) == (step is not found.naive.kept)
        model = step.model
    assert found.aware is None
    assert str(found.model) == "[AB][BC]"
    assert not found.differ


def test_the_search_behind_noise_finds_the_model_that_the_naive_one_overfits():
    found = search(released(chain(1500), 15, 4))
    assert str(found.aware.model) == str(found.model) == "[AB][BC]"
    assert str(found.naive.model) != "[AB][BC]"
    assert found.differ
    first = found.aware.steps[0]
    assert first.generator == ("A", "B", "C")
    assert first.naive.rejects()
    assert not first.aware.rejects()


def test_the_table_of_a_search_has_both_verdicts_side_by_side():
    text = str(search(released(chain(1500), 15, 4)))
    head, columns, first, *_ = text.splitlines()
    assert head == "backward elimination at α = 0.05 from [ABC]"
    assert columns.split() == ["without", "noise-aware", "as", "if", "exact"]
    assert first.startswith("[ABC]")
    assert first.count("p = ") == 2
    assert first.index(": drop") < first.index(": keep")
    assert "the simplest model that fits: [AB][BC]" in text
    assert "certainly there, at α = 0.05 for all together: [AB][BC]" in text
    assert "as if the counts were exact: " in text


def test_independent_attributes_lose_every_interaction_and_keep_their_main_effects():
    means = 600 * np.multiply.outer([0.5, 0.5], np.multiply.outer([0.2, 0.3, 0.5], [0.4, 0.6]))
    found = search(released(means, 3, 7))
    assert str(found.model) == "[A][B][C]"
    assert found.aware.kept is None


def test_five_attributes_start_from_their_three_way_interactions():
    domain = Domain(dict.fromkeys("ABCDE", "xy"))
    table = Table(domain, np.random.default_rng(1).poisson(40, (2,) * 5))
    seen = []
    found = search(table, progress=lambda what, dropped, _: seen.append((what, dropped)))
    assert str(found.naive.start) == str(LogLinearModel.k_way(domain, 3))
    assert seen == [("naive search", i + 1) for i in range(len(found.naive.steps))]


def test_a_search_may_start_anywhere():
    table = Table(DOMAIN, np.random.default_rng(5).poisson(chain(900)))
    assert str(search(table, start="[AB][BC][AC]").naive.start) == "[AB][AC][BC]"
    assert search(table, start="[A][B]").naive.kept is None


def test_a_given_noise_makes_the_search_of_a_plain_table_aware():
    table = released(chain(1500), 15, 4)
    again = search(table.table, noise=DiscreteLaplace(15))
    assert again.model == search(table).model
    assert again.aware is not None


@pytest.mark.parametrize("alpha", [0, 1, -1, 2, True, "0.05", float("nan")])
def test_a_level_that_is_none_is_refused(alpha):
    with pytest.raises(InvalidArgument, match="Nothing was searched"):
        search(datasets.load("hair-eye-gene"), alpha=alpha)


def test_the_search_reads_the_unbiased_face_and_the_naive_one_the_published_face():
    linear = released(chain(1500), 15, 4)
    errors = StatedErrors(np.ones(linear.shape), np.ones(linear.shape))
    published = Table(DOMAIN, np.rint(chain(1500)).astype(np.int64))
    found = search(ReleasedTable(published, errors, linear))
    assert found.aware.model == search(linear).aware.model
    assert found.naive.model == search(published).naive.model


def test_every_interaction_is_tested_once_whatever_the_others_do():
    linear = released(chain(1500), 15, 4)
    found = search(linear)
    assert [each.interaction for each in found.interactions] == [*map(tuple, ("AB", "AC", "BC", "ABC"))]
    largest = loglinear(linear, "[AC][BC]")
    assert found.interactions[0].test.p_value == largest.against(loglinear(linear, "[AB][AC][BC]")).p_value
    p_values = sorted(each.test.p_value for each in found.interactions)
    adjusted = sorted(each.adjusted_p_value for each in found.interactions)
    assert adjusted[0] == 4 * p_values[0]
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))


def test_an_interaction_that_is_certainly_there_brings_along_what_it_includes():
    means = chain(60_000)
    means[0, 0, 0] *= 3
    found = search(released(means, 2, 3))
    assert str(found.certain) == "[ABC]"
    assert str(search(released(np.full((2, 3, 2), 50.0), 2, 3)).certain) == "[A][B][C]"
