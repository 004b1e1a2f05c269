"""Tests over HTTP: they know the noise, and the same question has the same answer."""

import math
from dataclasses import replace

import pytest

from tabulary import infer
from tabulary.builder.api import hypotheses
from tabulary.builder.api.models import HypothesisResult
from tabulary.infer.difference import difference

CENSUS = "/api/datasets/census/tests"
SURVEY = "/api/datasets/survey/tests"


def _linear(builder, margin):
    return builder.service.datasets["census"].answers.answer(margin, linear=True).table


def test_independence_is_the_noise_aware_test_of_the_linear_estimate(builder):
    found = builder.anyone.post(CENSUS, {"test": "independence", "by": ["sex", "age"]})
    assert found.status_code == 200
    document = found.json()
    HypothesisResult.model_validate(document)
    expected = infer.independence(_linear(builder, ("sex", "age")), "noise-aware")
    assert document["p_value"] == expected.p_value
    assert document["statistic"] == expected.statistic
    assert document["degrees_of_freedom"] == expected.degrees_of_freedom
    assert document["assumed"] == list(expected.assumed)
    assert document["plan"] == builder.service.datasets["census"].answers.plan_of(()).digest()


def test_independence_among_those_who_are_filtered_is_of_the_slice(builder):
    asked = {"test": "independence", "by": ["sex", "age"], "where": {"region": "North"}}
    document = builder.anyone.post(CENSUS, asked).json()
    sliced = _linear(builder, ("sex", "age", "region")).slice(region="North")
    assert document["p_value"] == infer.independence(sliced).p_value
    assert document["question"]["where"] == {"region": "North"}


def test_a_test_of_some_levels_is_of_these_levels_only(builder):
    ages = ["0-14", "65+"]
    asked = {"by": ["sex", "age"], "keep": {"age": ages}}
    kept = _linear(builder, ("sex", "age")).select({"age": ages})
    document = builder.anyone.post(CENSUS, asked | {"test": "independence"}).json()
    assert document["p_value"] == infer.independence(kept).p_value
    assert document["degrees_of_freedom"] == 1
    assert document["question"]["keep"] == {"age": ages}
    cells = [{"sex": "F"}, {"sex": "M"}]
    document = builder.anyone.post(CENSUS, asked | {"test": "difference", "cells": cells}).json()
    assert document["estimate"] == pytest.approx(kept.counts[0].sum() - kept.counts[1].sum())
    assert document["p_value"] == difference(kept, *cells).p_value


def test_a_difference_comes_with_its_error_its_interval_and_how_likely_noise_alone_makes_it(builder):
    cells = [{"sex": "F", "age": "65+"}, {"age": "0-14", "sex": "F"}]
    document = builder.anyone.post(
        CENSUS, {"test": "difference", "by": ["sex", "age"], "cells": cells}
    ).json()
    HypothesisResult.model_validate(document)
    table = _linear(builder, ("sex", "age"))
    expected = difference(table, *cells)
    assert document["estimate"] == expected.estimate == table["F", "65+"] - table["F", "0-14"]
    weights = [[-1, 0, 1], [0, 0, 0]]
    assert document["standard_error"] == pytest.approx(table.covariance.variance_of(weights) ** 0.5)
    assert document["lower_95"] < document["estimate"] < document["upper_95"]
    assert document["p_value"] == expected.p_value


def test_levels_in_a_list_are_added_up_and_percentages_are_within_groups(builder):
    cells = [{"sex": "F", "age": ["15-64", "65+"]}, {"sex": "M", "age": ["15-64", "65+"]}]
    asked = {"test": "difference", "by": ["sex", "age"], "cells": cells}
    table = _linear(builder, ("sex", "age"))
    for per in (None, ["sex"], []):
        document = builder.anyone.post(CENSUS, asked if per is None else asked | {"per": per}).json()
        HypothesisResult.model_validate(document)
        expected = difference(table, *cells, per=per)
        assert document["estimate"] == expected.estimate
        assert document["p_value"] == expected.p_value
        assert document.get("per") == per
    without = [{"age": "65+"}, {"sex": "M"}]
    refused = builder.anyone.post(CENSUS, asked | {"cells": without, "per": ["sex"]})
    assert refused.status_code == 422
    assert "Nothing was counted" in refused.json()["detail"]


def test_an_error_that_is_infinite_is_null_for_json_has_no_infinity(builder, monkeypatch):
    monkeypatch.setattr(
        hypotheses,
        "difference",
        lambda *asked, **how: replace(difference(*asked, **how), standard_error=math.inf),
    )
    cells = [{"sex": "F", "age": "65+"}, {"sex": "M", "age": "65+"}]
    asked = {
        "test": "difference",
        "by": ["sex", "age"],
        "cells": cells,
        "per": ["sex"],
        "where": {"region": "North"},
    }
    document = builder.anyone.post(CENSUS, asked).json()
    HypothesisResult.model_validate(document)
    assert document["standard_error"] is None
    assert -1 <= document["lower_95"] <= document["upper_95"] <= 1


def test_the_same_test_has_the_same_bytes_however_it_is_written(builder):
    first, second = (
        builder.anyone.post(
            CENSUS, {"test": "difference", "by": ["sex", "age"], "cells": [cell, {"sex": "M"}]}
        )
        for cell in ({"sex": "F", "age": "65+"}, {"age": "65+", "sex": "F"})
    )
    assert first.content == second.content
    assert first.headers["etag"] == second.headers["etag"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"by": ["sex", "age"]}, 422, "'test'"),
        ({"test": "guess", "by": ["sex", "age"]}, 422, "'test'"),
        ({"test": "independence"}, 422, "'by'"),
        ({"test": "independence", "by": ["sex"]}, 422, "two attributes"),
        ({"test": "independence", "by": ["sex", "age", "region"]}, 422, "two attributes"),
        ({"test": "independence", "by": ["sex", "age"], "cells": []}, 422, "takes no cells"),
        ({"test": "independence", "by": ["sex", "faith"]}, 422, "no attribute 'faith'"),
        ({"test": "independence", "by": ["region", "job: kind"]}, 403, "allows no table"),
        ({"test": "difference", "by": ["sex"]}, 422, "two 'cells'"),
        ({"test": "difference", "by": ["sex"], "cells": [{"sex": "F"}]}, 422, "two 'cells'"),
        ({"test": "difference", "by": ["sex"], "cells": [{"age": "65+"}, {"sex": "F"}]}, 422, "'age'"),
        ({"test": "difference", "by": ["sex"], "cells": [{"sex": "X"}, {"sex": "F"}]}, 422, "level 'X'"),
        (
            {"test": "difference", "by": ["sex"], "cells": [{"sex": []}, {"sex": "F"}]},
            422,
            "no level of 'sex'",
        ),
        (
            {
                "test": "difference",
                "by": ["sex"],
                "keep": {"sex": ["F"]},
                "cells": [{"sex": "M"}, {"sex": "F"}],
            },
            422,
            "not in 'keep'. Nothing was counted",
        ),
        ({"test": "independence", "by": ["sex", "age"], "method": "naive"}, 422, "'method'"),
    ],
)
def test_a_test_that_cannot_be_made_is_a_problem_that_says_why(builder, body, status, words):
    found = builder.anyone.post(CENSUS, body)
    assert found.status_code == status
    assert found.headers["content-type"] == "application/problem+json"
    assert words in found.json()["detail"]


def test_a_query_beside_the_body_of_a_test_is_refused(builder):
    found = builder.anyone.post(f"{CENSUS}?by=sex", {"test": "independence", "by": ["sex", "age"]})
    assert found.status_code == 422


def test_a_table_that_takes_too_long_to_test_is_refused_with_what_to_do_instead(builder, monkeypatch):
    monkeypatch.setattr(hypotheses, "MOST_CELLS", 5)
    found = builder.anyone.post(CENSUS, {"test": "independence", "by": ["age", "region"]})
    assert found.status_code == 403
    assert found.json()["type"] == "too-many-cells"
    assert "estimate=linear" in found.json()["detail"]


def test_no_test_is_made_of_counts_whose_errors_have_no_known_law(builder):
    found = builder.anyone.post("/api/datasets/old/tests", {"test": "independence", "by": ["sex", "age"]})
    assert found.status_code == 422
    assert "law of its errors" in found.json()["detail"]


def test_a_test_costs_what_its_table_costs_and_a_refused_one_nothing(fresh):
    asked = {"test": "independence", "by": ["sex", "age"]}
    assert fresh.anyone.post(SURVEY, asked).status_code == 401
    bob = fresh.analyst("bob")
    assert bob.post(SURVEY, {**asked, "by": ["sex"]}).status_code == 422
    assert fresh.spent("survey") == 0
    first = bob.post(SURVEY, asked)
    assert first.status_code == 200
    assert first.headers["cache-control"].startswith("private")
    assert bob.post(SURVEY, asked).content == first.content
    assert bob.get("/api/datasets/survey/tables", [("by", "age"), ("by", "sex")]).status_code == 200
    assert fresh.spent("survey") == fresh.spent("bob") == 1
