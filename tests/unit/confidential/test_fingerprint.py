"""The fingerprint of records: every record counts, their order does not, and without the key it tells nothing."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tabulary.confidential.fingerprint import fingerprint
from tabulary.confidential.records import Records
from tabulary.confidential.store import Store
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain

KEY = bytes(range(32))
SMALL = Domain({"sex": ["F", "M"], "age": ["0", "1", "2"], "one": ["only"]})
# 300 levels in each of nine columns are more combinations than 64 bits hold.
WIDE = Domain({f"x{i}": range(300) for i in range(9)})


def _fingerprint(rows, domain=SMALL, key=KEY, weights=None):
    store = Store(domain.shape, largest_weight=weights.sensitivity if weights else None)
    store.append(list(np.array(rows).T))
    store.finish()
    return fingerprint(store, domain, weights, key)


def rows_of(domain):
    return st.lists(st.tuples(*(st.integers(0, k - 1) for k in domain.shape)), min_size=1, max_size=12)


@given(st.sampled_from([SMALL, WIDE]).flatmap(lambda d: st.tuples(st.just(d), rows_of(d))), st.randoms())
def test_the_order_of_the_records_does_not_matter(asked, random):
    domain, rows = asked
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert _fingerprint(shuffled, domain) == _fingerprint(rows, domain)


@given(st.data())
def test_a_record_more_or_less_or_another_one_changes_it(data):
    domain = data.draw(st.sampled_from([SMALL, WIDE]))
    rows = data.draw(rows_of(domain))
    other = data.draw(rows_of(domain))
    assert (_fingerprint(rows, domain) == _fingerprint(other, domain)) == (sorted(rows) == sorted(other))
    assert _fingerprint([*rows, rows[0]], domain) != _fingerprint(rows, domain)


def test_values_that_trade_places_across_words_change_it():
    first, second = [0] * 9, [299] * 9
    mixed = [*first[:5], *second[5:]], [*second[:5], *first[5:]]
    assert _fingerprint([first, second], WIDE) != _fingerprint(mixed, WIDE)


def test_records_in_many_chunks_are_one_set_of_records():
    generator = np.random.default_rng(3)
    rows = np.column_stack([generator.integers(0, k, 70_000) for k in SMALL.shape])
    assert _fingerprint(rows) == _fingerprint(rows[::-1])
    changed = rows.copy()
    changed[69_999, 1] = (changed[69_999, 1] + 1) % 3
    assert _fingerprint(rows) != _fingerprint(changed)


def test_records_have_the_fingerprint_of_their_encoded_rows_wherever_they_come_from():
    weights = Weights("w", 5, unit="1/2")
    people = pa.table({"age": ["1", "2"], "one": ["only"] * 2, "sex": ["F", "M"], "w": [2.5, 1.0]})
    with Records.from_arrow(people, SMALL) as records:
        assert records.fingerprint(KEY) == _fingerprint([(0, 1, 0), (1, 2, 0)])
    with Records.from_pandas(people.to_pandas()[::-1], SMALL, weights=weights) as records:
        assert records.fingerprint(KEY) == _fingerprint([(0, 1, 0, 5), (1, 2, 0, 2)], weights=weights)


def test_another_key_another_domain_and_weights_change_it():
    rows = [(0, 1, 0), (1, 2, 0)]
    renamed = Domain({"sex": ["F", "X"], "age": ["0", "1", "2"], "one": ["only"]})
    zeros = Domain(dict(zip(SMALL.attributes, SMALL.levels, strict=True)), [{"sex": "F", "age": "0"}])
    found = [
        _fingerprint(rows),
        _fingerprint(rows, key=bytes(32)),
        _fingerprint(rows, renamed),
        _fingerprint(rows, zeros),
        _fingerprint([(*row, 2) for row in rows], weights=Weights("w", 5, unit=1)),
        _fingerprint([(*row, 3) for row in rows], weights=Weights("w", 5, unit=1)),
        _fingerprint([(*row, 3) for row in rows], weights=Weights("w", 6, unit=1)),
    ]
    assert len(set(found)) == len(found)


def test_it_is_the_same_as_when_the_noise_was_paid_for():
    # Pinned: another fingerprint of the same records would be taken for changed records.
    assert _fingerprint([(0, 1, 0), (1, 2, 0), (0, 1, 0)]) == "d8cce947dd5ddbef4ddee366c7b8f033"
    assert (
        _fingerprint([[i * k % 300 for k in range(9)] for i in range(20)], WIDE)
        == "2cc926db312e2a682947da08bd25703a"
    )
