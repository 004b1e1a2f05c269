"""A process that is killed while it saves leaves either no release or a whole one."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tabulary.release import Release
from tabulary.release.folder import STAGING_PREFIX

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill without notice"),
]

SETTING = """
import os, signal, sys
from pathlib import Path
import numpy as np
from tabulary.core.domain import Domain
from tabulary.core.privacy import PureDP
from tabulary.planning import Measurement, plan
from tabulary.release import Release
from tabulary.release.manifest import Imprint
from tabulary.release.report import report_html

domain = Domain({"zone": range(200), "sex": ["F", "M"]})
planned = plan(domain, "[sex][zone sex]", privacy=PureDP(1), mechanism="margins")
release = Release(Measurement(planned, tuple(np.full(domain.shape_of(m), 20) for m in planned.workload)))
parent = Path(sys.argv[1])
# The template is compiled once here, and not in every process that is about to be killed.
report_html(release, Imprint("2026-01-31", "1"))
"""

AT_EVERY_STEP = """
# Killed at the first, second, third, … thing that the process asks of the file system.
step = 0
while True:
    step += 1
    child = os.fork()
    if not child:
        asked = 0
        def strike(event, details):
            global asked
            if event in ("open", "os.mkdir", "os.rename", "os.rmdir", "os.remove", "shutil.rmtree"):
                if str(details[0]).startswith(str(parent)):
                    asked += 1
                    if asked == step:
                        os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(strike)
        release.save(parent / f"out-{step}")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        print(step, flush=True)
        break
"""

WITHOUT_END = """
release.save(parent / f"out-{os.getpid()}-0")
print("saving", flush=True)
number = 0
while True:
    number += 1
    release.save(parent / f"out-{os.getpid()}-{number}")
"""


def check_what_is_left(parent):
    """Every visible folder is a sound release; returns how many there are, and how many staging folders."""
    visible = [p for p in parent.iterdir() if not p.name.startswith(STAGING_PREFIX)]
    for folder in visible:
        assert len(Release.load(folder)) == 2
    return len(visible), len(list(parent.iterdir())) - len(visible)


def test_a_save_killed_at_any_step_leaves_no_release_or_a_whole_one(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SETTING + AT_EVERY_STEP, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    steps = int(done.stdout)
    whole, staging = check_what_is_left(tmp_path)
    # Six files are opened and three folders made before the rename; the kills after it find a whole release.
    assert steps > 10
    assert staging >= 8
    assert 2 <= whole < steps


def test_a_save_killed_at_some_moment_leaves_no_release_or_a_whole_one(tmp_path):
    moments = random.Random(1854)
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", SETTING + WITHOUT_END, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "saving\n"
            time.sleep(moments.uniform(0, 0.3))
            process.kill()
        assert process.returncode == -signal.SIGKILL
    whole, staging = check_what_is_left(tmp_path)
    assert whole >= 6
    # A test in which no kill ever came in the middle of a save would show nothing.
    assert staging > 0
