"""What a running table builder holds: its datasets, its state, its ledger and its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from tabulary.builder.hosts import Hosts
from tabulary.core.cache import DEFAULT_BYTES, Cache
from tabulary.errors import ServiceError, listed
from tabulary.ledger import Ledger
from tabulary.planning import Plan
from tabulary.release import PublicKey, SigningKey
from tabulary.workflows.answering.answers import Answerer

if TYPE_CHECKING:
    from tabulary.builder.state import State


@dataclass(frozen=True)
class Variable:
    """How an attribute is shown to a reader: a short label, a description if it needs one, labels of its levels.

    A level without a label in `levels` is shown by its code.

    >>> sex = Variable("Sex", levels={"F": "Female"})
    >>> sex.level("F"), sex.level("M")
    ('Female', 'M')
    """

    label: str
    description: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", MappingProxyType(dict(self.levels)))

    def level(self, code: str) -> str:
        """Return the label of a level for readers."""
        return self.levels.get(code, code)

    def refuse_unusable(self, codes: Sequence[str]) -> None:
        """Raise ServiceError unless all labels belong to these levels and differ from each other."""
        if strangers := [code for code in self.levels if code not in codes]:
            raise ServiceError(
                f"labels are given to {listed(strangers)}, which are no levels of {self.label!r}. Its levels are "
                f"{listed(codes)}."
            )
        if blank := [code for code, label in self.levels.items() if not label.strip()]:
            raise ServiceError(f"the label of the level {blank[0]!r} of {self.label!r} is empty.")
        shown = [self.level(code) for code in codes]
        if twice := [label for label in shown if shown.count(label) > 1]:
            raise ServiceError(
                f"two levels of {self.label!r} would both be shown as {twice[0]!r}, and nobody could tell them apart."
            )


@dataclass(frozen=True, eq=False)
class ServedDataset:
    """A dataset that answers questions, and its description for readers. All of it is public.

    `variables` says how attributes are shown; any other attribute is shown by its own name. `account` is the ledger
    account that pays for the answers; None if they are free, as with cell keys.
    """

    name: str
    title: str
    description: str
    answers: Answerer
    variables: Mapping[str, Variable] = field(default_factory=dict)
    account: str | None = None

    def __post_init__(self) -> None:
        known = self.answers.domain.attributes
        if strangers := [a for a in self.variables if a not in known]:
            raise ServiceError(
                f"dataset {self.name!r} describes {listed(strangers)}, which it does not have. Its attributes are "
                f"{listed(known)}."
            )
        for attribute, variable in self.variables.items():
            variable.refuse_unusable(self.answers.domain.levels_of(attribute))
        complete = {a: self.variables.get(a, Variable(a)) for a in known}
        object.__setattr__(self, "variables", MappingProxyType(complete))

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

    `signing_key` signs the JSON documents of its tables; None if they are not signed. `cache` is the one cache of this
    process, which its datasets share.
    """

    datasets: Mapping[str, ServedDataset]
    state: "State"
    ledger: Ledger | None = None
    key_fingerprint: str | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    title: str = "Tabulary table builder"
    hosts: Hosts = field(default_factory=Hosts)
    signing_key: SigningKey | None = None
    cache: Cache = field(default_factory=Cache)

    def __post_init__(self) -> None:
        if misplaced := [name for name, dataset in self.datasets.items() if name != dataset.name]:
            raise ServiceError(f"{listed(misplaced)} is not the name of the dataset that it stands for.")
        object.__setattr__(self, "datasets", MappingProxyType(dict(self.datasets)))

    @property
    def signer(self) -> PublicKey | None:
        """The signer of the tables, if there is one."""
        return None if self.signing_key is None else self.signing_key.public

    def close(self) -> None:
        """Forget the records, and close the state and the ledger."""
        # The state first: if the process ends too early, only the state can lose something, the counted requests.
        self.state.close()
        for dataset in self.datasets.values():
            dataset.answers.close()
        if self.ledger is not None:
            self.ledger.close()
