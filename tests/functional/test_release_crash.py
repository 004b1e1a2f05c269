"""A process that is killed at any moment: what was released was paid for, and what is there is whole."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import tabulary as tb

pytestmark = pytest.mark.slow

CHILD = """
import itertools, pathlib, sys
import tabulary as tb
from tabulary.workflows import release_to_folder

folder = pathlib.Path(sys.argv[1])
table = tb.datasets.load("fungus")
plan = tb.plan(table.domain, "[AB][CD]", privacy=tb.PureDP("1/1000"))
with tb.Ledger.open(folder / "ledger.sqlite") as ledger:
    account = ledger.account("fungus")
    for i in itertools.count(len(list(folder.glob("out-*")))):
        release_to_folder(lambda: table, plan, folder / f"out-{i}", account)
        print("released", flush=True)
"""


def test_a_kill_at_any_moment_leaves_spent_at_least_released_and_only_whole_releases(tmp_path):
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_account("fungus", tb.PureDP(100), tb.Neighbours())
    known = set()
    for attempt in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ
        )
        # The first release loads and compiles, however long that takes. The kill falls into one of those after it.
        assert child.stdout.readline() == b"released\n"
        time.sleep(random.Random(attempt).uniform(0, 1))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        released = set(tmp_path.glob("out-*"))
        with tb.Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            paid = len(ledger.account("fungus").entries())
        # Each kill may lose the budget of one release, never more.
        assert attempt < len(released) <= paid <= len(released) + attempt + 1
        for folder in released - known:
            tb.Release.load(folder)
        known = released
