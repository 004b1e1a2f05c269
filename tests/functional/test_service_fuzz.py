"""The whole service under requests that nobody thought of: no error of its own, and no true count anywhere.

A recognisable number of people stands in one cell of the records, and so in every sum that holds that cell. The
noise is so large that no honest answer comes near any of these sums. Whatever is answered, in whatever format, header,
refusal or line of the log, is searched for them.
"""

import io
import json
import logging
import re
import zipfile
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from tabulary.builder.api.formats import FORMATS
from tabulary.builder.app import create_app
from tabulary.builder.hosts import Hosts
from tabulary.core.table import Table
from tabulary.release import ReleasedTable
from tests.builders import DOMAIN, Caller, service
from tests.unit.builder.api.test_asking import as_query, questions

pytestmark = pytest.mark.slow

PLANTED = 7_391_846
COUNTS = np.arange(DOMAIN.size).reshape(DOMAIN.shape) * 7 + 40
COUNTS[0, 1, 2, 1] = PLANTED
TRUE = sorted(
    {
        int(COUNTS.sum(axis=summed)[tuple(i for axis, i in enumerate((0, 1, 2, 1)) if axis not in summed)])
        for k in range(5)
        for summed in combinations(range(4), k)
    }
)
"""Every sum over whole attributes that holds the planted cell."""

_NUMBER = re.compile(r"[0-9][0-9,_ ]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def true_counts_in(text: str) -> list[float]:
    """Return the numbers in a text that are a true count, however they are written."""
    read = []
    for found in _NUMBER.findall(text):
        try:
            read.append(float(re.sub("[,_ ]", "", found)))
        except ValueError:
            continue
    # A run of digits inside a longer one is looked for too: an account, a digest, a name.
    return [n for n in read if any(abs(n - true) < 0.5 for true in TRUE)] + [
        float(true) for true in TRUE if str(true) in text
    ]


def words_of(content: bytes) -> str:
    """Return what a body says as text, its numbers in full."""
    if content[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(content))
        return f"{table.to_pydict()} {table.schema.metadata} {table.schema}"
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as book:
            return "\n".join(book.read(name).decode() for name in book.namelist())
    if content.startswith(b"CHARSET="):
        # A space stands between two numbers here, and not within one.
        head, _, data = content.decode().partition("DATA=")
        return head + "\n".join(data.split())
    return content.decode()


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    # Noise of 70,000: sixteen true counts lie close together, and a noisy one must not meet one of them by chance.
    opened = service(
        tmp_path_factory.mktemp("planted"),
        counts=COUNTS,
        rho="1/10000000000",
        question="1/10000000000",
        budget="1",
        only=["census", "survey"],
    )
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def app(planted):
    # What schemathesis calls a service in its own process.
    return create_app(replace(planted, hosts=Hosts(("testserver",))))


@pytest.fixture(scope="module")
def tokens(planted):
    return {
        "custodian": planted.state.tokens.add("custodian", "custodian")[1],
        "analyst": planted.state.tokens.add("Ada", "analyst", "ada")[1],
    }


def endless(app):
    """Return the application without its end: schemathesis ends what it has started, and the service with it."""

    async def serve(scope, receive, send):
        assert scope["type"] == "http"
        await app(scope, receive, send)

    return serve


def test_the_search_finds_a_true_count_however_it_is_written():
    assert PLANTED in TRUE
    assert len(TRUE) == 16
    for text in (
        "7391846",
        "7,391,846",
        "count: 7391846.0",
        "7.391846e6",
        "x7391846y",
        "7_391_846",
        "7391845.7",
    ):
        assert true_counts_in(text), text
    exact = {"count": COUNTS.sum(axis=(1, 3)).reshape(-1).tolist()}
    assert true_counts_in(json.dumps(exact))
    assert not true_counts_in("7391840 7421197.4 739184 [1, 2]")


class Leaking:
    """The dataset's sabotaged twin: it answers with what it counted."""

    def __init__(self, answers):
        self._answers = answers

    def __getattr__(self, name):
        return getattr(self._answers, name)

    def answer(self, margin, *, asker=None, linear=False):
        honest = self._answers.answer(margin, asker=asker, linear=linear)
        summed = tuple(i for i, a in enumerate(DOMAIN.attributes) if a not in margin)
        exact = Table(honest.table.domain, COUNTS.sum(axis=summed))
        return replace(honest, table=ReleasedTable(exact, honest.table.errors))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_service_that_leaks_is_found_out(planted, kind):
    dataset = planted.datasets["census"]
    leaking = replace(dataset, answers=Leaking(dataset.answers))
    ask = Caller(create_app(replace(planted, datasets={"census": leaking})))
    found = ask.get(f"/api/datasets/census/tables.{kind}", [("by", "sex"), ("where", "age:15-64")])
    assert true_counts_in(words_of(found.content))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=questions(), kind=st.sampled_from(list(FORMATS)))
def test_no_answer_and_no_refusal_holds_a_true_count(app, tokens, caplog, question, kind):
    caplog.set_level(logging.DEBUG)
    ask = Caller(app, tokens["analyst"])
    cells = [{a: DOMAIN.levels_of(a)[0] for a in question["by"]}, {}]
    for name in ("census", "survey"):
        base = f"/api/datasets/{name}"
        answers = [
            ask.get(f"{base}/tables.{kind}", as_query(question)),
            ask.post(f"{base}/tables", question),
            ask.post(f"{base}/accuracy", {k: v for k, v in question.items() if k != "estimate"}),
            ask.get(f"{base}/plan", [("by", a) for a in question["by"]]),
            ask.post(f"{base}/tests", {"test": "independence", "by": question["by"]}),
            ask.post(f"{base}/tests", {"test": "difference", "by": question["by"], "cells": cells}),
        ]
        for answer in answers:
            assert answer.status_code in (200, 403, 422), answer.text
            assert not true_counts_in(words_of(answer.content))
            assert not true_counts_in(str(answer.headers.raw))
    assert not true_counts_in(caplog.text)


def test_refusals_have_the_same_status_and_words_whatever_the_counts_are(app, tokens, tmp_path):
    other = service(
        tmp_path, rho="1/10000000000", question="1/10000000000", budget="1", only=["census", "survey"]
    )
    try:
        twin = create_app(other)
        _, text = other.state.tokens.add("Ada", "analyst", "ada")
        for query in (
            [("by", "faith")],
            [("by", "sex"), ("where", "age:200")],
            [("by", "region"), ("by", "job: kind")],
            [("by", a) for a in DOMAIN.attributes],
        ):
            for name in ("census", "survey"):
                path = f"/api/datasets/{name}/tables"
                here, there = (
                    Caller(each, token).get(path, query)
                    for each, token in ((app, tokens["analyst"]), (twin, text))
                )
                assert here.status_code == there.status_code
                assert here.content == there.content
                assert here.headers == there.headers
    finally:
        other.close()


@pytest.mark.parametrize(("role", "about", "examples"), [("analyst", False, 4), ("custodian", True, 3)])
def test_whatever_the_description_allows_or_forbids_is_answered_as_it_says(
    app, tokens, caplog, role, about, examples
):
    caplog.set_level(logging.DEBUG, logger="tabulary")
    configuration = SchemathesisConfig.from_dict(
        {
            "seed": 2026,
            "generation": {"max-examples": examples, "deterministic": True, "mode": "all"},
            "phases": {"stateful": {"enabled": False}},
            "checks": {
                # A name that no dataset has is well formed, and refused all the same.
                "positive_data_acceptance": {"enabled": False},
                # Wrong tokens are slowed for everyone at their address, which all of this test shares.
                "ignored_auth": {"enabled": False},
            },
            "headers": {"Authorization": f"Bearer {tokens[role]}"},
        }
    )
    loaded = schemathesis.openapi.from_asgi("/api/openapi.json", endless(app), config=configuration)
    parts = {"path_regex": "^/api/custodian"}
    schema = loaded.include(**parts) if about else loaded.exclude(**parts)
    statuses, failures = set(), []
    for event in from_schema(schema).execute():
        assert not isinstance(event, events.FatalError), event
        if isinstance(event, events.NonFatalError):
            failures.append(str(event.info))
        if isinstance(event, events.ScenarioFinished):
            for each in event.recorder.interactions.values():
                if each.response is not None:
                    statuses.add(each.response.status_code)
                    said = f"{words_of(each.response.content)} {each.response.headers}"
                    if true_counts_in(said):
                        failures.append(f"a true count in the answer to {each.request.uri}")
            failures += [
                f"{check.failure_info.failure}\n{check.failure_info.code_sample}"
                for checks in event.recorder.checks.values()
                for check in checks
                if check.failure_info is not None
            ]
    assert not failures, "\n\n".join(failures[:5])
    assert {200, 405, 422} <= statuses
    assert not statuses & {500, 501, 502}
    assert not true_counts_in(caplog.text)
