"""The service file: the datasets of a table builder, the places of its ledger and state, and its address."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tabulary.builder.declarations import Declaration, read_declaration
from tabulary.builder.listening import Listening
from tabulary.builder.places import DatabasePlace, read_place
from tabulary.builder.release_folders import ReleasedDataset
from tabulary.builder.service import DEFAULT_TITLE, Service, ServiceLimits
from tabulary.core.byte_size import byte_size
from tabulary.core.progress import Progress
from tabulary.errors import InvalidSettings
from tabulary.workflows.sections import Section, located, read_toml


@dataclass(frozen=True)
class ServiceFile:
    """A valid service file, after reading. No record, no database and no key has been opened.

    `ledger` and `key` may be None if every dataset is a release or protected by cell keys, because these are free.
    `log` is a file for a copy of the state's log, `witness` a file for the ledger's heads, and `signer` the private key
    that signs tables; each may be None. `artifacts` is the folder that stores slow tables for the next start; its
    content is public.
    """

    path: Path
    title: str
    listening: Listening
    state: DatabasePlace
    log: Path | None
    ledger: DatabasePlace | None
    key: Path | None
    signer: Path | None
    artifacts: Path
    limits: ServiceLimits
    datasets: Mapping[str, Declaration | ReleasedDataset]
    witness: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", MappingProxyType(dict(self.datasets)))
        paid = [name for name, each in self.datasets.items() if each.payment is not None]
        if paid and self.ledger is None:
            raise InvalidSettings(
                f"dataset {paid[0]!r} has to be paid for: add a table [ledger] with its `database`."
            )
        if paid and self.key is None:
            raise InvalidSettings(
                f"dataset {paid[0]!r} draws noise from a key: add a table [key] with its `file`."
            )
        if self.ledger is not None and self.state.is_file and self.ledger.told == self.state.told:
            raise InvalidSettings("[ledger] and [state] name the same SQLite file: each needs its own.")

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file, by which another process opens the same service."""
        return (self.path,)

    def at(self, listening: Listening) -> Self:
        """Return the same service, to be served elsewhere."""
        return replace(self, listening=listening)

    def open(self, *, progress: Progress | None = None) -> Service:
        """Return the service, ready to answer."""
        # Imported here: opening needs this file.
        from tabulary.builder.opening import open_service

        return open_service(self, progress=progress)


def read_service_file(path: str | Path) -> ServiceFile:
    """Return the content of a service file; refuse an unknown key, a missing key and an invalid value.

    Reads no records: the sources need not exist yet. Paths are relative to the file's folder. An error names the file,
    the table and the key.
    """
    file = Path(path)
    top = read_toml(file, "service file")
    return located(file.name, lambda: _read(top, file.absolute()))


def _read(top: Section, path: Path) -> ServiceFile:
    folder = path.parent
    title = top.take("title", str, default=DEFAULT_TITLE)
    server = top.section("server", required=False)
    state = top.section("state")
    ledger = top.section("ledger", required=False)
    key = top.section("key", required=False)
    limits = top.section("limits", required=False)
    declared = top.section("dataset")
    top.done()

    artifacts = state.take("folder", str, default="artifacts")
    log = state.take("log", str, default=None)
    signer = key.take("signer", str, default=None)
    secret = key.take("file", str) if "file" in key.names() or (key.names() and signer is None) else None
    key.done()
    has_ledger = bool(ledger.names())
    witness = ledger.take("witness", str, default=None)
    listening = _read_listening(server)
    names = declared.names()
    if not names:
        raise InvalidSettings("[dataset] names no dataset. Add a table such as [dataset.census].")
    return ServiceFile(
        path=path,
        title=title,
        listening=listening,
        state=located(state.name, lambda: read_place(state, folder)),
        log=folder / log if log is not None else None,
        ledger=located(ledger.name, lambda: read_place(ledger, folder)) if has_ledger else None,
        key=folder / secret if secret is not None else None,
        signer=folder / signer if signer is not None else None,
        artifacts=folder / artifacts,
        limits=_read_limits(limits),
        datasets={name: read_declaration(name, declared.section(name), folder) for name in names},
        witness=folder / witness if witness else None,
    )


def _read_listening(section: Section) -> Listening:
    usual = Listening()
    host = section.take("host", str, default=usual.host)
    port = section.take("port", int, default=usual.port)
    workers = section.take("workers", int, default=usual.workers)
    proxy = section.take("proxy", bool, default=usual.proxy)
    hosts = section.take("hosts", list, default=[])
    section.done()
    return located(section.name, lambda: Listening(host, port, workers, proxy, tuple(hosts)))


def _read_limits(section: Section) -> ServiceLimits:
    usual = ServiceLimits()
    given = {
        limit.name: section.take(limit.name, int, default=getattr(usual, limit.name))
        for limit in fields(ServiceLimits)
        if limit.name != "cache_bytes"
    }
    cache = section.take("cache", str, default=None)
    section.done()

    def limits() -> ServiceLimits:
        if cache is None:
            return ServiceLimits(**given)
        return ServiceLimits(**given, cache_bytes=byte_size(cache, name="cache", error=InvalidSettings))

    return located(section.name, limits)
