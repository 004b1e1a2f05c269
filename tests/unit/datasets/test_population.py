import numpy as np
import pytest

from tabulary.datasets import people_domain
from tabulary.datasets.population import joint_probability


@pytest.fixture(scope="module")
def joint():
    return joint_probability()


def share(joint, *margin, given=()):
    """The probability of `margin`, in that order, conditional on the attributes of `given`."""
    attributes = people_domain().attributes
    axes = [attributes.index(a) for a in (*given, *margin)]
    kept = np.einsum(joint, range(7), axes)
    return kept / kept.sum(axis=tuple(range(len(given), len(axes))), keepdims=True)


def levels(attribute):
    return people_domain().levels_of(attribute)


def test_the_domain_has_the_seven_attributes_of_the_census_example():
    assert dict(zip(people_domain().attributes, people_domain().shape, strict=True)) == {
        "region": 11,
        "sex": 2,
        "age": 21,
        "employment": 5,
        "occupation": 12,
        "education": 9,
        "birth_country": 5,
    }
    assert levels("age")[0] == "0-4"
    assert levels("age")[-1] == "100+"


def test_the_possible_cells_are_exactly_those_with_a_probability(joint):
    assert joint.sum() == pytest.approx(1)
    assert np.array_equal(joint == 0, people_domain().impossible(people_domain().attributes))


def test_every_level_of_every_attribute_has_people(joint):
    for attribute in people_domain().attributes:
        assert share(joint, attribute).min() > 1e-5


def test_no_child_has_an_employment_status_and_every_adult_has_one():
    impossible = people_domain().impossible(("age", "employment"))
    applicable = levels("employment").index("not applicable")
    for i, age in enumerate(levels("age")):
        child = age in ("0-4", "5-9", "10-14")
        assert impossible[i, applicable] == (not child)
        assert np.delete(impossible[i], applicable).all() == child


def test_an_occupation_belongs_to_those_at_work_and_to_nobody_else():
    impossible = people_domain().impossible(("employment", "occupation"))
    none = levels("occupation").index("not applicable")
    for i, status in enumerate(levels("employment")):
        at_work = status in ("employee", "self-employed")
        assert impossible[i, none] == at_work
        assert np.delete(impossible[i], none).all() == (not at_work)


def test_what_follows_from_two_zeros_together_is_impossible_too():
    # No zero names age with occupation for children; it follows through employment.
    assert people_domain().impossible(("age", "occupation"))[0].sum() == 11


def test_women_outlive_men(joint):
    women, men = share(joint, "sex", "age")
    assert women[0] < men[0]
    assert women[-3:].sum() > 1.5 * men[-3:].sum()


def test_people_stop_working_as_they_age(joint):
    at_work = share(joint, "employment", given=("age",))[:, :2].sum(axis=1)
    assert at_work[8] > 0.7
    assert at_work[13] < 0.3
    assert at_work[18] < 0.02


def test_professionals_are_better_educated_than_elementary_workers(joint):
    by_occupation = share(joint, "education", given=("occupation",))
    graduates = by_occupation[:, levels("education").index("bachelor") :].sum(axis=1)
    named = dict(zip(levels("occupation"), graduates, strict=True))
    assert named["professionals"] > 5 * named["elementary"]


def test_crafts_are_mostly_men_and_personal_service_mostly_women(joint):
    women = dict(zip(levels("occupation"), share(joint, "sex", given=("occupation",))[:, 0], strict=True))
    assert women["crafts and trades"] < 0.2
    assert women["personal service"] > 0.7


def test_london_has_more_people_born_abroad_than_wales(joint):
    born_here = dict(
        zip(levels("region"), share(joint, "birth_country", given=("region",))[:, 0], strict=True)
    )
    assert born_here["London"] < 0.7
    assert born_here["Wales"] > 0.9
