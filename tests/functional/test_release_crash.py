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
    print("ready", flush=True)
    for i in itertools.count(len(list(folder.glob("out-*")))):
        release_to_folder(lambda: table, plan, folder / f"out-{i}", account)
"""


def test_a_kill_at_any_moment_leaves_spent_at_least_released_and_only_whole_releases(tmp_path):
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_account("fungus", tb.PureDP(100), tb.Neighbours())
    attempt, released = -1, []
    # On a busy machine the first kills may come before the first release.
    while attempt < 5 or not released:
        attempt += 1
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ
        )
        assert child.stdout.readline() == b"ready\n"
        time.sleep(random.Random(attempt).uniform(0.1, 1.5))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        released = list(tmp_path.glob("out-*"))
        with tb.Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            paid = len(ledger.account("fungus").entries())
        # Each kill may lose the budget of one release, never more.
        assert len(released) <= paid <= len(released) + attempt + 1
        for folder in released:
            tb.Release.load(folder)
