"""A crowd of slow tests: tables are still answered, callers are held to their share, and the service still stops."""

import asyncio
import http.client
import json
import threading
from contextlib import suppress
from dataclasses import replace

import httpx
import pytest

from tabulary.builder.api import hypotheses
from tabulary.builder.app import create_app
from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise
from tabulary.builder.state import Role
from tabulary.core.interruption import checkpoint
from tests.builders import GENEROUS, service
from tests.service_files import dataset, places
from tests.services import Ask, ServerProcess
from tests.serving import served
from tests.waiting import PATIENCE, has_ended, wait_until

pytestmark = pytest.mark.slow

TESTS, TABLES = "/api/datasets/census/tests", "/api/datasets/census/tables"
LIMIT = 40

# As many tests as anyone wants, each of another table, so that none waits for another's verdict.
QUESTIONS = [
    {"test": "difference", "by": ["sex", "age"], "cells": [{"sex": "F", "age": a}, {"sex": s, "age": b}]}
    for a in ("0-14", "15-64", "65+")
    for s in ("F", "M")
    for b in ("0-14", "15-64", "65+")
]
QUESTIONS += [
    {
        "test": "difference",
        "by": ["region", "age"],
        "cells": [{"region": r, "age": a}, {"region": q, "age": b}],
    }
    for r in ("North", "South: east")
    for a in ("0-14", "15-64", "65+")
    for q in ("North", "South: east")
    for b in ("0-14", "15-64", "65+")
]


class Held:
    """Tests that stand still until they are let go, or until they are told to stop."""

    def __init__(self):
        self.let_go, self.begun, self.stopped = threading.Event(), [], []

    def __call__(self, table, *cells, **asked):
        self.begun.append(threading.current_thread())
        try:
            while not self.let_go.wait(0.005):
                checkpoint()
        except BaseException:
            self.stopped.append(threading.current_thread())
            raise
        raise hypotheses.InvalidNoise("let go")


@pytest.fixture
def held(monkeypatch):
    tests = Held()
    monkeypatch.setattr(hypotheses, "independence", tests)
    monkeypatch.setattr(hypotheses, "difference", tests)
    yield tests
    tests.let_go.set()


@pytest.fixture
def built(tmp_path):
    opened = service(
        tmp_path,
        only=("census", "survey"),
        limits=replace(GENEROUS, tests_a_caller=LIMIT, tables_a_caller=LIMIT),
    )
    yield opened
    opened.close()


async def _crowd(app, held, meanwhile):
    """What happens `meanwhile`, with as many tests of one caller standing still as one caller may have."""
    crowd = httpx.ASGITransport(app, client=("192.0.2.1", 5000))
    async with httpx.AsyncClient(transport=crowd, base_url="http://localhost", timeout=None) as client:
        tests = [asyncio.create_task(client.post(TESTS, json=each)) for each in QUESTIONS[:LIMIT]]
        await asyncio.to_thread(wait_until, lambda: held.begun, "a test that stands still")
        try:
            return await meanwhile(client)
        finally:
            held.let_go.set()
            answers = await asyncio.gather(*tests)
            assert {answer.json()["detail"] for answer in answers} == {"let go"}


def test_a_table_that_nobody_asked_for_yet_is_answered_while_forty_tests_are_under_way(built, held):
    async def meanwhile(crowd):
        answers = [await crowd.get(TABLES, params={"by": by}) for by in ("sex", "age", "region")]
        answers.append(await crowd.get("/datasets/census/table?rows=sex", headers={"Accept": "text/html"}))
        answers.append(await crowd.get("/api/datasets/census/accuracy", params={"by": "sex"}))
        assert not held.let_go.is_set()
        return answers

    answers = asyncio.run(_crowd(create_app(built), held, meanwhile))
    assert [answer.status_code for answer in answers] == [200] * 5
    # Few threads make tests, and none of them made a table.
    assert len({thread.name for thread in held.begun}) <= 2


def test_the_forty_first_test_of_a_caller_is_refused_and_the_first_of_another_is_not(built, held):
    app = create_app(built)

    async def meanwhile(crowd):
        refused = [
            await crowd.post(TESTS, json=QUESTIONS[LIMIT]),
            await crowd.get(
                "/datasets/census/table?rows=sex&columns=age&test=independence",
                headers={"Accept": "text/html"},
            ),
        ]
        other = httpx.ASGITransport(app, client=("192.0.2.2", 5000))
        async with httpx.AsyncClient(transport=other, base_url="http://localhost", timeout=None) as client:
            waiting = asyncio.create_task(client.post(TESTS, json=QUESTIONS[LIMIT]))
            _, pending = await asyncio.wait({waiting}, timeout=0.2)
            assert pending == {waiting}
            held.let_go.set()
            return refused, await waiting

    (refused, page), accepted = asyncio.run(_crowd(app, held, meanwhile))
    assert (refused.status_code, refused.json()["type"]) == (429, "too-much-at-once")
    assert int(refused.headers["retry-after"]) > 0
    assert "40 tests of yours are under way" in refused.json()["detail"]
    # Tests on pages are tests: in the same threads, for the same share.
    assert page.status_code == 429
    assert "40 tests of yours are under way" in page.text
    assert accepted.json()["detail"] == "let go"


def test_a_token_is_one_caller_from_however_many_addresses(built, held):
    ada = built.state.tokens.add("ada", Role.analyst, account="ada")[1]
    app = create_app(replace(built, limits=replace(built.limits, tests_a_caller=1)))

    async def ask():
        async with (
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app, client=("192.0.2.1", 1)),
                base_url="http://localhost",
                timeout=None,
                headers={"Authorization": f"Bearer {ada}"},
            ) as first,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app, client=("192.0.2.2", 1)),
                base_url="http://localhost",
                timeout=None,
            ) as second,
        ):
            waiting = asyncio.create_task(first.post(TESTS, json=QUESTIONS[0]))
            await asyncio.to_thread(wait_until, lambda: held.begun, "a test")
            shown = {"Authorization": f"Bearer {ada}"}
            refused = await second.post(TESTS, json=QUESTIONS[1], headers=shown)
            held.let_go.set()
            await waiting
            return refused.status_code, (await second.post(TESTS, json=QUESTIONS[1])).status_code

    assert asyncio.run(ask()) == (429, 422)


def test_a_caller_who_hangs_up_frees_the_place_and_stops_the_work(built, held):
    with served(replace(built, limits=replace(built.limits, tests_a_caller=1))) as address:
        asked = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
        asked.request("POST", TESTS, json.dumps(QUESTIONS[0]), {"Content-Type": "application/json"})
        wait_until(lambda: held.begun, "the work to begin")
        asked.close()
        wait_until(lambda: held.stopped, "the work to stop")
        held.let_go.set()

        def answered():
            return httpx.post(f"{address}{TESTS}", json=QUESTIONS[1], timeout=60).status_code != 429

        wait_until(answered, "a free place")


def test_the_server_stops_while_a_test_stands_still(built, monkeypatch):
    begun, never = threading.Event(), threading.Event()

    def stubborn(table, *cells, **asked):
        begun.set()
        never.wait(600)

    monkeypatch.setattr(hypotheses, "difference", stubborn)
    with served(built, farewell=1) as address:
        asking = threading.Thread(target=_ask_in_vain, args=(address,))
        asking.start()
        assert begun.wait(PATIENCE)
    # The service is closed, and the test is where it was.
    asking.join()
    assert not never.is_set()
    never.set()


def _ask_in_vain(address):
    with suppress(httpx.HTTPError):
        httpx.post(f"{address}{TESTS}", json=QUESTIONS[0], timeout=60)


SERVICE = places() + dataset(
    "census",
    {"sex": ["F", "M"], "job": ["none", "paid"]},
    privacy='rho = "1/2"\nneighbours = "add-remove"',
    budget="rho = 1",
)
# Neither tests nor tables end, nor do they ask whether they should.
STUBBORN = """
import sys
import threading
import time
from pathlib import Path

from tabulary.builder.api import answers, hypotheses
from tabulary.cli.app import run

def stubborn(*given, **asked):
    Path(f"begun-{threading.get_ident()}").touch()
    time.sleep(600)

hypotheses.independence = stubborn
answers.answer_to = stubborn

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_ends_the_whole_service_whatever_is_under_way(tmp_path, workers):
    (tmp_path / "service.toml").write_text(SERVICE)
    (tmp_path / "people.csv").write_text("sex,job\n" + "F,none\nM,paid\n" * 20)
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    initialise(read_service_file(tmp_path / "service.toml"))
    program = [str(tmp_path / "stubborn.py")]
    with ServerProcess(tmp_path / "service.toml", workers=workers, program=program) as server:
        family = [*server.workers()]
        asking = [
            threading.Thread(target=server.ask, args=(Ask(path),), daemon=True)
            for path in (
                "/api/datasets/census/tables?by=sex",
                "/api/datasets/census/tables?by=job",
                "/datasets/census/table?rows=sex&columns=job&test=independence",
            )
        ]
        for each in asking:
            each.start()
        wait_until(lambda: len(list(tmp_path.glob("begun-*"))) == 3, "work that stands still")
        server.terminate()
        assert server.exit_code() == 0
        wait_until(lambda: all(map(has_ended, family)), "workers to end")
