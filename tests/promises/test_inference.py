"""Every function of `tb.infer` reads the measurements of a release, whatever its published face is."""

import inspect
from itertools import product

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidPlan
from tabulary.mechanisms import MECHANISMS
from tabulary.planning.face import RECONSTRUCTORS
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]})
PEOPLE = tb.Table(DOMAIN, np.arange(12).reshape(2, 3, 2) * 50 + 20)
WOMEN, MEN = {"sex": "F", "age": ["15-64", "65+"]}, {"sex": "M", "age": ["15-64", "65+"]}

ASKED = {
    "compare": lambda t: (
        tb.infer.compare(t, where={"sex": "F"}, other_where={"sex": "M"}, per=["sex"]).compared
    ),
    # `naive` is Cramér's V of the counts as they are published.
    "cramers_v": lambda t: tb.infer.cramers_v(t).interval,
    "difference": lambda t: tb.infer.difference(t, WOMEN, MEN, per=["sex"]),
    "goodness_of_fit": lambda t: tb.infer.goodness_of_fit(t.slice(sex="F"), None, ["1/3"] * 3),
    "homogeneity": lambda t: tb.infer.homogeneity(t.slice(sex="F"), t.slice(sex="M")),
    "independence": tb.infer.independence,
    "interval": lambda t: [tb.infer.interval(t, of) for of in (WOMEN, {"sex": "F", "age": "65+"})],
    "intervals": lambda t: [
        np.asarray(getattr(tb.infer.intervals(t), end)).tolist() for end in ("lower", "upper")
    ],
    "loglinear": lambda t: (
        tb.infer.loglinear(t, "[sex][age]").g2,
        tb.infer.loglinear(t, "[sex][age]").p_value,
    ),
    "merged": lambda t: tb.infer.independence(tb.infer.merged(t, {"age": ["15-64", "65+"]})),
    "noise_of": lambda t: tb.infer.noise_of(t).standard_deviations.tolist(),
    "odds_ratio": lambda t: tb.infer.odds_ratio(t.select({"age": ["0-14", "65+"]})),
    "rate": lambda t: tb.infer.rate(t, WOMEN, {"sex": "F"}),
    "ratio": lambda t: tb.infer.ratio(t, WOMEN, MEN),
    "search": lambda t: tb.infer.search(t).interactions,
}


def test_every_function_is_asked():
    functions = {name for name in tb.infer.__all__ if inspect.isfunction(getattr(tb.infer, name))}
    assert functions == set(ASKED)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_no_face_changes_what_is_inferred_and_none_is_refused(mechanism):
    # So much noise that the faces differ by far.
    plan = tb.plan(
        DOMAIN, "[sex age job]", privacy=tb.PureDP("1/10"), mechanism=mechanism, reconstruct="none"
    )
    release = tb.release(PEOPLE, plan, entropy=SeededEntropy(3))
    faces = []
    for reconstruct, rounding in product(RECONSTRUCTORS, ("auto", "none")):
        try:
            faces.append(release.rebuild(reconstruct=reconstruct, rounding=rounding)["sex", "age"])
        except InvalidPlan:
            continue
    assert len({tuple(face.counts.reshape(-1)) for face in faces}) > 3
    for name, ask in ASKED.items():
        assert len({repr(ask(face)) for face in faces}) == 1, name


@pytest.mark.parametrize("name", ["independence", "loglinear"])
def test_the_published_face_is_tested_where_that_is_asked_for(name):
    plan = tb.plan(DOMAIN, "[sex age job]", privacy=tb.PureDP("1/100"))
    release = tb.release(PEOPLE, plan, entropy=SeededEntropy(3))
    ask = {
        "independence": lambda table: tb.infer.independence(table, "naive").statistic,
        "loglinear": lambda table: tb.infer.loglinear(table, "[sex][age]", method="naive").g2,
    }[name]
    published, estimates = release["sex", "age"], release.rebuild(reconstruct="none")["sex", "age"]
    assert ask(published) == ask(published.table)
    assert ask(published) != ask(estimates)
