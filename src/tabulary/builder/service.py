"""What a running table builder holds: its datasets, its state, its ledger and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from tabulary.builder.hosts import Hosts
from tabulary.core.cache import DEFAULT_BYTES, Cache
from tabulary.core.labels import Labels, VariableLabels
from tabulary.errors import InvalidArgument, ServiceError, listed
from tabulary.planning import Plan
from tabulary.release import PublicKey, SigningKey
from tabulary.workflows.answering.answers import Answerer

if TYPE_CHECKING:
    from tabulary.builder.state import State
    from tabulary.ledger import Ledger

DEFAULT_TITLE = "Table builder"

LONGEST_NAME = 40
"""The most characters of the name of a dataset, which is in addresses, in ledger entries and in names of folders."""


@dataclass(frozen=True)
class ReleaseSeal:
    """The digest that names a served release, and the signer that it states; None if it is not signed.

    The service has checked that the signature is of this key, not whose key it is: only a reader who knows the
    publisher's key can do that.
    """

    digest: str
    signer: PublicKey | None


@dataclass(frozen=True, eq=False)
class ServedDataset:
    """A dataset that answers questions, and its description for readers. All of it is public.

    `labels` are its words, one `Labels` per language, the default language first. `account` is the ledger account that
    pays for the answers; None if they are free, as with cell keys. `seal` identifies the release that all tables come
    from; None if they come from records.
    """

    name: str
    answers: Answerer
    labels: tuple[Labels, ...] = (Labels(),)
    account: str | None = None
    seal: ReleaseSeal | None = None

    def __post_init__(self) -> None:
        for labels in self.labels:
            labels.check(self.answers.domain)

    @property
    def words(self) -> Labels:
        """Its words in its default language."""
        return self.labels[0]

    def in_language(self, language: str) -> "ServedDataset":
        """Return the same dataset with its words in one of its languages; empty for the default language."""
        if not language:
            return self
        found = {labels.language: labels for labels in self.labels if labels.language}
        if language not in found:
            has = f"It has {listed(found)}." if found else "It does not name its language."
            raise InvalidArgument(
                f"dataset {self.name!r} has no labels in {language[:80]!r}. {has} Nothing was counted."
            )
        first = found[language]
        return replace(self, labels=(first, *(each for each in self.labels if each is not first)))

    @property
    def title(self) -> str:
        """Its title for readers; its name where it has none."""
        return self.words.title or self.name

    @property
    def description(self) -> str:
        """What it holds, for readers."""
        return self.words.description

    @cached_property
    def variables(self) -> Mapping[str, VariableLabels]:
        """How each of its attributes is shown."""
        return {attribute: self.words.variable(attribute) for attribute in self.answers.domain.attributes}

    @cached_property
    def largest_plan(self) -> Plan | None:
        """The plan behind its last table; None where there is no differential privacy.

        Every other table has the same cost and the same neighbours. This does not use the total: it may be public, and
        then it has no plan.
        """
        return self.answers.plan_of(self.answers.allowed_tables.margins[-1])


LEAST_CACHE, MOST_CACHE = 1 << 20, 1 << 40
"""The least and the most bytes that the cache of a worker may hold."""


@dataclass(frozen=True)
class ServiceLimits:
    """The limits on the requests of one caller, on their time, and on the memory of one worker's answers.

    Only tests and tables that are being made count for a caller; stored ones do not. The service gives up an answer
    after `answer_seconds`, a request without a complete header after `header_seconds`, and one without a complete body
    after `body_seconds`. `cache_bytes` is the limit of the worker's one cache: counts, noisy values and answers of all
    datasets together.
    """

    requests_a_minute: int = 600
    burst: int = 60
    tests_a_caller: int = 4
    tables_a_caller: int = 16
    answer_seconds: int = 60
    connections: int = 512
    connections_a_caller: int = 64
    header_seconds: int = 10
    body_seconds: int = 20
    body_bytes: int = 1 << 16
    cache_bytes: int = DEFAULT_BYTES

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ServiceError(f"the limit {limit.name} is a positive whole number, not {value!r}.")
        if not LEAST_CACHE <= self.cache_bytes <= MOST_CACHE:
            raise ServiceError(
                f"the limit cache is a size from '1 MiB' to '1 TiB' for each worker, and this is {self.cache_bytes:,} "
                "bytes. Nothing was opened. Choose a size such as '512 MiB'."
            )


@dataclass(frozen=True, eq=False)
class Service:
    """An open table builder: everything that its application needs, without its configuration.

    `state` is None if it serves releases only: then there are no tokens, no custodian and no log. `signing_key` signs
    the JSON documents of its tables; None if they are not signed. `cache` is the one cache of this process, which its
    datasets share.
    """

    datasets: Mapping[str, ServedDataset]
    state: "State | None" = None
    ledger: "Ledger | None" = None
    key_fingerprint: str | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    title: str = DEFAULT_TITLE
    hosts: Hosts = field(default_factory=Hosts)
    signing_key: SigningKey | None = None
    cache: Cache = field(default_factory=Cache)

    def __post_init__(self) -> None:
        if misplaced := [name for name, dataset in self.datasets.items() if name != dataset.name]:
            raise ServiceError(f"{listed(misplaced)} is not the name of the dataset that it stands for.")
        object.__setattr__(self, "datasets", MappingProxyType(dict(self.datasets)))

    @property
    def required_state(self) -> "State":
        """The state, if the service has one."""
        if self.state is None:
            raise ServiceError("this table builder serves releases only, and keeps no state.")
        return self.state

    @property
    def signer(self) -> PublicKey | None:
        """The signer of the tables, if there is one."""
        return None if self.signing_key is None else self.signing_key.public

    def close(self) -> None:
        """Forget the records, and close the state and the ledger."""
        # The state first: if the process ends too early, only the state can lose something, the counted requests.
        if self.state is not None:
            self.state.close()
        for dataset in self.datasets.values():
            dataset.answers.close()
        if self.ledger is not None:
            self.ledger.close()
