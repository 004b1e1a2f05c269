"""The tables of the state: created, brought up to date, and refused where they are not what they should be."""

import shutil
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from tabulary.builder.state import State, migrating, schema
from tabulary.builder.state.database import SCHEMA, database_at
from tabulary.errors import ServiceError
from tabulary.ledger import Ledger


@pytest.fixture
def opened(database):
    """The database itself, as an administrator would see it."""
    place = database_at(database)
    yield place
    place.close()


def _stamp(place, revision):
    with place.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})


@pytest.fixture
def one_step_more(monkeypatch, tmp_path):
    """A Tabulary of the future, whose state has one more column."""
    steps = tmp_path / "steps"
    shutil.copytree(migrating.STEPS, steps)
    last = ScriptDirectory(str(migrating.STEPS)).get_current_head()
    (steps / "versions" / "step_of_the_future.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision = 'future', {last!r}\n"
        "def upgrade():\n    op.add_column('facts', sa.Column('note', sa.Text()))\n"
    )
    with monkeypatch.context() as future:
        yield lambda: future.setattr(migrating, "STEPS", steps)


def test_the_steps_lead_from_nothing_to_the_tables_of_the_schema(database, opened):
    State.create(database).close()
    with opened.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert set(inspect(connection).get_table_names()) == {*schema.metadata.tables, "alembic_version"}


def test_the_comparison_would_see_a_column_that_no_step_creates(database, opened):
    State.create(database).close()
    with opened.writing() as connection:
        connection.execute(text("ALTER TABLE tokens DROP COLUMN account"))
    with opened.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata)


def test_a_second_creation_changes_nothing_and_keeps_what_is_there(database):
    with State.create(database) as state:
        state.remember("key", "ab")
        _, secret = state.tokens.add("Ada", "custodian")
    with State.create(database) as state:
        assert state.recall("key") == "ab"
        assert state.tokens.find(secret).name == "Ada"


def test_many_that_create_it_at_once_create_it_once(database):
    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(lambda _: State.create(database), range(6)))
    for state in states:
        assert state.tokens.list() == ()
        state.close()


def test_an_older_state_is_refused_until_it_is_brought_up_to_date(database, one_step_more, opened):
    with State.create(database) as state:
        state.remember("key", "ab")
    one_step_more()
    with pytest.raises(ServiceError, match=r"older Tabulary.*initialise the table builder"):
        State.open(database)
    with State.create(database) as state:
        assert state.recall("key") == "ab"
    State.open(database).close()
    with opened.reading() as connection:
        assert "note" in {column["name"] for column in inspect(connection).get_columns("facts")}


@pytest.mark.parametrize("how", [State.open, State.create])
def test_a_newer_state_is_refused_and_left_alone(database, opened, how):
    State.create(database).close()
    _stamp(opened, "9")
    with pytest.raises(ServiceError, match=r"newer Tabulary.*Nothing was changed"):
        how(database)


def test_a_step_that_fails_leaves_the_state_as_it_was(database, one_step_more, opened):
    State.create(database).close()
    one_step_more()
    step = migrating.STEPS / "versions" / "step_of_the_future.py"
    step.write_text(step.read_text() + "    raise ArithmeticError('the step fails')\n")
    with pytest.raises(ArithmeticError, match="the step fails"):
        State.create(database)
    with opened.reading() as connection:
        assert "note" not in {column["name"] for column in inspect(connection).get_columns("facts")}


def test_a_place_without_a_state_is_refused_and_nothing_is_created(database, tmp_path):
    with pytest.raises(ServiceError, match=r"Initialise|is not there"):
        State.open(database)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_no_state(tmp_path):
    (tmp_path / "state.sqlite").touch()
    with pytest.raises(ServiceError, match=r"holds no state.*Initialise the table builder"):
        State.open(tmp_path / "state.sqlite")


def test_a_file_with_other_tables_is_refused_and_left_alone(tmp_path):
    Ledger.create(tmp_path / "ledger.sqlite").close()
    with pytest.raises(ServiceError, match="other tables"):
        State.create(tmp_path / "ledger.sqlite")
    Ledger.open(tmp_path / "ledger.sqlite").close()


def test_the_file_is_for_its_owner_alone(tmp_path):
    with State.create(tmp_path / "state.sqlite") as state:
        state.remember("key", "ab")
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_file_keeps_a_write_ahead_log_and_its_foreign_keys(tmp_path):
    with State.create(tmp_path / "state.sqlite") as state, state.database.reading() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1


def test_a_postgresql_database_is_shared_with_others_through_a_schema(postgres_database, postgres_server):
    with postgres_server.connect("shared") as other:
        other.execute("CREATE TABLE tokens (mine text)")
        State.create(postgres_database).close()
        found = other.execute(
            "SELECT schemaname FROM pg_tables WHERE tablename = 'tokens' ORDER BY 1"
        ).fetchall()
    assert found == [("public",), (SCHEMA,)]


def test_who_may_not_create_a_schema_can_use_the_one_that_is_there(postgres_database, postgres_server):
    State.create(postgres_database).close()
    with postgres_server.connect("shared") as admin:
        admin.execute("CREATE ROLE clerk LOGIN PASSWORD 'quill'")
        try:
            admin.execute(f"ALTER SCHEMA {SCHEMA} OWNER TO clerk")
            for table in [*schema.metadata.tables, "alembic_version"]:
                admin.execute(f"ALTER TABLE {SCHEMA}.{table} OWNER TO clerk")
            address = postgres_database.replace(postgres_database.split("//")[1].split("@")[0], "clerk:quill")
            with State.create(address) as state:
                state.remember("key", "ab")
        finally:
            admin.execute("DROP OWNED BY clerk CASCADE")
            admin.execute("DROP ROLE clerk")
