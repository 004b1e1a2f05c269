"""The made-up population: seven attributes of a census, the structural zeros, the probabilities of the other cells.

The attributes and the number of their levels are those of Rinott, O'Keefe, Shlomo & Skinner (2018),
section 3. The shares are invented to look like a census and estimate nothing about any country.
"""

from functools import cache

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, bin_labels

_REGIONS = {
    "North East": 4.2,
    "North West": 11.6,
    "Yorkshire and the Humber": 8.6,
    "East Midlands": 7.4,
    "West Midlands": 9.3,
    "East of England": 9.5,
    "London": 13.5,
    "South East": 14.1,
    "South West": 8.6,
    "Wales": 4.9,
    "Scotland": 8.3,
}
_SEXES = ("female", "male")
_AGES = bin_labels(range(0, 101, 5))
_EMPLOYMENT = ("employee", "self-employed", "unemployed", "inactive", "not applicable")
# Share of women, slope of the log share on education, chance of self-employment, share of all jobs.
_OCCUPATIONS = {
    "managers": (0.35, 0.7, 0.18, 10.0),
    "professionals": (0.50, 2.0, 0.14, 20.0),
    "technicians": (0.48, 0.9, 0.12, 14.0),
    "clerical support": (0.76, 0.2, 0.04, 11.0),
    "personal service": (0.82, -0.4, 0.14, 9.0),
    "sales": (0.62, -0.5, 0.05, 8.0),
    "skilled agriculture": (0.18, -0.6, 0.55, 1.2),
    "crafts and trades": (0.08, -0.7, 0.33, 10.0),
    "machine operators": (0.12, -1.1, 0.15, 6.5),
    "elementary": (0.46, -1.4, 0.08, 10.0),
    "armed forces": (0.11, 0.0, 0.0, 0.3),
    "not applicable": (0.5, 0.0, 0.0, 0.0),
}
_EDUCATION = (
    "none",
    "primary",
    "lower secondary",
    "upper secondary",
    "post-secondary",
    "short tertiary",
    "bachelor",
    "master",
    "doctorate",
)
_BIRTH_COUNTRIES = ("United Kingdom", "Ireland", "rest of Europe", "Asia", "elsewhere")
# Per cent born in Ireland, the rest of Europe, Asia and elsewhere; and how regions differ from that.
_BORN_ABROAD = {"London": (1.6, 13.5, 11.5, 12.0), "West Midlands": (0.9, 3.4, 6.8, 2.6)}
_BORN_ABROAD_ELSEWHERE = (0.6, 3.9, 2.6, 2.2)
_BORN_ABROAD_SCALE = {"South East": 1.4, "East of England": 1.3, "North East": 0.5, "Wales": 0.5}
# The age around which a region has more people than others: London draws the young, the South West the old.
_CENTRE_OF_AGES = {"London": 34.0, "South West": 62.0}


@cache
def people_domain() -> Domain:
    """Return the domain of `people`: seven attributes and their structural zeros.

    People under 15 have no employment status; people without work have no occupation; schooling takes time.

    >>> people_domain().shape
    (11, 2, 21, 5, 12, 9, 5)
    """
    children, adults = _AGES[:3], _AGES[3:]
    at_work, idle = _EMPLOYMENT[:2], _EMPLOYMENT[2:]
    *occupations, no_occupation = _OCCUPATIONS
    return Domain(
        {
            "region": _REGIONS,
            "sex": _SEXES,
            "age": _AGES,
            "employment": _EMPLOYMENT,
            "occupation": _OCCUPATIONS,
            "education": _EDUCATION,
            "birth_country": _BIRTH_COUNTRIES,
        },
        structural_zeros=[
            {"age": children, "employment": _EMPLOYMENT[:4]},
            {"age": adults, "employment": _EMPLOYMENT[4]},
            {"employment": idle, "occupation": occupations},
            {"employment": at_work, "occupation": no_occupation},
            {"employment": "self-employed", "occupation": "armed forces"},
            {"age": _AGES[12:], "occupation": "armed forces"},
            {"age": _AGES[:2], "education": _EDUCATION[1:]},
            {"age": _AGES[2], "education": _EDUCATION[2:]},
            {"age": _AGES[3], "education": _EDUCATION[5:]},
            {"age": _AGES[4], "education": _EDUCATION[8]},
        ],
    )


def joint_probability() -> Floats:
    """Return the probability of every cell of the full table; impossible cells have none.

    A product of conditionals: region and birth country; sex and age given both; education given age and
    birth country; employment given sex, age and education; occupation given sex, employment and education.
    """
    region, sex, age, employment, occupation, education, birth = range(7)
    factors = (
        (_region_and_birth(), (region, birth)),
        (_sex_and_age(), (region, sex, age, birth)),
        (_education(), (age, education, birth)),
        (_employment(), (sex, age, employment, education)),
        (_occupation(), (sex, employment, occupation, education)),
    )
    domain = people_domain()
    joint = np.ones(domain.shape)
    for factor, axes in factors:
        joint *= factor.reshape([size if i in axes else 1 for i, size in enumerate(domain.shape)])
    joint[domain.impossible(domain.attributes)] = 0
    return np.asarray(joint / joint.sum())


def _region_and_birth() -> Floats:
    share = np.array(list(_REGIONS.values()))
    abroad = np.array([_BORN_ABROAD.get(region, _BORN_ABROAD_ELSEWHERE) for region in _REGIONS])
    abroad *= np.array([_BORN_ABROAD_SCALE.get(region, 1.0) for region in _REGIONS])[:, None]
    born = np.column_stack([100 - abroad.sum(axis=1), abroad]) / 100
    return share[:, None] * born


def _sex_and_age() -> Floats:
    """Return P(sex, age | region, birth country) on the axes region, sex, age, birth country."""
    years = np.arange(21) * 5 + 2.5
    # Gompertz mortality; women reach the age at which few are left some four years later.
    alive = np.exp(-np.exp((years - np.array([[88.0], [84.0]])) / 9.5))
    born = np.array([[100.0], [105.0]])
    pyramid = born * alive * (1 + 0.10 * np.cos((years - 48) / 28 * np.pi))
    # Those born abroad came as young adults, and their children were mostly born here.
    arrived = np.array([0.0, 52.0, 34.0, 36.0, 37.0])
    spread = np.array([1.0, 18.0, 11.0, 13.0, 13.0])
    pull = np.exp(-(((years[:, None] - arrived) / spread) ** 2) / 2) + 0.05
    pull[:, 0] = 1
    centre = np.array([_CENTRE_OF_AGES.get(region, 45.0) for region in _REGIONS])
    lean = 1 + 0.35 * np.exp(-(((years - centre[:, None]) / 14) ** 2) / 2)
    weight = pyramid[None, :, :, None] * pull[None, None] * lean[:, None, :, None]
    return np.asarray(weight / weight.sum(axis=(1, 2), keepdims=True))


def _education() -> Floats:
    """Return P(education | age, birth country) on the axes age, education, birth country."""
    years = (np.arange(21) * 5 + 2.5)[:, None, None]
    rank = np.arange(9.0)[None, :, None]
    reached = np.interp(
        years, [0, 12, 17, 22, 30, 45, 65, 80, 100], [0, 0.6, 2.4, 3.9, 4.9, 4.5, 3.3, 2.3, 1.6]
    )
    reached = reached + np.array([0.0, -0.4, 0.5, 0.3, 0.2])
    common = np.array([3.0, 6, 18, 26, 8, 9, 20, 8, 1.2])[None, :, None]
    weight = common * np.exp(-(((rank - reached) / 2.1) ** 2) / 2)
    weight = weight * (1 - people_domain().impossible(("age", "education")))[:, :, None]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _employment() -> Floats:
    """Return P(employment | sex, age, education) on the axes sex, age, employment, education."""
    years = np.arange(21) * 5 + 2.5
    ages = [15, 17, 22, 28, 35, 50, 57, 62, 67, 72, 80, 100]
    men = np.interp(years, ages, [0.2, 0.36, 0.74, 0.92, 0.93, 0.91, 0.81, 0.62, 0.22, 0.10, 0.03, 0.003])
    women = np.interp(years, ages, [0.2, 0.38, 0.70, 0.81, 0.79, 0.82, 0.71, 0.45, 0.15, 0.06, 0.015, 0.002])
    active = np.stack([women, men])[:, :, None]
    schooling = np.linspace(-1.1, 0.9, 9)
    active = 1 / (1 + np.exp(-(np.log(active / (1 - active)) + schooling)))
    jobless = np.interp(years, [17, 22, 35, 60], [0.20, 0.11, 0.04, 0.035])[None, :, None]
    jobless = jobless * np.exp(-0.6 * schooling)
    own = np.interp(years, [17, 30, 50, 70], [0.02, 0.10, 0.16, 0.34])[None, :, None]
    own = own * np.array([0.65, 1.25])[:, None, None]
    work = active * (1 - jobless)
    child = (years < 15)[None, :, None]
    parts = [work * (1 - own), work * own, active * jobless, 1 - active]
    shape = (2, 21, 9)
    adult = [np.broadcast_to(np.where(child, 0, part), shape) for part in parts]
    return np.stack([*adult, np.broadcast_to(child.astype(float), shape)], axis=2)


def _occupation() -> Floats:
    """Return P(occupation | sex, employment, education), occupation being the last axis but one."""
    women, slope, own, share = np.array(list(_OCCUPATIONS.values())).T
    schooling = np.linspace(-2, 2, 9)
    by_sex = share * np.stack([women, 1 - women])
    by_employment = np.zeros((5, 12))
    by_employment[:2] = 1 - own, own
    weight = by_sex[:, None, :, None] * by_employment[None, :, :, None] * np.exp(slope[:, None] * schooling)
    weight[:, 2:, -1] = 1
    return np.asarray(weight / weight.sum(axis=2, keepdims=True))
