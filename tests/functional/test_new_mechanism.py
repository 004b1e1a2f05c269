"""A mechanism and a type of query that another package adds in one file, taken through everything that reads a plan."""

import json
from pathlib import Path

import pytest

import tests.running_totals
from tests.extensions import install, python, tabulary

ROOT = Path(tests.running_totals.__file__).parents[1]

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
levels = ["0-14", "15-64", "65+"]
[privacy]
epsilon = 1
[tables]
margins = "[sex age][age][sex]"
[mechanism]
name = "running-totals"
reconstruct = "none"
[output]
title = "A survey"
formats = ["xlsx", "px"]
"""

SERVICE = """
[state]
database = "state.sqlite"
[ledger]
database = "ledger.sqlite"
[key]
file = "secret.key"
[dataset.town]
version = "1"
source = "people.csv"
[dataset.town.privacy]
rho = 1
[dataset.town.budget]
rho = 1
[dataset.town.mechanism]
name = "running-totals"
[dataset.town.tables]
order = 2
[dataset.town.domain.sex]
levels = ["F", "M"]
[dataset.town.domain.age]
levels = ["0-14", "15-64", "65+"]
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with a package that adds the mechanism, a plan that asks for it, and the release of that plan."""
    place = tmp_path_factory.mktemp("extended")
    code = Path(tests.running_totals.__file__).read_text("utf-8")
    install(place, "running", code, group="tabulary.mechanisms", **{"running-totals": "RUNNING_TOTALS"})
    rows = ["F,0-14"] * 300 + ["F,15-64"] * 500 + ["M,15-64"] * 450 + ["M,65+"] * 250
    (place / "people.csv").write_text("\n".join(["sex,age", *rows]) + "\n")
    (place / "plan.toml").write_text(PLAN)
    (place / "service.toml").write_text(SERVICE)
    code, said = tabulary("release", "plan.toml", "-o", "out", path=place)
    assert code == 0, said
    return place


def test_a_plan_says_what_it_measures_and_compares_it_with_the_others(package):
    code, said = tabulary("plan", "plan.toml", path=package)
    assert code == 0, said
    assert "Noise on each measured running total: discrete laplace, scale 7." in said
    code, said = tabulary("plan", "plan.toml", "--compare", path=package)
    assert code == 0, said
    assert all(name in said for name in ("running-totals", "margins", "residual"))


def test_the_best_of_all_mechanisms_may_be_the_new_one(package):
    code = """
import tabulary as tb
domain = tb.Domain({"age": range(3)})
compared = tb.plan(domain, "[age]", privacy=tb.PureDP(1))
named = tb.plan(domain, "[age]", privacy=tb.PureDP(1), mechanism="running-totals", reconstruct="none")
print(compared.mechanism, compared.expected_rmse < named.expected_rmse, named.sensitivity)
"""
    assert python(code, path=package) == (0, "cells True 3")


def test_the_release_is_read_back_verified_and_reported(package):
    assert tabulary("verify", "out", path=package)[0] == 0
    code = """
import tabulary as tb
release = tb.Release.load("out")
table = release["sex", "age"]
print(release.plan.mechanism, table.counts.dtype, release.verify())
"""
    code, said = python(code, path=package)
    assert code == 0, said
    assert said.startswith("running-totals int64")
    report = (package / "out" / "report.html").read_text("utf-8")
    assert "Measured were running totals" in report
    assert "sex by age, up to each age" in report
    described = json.loads((package / "out" / "manifest.json").read_bytes())["plan"]
    assert described["measured"][0]["along"] == "age"


def test_a_release_with_another_claim_about_what_was_measured_is_refused(package):
    code = """
import json
from tabulary.planning import plan_from_description
described = json.load(open("out/manifest.json"))["plan"]
described["measured"][0]["along"] = "sex"
plan_from_description(described)
"""
    code, said = python(code, path=package)
    assert code == 1
    assert "InvalidPlan: running totals of one plan run along one attribute" in said


def test_without_the_package_the_release_says_what_is_missing(package, tmp_path):
    code, said = tabulary("verify", str(package / "out"), path=tmp_path)
    assert code == 2
    assert "running-totals" in said


def test_a_table_is_shown_and_tested(package):
    code, said = tabulary("show", "out", "sex", "age", path=package)
    assert code == 0, said
    assert "15-64" in said
    code, said = tabulary("test", "out", "sex", "age", path=package)
    assert code == 0, said
    assert "noise-aware" in said


def test_the_same_plan_is_audited(package):
    code, said = tabulary("audit", "plan.toml", "--draws", "2000", path=package)
    assert code == 0, said


def test_it_can_be_reconstructed_without_negative_counts(package):
    text = PLAN.replace('reconstruct = "none"', 'reconstruct = "least-squares"')
    (package / "squares.toml").write_text(text)
    code, said = tabulary("release", "squares.toml", "-o", "squares", path=package)
    assert code == 0, said
    assert tabulary("verify", "squares", path=package)[0] == 0


def test_the_table_builder_answers_from_one_measurement_of_it(package):
    code = f"""
sys.path.append({str(ROOT)!r})
from contextlib import closing
from pathlib import Path
from tabulary.builder.app import create_app
from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise, open_service
from tests.builders import Caller
file = read_service_file(Path("service.toml"))
initialise(file)
shown = []
for start in range(2):
    with closing(open_service(file)) as service:
        caller = Caller(create_app(service))
        asked = caller.get("/api/datasets/town/tables", [("by", "sex"), ("by", "age")])
        page = caller.get("/datasets/town/table", [("rows", "sex"), ("columns", "age")])
        shown.append((asked.status_code, page.status_code, asked.json()["count"]))
        mechanism = service.datasets["town"].answers.plan.mechanism
print(shown[0] == shown[1], mechanism, *shown[0][:2])
"""
    found = python(code, path=package)
    assert found == (0, "True running-totals 200 200"), found


@pytest.mark.slow
def test_no_raw_record_moves_its_integers_further_than_the_loss_and_a_smaller_claim_is_found(package):
    code = f"""
sys.path.append({str(ROOT)!r})
import copy
from fractions import Fraction
import tabulary as tb
from tests.promises.test_raw_neighbours import DOMAINS, PRIVACIES, pairs_of, planned, tallies, workload_of
from tests.raw_neighbours import RULES, Survey, bare, check_costs, near
checked = 0
for size in DOMAINS:
    for rules in RULES:
        counted = tallies(size, rules)
        for relation in ("add-remove", "replace"):
            for privacy in PRIVACIES:
                relation_of = near(relation, Survey(DOMAINS[size], rules).codings)
                plan = planned(size, workload_of(size), relation_of, "running-totals", privacy)
                measured = {{row: tally and bare(tally, plan) for row, tally in counted.items()}}
                pairs = pairs_of(relation, measured)
                check_costs(plan, pairs)
                checked += 1
                if DOMAINS[size].structural_zeros or isinstance(privacy, tb.ApproxDP) or rules != ("error", "error"):
                    continue
                forged = copy.copy(plan)
                amount = Fraction(99, 100) * (plan.loss.epsilon if plan.norm == "L1" else plan.loss.rho)
                object.__setattr__(forged, "loss", type(plan.loss)(amount))
                try:
                    check_costs(forged, pairs)
                except AssertionError:
                    continue
                raise SystemExit(f"{{size}} {{relation}}: the sensitivity is not reached")
print(checked)
"""
    assert python(code, path=package) == (0, "108")


def test_its_stated_covariance_is_that_of_its_estimates(package):
    code = """
import math
import numpy as np
import tabulary as tb
from tabulary.planning import Measurement
from tabulary.reconstruct import linear_estimates
domain = tb.Domain({"sex": "FM", "age": range(4), "job": range(3)})
for work in ("[sex age][age][sex][job]", "[sex age job][]", "[job]"):
    plan = tb.plan(domain, work, privacy=tb.ZCDP(1), mechanism="running-totals", reconstruct="none")
    shapes = plan.shapes()
    found = {margin: 0.0 for margin in plan.workload}
    for position, (part, shape) in enumerate(zip(plan.measured, shapes)):
        for place in range(math.prod(shape)):
            values = [np.zeros(s, dtype=np.int64) for s in shapes]
            values[position].flat[place] = 1
            for margin, table in linear_estimates(Measurement(plan, tuple(values))).items():
                column = np.asarray(table, dtype=float).reshape(-1)
                found[margin] = found[margin] + part.noise.variance * np.outer(column, column)
    for margin, known in found.items():
        law = plan.error_of(margin)
        assert np.allclose(law.covariance.dense(), known), margin
        assert np.allclose(law.standard_errors.reshape(-1) ** 2, np.diag(known)), margin
        weights = np.arange(law.standard_errors.size).reshape(law.standard_errors.shape) + 1.0
        drawn = sum(draws.variance for draws in law.covariance.draws_of(weights))
        assert math.isclose(drawn, weights.reshape(-1) @ known @ weights.reshape(-1)), margin
print("agree")
"""
    assert python(code, path=package) == (0, "agree")


def test_a_noise_aware_test_of_its_tables_keeps_its_level_and_a_naive_one_does_not(package):
    code = f"""
sys.path.append({str(ROOT)!r})
import numpy as np
import tabulary as tb
from tabulary.noise import ExactSampler
from tabulary.workflows import release
from tests.entropy import SeededEntropy
domain = tb.Domain({{"sex": "FM", "age": range(3)}})
plan = tb.plan(domain, "[sex age]", privacy=tb.PureDP("1/5"), mechanism="running-totals", reconstruct="none")
generator, sampler = np.random.default_rng(3), ExactSampler(SeededEntropy(3))
rejected = {{"noise-aware": 0, "naive": 0}}
for _ in range(150):
    counts = generator.multinomial(4000, np.outer([0.5, 0.5], [0.3, 0.4, 0.3]).reshape(-1)).reshape(2, 3)
    table = release(tb.Table(domain, counts), plan, sampler=sampler)["sex", "age"]
    for method in rejected:
        rejected[method] += tb.infer.independence(table, method=method).p_value < 0.05
print(rejected["noise-aware"] <= 17, rejected["naive"] > 17)
"""
    assert python(code, path=package) == (0, "True True")
