import shlex
from typing import NamedTuple

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.core.table import Table
from tabulary.noise import ExactSampler
from tabulary.planning import Plan, StatedErrors, plan
from tabulary.release import ReleasedTable
from tabulary.release.conclusions import conclusions
from tabulary.release.wording import SHRUNK_HELD
from tests.entropy import SeededEntropy
from tests.releases import release_of
from tests.unit.release.releases import PEOPLE, a_release


def of(release, most_limits=60):
    tables = release.tables if isinstance(release, Adjusted) else tuple(release)
    return conclusions(release.plan, tables, most_limits=most_limits)


def said(claims):
    """All that is said on one side, in one text."""
    return " ".join(f"{each.head} {each.words}" for each in claims)


def released(work, counts, domain=PEOPLE, mechanism="margins", privacy=None, **options):
    planned = plan(
        domain, work, privacy=privacy or PureDP(1), mechanism=mechanism, reconstruct="none", **options
    )
    return release_of(planned, counts)


class Adjusted(NamedTuple):
    """A plan, and its tables as if they had been adjusted afterwards."""

    plan: Plan
    tables: tuple[ReleasedTable, ...]


def adjusted(reconstruct, work="[sex age]", domain=PEOPLE, counts=None, **options):
    """Tables that were adjusted afterwards, every count far above its error."""
    planned = plan(domain, work, privacy=PureDP(1), reconstruct=reconstruct, rounding="none", **options)
    made = []
    for margin in planned.workload:
        shape, own = domain.shape_of(margin), domain.project(margin)
        linear = ReleasedTable(Table(own, np.full(shape, 40.0)), planned.error_of(margin))
        errors = StatedErrors(np.full(shape, 3.0), np.full(shape, 6.0))
        published = Table(own, np.full(shape, 40.0) if counts is None else counts)
        made.append(ReleasedTable(published, errors, linear))
    return Adjusted(planned, tuple(made))


def shrunk(work, domain=PEOPLE, counts=None):
    return adjusted("shrink", work, domain, counts, mechanism="residual")


SMALL = Domain({"sex": "FM", "age": "xyz", "job": "pq"})


def test_cells_above_zero_are_counted_and_impossible_ones_are_not():
    release = released("[age job]", {("age", "job"): [[500, 0], [2, 400], [-3, 300]]})
    found = of(release)
    assert (found.possible, found.above_zero) == (5, 3)
    assert "Of the 5 possible cells, 3 are of this kind." in said(found.may)


def test_intervals_that_noise_may_have_lifted_are_counted_and_prove_nothing_where_they_are_most_of_those():
    domain = Domain({"a": range(12), "b": range(12)})
    counts = np.zeros((12, 12), dtype=int)
    counts.reshape(-1)[:9] = 500
    few = of(released("[a b]", {("a", "b"): counts}, domain))
    # 144 empty cells would have 3.6 above zero; nine are not clearly more.
    kind = "Of the 144 possible cells, 9 are of this kind. Noise alone would put up to about 4 of them there."
    assert kind in said(few.may_not)
    assert "people are in a cell" not in said(few.may)
    counts.reshape(-1)[:70] = 500
    many = of(released("[a b]", {("a", "b"): counts}, domain))
    assert "Of the 144 possible cells, 70 are of this kind. Noise alone would put up to about 4" in said(
        many.may
    )
    assert "people are in a cell" not in said(many.may_not)


def test_noise_alone_does_not_say_that_people_are_there():
    domain = Domain({"a": range(40), "b": range(40)})
    noise = ExactSampler(SeededEntropy(5))
    planned = plan(domain, "[a b]", privacy=PureDP("1/20"), mechanism="margins", reconstruct="none")
    counts = noise.draw(planned.error_of(("a", "b")).noise, (40, 40))
    found = of(release_of(planned, {("a", "b"): np.asarray(counts)}))
    # Nobody is in these tables; about one interval in forty is above zero all the same.
    assert 20 <= found.above_zero <= 60
    assert "Noise alone would put up to about 40 of them there." in said(found.may_not)
    assert "people are in a cell" not in said(found.may)


def test_one_empty_cell_in_twenty_may_be_lifted_where_tables_were_adjusted():
    found = of(adjusted("least-squares"))
    assert "All 6 possible cells are of this kind." in said(found.may)
    assert "about one time in twenty, or less often" in said(found.may)
    unadjusted = of(released("[sex]", {("sex",): [400, 500]}))
    assert "about one time in forty, or less often" in said(unadjusted.may)


@pytest.mark.parametrize(
    ("work", "where"),
    [("[sex age]", "its row and column alone"), ("[sex age job]", "smaller tables alone")],
)
def test_a_shrunk_count_far_above_zero_is_no_proof_that_anyone_is_there(work, where):
    found = of(shrunk(work, SMALL))
    assert found.above_zero == found.possible
    assert "people are in a cell" not in said(found.may)
    assert "That people are in a cell whose interval is above zero." in said(found.may_not)
    assert where in said(found.may_not)


def test_single_attributes_are_not_shrunk():
    assert "people are in a cell" in said(of(shrunk("[sex]", SMALL)).may)


def test_intervals_of_shrunk_tables_are_not_said_to_hold_as_often_as_they_say():
    words = said(of(shrunk("[sex age]", SMALL)).may_not)
    assert f"Each says 95 %, and in trials {SHRUNK_HELD} of all intervals contained the truth" in words
    assert "the page “Shrinkage” of Tabulary’s documentation" in words
    assert "Each interval is right with probability 95 %" not in words
    assert "It is only as good as the intervals of shrunk tables." in said(of(shrunk("[sex age]", SMALL)).may)
    assert "shrunk" not in said(of(adjusted("least-squares")).may_not)


def test_a_shrunk_count_that_prints_as_zero_is_one_of_zero():
    counts = np.full((2, 3), 40.0)
    counts[0, 0] = 1e-31
    found = of(shrunk("[sex age]", SMALL, counts))
    assert "1 possible cell has a count of zero or below" in said(found.may_not)


def test_one_possible_cell_is_spoken_of_as_one():
    assert "The one possible cell is of this kind." in said(of(released("[]", {(): 500})).may)


def test_a_release_in_which_no_cell_can_be_told_from_zero_does_not_say_that_people_are_there():
    found = of(released("[sex]", {("sex",): [1, -1]}))
    assert "people are in a cell" not in said(found.may)
    assert "nobody is in a cell" in said(found.may_not)


def test_a_count_of_zero_is_no_proof_and_the_page_says_how_many_may_be_there():
    release = released("[age job]", {("age", "job"): [[500, 0], [0, 400], [-3, 300]]})
    upper = int(release["age", "job"].interval()[1][1, 0])
    words = said(of(release).may_not)
    assert "2 possible cells have a count of zero or below" in words
    assert f"By their intervals, one of them may have up to {upper} people." in words
    assert "Only a cell marked – is empty" in words
    without = of(released("[sex]", {("sex",): [0, 500]}))
    assert "marked –" not in said(without.may_not)
    assert "1 possible cell has a count of zero or below" in said(without.may_not)


def test_positive_counts_everywhere_are_no_proof_either():
    words = said(of(released("[sex]", {("sex",): [400, 500]})).may_not)
    assert "No possible cell has a count of zero or below here" in words


def test_a_difference_that_noise_may_have_made_is_told_for_the_finest_table_and_the_coarsest():
    domain = Domain({"a": "xy", "b": "xyz", "c": range(4)})
    release = a_release(domain, "[a][b c]", mechanism="cells", reconstruct="none")
    found = of(release)
    finest, coarsest = sorted(each.difference for each in found.limits)
    assert f"from {finest:g}, in b by c, to {coarsest:g}" in said(found.may)


def test_one_limit_for_all_tables_is_told_once():
    found = of(released("[sex][age]", {("sex",): [50, 60], ("age",): [9, 9, 9]}))
    assert f"that is {found.limits[0].difference:g}. A smaller difference may be noise" in said(found.may)


def test_tables_that_agree_and_tables_that_do_not_are_told_apart_by_their_numbers():
    same = of(released("[sex][age]", {("sex",): [50, 40], ("age",): [30, 30, 30]}))
    assert "they give the same sums" in said(same.may)
    apart = of(released("[sex][age]", {("sex",): [50, 40], ("age",): [30, 30, 25]}))
    assert "their sums differ by up to 5 (on the total)" in said(apart.may_not)
    assert "they give the same sums" not in said(apart.may)


def test_the_number_of_intervals_that_may_miss_follows_from_the_number_of_cells():
    domain = Domain({"a": range(10), "b": range(20)})
    words = said(of(released("[a b]", {("a", "b"): np.full((10, 20), 9)}, domain)).may_not)
    assert "Of the 200 intervals here, up to about 10 miss the truth on average" in words
    few = said(of(released("[sex]", {("sex",): [400, 500]})).may_not)
    assert "Of the 2 intervals here, one may miss the truth" in few


def test_a_small_count_is_not_one_person_unless_the_noise_is_next_to_nothing():
    release = released("[sex]", {("sex",): [1, 400]})
    most = 1 + int(release["sex"].half_widths()[0])
    assert f"a published count of 1 may mean any count up to {most}, with probability 95 %." in said(
        of(release).may_not
    )
    loud = said(of(released("[sex]", {("sex",): [1, 400]}, privacy=PureDP(40))).may_not)
    assert "a small count there may show a person" in loud
    assert "may mean any count" not in loud


def test_sensitive_attributes_are_the_only_ones_whose_protection_is_spoken_of():
    near = Neighbours("replace", 1, ("job",))
    domain = Domain({"sex": "FM", "job": range(3)})
    planned = plan(domain, "[sex job]", privacy=PureDP(1), neighbours=near, reconstruct="none")
    counts = {("sex", "job"): np.full((2, 3), 50.0)}
    words = said(of(release_of(planned, counts)).may_not)
    assert "The promise above covers only the sensitive attributes" in words
    assert "what all tables together say about one person" not in words


def test_an_unadjusted_release_may_be_summed_and_tested_by_a_test_that_knows_the_noise():
    found = of(a_release(work="[sex][age job]", mechanism="margins", reconstruct="none"))
    words = said(found.may)
    assert "a sum is not biased" in words
    (command,) = (each.command for each in found.may if each.command)
    assert shlex.split(command) == ["tabulary", "test", ".", "[age job]"]
    assert "treats these counts as exact" in said(found.may_not)


@pytest.mark.parametrize(
    ("reconstruct", "bias"),
    [("least-squares", "small cells"), ("lp", "small cells"), ("shrink", "show no relation")],
)
def test_an_adjusted_release_says_that_it_is_biased_and_is_tested_by_its_unbiased_estimates(
    reconstruct, bias
):
    found = of(adjusted(reconstruct))
    assert bias in said(found.may_not)
    assert "treats these counts as exact" in said(found.may_not)
    assert "a sum is not biased" not in said(found.may)
    assert "made from the unbiased estimates, not from the published counts" in said(found.may)
    assert [each.command for each in found.may if each.command] == ['tabulary test . "[sex age]"']


def test_shrunk_tables_say_how_many_cells_the_measurements_put_above_zero():
    assert "The measurements by themselves put 6 cells above zero." in said(
        of(shrunk("[sex age]", SMALL)).may_not
    )


def test_an_unadjusted_release_is_not_called_biased():
    assert "small cells" not in said(of(a_release(mechanism="margins", reconstruct="none")).may_not)
    assert "show no relation" not in said(of(a_release(mechanism="margins", reconstruct="none")).may_not)


def test_a_total_by_itself_has_nothing_to_test_and_nothing_to_compare():
    found = of(released("[]", {(): 500}))
    assert not any(each.command for each in found.may)
    assert "two counts of one table differ" not in said(found.may)
    assert "all intervals are right at the same time" not in said(found.may_not)


def test_one_attribute_is_tested_for_equal_frequencies():
    found = of(a_release(work="[age]", mechanism="margins", reconstruct="none"))
    assert "Whether levels are equally frequent" in said(found.may)


def test_a_margin_that_a_shell_would_take_apart_is_quoted():
    domain = Domain({"birth country": "xy", "$sex": "xy"})
    release = released('["birth country" $sex]', {domain.attributes: np.full((2, 2), 9)}, domain)
    (command,) = (each.command for each in of(release).may if each.command)
    assert shlex.split(command)[-1] == '["birth country" $sex]'


def test_limits_are_of_the_first_tables_only():
    assert len(of(a_release(mechanism="margins", reconstruct="none"), most_limits=2).limits) == 2
