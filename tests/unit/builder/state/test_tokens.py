"""Tokens: shown once, kept as a digest, good until they expire or are revoked."""

import hmac
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from tabulary.builder.state import Role, State, Token
from tabulary.errors import InvalidArgument


def test_a_token_is_found_by_its_text(state):
    token, secret = state.tokens.add("Ada", "analyst", account="ada", days=30)
    assert state.tokens.find(secret) == token
    assert (token.name, token.role, token.account) == ("Ada", Role.analyst, "ada")


def test_a_token_is_found_by_another_process(state, database, clock):
    token, secret = state.tokens.add("Ada", "custodian")
    with State.open(database, clock=clock) as other:
        assert other.tokens.find(secret) == token


def test_the_text_of_a_token_holds_its_id_and_256_bits(state):
    made = [state.tokens.add("Ada", "custodian") for _ in range(20)]
    for token, secret in made:
        assert re.fullmatch(rf"tab_{token.id}_[0-9a-f]{{64}}", secret)
    assert len({secret for _, secret in made}) == len({token.id for token, _ in made}) == 20


def test_the_database_holds_nothing_of_the_secret(state):
    _, secret = state.tokens.add("Ada", "custodian")
    with state.database.reading() as connection:
        held = str(connection.execute(text("SELECT * FROM tokens")).all())
    assert secret.split("_")[2] not in held
    assert secret.split("_")[2] not in f"{state.tokens.list()} {state} {state.tokens.find(secret)!r}"


@pytest.fixture(scope="module")
def one_token(tmp_path_factory):
    with State.create(tmp_path_factory.mktemp("state") / "state.sqlite") as opened:
        yield opened, opened.tokens.add("Ada", "custodian")[1]


@given(st.text(st.characters()) | st.from_regex(r"tab_[0-9a-f]{12}_[0-9a-f]{64}", fullmatch=True))
def test_no_other_text_finds_a_token(one_token, guess):
    state, _ = one_token
    assert state.tokens.find(guess) is None


@given(st.integers(0, 80), st.sampled_from("0123456789abcdefg"))
def test_one_changed_letter_finds_no_token(one_token, place, letter):
    state, secret = one_token
    guess = secret[:place] + letter + secret[place + 1 :]
    assert (state.tokens.find(guess) is None) == (guess != secret)


def test_known_and_unknown_ids_are_both_compared_in_constant_time(state, monkeypatch):
    token, secret = state.tokens.add("Ada", "custodian")
    compared, compare = [], hmac.compare_digest

    def watched(one, other):
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    wrong = "0" * 64
    for guess in (secret, f"tab_{token.id}_{wrong}", f"tab_{'0' * 12}_{wrong}", "nonsense"):
        state.tokens.find(guess)
    assert compared == [(64, 64)] * 4


def test_a_token_expires_to_the_second(state, clock):
    token, secret = state.tokens.add("Ada", "custodian", days=1)
    clock.turn(hours=23, minutes=59, seconds=59)
    assert state.tokens.find(secret) == token
    clock.turn(seconds=1)
    assert state.tokens.find(secret) is None
    assert state.tokens.list() == (token,)


def test_a_token_without_an_end_lasts(state, clock):
    _, secret = state.tokens.add("Ada", "custodian")
    clock.turn(days=100_000)
    assert state.tokens.find(secret) is not None


def test_a_revoked_token_is_not_good_from_then_on_anywhere(state, database, clock):
    token, secret = state.tokens.add("Ada", "custodian")
    with State.open(database, clock=clock) as other:
        assert other.tokens.revoke(token.id)
    assert state.tokens.find(secret) is None
    (held,) = state.tokens.list()
    assert held.revoked == clock.now
    clock.turn(days=1)
    assert state.tokens.revoke(token.id)
    assert state.tokens.list() == (held,)


def test_revoking_one_leaves_the_others(state):
    first, _ = state.tokens.add("Ada", "custodian")
    _, second = state.tokens.add("Bob", "custodian")
    state.tokens.revoke(first.id)
    assert state.tokens.find(second).name == "Bob"


def test_there_is_nothing_to_revoke_where_there_is_no_token(state):
    assert not state.tokens.revoke("0" * 12)


def test_a_token_is_known_by_its_id_whatever_became_of_it(state):
    token, _ = state.tokens.add("Ada", "analyst", account="ada")
    state.tokens.revoke(token.id)
    assert state.tokens.get(token.id).revoked is not None
    assert state.tokens.get("0" * 12) is None


def test_tokens_are_listed_in_the_order_of_their_making_a_page_at_a_time(state):
    made = [state.tokens.add(f"number {i}", "custodian")[0] for i in range(7)]
    pages: list[tuple[Token, ...]] = []
    after = None
    while page := state.tokens.list(after=after, size=3):
        pages.append(page)
        after = page[-1].id
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [token for page in pages for token in page] == made
    assert state.tokens.list(after="0" * 12) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": " "},
        {"name": "two\nlines"},
        {"name": "a" * 201},
        {"role": "owner"},
        {"role": "analyst"},
        {"account": "census"},
        {"days": 0},
        {"days": 4000},
    ],
)
def test_a_token_that_cannot_be_is_not_made(state, wrong):
    with pytest.raises(InvalidArgument, match="None was made"):
        state.tokens.add(**{"name": "Ada", "role": "custodian", **wrong})
    assert state.tokens.list() == ()
