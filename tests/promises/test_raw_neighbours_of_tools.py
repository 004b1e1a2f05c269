"""Neighbours are raw records for whatever reads them: synthesizers, perturbed tables, statistics, table builders."""

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tabulary as tb
from tabulary.builder.answerers import Means, open_answers
from tabulary.builder.declarations import read_declaration
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.confidential.tally_cache import TallyCache
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.core.neighbours import Relation
from tabulary.core.privacy import PureDP
from tabulary.errors import InvalidColumn, InvalidPlan, TableRefused, WeightsClipped
from tabulary.mechanisms.on_demand import MeasuredOnDemand
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.synth import adaptive
from tabulary.synth.mwem import MwemPlan, even_table, margin_scores
from tabulary.synth.rap_plan import RapPlan
from tabulary.synth.selection import choice_rate
from tabulary.toolbox import statistics
from tabulary.toolbox.bounds import Bounds
from tabulary.workflows.answering.fixed import plan_of_allowed_tables
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tabulary.workflows.perturbing import perturb
from tabulary.workflows.planfile import read_plan_file
from tabulary.workflows.sections import read_toml
from tests.entropy import SeededEntropy
from tests.raw_neighbours import Row, Survey, bare, check_costs, near, tallied
from tests.samplers import ConstantSampler

DOMAIN = Domain(
    {"sex": ["F", "M"], "job": ["none", "paid", "own"]}, structural_zeros=[{"sex": "F", "job": "own"}]
)
WORK = "[sex job][sex]"
ROWS: list[Row] = [
    (*values, "p1", 1.0) for values in [("F", 1), ("M", 2), ("M", 3), (None, 2), ("F", None), ("?", 9)]
]

both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])
every_rule = pytest.mark.parametrize(
    "rules", [("drop", "drop"), ("level", "drop"), ("level", "level")], ids="+".join
)


def neighbouring(relation: Relation, survey: Survey, made: Callable[[tuple[Row, ...]], Any]) -> list[Any]:
    """Return what is made of every pair of neighbouring sources."""
    if relation == "add-remove":
        alone = made(())
        return [(alone, made((row,))) for row in ROWS]
    return list(combinations([made((row,)) for row in ROWS], 2))


def tallies_of(relation: Relation, survey: Survey) -> list[tuple[Tally, Tally]]:
    return neighbouring(relation, survey, lambda rows: tallied(lambda: survey.records(*rows), survey.domain))


def gaussian(change: Any, noise: Any) -> Fraction:
    return Fraction(int((np.asarray(change) ** 2).sum())) / (2 * noise.variance_parameter)


def choice(rate: Fraction, change: Any) -> Fraction:
    """Return the ρ of an exponential choice whose scores change by this much: a loss of range 2rΔ."""
    return (2 * rate * int(np.abs(change).max())) ** 2 / 8


@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP(1)], ids=["pure", "zCDP"])
@both_relations
@every_rule
def test_all_rounds_of_mwem_together_keep_the_loss(rules, relation, privacy):
    survey = Survey(DOMAIN, rules)
    plan = MwemPlan.of(DOMAIN, WORK, privacy, rounds=3, neighbours=near(relation, survey.codings))
    public = even_table(DOMAIN, 7)
    pure = isinstance(privacy, PureDP)
    for one, other in tallies_of(relation, survey):
        x, y = ({m: tally.exact(m) for m in plan.margins} for tally in (one, other))
        people = int(x["sex",].sum() - y["sex",].sum())
        if plan.total_noise is None:
            assert not people, "the number of people is used as it is, and one row changes it"
            total = Fraction(0)
        else:
            total = abs(people) / plan.total_noise.scale if pure else gaussian(people, plan.total_noise)
        scores = margin_scores(plan, x, public) - margin_scores(plan, y, public)
        chosen = 2 * plan.rate * int(np.abs(scores).max()) if pure else choice(plan.rate, scores)
        measured = max(
            int(np.abs(x[m] - y[m]).sum()) / plan.noise(m).scale
            if pure
            else gaussian(x[m] - y[m], plan.noise(m))
            for m in plan.margins
        )
        assert total + plan.rounds * (chosen + measured) <= plan.budget


@pytest.mark.parametrize("rounds", [1, 2])
@both_relations
@every_rule
def test_all_answers_of_rap_together_keep_the_loss(rules, relation, rounds):
    survey = Survey(DOMAIN, rules)
    asked = {"per_round": 2} if rounds > 1 else {}
    neighbours = near(relation, survey.codings)
    plan = RapPlan.of(DOMAIN, WORK, tb.ZCDP(1), rounds=rounds, neighbours=neighbours, **asked)
    for one, other in tallies_of(relation, survey):
        x, y = (plan.queries.exact(tally) for tally in (one, other))
        people = int(one.exact(()) - other.exact(()))
        if plan.total_noise is None:
            assert not people, "the number of people is used as it is, and one row changes it"
        total = Fraction(0) if plan.total_noise is None else gaussian(people, plan.total_noise)
        change = (x - y)[plan.queries.asked]
        if rounds == 1:
            assert total + gaussian(change, plan.noise) <= plan.rho
            continue
        each = gaussian(np.abs(change).max(), plan.noise)
        rate = choice_rate(plan.share, neighbours.records)
        assert total + rounds * plan.per_round * (each + choice(rate, change)) <= plan.rho


class _Even:
    """A model that has learned nothing."""

    def table(self, margin: Any) -> Any:
        return np.full(DOMAIN.shape_of(margin), 7 / DOMAIN.cells(margin))


@both_relations
@every_rule
def test_every_part_of_an_adaptive_model_keeps_its_share(rules, relation):
    survey = Survey(DOMAIN, rules)
    plan = adaptive.AdaptivePlan.of(
        DOMAIN, WORK, tb.ZCDP(1), memory=2**20, rounds=4, neighbours=near(relation, survey.codings)
    )
    share, every = plan.share, list(plan.candidates)
    rate = choice_rate(share / 10, plan.score_sensitivity(every))
    for one, other in tallies_of(relation, survey):
        x, y = ({m: tally.exact(m) for m in every} for tally in (one, other))
        observed = [
            adaptive.measured(plan, x, (name,), share, ConstantSampler()) for name in DOMAIN.attributes
        ]
        people = [adaptive.people_of(plan, exact, observed) for exact in (x, y)]
        assert people[0] == people[1], "the number of people is used as it is, and one row changes it"
        scores = [adaptive.margin_scores(plan, counts, _Even(), every, share) for counts in (x, y)]
        assert choice(rate, scores[0] - scores[1]) <= share / 10
        assert max(gaussian(x[m] - y[m], plan.noise(share)) for m in every) <= share * Fraction(9, 10)


@both_relations
@every_rule
def test_perturbed_tables_keep_the_loss_of_their_list(rules, relation):
    survey = Survey(DOMAIN, rules)
    tables = tb.perturb.Tables(DOMAIN, WORK, epsilon=1, neighbours=near(relation, survey.codings))

    def published(rows: tuple[Row, ...]) -> Any:
        return perturb(survey.records(*rows), tables, sampler=ConstantSampler())

    for one, other in neighbouring(relation, survey, published):
        cost = sum(
            Fraction(int(np.abs(one[m].counts - other[m].counts).sum())) * tables.law(m).epsilon
            for m in tables.margins
        )
        assert cost <= tables.epsilon


@both_relations
def test_a_huge_weight_moves_weighted_tables_by_the_public_maximum_and_an_impossible_one_is_refused(relation):
    domain, weights = Domain({"sex": ["F", "M"]}), Weights("w", 2, unit="1/4")
    tables = tb.perturb.Tables(
        domain, "[sex]", epsilon=1, neighbours=relation, sensitivity=weights.sensitivity, unit="1/4"
    )

    def published(*mine: tuple[str, float | None]) -> Any:
        sexes, amounts = zip(("F", 1.0), ("M", 0.25), *mine, strict=True)
        source = pa.table({"sex": sexes, "w": pa.array(amounts, pa.float64())})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeightsClipped)
            records = Records.from_arrow(source, domain, weights=weights)
            return perturb(records, tables, sampler=ConstantSampler())["sex"].counts

    mine = [("F", 0.0), ("F", 2.0), ("M", 2.5), ("M", 1e300)]
    found = [published(row) for row in mine]
    pairs = [(published(), one) for one in found] if relation == "add-remove" else combinations(found, 2)
    law = tables.law(["sex"])
    for one, other in pairs:
        units = int(np.abs(np.rint((one - other) * 4)).sum())
        assert units * law.epsilon / weights.sensitivity <= tables.epsilon
    for amount in (-1.0, math.nan, math.inf, None):
        with pytest.raises(InvalidColumn, match="weight"):
            published(("F", amount))


@pytest.mark.parametrize("statistic", ["count", "total", "mean", "standard_deviation"])
@both_relations
def test_statistics_of_raw_values_keep_their_loss_and_refuse_what_is_no_number(statistic, relation):
    bounds = Bounds(-1, 3, clamp=True)
    others = [0.0, 2.0]

    def measured(*mine: Any) -> Any:
        values = [*others, *mine]
        asked = {"privacy": tb.PureDP(1), "neighbours": relation, "sampler": ConstantSampler()}
        if statistic == "count":
            return statistics.count([value > 1 for value in values], **asked)
        return getattr(statistics, statistic)(values, bounds, **asked)

    found = [measured(value) for value in (-1.0, 0.4, 3.0, 1e300, -1e300)]
    pairs = [(measured(), one) for one in found] if relation == "add-remove" else combinations(found, 2)
    for one, other in pairs:
        moved = sum(abs(a - b) for a, b in zip(one.measured, other.measured, strict=True))
        assert moved / one.noise.scale <= 1
    if statistic != "count":
        for value in (math.nan, math.inf, None, "3"):
            with pytest.raises(InvalidColumn, match="nothing was spent"):
                measured(value)


WOMEN = Domain({"sex": ["F"], "job": ["none", "paid", "own"]})
EVERYBODY = Domain({"sex": ["F", "M"], "job": ["none", "paid", "own"]})


@pytest.mark.parametrize(("privacy", "reconstruct"), [(tb.PureDP(1), "none"), (tb.ZCDP("1/8"), "shrink")])
@pytest.mark.parametrize("domain", [WOMEN, EVERYBODY], ids=["women", "everybody"])
@both_relations
@every_rule
def test_all_parts_of_a_fixed_dataset_keep_the_loss(rules, relation, domain, privacy, reconstruct):
    survey = Survey(domain, rules)
    allowed = AllowedTables(domain, order=2)
    plan = plan_of_allowed_tables(
        allowed, privacy=privacy, neighbours=near(relation, survey.codings), reconstruct=reconstruct
    )

    def measured(rows: tuple[Row, ...]) -> Any:
        tallies = TallyCache(survey.records(*rows))
        return MeasuredOnDemand(
            tallies, plan, bytes(32), sampler=lambda entropy: ConstantSampler()
        ).measurement()

    check_costs(plan, neighbouring(relation, survey, measured))


@both_relations
@every_rule
def test_every_question_of_an_interactive_dataset_keeps_its_price(rules, relation, tmp_path):
    survey = Survey(WOMEN, rules)
    neighbours = near(relation, survey.codings)
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        answers = InteractiveAnswers.open(
            survey.records(),
            AllowedTables(WOMEN, order=2),
            cost=tb.PureDP(1),
            ledger=ledger,
            account=ledger.create_account("people", tb.PureDP(9), neighbours),
            neighbours=neighbours,
            secret=bytes(32),
            dataset="people",
            version="1",
        )
        pairs = tallies_of(relation, survey)
        for margin in answers.allowed_tables.margins:
            try:
                plan = answers.plan_of(margin)
            except (InvalidPlan, TableRefused):
                # Nobody can change this table: there is no answer, whatever the records are.
                assert neighbours.total_is_public
                assert max(WOMEN.shape_of(margin), default=1) == 1
                continue
            check_costs(plan, [(bare(one, plan), bare(other, plan)) for one, other in pairs])
        answers.close()


PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.hiv]
levels = ["no", "yes"]
unknown = "drop"
[domain.region]
levels = ["north", "south", "west"]
[privacy]
epsilon = 1
neighbours = "replace"
[tables]
margins = "[sex hiv][hiv region]"
[mechanism]
reconstruct = "none"
"""


def _write_people(folder: Path, target: str) -> None:
    rows = [
        f"{'FM'[i % 2]},{('no', 'no', 'yes')[i % 3]},{('north', 'south', 'west')[i % 3]}" for i in range(90)
    ]
    (folder / "people.csv").write_text("\n".join(["sex,hiv,region", *rows, f"F,{target},north"]) + "\n")


def test_what_a_plan_file_publishes_does_not_tell_whether_somebody_answered(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    file = read_plan_file(tmp_path / "plan.toml")
    measured, totals = [], []
    for target in ("yes", ""):
        _write_people(tmp_path, target)
        with file.records() as records:
            measured.append(bare(records.tally(file.plan.counted), file.plan))
            released = [tb.release(records, file.plan, entropy=SeededEntropy(seed)) for seed in range(40)]
        totals.append({round(float(each["sex", "hiv"].total)) for each in released})
    answered, silent = totals
    assert answered & silent, "the published total is one number if the target answered, and another if not"
    check_costs(file.plan, [tuple(measured)])


SERVICE = """
source = "people.csv"
version = "1"
method = "fixed"
[domain.sex]
levels = ["F"]
unknown = "drop"
[domain.region]
levels = ["north", "south", "west"]
[tables]
order = 2
[privacy]
epsilon = 1
neighbours = "replace"
[mechanism]
reconstruct = "none"
"""


def test_a_table_builder_does_not_serve_the_exact_number_of_those_it_does_not_drop(tmp_path):
    _write_people(tmp_path, "yes")
    (tmp_path / "dataset.toml").write_text(SERVICE)
    served = []
    for number in range(12):
        declared = read_declaration("people", read_toml(tmp_path / "dataset.toml", "file"), tmp_path)
        with tb.Ledger.create(tmp_path / f"{number}.sqlite") as ledger:
            ledger.create_account("people", tb.PureDP(1), declared.payment.neighbours)
            means = Means(bytes([number]) * 32, ledger, tmp_path / f"kept {number}", warn=print)
            answers = open_answers(declared, means)
            served.append(round(float(answers.answer(("sex",)).table.counts.sum())))
            answers.close()
    assert len(set(served)) > 1, "every key serves the same number of women, which is the exact one"
