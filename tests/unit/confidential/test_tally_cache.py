"""Exact counts on demand: right, counted once, within their bound, and never shown."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.confidential.records import Records
from tabulary.confidential.tally_cache import TallyCache
from tabulary.core.cache import ENTRY_BYTES, Cache
from tabulary.core.domain import Domain
from tabulary.core.workload import Workload
from tabulary.errors import InvalidDomain, UnreadableSource

DOMAIN = Domain({"a": "xy", "b": "xyz", "c": "pqrs"})
EVERY = Workload.all_up_to(DOMAIN, 3).closure().margins
PEOPLE = 4711


@pytest.fixture(scope="module")
def records():
    generator = np.random.default_rng(5)
    columns = {a: generator.choice(DOMAIN.levels_of(a), PEOPLE) for a in DOMAIN.attributes}
    with Records.from_arrow(pa.table(columns), DOMAIN) as made:
        yield made


@pytest.fixture
def counting(records, monkeypatch):
    """The margins that were counted from the records, walk by walk."""
    walks, plain = [], Records.tally

    def watched(self, margins, **options):
        walks.append([tuple(margin) for margin in margins])
        return plain(self, margins, **options)

    monkeypatch.setattr(Records, "tally", watched)
    return walks


@given(asked=st.lists(st.sampled_from(EVERY), min_size=1, max_size=12), room=st.integers(0, 8 * ENTRY_BYTES))
@settings(max_examples=40)
def test_whatever_was_asked_before_and_whatever_fits_the_counts_are_those_of_the_records(
    records, asked, room
):
    exact = records.tally(EVERY)
    tallies = TallyCache(records, Cache(room))
    tallies.prepare(asked[:3])
    for margin in asked:
        assert (tallies.exact(margin) == exact.exact(margin)).all()


def test_a_margin_is_counted_once_and_one_inside_it_not_at_all(records, counting):
    tallies = TallyCache(records)
    for margin in [("a", "b"), ("b", "a"), ("a",), (), ("b",)]:
        tallies.exact(margin)
    assert counting == [[("a", "b")]]


def test_threads_that_ask_for_one_margin_count_it_once(records, counting):
    tallies, together = TallyCache(records), Barrier(6)

    def ask():
        together.wait()
        return int(tallies.exact(("b", "c")).sum())

    with ThreadPoolExecutor(6) as pool:
        assert [each.result() for each in [pool.submit(ask) for _ in range(6)]] == [PEOPLE] * 6
    assert counting == [[("b", "c")]]


def test_many_margins_are_counted_in_one_walk(records, counting):
    tallies = TallyCache(records)
    tallies.prepare([("a",), ("a", "b"), ("b", "c"), ("a", "b")])
    tallies.prepare([("a",), ("b", "c")])
    for margin in [("a", "b"), ("b", "c"), ("c",)]:
        tallies.exact(margin)
    assert counting == [[("a", "b"), ("b", "c")]]


def test_no_more_is_prepared_than_there_is_room_for(records, counting):
    cache = Cache(2 * (8 * (6 + 8) + 2 * ENTRY_BYTES))
    tallies = TallyCache(records, cache)
    tallies.prepare([("a", "b"), ("a", "c"), ("b", "c")])
    assert counting == [[("a", "b"), ("a", "c")]]
    assert cache.held_bytes == cache.most_bytes // 2
    # Counted when it is asked for.
    assert tallies.exact(("b", "c")).sum() == PEOPLE
    assert counting[1:] == [[("b", "c")]]


def test_two_datasets_in_one_cache_share_its_limit_and_never_a_count(records, counting):
    cache = Cache(8 * 24 + 2 * ENTRY_BYTES)
    people = pa.table({"a": ["x"], "b": ["z"], "c": ["p"]})
    with Records.from_arrow(people, DOMAIN) as one_person:
        first, second = TallyCache(records, cache), TallyCache(one_person, cache)
        for margin in EVERY:
            assert (first.exact(margin).sum(), second.exact(margin).sum()) == (PEOPLE, 1)
            assert cache.held_bytes <= cache.most_bytes
    first.close()
    second.close()
    assert cache.held_bytes == 0


def test_it_shows_no_count_and_is_never_copied(records):
    tallies = TallyCache(records)
    tallies.exact(())
    assert f"{tallies}" == repr(tallies) == "<TallyCache of a 2 × b 3 × c 4>"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="confidential"):
            copied(tallies)
    with pytest.raises(ValueError, match="read-only"):
        tallies.exact(("a",))[0] = 1


def test_unknown_attributes_and_closed_records_are_refused(records):
    tallies = TallyCache(records)
    with pytest.raises(InvalidDomain, match="no attribute 'd'"):
        tallies.exact(("d",))
    with Records.from_arrow(pa.table({"a": ["x"], "b": ["x"], "c": ["p"]}), DOMAIN) as gone:
        closed = TallyCache(gone)
        closed.exact(("a",))
    closed.close()
    with pytest.raises(UnreadableSource, match="closed"):
        closed.exact(("a",))
