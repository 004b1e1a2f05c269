"""A process that is killed between a debit and its measurement loses budget, never privacy."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tabulary.core.privacy import Neighbours, PureDP
from tabulary.ledger import Ledger

KILLS = 40
COST = PureDP("1/1000000")

# Imports once, then gives birth to a measuring process for every line it reads, and buries it.
NURSERY = """
import os, sys
from tabulary.core.privacy import Neighbours, PureDP
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
def test_what_was_measured_was_paid_for_however_often_the_process_is_killed(tmp_path):
    path, measured = tmp_path / "ledger.sqlite", tmp_path / "measured"
    with Ledger.create(path) as ledger:
        ledger.create_account("census", PureDP(1), Neighbours())
    measured.touch()
    moments = random.Random(1799)
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY, str(path), str(measured)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:
        kills, done = 0, []
        # A busy machine measures little between two kills, so they go on until there was something to lose.
        while kills < KILLS or len(done) <= KILLS:
            kills += 1
            # One kill in four may come while the ledger is being opened, and mended after the last kill.
            kill_at_some_moment(nursery, moments.uniform(0, 0.1), while_opening=kills % 4 == 0)
            paid, done = read_the_books(path, measured)
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


def read_the_books(path, measured):
    with Ledger.open(path) as ledger:
        ledger.check()
        account = ledger.account("census")
        paid = [entry.digest for entry in account.entries()]
        assert account.spent() == (PureDP(COST.epsilon * len(paid)) if paid else None)
    return paid, measured.read_text().splitlines()
