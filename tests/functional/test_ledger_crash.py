"""A process or a server that is killed at any moment loses budget, never privacy."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.errors import LedgerError
from tabulary.ledger import Ledger
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

KILLS = {"sqlite": 25, "postgresql": 10}
COST = PureDP("1/1000000")

# Imports once, then gives birth to a measuring process for every line it reads, and buries it.
NURSERY = """
import os, sys
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.ledger import Ledger

def measure(path, measured):
    print("opening", os.getpid(), flush=True)
    with Ledger.open(path, timeout=120) as ledger, open(measured, "ab", buffering=0) as file:
        account = ledger.account("census")
        print("measuring", flush=True)
        while True:
            entry = account.debit(
                PureDP("1/1000000"), Neighbours(), purpose="sex by age", plan_digest="ab" * 32
            )
            file.write(f"{entry.digest}\\n".encode())
            os.fsync(file.fileno())

for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        measure(*sys.argv[1:])
    print("ended", -os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system neither forks nor kills without notice")
def test_what_was_measured_was_paid_for_however_often_the_process_is_killed(database, tmp_path):
    measured = tmp_path / "measured"
    enough = KILLS["postgresql" if database.startswith("postgresql:") else "sqlite"]
    with Ledger.create(database) as ledger:
        ledger.create_account("census", PureDP(1), Neighbours())
    measured.touch()
    moments = random.Random(1799)
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY, database, str(measured)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:
        kills, done = 0, []
        # A busy machine measures little between two kills, so they go on until there was something to lose.
        while kills < enough or len(done) <= enough:
            kills += 1
            # One kill in four may come while the ledger is being opened, and mended after the last kill.
            kill_at_some_moment(nursery, moments.uniform(0, 0.1), while_opening=kills % 4 == 0)
            paid, done = read_the_books(database, measured)
            # Whatever was measured stands in the ledger; a kill costs at most one debit without measurement.
            assert set(done) <= set(paid)
            assert len(done) == len(set(done))
            assert len(paid) - len(done) <= kills
        nursery.stdin.close()


def kill_at_some_moment(nursery, delay, *, while_opening):
    print(file=nursery.stdin, flush=True)
    opening, process = nursery.stdout.readline().split()
    assert opening == "opening"
    if not while_opening:
        assert nursery.stdout.readline() == "measuring\n"
    time.sleep(delay)
    os.kill(int(process), signal.SIGKILL)
    heard = nursery.stdout.readline()
    if while_opening and heard == "measuring\n":
        heard = nursery.stdout.readline()
    assert heard == f"ended {int(signal.SIGKILL)}\n"


def read_the_books(where, measured):
    with Ledger.open(where) as ledger:
        ledger.check()
        account = ledger.account("census")
        paid = [entry.digest for entry in account.entries()]
        assert account.spent() == (PureDP(COST.epsilon * len(paid)) if paid else None)
    return paid, measured.read_text().splitlines()


def test_what_the_server_acknowledged_survives_its_crash(own_postgres_server):
    with Ledger.create(own_postgres_server.url("books")) as ledger:
        census = ledger.create_account("census", PureDP(1), Neighbours())
        acknowledged, refusals, enough = [], [], threading.Event()

        def measure():
            while not enough.is_set():
                try:
                    entry = census.debit(COST, Neighbours(), purpose="sex by age", plan_digest="ab" * 32)
                    acknowledged.append(entry.digest)
                except LedgerError as refusal:
                    refusals.append(str(refusal))

        measuring = threading.Thread(target=measure)
        measuring.start()
        try:
            for _ in range(3):
                wait_for_more_than(acknowledged, len(acknowledged) + 10)
                own_postgres_server.crash()
                wait_for_more_than(refusals, len(refusals))
                own_postgres_server.start()
            wait_for_more_than(acknowledged, len(acknowledged))
        finally:
            enough.set()
            measuring.join()
        ledger.check()
        kept = [entry.digest for entry in census.entries()]
    doubtful = [refusal for refusal in refusals if "show whether the debit was kept" in refusal]
    certain = [refusal for refusal in refusals if "nothing was spent" in refusal]
    assert len(doubtful) + len(certain) == len(refusals)
    assert set(acknowledged) <= set(kept)
    # What the ledger calls unspent is unspent: only a doubtful debit may be there without its acknowledgement.
    assert len(kept) - len(acknowledged) <= len(doubtful) <= 3


def wait_for_more_than(things, number):
    wait_until(lambda: len(things) > number, f"more than {number} debits")
