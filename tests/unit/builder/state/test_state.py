"""The state as a whole: facts that must not change, and a database that comes and goes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tabulary.builder.state import State
from tabulary.builder.state.database import SCHEMA
from tabulary.errors import ServiceError
from tests.databases import PASSWORD


def test_a_fact_is_kept_and_may_be_said_again(state, database):
    assert state.recall("the key") is None
    state.remember("the key", "ab12")
    state.remember("the key", "ab12")
    with State.open(database) as other:
        other.remember("the key", "ab12")
        assert other.recall("the key") == "ab12"


def test_another_value_of_a_fact_is_refused_and_does_not_replace_it(state):
    state.remember("the key", "ab12")
    with pytest.raises(
        ServiceError, match=r"remembers the key 'ab12', but it is now 'cd34'.*nothing was spent"
    ):
        state.remember("the key", "cd34")
    assert state.recall("the key") == "ab12"


def test_facts_of_different_names_do_not_meet(state):
    state.remember("the key", "ab12")
    state.remember("the ledger", "cd34")
    assert state.recall("the ledger") == "cd34"


def test_of_many_that_say_different_things_at_once_one_is_heard(state, database):
    def say(value):
        try:
            state.remember("the key", value)
        except ServiceError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        heard = list(pool.map(say, "abcdef"))
    assert sum(heard) == 1
    assert state.recall("the key") == "abcdef"[heard.index(True)]


def test_a_state_can_be_closed_twice(database):
    state = State.create(database)
    state.close()
    state.close()


def test_a_password_is_neither_in_the_name_nor_in_an_error(postgres_server, postgres_database):
    with State.create(postgres_database) as state:
        assert PASSWORD not in repr(state)
    for wrong, reason in (
        (postgres_database.replace(PASSWORD, "guessed-secret"), "cannot be reached"),
        (postgres_database.replace("/shared", "/nowhere"), "cannot be reached"),
        (postgres_database.replace(str(postgres_server.port), "1"), "cannot be reached"),
        (postgres_database.replace("127.0.0.1", "no@where"), "address of the state has an @ too many"),
        (postgres_database.replace("postgresql:", "mysql:"), "an address that begins with postgresql://"),
    ):
        with pytest.raises(ServiceError, match=reason) as refused:
            State.open(wrong)
        chain = [str(refused.value), str(refused.value.__cause__)]
        assert not any(word in text for word in (PASSWORD, "guessed-secret", "no@where") for text in chain)
        assert refused.value.__cause__ is None


def test_a_state_on_a_socket_is_opened(postgres_server, postgres_database):
    address = postgres_server.socket_address(postgres_database.rpartition("/")[2])
    with State.create(address) as state:
        state.remember("the key", "ab12")


def test_a_restart_of_postgresql_goes_unseen_once_it_is_over(own_postgres_server):
    with State.create(own_postgres_server.url("state")) as state:
        token, secret = state.tokens.add("Ada", "custodian")
        own_postgres_server.stop()
        with pytest.raises(ServiceError, match="cannot be reached"):
            state.tokens.find(secret)
        state.counter.count("census", "tables", 200, "public")
        assert not state.counter.flush()
        own_postgres_server.start()
        assert state.tokens.find(secret) == token
        assert state.counter.flush()
        assert [row.requests for row in state.usage.read()] == [1]


def test_a_file_that_is_not_a_database_is_refused(tmp_path):
    file = tmp_path / "state.sqlite"
    file.write_text("This is a letter, and a long one at that. " * 100)
    for how in (State.open, State.create):
        with pytest.raises(ServiceError, match="not a sound database"):
            how(file)
    assert file.read_text().startswith("This is a letter")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ServiceError, match="No such file or directory"):
        State.create(tmp_path / "nowhere" / "state.sqlite")


def test_a_writer_who_keeps_the_file_locked_makes_others_give_up(tmp_path, monkeypatch):
    monkeypatch.setattr("tabulary.builder.state.database.PATIENCE", 0.05)
    with State.create(tmp_path / "state.sqlite") as state, State.open(tmp_path / "state.sqlite") as other:
        with state.database.writing(), pytest.raises(ServiceError, match="locked for too long"):
            other.tokens.add("Ada", "custodian")
        other.tokens.add("Ada", "custodian")


def test_a_full_disk_is_told(tmp_path):
    with State.create(tmp_path / "state.sqlite") as state:
        # The pool hands out the connection that was bounded.
        with state.database.writing() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(ServiceError, match="is full"):
            state.remember("the letter", "x" * 100_000)
        assert state.recall("the letter") is None


def test_a_full_disk_of_postgresql_is_told(postgres_database, postgres_server):
    with State.create(postgres_database) as state, postgres_server.connect("shared") as admin:
        # What the server says when its disk is full, said by a trigger.
        admin.execute(
            f"CREATE FUNCTION {SCHEMA}.no_room() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE disk_full; END $$"
        )
        admin.execute(
            f"CREATE TRIGGER no_room BEFORE INSERT ON {SCHEMA}.facts FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.no_room()"
        )
        with pytest.raises(ServiceError, match="is full"):
            state.remember("the letter", "x")
        assert state.recall("the letter") is None
