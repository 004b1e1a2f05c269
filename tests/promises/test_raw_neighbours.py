"""Neighbours are raw records: whatever one row of a source becomes, the measured integers move no further than claimed.

The way from the row to the integers is run as a whole, without noise: reading, recoding, dropping, counting, measuring.
A source that is refused is not measured at all.
"""

import copy
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.coding import Coding
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.core.domain import Domain
from tabulary.core.privacy import Neighbours, PureDP, Relation
from tabulary.errors import InvalidPlan, InvalidPrivacy
from tabulary.planning import Plan
from tests.counters import ELSEWHERE, READ_HERE, SPARK, Places, places  # noqa: F401 - a fixture
from tests.raw_neighbours import (
    REFUSED,
    RULES,
    Row,
    Survey,
    bare,
    check_costs,
    every_margin,
    near,
    tallied,
)

DOMAINS = {
    "2x2": Domain({"sex": ["F", "M"], "hiv": ["no", "yes"]}),
    "2x3": Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]}),
    "2x3 with a zero": Domain(
        {"sex": ["F", "M"], "job": ["none", "paid", "own"]}, structural_zeros=[{"sex": "F", "job": "own"}]
    ),
}
MECHANISMS = ["cells", "margins", "fourier", "efron-stein", "residual", "auto"]
PRIVACIES = [tb.PureDP(1), tb.ZCDP("1/8"), tb.ApproxDP(1, 1e-6)]

every_domain = pytest.mark.parametrize("size", list(DOMAINS))
every_rule = pytest.mark.parametrize("rules", RULES, ids=lambda rules: "+".join(rules))
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])


@cache
def tallies(survey_of: str, rules: tuple[str, str]) -> dict[Row | None, Tally | None]:
    """Return the counts of every neighbouring source, by the row that is in it; None is the source without one."""
    survey = Survey(DOMAINS[survey_of], rules)
    sources: list[tuple[Row, ...]] = [(), *((row,) for row in survey.rows())]
    return {
        (rows[0] if rows else None): tallied(lambda rows=rows: survey.records(*rows), survey.domain)
        for rows in sources
    }


def pairs_of(relation: Relation, counted: dict[Row | None, Any], *, only: int | None = None) -> list[Any]:
    """Return every pair of neighbouring sources that are not refused; they differ in one column if `only` names it."""
    kept = {row: found for row, found in counted.items() if found is not None}
    if relation == "add-remove":
        return [(kept[None], found) for row, found in kept.items() if row is not None]
    rows = [row for row in kept if row is not None]
    return [
        (kept[x], kept[y])
        for x, y in combinations(rows, 2)
        if only is None
        or all(a == b or a is b for i, (a, b) in enumerate(zip(x, y, strict=True)) if i != only)
    ]


@cache
def planned(size: str, work: str, neighbours: Neighbours, mechanism: str, privacy: Any) -> Plan:
    return tb.plan(DOMAINS[size], work, privacy=privacy, neighbours=neighbours, mechanism=mechanism)


def workload_of(size: str) -> str:
    first, second = DOMAINS[size].attributes
    return f"[{first} {second}][{second}]"


@every_rule
@every_domain
def test_a_row_that_must_not_be_refuses_the_source_and_every_other_is_counted_in_its_cell_or_left_out(
    size, rules
):
    survey, counted = Survey(DOMAINS[size], rules), tallies(size, rules)
    before = counted[None]
    whole = survey.domain.attributes
    for row, tally in counted.items():
        if row is None:
            continue
        outcome = survey.outcome(row)
        assert (tally is None) == (outcome == REFUSED), (
            "a row that must not be was counted, or another refused"
        )
        if tally is not None:
            change = np.argwhere(tally.exact(whole) - before.exact(whole))
            levels = [
                tuple(survey.domain.levels_of(a)[i] for a, i in zip(whole, c, strict=True)) for c in change
            ]
            assert levels == ([outcome] if isinstance(outcome, tuple) else [])


@pytest.mark.parametrize("mechanism", MECHANISMS)
@both_relations
@every_rule
@every_domain
def test_no_row_moves_the_measured_integers_further_than_the_loss(size, rules, relation, mechanism):
    survey = Survey(DOMAINS[size], rules)
    counted = tallies(size, rules)
    for privacy in PRIVACIES:
        plan = planned(size, workload_of(size), near(relation, survey.codings), mechanism, privacy)
        measured = {row: tally and bare(tally, plan) for row, tally in counted.items()}
        check_costs(plan, pairs_of(relation, measured))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@both_relations
def test_the_check_rejects_a_plan_that_claims_seven_tenths_of_its_loss(relation, mechanism):
    plan = planned("2x2", workload_of("2x2"), Neighbours(relation), mechanism, tb.PureDP(1))
    measured = {row: tally and bare(tally, plan) for row, tally in tallies("2x2", ("error", "error")).items()}
    check_costs(plan, pairs_of(relation, measured))
    forged = copy.copy(plan)
    object.__setattr__(forged, "loss", PureDP(plan.loss.epsilon * Fraction(7, 10)))
    with pytest.raises(AssertionError, match=r"and the plan claims 0\.7"):
        check_costs(forged, pairs_of(relation, measured))


@pytest.mark.parametrize("mechanism", ["fourier", "efron-stein", "auto"])
@every_rule
@every_domain
def test_a_sensitive_value_moves_nothing_that_is_published_exactly(size, rules, mechanism):
    survey = Survey(DOMAINS[size], rules)
    first, second = survey.domain.attributes
    try:
        neighbours = near("replace", survey.codings, sensitive=(second,))
        plan = planned(size, f"[{first}][{second}]", neighbours, mechanism, tb.PureDP(1))
    except (InvalidPlan, InvalidPrivacy):
        # Codes without a level have no place in such a plan, nor exact numbers where a value drops a record.
        assert "drop" in rules or mechanism == "fourier"
        return
    assert plan.exact or "drop" in rules
    measured = {row: tally and bare(tally, plan) for row, tally in tallies(size, rules).items()}
    check_costs(plan, pairs_of("replace", measured, only=1))


@st.composite
def sources(draw: st.DrawFn) -> dict[str, Any]:
    """A random domain, rules for unknown values, everybody else, and two versions of one person's rows."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    names = [f"a{i}" for i in range(len(sizes))]
    levels = dict(zip(names, (["x", "y", "z"][:size] for size in sizes), strict=True))
    rule = st.sampled_from(["error", "drop", "drop", "level:x"])
    codings = {name: Coding(unknown=draw(rule)) for name in names}
    value = st.sampled_from(["x", "y", "z", "?", "", None])
    row = st.tuples(*(value for _ in names))
    known = st.tuples(*(st.sampled_from(levels[name]) for name in names))
    records = draw(st.integers(1, 2))
    every = every_margin(Domain(levels)).margins
    return {
        "domain": Domain(levels),
        "codings": codings,
        "others": draw(st.lists(known, max_size=5)),
        "mine": draw(st.lists(row, min_size=records, max_size=records)),
        "instead": draw(st.lists(row, min_size=records, max_size=records)),
        "work": draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True)),
        "privacy": draw(st.sampled_from(PRIVACIES)),
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
@both_relations
@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(source=sources())
def test_no_rows_of_one_person_move_the_integers_of_any_small_domain_too_far(relation, mechanism, source):
    domain, codings, others, mine = (source[name] for name in ("domain", "codings", "others", "mine"))

    def counted(rows: list[Row]) -> Tally | None:
        columns = list(zip(*rows, strict=True)) or [()] * len(domain.attributes)
        table = pa.table(
            {
                name: pa.array(column, pa.string())
                for name, column in zip(domain.attributes, columns, strict=True)
            }
        )
        return tallied(lambda: Records.from_arrow(table, domain, codings), domain)

    before, after = counted(others + mine), counted(others + source["instead"] * (relation == "replace"))
    assume(before is not None and after is not None)
    try:
        plan = tb.plan(
            domain,
            tb.Workload(domain, source["work"]),
            privacy=source["privacy"],
            neighbours=near(relation, codings, records=len(mine)),
            mechanism=mechanism,
        )
    except InvalidPlan:
        # Nothing that one person could change is asked for.
        assume(False)
    check_costs(plan, [(bare(before, plan), bare(after, plan))])


def _engine_rows(few: bool) -> list[Row]:
    x = [("F", 3.0), ("M", 70.5), (None, 40.0), ("?", 40.0), ("F", -1.0), ("F", float("nan")), ("", None)]
    return [(*values, "p1", 1.0) for values in (x[:3] if few else x)]


def check_engine(open_records: Any, *, few: bool = False) -> None:
    for rules in [("drop", "drop")] if few else [("drop", "drop"), ("error", "level"), ("level", "error")]:
        survey = Survey(DOMAINS["2x3"], rules)
        counted: dict[Row | None, Any] = {}
        for row in _engine_rows(few):
            tally = tallied(
                lambda row=row, of=survey: open_records(of.table(row), of.domain, codings=of.codings),
                survey.domain,
            )
            assert (tally is None) == (survey.outcome(row) == REFUSED)
            counted[row] = tally
        for mechanism in ("margins", "residual"):
            neighbours = near("replace", survey.codings)
            plan = planned("2x3", workload_of("2x3"), neighbours, mechanism, tb.PureDP(1))
            measured = {row: tally and bare(tally, plan) for row, tally in counted.items()}
            check_costs(plan, pairs_of("replace", measured))


@pytest.mark.parametrize("way", READ_HERE)
def test_every_way_of_reading_keeps_the_loss(way):
    check_engine(way)


@pytest.mark.parametrize("engine", [*ELSEWHERE, SPARK])
def test_every_engine_keeps_the_loss(engine, places: Places):  # noqa: F811
    check_engine(getattr(places, engine), few=engine == "spark")
