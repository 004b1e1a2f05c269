"""A ledger in PostgreSQL: its guards, its server's moods, and a password that nobody sees."""

import logging
import threading

import psycopg
import pytest

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerMissing
from tabulary.ledger import Ledger
from tests.databases import PASSWORD, PostgresServer
from tests.ledgers import by_hand, fill, pay, restored
from tests.waiting import wait_until

UNSPENT = "Nothing was measured, nothing was spent."


@pytest.fixture
def database(postgres_database):
    return postgres_database


@pytest.fixture(scope="module")
def fragile_server():
    """A server that the tests of this file stop, crash and demote; each leaves it running."""
    server = PostgresServer(wal_level="replica", max_wal_senders="1")
    try:
        server.start()
        yield server
    finally:
        server.close()


def refuse(where, match=UNSPENT):
    with pytest.raises(LedgerCorrupt, match=match):
        Ledger.open(where)


def test_the_database_itself_refuses_to_change_what_was_written(full):
    tables = ("ledger", "accounts", "heads", "entries")
    statements = [
        "UPDATE entries SET purpose = 'another'",
        "UPDATE accounts SET budget = '9'",
        "UPDATE heads SET entries = 0",
        "UPDATE ledger SET accounts = 0",
        *(f"DELETE FROM {table}" for table in tables),
        *(f"TRUNCATE {table} CASCADE" for table in tables),
        *(f"INSERT INTO {table} SELECT * FROM {table} ON CONFLICT DO NOTHING" for table in tables),
    ]
    with by_hand(full) as connection:
        # One who replays the changes of another server is stopped by few triggers, and by these.
        for role in ("origin", "replica"):
            connection.execute(f"SET session_replication_role = {role}")
            for statement in statements:
                with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
                    connection.execute(statement)
    with Ledger.open(full) as ledger:
        assert [len(account.entries()) for account in ledger.accounts()] == [4, 4]


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("DROP TRIGGER entries_truncate ON entries", None),
        ("ALTER TABLE entries DISABLE TRIGGER entries_delete", None),
        ("ALTER TABLE heads ENABLE TRIGGER heads_update", None),
        (
            "CREATE OR REPLACE FUNCTION entries_delete() RETURNS trigger LANGUAGE plpgsql "
            "AS 'BEGIN RETURN OLD; END'",
            None,
        ),
        (
            "CREATE OR REPLACE TRIGGER entries_delete BEFORE DELETE ON entries "
            "FOR EACH ROW WHEN (OLD.number > 9) EXECUTE FUNCTION entries_delete()",
            None,
        ),
        ("CREATE RULE quiet AS ON INSERT TO entries DO INSTEAD NOTHING", "DROP RULE quiet ON entries"),
        ("CREATE TABLE more (name text)", "DROP TABLE more"),
        ("CREATE VIEW more AS SELECT 1", "DROP VIEW more"),
        ("ALTER TABLE entries ADD COLUMN more text", "ALTER TABLE entries DROP COLUMN more"),
        ("ALTER TABLE entries RENAME purpose TO reason", "ALTER TABLE entries RENAME reason TO purpose"),
        ("DROP TABLE ledger", None),
    ],
)
def test_a_ledger_with_other_tables_triggers_or_rules_is_refused(ledger, database, change, back):
    Ledger.open(database).close()
    with by_hand(database) as connection:
        connection.execute(change)
        refuse(database)
        if back:
            connection.execute(back)
            Ledger.open(database).close()


def test_a_ledger_leaves_the_rest_of_the_database_alone(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE ledger (name text); CREATE TABLE entries (name text)")
        fill(database)
        with Ledger.open(database) as ledger:
            assert ledger.account("census").spent() == PureDP("1/2")
        found = connection.execute("SELECT count(*) FROM public.ledger, public.entries").fetchone()
        assert found == (0,)


def test_a_schema_that_the_administrator_made_is_used(database, postgres_server):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA tabulary_ledger")
        for role in ("clerk", "auditor"):
            connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        try:
            connection.execute("GRANT USAGE, CREATE ON SCHEMA tabulary_ledger TO clerk")
            _check_the_rights_of_a_clerk_and_an_auditor(database, connection)
        finally:
            for role in ("clerk", "auditor"):
                connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def _check_the_rights_of_a_clerk_and_an_auditor(database, administrator):
    clerk, auditor = (
        database.replace(f"//{PostgresServer.user}:", f"//{role}:") for role in ("clerk", "auditor")
    )
    fill(clerk)
    with pytest.raises(
        LedgerError, match=f"cannot be opened .* {UNSPENT} Grant the user the rights on schema"
    ):
        Ledger.open(auditor, read_only=True)
    administrator.execute("GRANT USAGE ON SCHEMA tabulary_ledger TO auditor")
    administrator.execute("GRANT SELECT ON ALL TABLES IN SCHEMA tabulary_ledger TO auditor")
    with Ledger.open(auditor) as ledger:
        assert ledger.account("census").spent() == PureDP("1/2")
        with pytest.raises(LedgerError, match="Grant the user the rights"):
            pay(ledger.account("census"))


def test_a_user_who_may_not_make_a_schema_founds_no_ledger(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE clerk LOGIN PASSWORD '{PASSWORD}'")
        try:
            with pytest.raises(LedgerError, match="Grant the user the rights"):
                Ledger.create(database.replace(f"//{PostgresServer.user}:", "//clerk:"))
        finally:
            connection.execute("DROP ROLE clerk")


def test_a_database_that_cannot_hold_every_name_takes_no_ledger(postgres_server):
    with postgres_server.connect() as connection:
        connection.execute("CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(LedgerError, match=f"has the encoding LATIN1 .* {UNSPENT}"):
        Ledger.create(postgres_server.address("narrow"))


def test_of_several_who_found_a_ledger_at_once_one_does(database):
    outcomes, start = [], threading.Barrier(4)

    def found():
        start.wait()
        try:
            Ledger.create(database).close()
            outcomes.append("founded")
        except LedgerError as error:
            outcomes.append("refused" if "never overwritten" in str(error) else str(error))

    threads = [threading.Thread(target=found) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["founded", "refused", "refused", "refused"]
    Ledger.open(database).close()


def test_an_entry_is_on_the_disk_whatever_the_servers_own_setting(ledger, census, database):
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        try:
            with Ledger.open(database) as opened:
                with opened.storage.reading() as reading:
                    assert reading.exec_driver_sql("SHOW synchronous_commit").scalar() == "off"
                with opened.storage.writing() as writing:
                    assert writing.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        finally:
            connection.execute(f"ALTER DATABASE {name} RESET synchronous_commit")


def test_a_ledger_that_is_dropped_while_it_is_open_takes_no_debit(ledger, census, database):
    with by_hand(database) as connection:
        connection.execute("DROP SCHEMA tabulary_ledger CASCADE")
    with pytest.raises(LedgerMissing, match=UNSPENT):
        pay(census)
    with pytest.raises(LedgerMissing, match=UNSPENT):
        ledger.check()


def test_a_ledger_that_is_replaced_while_it_is_open_takes_no_debit(ledger, census, database):
    with by_hand(database) as connection:
        connection.execute("DROP SCHEMA tabulary_ledger CASCADE")
    fill(database)
    with pytest.raises(
        LedgerCorrupt, match=f"no longer contains account 'census' as it was opened. {UNSPENT}"
    ):
        pay(census)


def test_a_writer_that_hangs_loses_the_lock_and_its_debit(database, ledger, census, monkeypatch):
    from tabulary.ledger import account, postgresql

    def hang(*arguments, **options):
        entry = append(*arguments, **options)
        monkeypatch.undo()
        with Ledger.open(database) as another:
            assert pay(another.account("census"), "1/4").number == 1
        return entry

    append = account.append_entry
    monkeypatch.setattr(postgresql, "HUNG", "100ms")
    monkeypatch.setattr(account, "append_entry", hang)
    with pytest.raises(LedgerError, match="lost in the middle of a commit"):
        pay(census)
    assert census.spent() == PureDP("1/4")
    ledger.check()


MEANINGS = {
    "disk_full": (LedgerError, f"the disk of the ledger .* is full. {UNSPENT} Free some space"),
    "serialization_failure": (LedgerBusy, f"at the same moment. {UNSPENT} Try again"),
    "deadlock_detected": (LedgerBusy, f"at the same moment. {UNSPENT} Try again"),
    "read_only_sql_transaction": (LedgerError, f"accepts no writes.* {UNSPENT}"),
    "check_violation": (LedgerCorrupt, rf"does not accept the next entry \(SQLSTATE 23514\). {UNSPENT}"),
    "data_corrupted": (LedgerCorrupt, rf"cannot be read \(SQLSTATE XX001\). {UNSPENT}"),
    "query_canceled": (LedgerError, rf"could not be used \(SQLSTATE 57014\). {UNSPENT}"),
    "admin_shutdown": (LedgerError, f"cannot be reached, or its server stopped. {UNSPENT}"),
}


def test_what_the_server_complains_of_is_told_in_words_and_takes_the_debit_back(ledger, census, database):
    with by_hand(database) as connection:
        for condition, (kind, words) in MEANINGS.items():
            # As if the server met it while it wrote the entry: no other way makes a real server meet them all.
            connection.execute(
                "CREATE OR REPLACE FUNCTION complain() RETURNS trigger LANGUAGE plpgsql AS "
                f"'BEGIN RAISE EXCEPTION ''row 4711'' USING ERRCODE = ''{condition}''; END'"
            )
            connection.execute(
                "CREATE TRIGGER complain AFTER INSERT ON entries FOR EACH ROW EXECUTE FUNCTION complain()"
            )
            with pytest.raises(kind, match=words) as refusal:
                pay(census)
            assert type(refusal.value) is kind
            assert "4711" not in str(refusal.value)
            connection.execute("DROP TRIGGER complain ON entries")
            assert census.entries() == ()
        connection.execute("DROP FUNCTION complain")
    assert pay(census).number == 1
    ledger.check()


def test_a_server_that_restarts_is_found_again_and_nothing_is_lost(fragile_server):
    with Ledger.create(fragile_server.url("restarts")) as ledger:
        census = ledger.create_account("census", PureDP(1), Neighbours())
        pay(census)
        fragile_server.restart()
        assert pay(census).number == 2
        fragile_server.crash()
        with pytest.raises(LedgerError, match=f"cannot be reached.* {UNSPENT} Check that the server runs"):
            pay(census)
        fragile_server.start()
        assert pay(census).number == 3
        ledger.check()


def test_a_server_that_stops_before_the_commit_has_kept_nothing(fragile_server, monkeypatch):
    from tabulary.ledger import account

    def stop(*arguments, **options):
        fragile_server.stop()
        return append(*arguments, **options)

    append = account.append_entry
    with Ledger.create(fragile_server.url("stops")) as ledger:
        census = ledger.create_account("census", PureDP(1), Neighbours())
        with monkeypatch.context() as patched:
            patched.setattr(account, "append_entry", stop)
            with pytest.raises(LedgerError, match=f"cannot be reached, or its server stopped. {UNSPENT}"):
                pay(census)
        fragile_server.start()
        assert census.entries() == ()


def test_a_commit_that_is_cut_off_may_have_been_kept_and_is_not_paid_for_again(fragile_server):
    address = fragile_server.url("commits")
    with Ledger.create(address) as ledger, fragile_server.connect() as administrator:
        census = ledger.create_account("census", PureDP(1), Neighbours())
        administrator.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        administrator.execute("SELECT pg_reload_conf()")
        # It waits for a second server, which never comes.
        cut = threading.Thread(target=_cut_off_whoever_waits, args=(fragile_server,))
        cut.start()
        with pytest.raises(
            LedgerError,
            match=r"lost in the middle of a commit\. Nothing was measured\. When the server is back",
        ) as refusal:
            once(census)
        cut.join()
        assert UNSPENT not in str(refusal.value)
        # It was: and whoever asks again gets the entry, and does not pay again.
        assert once(census).number == 1
        assert census.spent() == PureDP("1/8")
        administrator.execute("ALTER SYSTEM RESET synchronous_standby_names")
        administrator.execute("SELECT pg_reload_conf()")


def once(account):
    return account.debit(PureDP("1/8"), Neighbours(), purpose="sex", plan_digest="ab", once=True)


def _cut_off_whoever_waits(server):
    with server.connect() as connection:
        waiting = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        wait_until(lambda: connection.execute(waiting).fetchall(), "a debit that waits for a standby")


def test_a_replica_shows_the_ledger_and_takes_no_debit(fragile_server):
    address = fragile_server.url("replica")
    fill(address)
    fragile_server.stop()
    # It replays its own log and waits for more from a primary that is not there.
    demoted = fragile_server.data / "standby.signal"
    demoted.touch()
    fragile_server.start()
    with Ledger.open(address) as ledger:
        assert ledger.account("census").spent() == PureDP("1/2")
        with pytest.raises(LedgerError, match=f"it is a replica, or read-only. {UNSPENT}"):
            pay(ledger.account("census"))
    with pytest.raises(LedgerError, match="it is a replica, or read-only"):
        Ledger.create(fragile_server.address("postgres"))
    demoted.unlink()
    fragile_server.restart()


def test_no_password_is_in_an_error_a_note_a_name_or_a_log(postgres_server, database, caplog):
    caplog.set_level(logging.DEBUG)
    told = []
    with Ledger.create(database) as ledger:
        account = ledger.create_account("census", PureDP(1), Neighbours())
        pay(account)
        told += [repr(ledger), ledger.where, repr(account), repr(vars(ledger)), repr(ledger.storage.engine)]
    other_port = postgres_server.address("shared").replace(f":{postgres_server.port}/", ":1/")
    for address in (
        postgres_server.address("nowhere"),
        other_port,
        database.replace(f"{PostgresServer.user}:", "stranger:"),
        f"{database}?sslmode={PASSWORD}",
        f"{database}?{PASSWORD}=1",
        f"postgresql://{PostgresServer.user}@127.0.0.1:{postgres_server.port}/shared?password={PASSWORD}x",
    ):
        with pytest.raises(LedgerError, match=UNSPENT) as refusal:
            Ledger.open(address, timeout=2)
        told += [str(refusal.value), repr(refusal.value), *getattr(refusal.value, "__notes__", [])]
    assert not any(PASSWORD in text for text in [*told, caplog.text])
    assert any("does not exist" in text for text in told), "the reason is for whoever reads the log"
    with psycopg.connect(database) as connection:
        assert connection.info.password == PASSWORD


def test_over_a_socket_it_is_the_same_ledger(postgres_server, full):
    with Ledger.open(postgres_server.socket_address("shared")) as near, Ledger.open(full) as far:
        assert (near.identity, near.head()) == (far.identity, far.head())


def test_an_edit_is_put_back_by_the_hand_that_tests_use(full):
    # Else the tests of edits would all find the first one.
    with restored(full), by_hand(full) as connection:
        connection.execute("ALTER TABLE entries DISABLE TRIGGER ALL")
        connection.execute("DELETE FROM entries")
    Ledger.open(full).close()
