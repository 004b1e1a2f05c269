"""What every test has in common."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadGroupScheduling

from tests.clusters import (
    GROUP,
    is_grouped,
    reaches_the_cluster,
    spark,  # noqa: F401 - fixtures for every test
    spark_cluster,  # noqa: F401
)
from tests.databases import (  # noqa: F401 - fixtures for every test
    database,
    own_postgres_server,
    postgres_database,
    postgres_server,
    shared_database,
)

# A shell starts what runs in the background with Ctrl-C ignored. Tests that press it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every machine, and no clock: these machines are noisy.
settings.register_profile("full", deadline=None, derandomize=True)
settings.register_profile("quick", settings.get_profile("full"), max_examples=10)
PROFILE = os.environ.get("TABULARY_EXAMPLES", "full")
"""Which hypothesis profile the tests have: `quick` for `make test` and `make check`, `full` for everything else."""

settings.load_profile(PROFILE)

SLOW_FOLDERS = [Path(__file__).parent / "statistical", Path(__file__).parent / "unit" / "papers"]
"""What is slow as a whole: many draws, and the tables and figures of papers made again."""


class _OneProcessAFile(LoadGroupScheduling):
    """Sends the tests of a file to one process, which makes once what they share; and those of a group, as ever."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return nodeid.split("::")[0] if group == nodeid else group


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadGroupScheduling | None:
    return _OneProcessAFile(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put every test into its tier, and all tests of the Spark cluster into the group that one process runs."""
    for item in items:
        if reaches_the_cluster(item):
            item.add_marker(pytest.mark.slow)
            if not is_grouped(item):
                item.add_marker(pytest.mark.xdist_group(GROUP))
        if any(folder in item.path.parents for folder in SLOW_FOLDERS):
            item.add_marker(pytest.mark.slow)
        _limit_examples(item)


def _limit_examples(item: pytest.Item) -> None:
    """Hold a test that asks for more examples than its profile to those of the profile; the full one asks for all."""
    # Hypothesis has no public name for the settings of a test.
    asked = getattr(item, "obj", None), "_hypothesis_internal_use_settings"
    own = getattr(*asked, None)
    if PROFILE == "quick" and own is not None and own.max_examples > settings.default.max_examples:
        setattr(*asked, settings(own, max_examples=settings.default.max_examples))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail a test that would be skipped where the change is judged: what was not run was not shown."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and CI skips nothing: {report.longrepr}"
    return report
