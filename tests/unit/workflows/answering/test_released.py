"""Answers from a published release."""

from itertools import combinations

import numpy as np
import pytest

from tabulary.core.cache import Cache
from tabulary.errors import TableRefused, TooManyCells
from tabulary.release import Release
from tabulary.workflows.answering.answers import ProtectionMethod
from tabulary.workflows.answering.released import ReleasedAnswers
from tests.release_folders import DOMAIN, written_release


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "census"
    written_release(folder)
    return Release.load(folder)


@pytest.fixture
def answers(release):
    return ReleasedAnswers.of(release)


def test_every_part_of_a_listed_table_is_answered_and_nothing_else(release, answers):
    for margin in (m for k in range(5) for m in combinations(DOMAIN.attributes, k)):
        if any(set(margin) <= set(listed) for listed in release.margins):
            assert answers.answer(margin).table.counts.tolist() == release[margin].counts.tolist()
            assert answers.price(margin) is None
            assert answers.plan_of(margin) is release.plan
        else:
            for ask in (answers.answer, answers.price, answers.plan_of, answers.expected):
                with pytest.raises(TableRefused, match=r"the release has no table with|at most 3 attributes"):
                    ask(margin)


def test_the_linear_answer_is_the_unbiased_face_with_its_exact_law(release, answers):
    published, linear = answers.answer(("sex", "age")), answers.answer(("sex", "age"), linear=True)
    assert published.reconstructed
    assert not linear.reconstructed
    assert published.table.counts.dtype.kind == "i"
    assert (published.table.counts >= 0).all()
    assert linear.table.counts.tolist() == release["sex", "age"].estimate.tolist()
    law = release.plan.error_of(("sex", "age"))
    np.testing.assert_array_equal(linear.table.standard_errors, law.standard_errors)
    assert linear.table.covariance is not None


def test_the_expected_error_is_that_of_the_published_table(release, answers):
    found, table = answers.expected(("age", "region")), release["age", "region"]
    assert found.cells == table.counts.size
    assert found.half_width == pytest.approx(table.half_widths().max())


def test_a_release_says_which_version_it_is_and_what_it_promises(release, answers):
    assert release.digest.startswith(answers.version)
    assert len(answers.version) == 16
    assert answers.method is ProtectionMethod.released
    assert answers.method.has_one_plan
    assert "ρ = 0.125" in answers.promise.statement


def test_a_table_of_too_many_cells_is_refused_and_smaller_ones_are_not(release):
    answers = ReleasedAnswers.of(release, max_cells=6)
    assert answers.answer(("sex", "age")).table.counts.size == 6
    with pytest.raises(TooManyCells, match="the most is 6"):
        answers.answer(("sex", "age", "job"))


def test_tables_of_a_release_are_in_memory_once_and_others_are_cached(release):
    cache = Cache()
    answers = ReleasedAnswers.of(release, cache=cache)
    assert answers.answer(("age", "region")).table is release["age", "region"]
    assert cache.held_bytes == 0
    first = answers.answer(("age",)).table
    assert answers.answer(("age",)).table is first
    assert cache.held_bytes > 0
    answers.close()
    assert cache.held_bytes == 0


def test_a_release_of_linear_estimates_has_one_face(tmp_path):
    written_release(tmp_path / "linear", reconstruct="none")
    answers = ReleasedAnswers.of(Release.load(tmp_path / "linear"))
    published = answers.answer(("sex",))
    assert not published.reconstructed
    assert published.table.counts.tolist() == answers.answer(("sex",), linear=True).table.counts.tolist()
