"""What ties noise to the entry that paid for it: other words, another key; the same words, the same key."""

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.errors import ServiceError
from tabulary.workflows.answering import edition
from tabulary.workflows.answering.edition import Edition, key_fingerprint, keyed_promise, records_key

SECRET = bytes(range(32))
EDITION = Edition("census", "2026", records="ab" * 16, key="cd" * 8)


@dataclass
class Written:
    """As much of a ledger's entry as an edition reads."""

    purpose: str
    plan_digest: str = "5f3a"


def test_every_word_of_the_entry_is_in_the_key_of_the_noise(monkeypatch):
    keys = [
        EDITION.noise_key(SECRET, "5f3a"),
        EDITION.noise_key(SECRET[::-1], "5f3a"),
        EDITION.noise_key(SECRET, "5f3b"),
        replace(EDITION, dataset="survey").noise_key(SECRET, "5f3a"),
        replace(EDITION, version="2027").noise_key(SECRET, "5f3a"),
        replace(EDITION, records="ba" * 16).noise_key(SECRET, "5f3a"),
        replace(EDITION, key="dc" * 8).noise_key(SECRET, "5f3a"),
    ]
    monkeypatch.setattr(edition, "SCHEME", 2)
    keys.append(EDITION.noise_key(SECRET, "5f3a"))
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 for key in keys)


def test_the_key_of_the_noise_is_that_of_earlier_versions():
    # Pinned: another key would be another noise under the entry that paid for this one.
    assert EDITION.noise_key(SECRET, "5f3a").hex()[:32] == "562f013190c0f06b23400a0076852c15"


def test_changed_records_under_an_old_version_are_refused_and_under_a_new_one_are_not():
    entries = (Written("sex by age"), Written(EDITION.purpose))
    EDITION.refuse_changed_records(entries)
    changed = replace(EDITION, records="ba" * 16)
    with pytest.raises(ServiceError, match="Give them a new version") as refused:
        changed.refuse_changed_records(entries)
    assert EDITION.records not in str(refused.value)
    replace(changed, version="2027").refuse_changed_records(entries)
    replace(changed, dataset="census2").refuse_changed_records(entries)


def test_another_key_under_an_old_version_is_refused_for_it_would_answer_differently():
    entries = (Written("sex by age"), Written(EDITION.purpose))
    # The fingerprint of the records is made under the key, so that it changes too.
    other = replace(EDITION, records="ba" * 16, key="dc" * 8)
    with pytest.raises(ServiceError, match="opened with another key"):
        other.refuse_changed_records(entries)
    replace(other, version="2027").refuse_changed_records(entries)


def test_another_plan_under_an_old_version_is_refused_and_under_a_new_one_is_not():
    entries = (Written("sex by age", "0000"), Written(EDITION.purpose, "5f3a"))
    EDITION.refuse_another_plan(entries, "5f3a")
    with pytest.raises(ServiceError, match="opened with another plan"):
        EDITION.refuse_another_plan(entries, "5f3b")
    replace(EDITION, version="2027").refuse_another_plan(entries, "5f3b")


def test_no_two_editions_have_the_same_words():
    for name in ("", "a b", "a, records", "2026\n", "a/b"):
        with pytest.raises(ServiceError, match="one word each"):
            replace(EDITION, dataset=name)
        with pytest.raises(ServiceError, match="one word each"):
            replace(EDITION, version=name)
    assert replace(EDITION, dataset="Zürich_2.a-b").purpose.startswith("table builder: Zürich_2.a-b 2026, ")


def test_fingerprints_and_derived_keys_do_not_show_the_secret():
    shown = [SECRET.hex(), key_fingerprint(SECRET), records_key(SECRET).hex()]
    shown.append(EDITION.noise_key(SECRET, "5f3a").hex())
    assert len({text[:16] for text in shown}) == len(shown)
    assert all(one[:16] not in other for one, other in pairwise(shown))


def test_the_promise_depends_on_the_key_being_secret_and_says_so():
    promised = keyed_promise(PureDP(1), Neighbours())
    assert promised.statement.startswith("All answers together are ε-differentially private with ε = 1")
    assert "key stays secret" in promised.conditions[-1]
