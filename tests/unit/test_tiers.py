"""Which tests run when: `make test` for whoever waits, `make test-all` for everything."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ASKED = 40
SEEN = []
# A test of each real thing, in what `make test` runs.
REAL = {
    "a browser": r"functional/test_pages_walkthrough\.py::",
    "a service on PostgreSQL": r"functional/test_service_workers\.py::.*\[postgresql\]",
    "a Spark job": r"engines/spark/test_engine\.py::",
    "a snippet of R": r"release/test_loading\.py::test_r_",
}


@settings(max_examples=ASKED)
@given(st.integers())
def test_a_property_is_tried(number):
    SEEN.append(number)


# Runs wherever the property does: make test-all leaves out what make test has run, but for properties.
@pytest.mark.hypothesis
def test_a_property_is_tried_as_often_as_it_asks_for_and_the_profile_allows():
    if not SEEN:
        pytest.skip("the test before this one was left out")
    assert len(SEEN) == min(ASKED, settings.default.max_examples)


def test_every_run_of_the_whole_has_one_of_each_real_thing(request):
    names = [item.nodeid for item in request.session.items]
    if len(names) < 5_000:
        pytest.skip("this run is of a few tests")
    assert [kind for kind, name in REAL.items() if not any(re.search(name, each) for each in names)] == []
