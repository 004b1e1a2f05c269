"""What every test has in common."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.clusters import spark, spark_cluster  # noqa: F401 - fixtures for every test
from tests.databases import (  # noqa: F401 - fixtures for every test
    _shared_database,
    database,
    own_postgres_server,
    postgres_database,
    postgres_server,
)

# The same examples on every machine, and no clock: these machines are noisy.
settings.register_profile("tabulary", deadline=None, derandomize=True)
settings.load_profile("tabulary")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send every test of the Spark cluster to one process, so that one cluster is started and not one a process."""
    for item in items:
        if "spark_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail a test that would be skipped where the change is judged: what was not run was not shown."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and CI skips nothing: {report.longrepr}"
    return report
