"""The same answers from every worker and every machine, while workers, machines and databases come and go.

One table builder with two workers stands through all of this, on each database: a test leaves less of its budget to
those after it.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import pytest

from tests.databases import PostgresServer
from tests.services import Ask, Askers, ServerProcess, answers, statuses
from tests.towns import (
    AFFORDABLE,
    LEVELS,
    Town,
    check_books,
    found_town,
    free_questions,
    kept_in,
    paid_questions,
    write_town,
)
from tests.waiting import has_ended, wait_until

pytestmark = pytest.mark.slow

REFUSED, AWAY, BROKEN = 403, 503, 0
SINGLES, TRIPLES = ([tuple(by) for by in combinations(LEVELS, k)] for k in (1, 3))
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def postgres(request: pytest.FixtureRequest) -> PostgresServer | None:
    """The server of the database; SQLite has none."""
    return request.getfixturevalue("postgres_server") if request.param == "postgresql" else None


@pytest.fixture(scope="module")
def town(postgres: PostgresServer | None, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town whose ledger and state are in the database."""
    place = kept_in(postgres.url("standing")) if postgres is not None else {}
    return found_town(tmp_path_factory.mktemp("standing") / "town", **place)


@pytest.fixture(scope="module")
def server(town: Town) -> Iterator[ServerProcess]:
    """Its table builder, which runs."""
    with ServerProcess(town.file, workers=2) as running:
        yield running


def test_every_worker_and_another_machine_give_the_same_answers_and_together_pay_once(town, server, tmp_path):
    # It has the key and the records and reaches the books; what was kept in order to start faster, it has not.
    file = write_town(tmp_path / "machine", ledger=str(town.ledger), state=str(town.state))
    shutil.copy2(town.folder / "secret.key", file.parent)
    (tmp_path / "temporary").mkdir()
    environment = {**ONE_THREAD, "TMPDIR": str(tmp_path / "temporary"), "PYTHONHASHSEED": "77"}
    new = paid_questions(town.tokens.values(), TRIPLES[:3])
    questions = new + free_questions()
    with ServerProcess(file, workers=1, environment=environment) as machine:
        # New questions meet both at once, from both analysts.
        with Askers([server.port, machine.port], new, askers=8) as askers:
            askers.hear(100)
        heard = askers.heard + machine.ask_all(questions)
        workers = server.workers()
        for worker in workers:
            with server.only(worker):
                heard += server.ask_all(questions)
    assert len(workers) == 2
    assert statuses(heard) == {200}
    assert len(answers(heard)) == len({asked.path for asked in questions})
    assert check_books(town, heard) == 3


@contextmanager
def away(town: Town, postgres: PostgresServer | None) -> Iterator[None]:
    """Take the ledger away for a while: PostgreSQL is stopped, the file of SQLite is somewhere else."""
    if postgres is not None:
        postgres.stop()
        try:
            yield
        finally:
            postgres.start()
    else:
        ledger = Path(town.ledger)
        elsewhere = ledger.rename(ledger.with_name("elsewhere"))
        try:
            yield
        finally:
            elsewhere.rename(ledger)


@pytest.mark.parametrize(
    "postgres",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.sample)],
    indirect=True,
    scope="module",
)
def test_a_ledger_that_was_away_for_a_while_is_used_again_and_no_answer_changes(town, server, postgres):
    token, free = town.tokens["ann"], free_questions()
    known, new, late = (
        paid_questions([token], tables) for tables in (SINGLES[:2], TRIPLES[3:6], SINGLES[2:])
    )
    before = server.ask_all(free + known)
    assert statuses(before) == {200}
    with Askers([server.port], new + free + known) as askers:
        askers.hear(1)
        with away(town, postgres):
            assert statuses(server.ask_all(late)) == {AWAY}
            askers.hear(50)
        askers.hear(50)
    after = server.ask_all(free + known + new + late)
    assert statuses(after) == {200}
    assert statuses(askers.heard) <= {200, AWAY}
    heard = before + askers.heard + after
    # What anyone may ask needs no ledger.
    assert statuses((asked, reply) for asked, reply in heard if asked in free) == {200}
    assert check_books(town, heard) >= len(known + new + late)


def test_killed_workers_are_replaced_under_load_and_change_no_answer_and_lose_no_debit(town, server):
    free, paid = free_questions(), paid_questions(town.tokens.values())
    before = set(server.workers())
    with Askers([server.port], paid + free, askers=6) as askers:
        askers.hear(5)
        killed = {server.kill_worker()}
        askers.hear(50)
        server.wait_until_served()
        killed.add(server.kill_worker())
        askers.hear(50)
        server.wait_until_served()
        askers.hear(50)
    asked = server.ask_all(paid + free)
    assert killed == before
    assert not killed & set(server.workers())
    heard = askers.heard + asked
    assert statuses(heard) <= {200, REFUSED, BROKEN}
    assert statuses(asked) == {200, REFUSED}
    # The budget is spent to the last question and not beyond, and whatever was paid for is answered.
    assert check_books(town, heard) == AFFORDABLE
    assert sum("/diary/" in path for path in answers(asked)) == AFFORDABLE
    # Killed itself, the server leaves no worker behind that would hold its address and that nobody could stop.
    orphans = server.workers()
    server.kill()
    wait_until(lambda: all(map(has_ended, orphans)), "orphans to end")
    assert server.ask(Ask("/api/health")).status == BROKEN
