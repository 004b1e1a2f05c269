"""What goes wrong while a table builder runs: never an overspend, never another answer, never a table unpaid for."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Protocol

import psutil
import psycopg
import pytest
from psycopg import sql

from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise, open_service
from tabulary.errors import BudgetExceeded, PublicError, ServiceError
from tabulary.ledger import Ledger
from tests.services import Askers, ServerProcess, answers, statuses
from tests.towns import (
    ANALYSTS,
    LEVELS,
    Town,
    check_books,
    found_town,
    free_questions,
    kept_in,
    paid_questions,
    write_town,
)

pytestmark = pytest.mark.slow

UNKNOWN, AWAY = 401, 503
REFUSED_TO_START = 2
SINGLES, PAIRS = ([tuple(by) for by in combinations(LEVELS, k)] for k in (1, 2))


@pytest.fixture
def town(database: str, tmp_path: Path) -> Town:
    """A town whose ledger and state are in the database."""
    return found_town(tmp_path / "town", **kept_in(database))


class Disk(Protocol):
    """A disk under the ledger of a town that can be full for a while."""

    town: Town

    def full(self, server: ServerProcess) -> AbstractContextManager[None]:
        """Let nothing more be written."""
        ...


@dataclass(frozen=True)
class LimitedFiles:
    """Files that cannot grow (EFBIG): anyone may set such a limit, and SQLite takes it for a broken disk."""

    town: Town

    @contextmanager
    def full(self, server: ServerProcess) -> Iterator[None]:
        """Let the server write no byte to any file."""
        (worker,) = server.workers()
        limit = worker.rlimit(psutil.RLIMIT_FSIZE)
        worker.rlimit(psutil.RLIMIT_FSIZE, (0, limit[1]))
        yield
        worker.rlimit(psutil.RLIMIT_FSIZE, limit)


@dataclass(frozen=True)
class SmallDisk:
    """A file system of its own, of which no byte is left (ENOSPC)."""

    town: Town
    place: Path

    @contextmanager
    def full(self, server: ServerProcess) -> Iterator[None]:
        """Fill it up."""
        ballast = self.place / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        yield
        ballast.unlink()


@dataclass(frozen=True)
class SaysThatItIsFull:
    """A PostgreSQL that answers every entry with what it says when its disk is full: SQLSTATE 53100."""

    town: Town
    connect: Callable[[], psycopg.Connection]

    @contextmanager
    def full(self, server: ServerProcess) -> Iterator[None]:
        """Refuse every entry."""
        with self.connect() as connection:
            connection.execute(
                "CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE disk_full USING MESSAGE = 'could not extend file'; END $$"
            )
            table = entries_of(connection)
            connection.execute(
                sql.SQL(
                    "CREATE TRIGGER full_disk BEFORE INSERT ON {} EXECUTE FUNCTION public.full_disk()"
                ).format(table)
            )
            yield
            connection.execute("DROP FUNCTION public.full_disk CASCADE")


def entries_of(connection: psycopg.Connection) -> sql.Identifier:
    """Return the table of a ledger's entries."""
    (name,) = connection.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE tablename = 'entries'"
    ).fetchall()
    return sql.Identifier(*name)


@contextmanager
def small_file_system() -> Iterator[Path]:
    """Mount a file system of four megabytes, as only a superuser may."""
    with tempfile.TemporaryDirectory(prefix="tabulary-small-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tabulary", folder]
        subprocess.run(mount, check=True, capture_output=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def may_mount() -> bool:
    """Return whether file systems can be mounted here, so that a disk is really full."""
    try:
        with small_file_system():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def small_tablespace(connect: Callable[[], psycopg.Connection]) -> Iterator[Path]:
    """Keep the entries of a ledger on a small file system, at most two of them on a page, so that pages run out."""
    with small_file_system() as place, connect() as connection:
        shutil.chown(place, "nobody")
        table = entries_of(connection)
        connection.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(str(place)))
        connection.execute(
            sql.SQL("ALTER TABLE {} SET (fillfactor = 10), SET TABLESPACE small").format(table)
        )
        try:
            yield place
        finally:
            connection.execute(sql.SQL("ALTER TABLE {} SET TABLESPACE pg_default").format(table))
            connection.execute("DROP TABLESPACE small")


# Really full where file systems can be mounted. Where not, as anyone can make it: SQLite is told of a broken disk, and
# PostgreSQL says what it would say.
MOUNTED, ACTED = ["SQLite", "PostgreSQL"], ["limited files", "PostgreSQL says so"]
DISKS = [*MOUNTED, *(pytest.param(each, marks=pytest.mark.audit) for each in ACTED)] if may_mount() else ACTED


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """A town whose disk can be full."""
    folder = tmp_path / "town"
    if request.param == "limited files":
        yield LimitedFiles(found_town(folder))
    elif request.param == "SQLite":
        with small_file_system() as place:
            yield SmallDisk(found_town(folder, ledger=str(place / "ledger.sqlite")), place)
    else:
        address = request.getfixturevalue("postgres_database")
        connect = partial(psycopg.connect, address, autocommit=True)
        town = found_town(folder, ledger=address)
        if request.param == "PostgreSQL says so":
            yield SaysThatItIsFull(town, connect)
        else:
            with small_tablespace(connect) as place:
                yield SmallDisk(town, place)


def test_a_full_disk_stops_new_questions_and_nothing_else_and_harms_no_entry(disk):
    town, token = disk.town, disk.town.tokens["ann"]
    free, known, new = free_questions(), paid_questions([token], SINGLES), paid_questions([token], PAIRS)
    with ServerProcess(town.file, workers=1) as server:
        before = server.ask_all(free + known)
        assert statuses(before) == {200}
        with Askers([server.port], new + free + known) as askers:
            with disk.full(server):
                askers.hear(10, status=AWAY)
                askers.hear(50)
            askers.hear(50)
        after = server.ask_all(free + known + new)
    heard = before + askers.heard + after
    assert statuses(heard) == {200, AWAY}
    assert statuses((asked, reply) for asked, reply in heard if asked not in new) == {200}
    assert statuses(after) == {200}
    assert check_books(town, heard) == len(known + new)


def test_lost_books_are_not_replaced_and_what_needs_none_is_still_answered(town):
    token = town.tokens["ann"]
    free, known, new = free_questions(), paid_questions([token], SINGLES), paid_questions([token], PAIRS)
    with ServerProcess(town.file, workers=1) as server:
        heard = server.ask_all(free + known)
        assert statuses(heard) == {200}
        lose(town.ledger, "entries")
        assert statuses(server.ask_all(new)) == {AWAY}
        heard += server.ask_all(free + known)
        # Nor is there a second budget after a new start, or a new setup.
        for begin in (open_service, initialise):
            with pytest.raises(PublicError, match="ledger"):
                begin(read_service_file(town.file))
        lose(town.state, "tokens")
        assert statuses(server.ask_all(new)) <= {AWAY, UNKNOWN}
        again = server.ask_all(free)
        assert statuses(again) == {200}
        # Whatever is answered, is answered as it always was.
        answers(heard + again)


def lose(where: Path | str, table: str) -> None:
    """Lose a database for good: the file of SQLite with its log, the schema of PostgreSQL with its tables."""
    if isinstance(where, Path):
        for file in where.parent.glob(f"{where.name}*"):
            file.unlink()
    else:
        with psycopg.connect(where, autocommit=True) as connection:
            (schema,) = connection.execute(
                "SELECT schemaname FROM pg_tables WHERE tablename = %s", [table]
            ).fetchone()
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def test_without_its_key_a_table_builder_refuses_to_start_and_spends_nothing(town):
    (town.folder / "secret.key").unlink()
    server = ServerProcess(town.file)
    server.launch()
    assert server.exit_code() == REFUSED_TO_START
    assert "secret.key" in server.log()
    with Ledger.open(town.ledger) as ledger:
        assert not any(account.entries() for account in ledger.accounts())


def test_another_key_needs_a_new_version_and_pays_for_it_until_the_budget_is_spent(town, tmp_path):
    files = {"first": town.file}
    for name, version in [("same version", "2026"), ("second", "2027"), ("third", "2028")]:
        files[name] = write_town(tmp_path / name, ledger=str(town.ledger), version=version)
        # Each has a key and a state of its own, and only the ledger in common.
        initialise(read_service_file(files[name]))
    found = [counts_of(files["first"]), counts_of(files["second"])]
    assert len({json.dumps(counts) for each in found for counts in each}) == 4
    # Under another key the same version would have a second answer to every question.
    with pytest.raises(ServiceError, match="new version"):
        open_service(read_service_file(files["same version"]))
    # The account of the fixed tables pays for two versions, and not for a third.
    with pytest.raises(BudgetExceeded):
        open_service(read_service_file(files["third"]))
    with Ledger.open(town.ledger) as ledger:
        entries = {name: ledger.account(name).entries() for name in ("town", "diary", *ANALYSTS)}
        assert [len(each) for each in entries.values()] == [2, 2, 2, 0]
        assert ledger.account("town").remaining() is None


def counts_of(file: Path) -> list[object]:
    """Return the counts of a free and of a paid table, from a service that is opened and closed again."""
    with closing(open_service(read_service_file(file))) as service:
        free, paid = (service.datasets[name].answers for name in ("town", "diary"))
        answered = [free.answer(("sex", "age")), paid.answer(("sex", "age"), asker=ANALYSTS[0])]
        return [answer.table.counts.tolist() for answer in answered]
