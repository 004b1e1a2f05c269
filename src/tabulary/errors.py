"""Every error Tabulary raises on purpose.

::

    TabularyError
    ├── PublicError                made of public things only: may be shown to anyone
    │   ├── InvalidDomain          invalid attributes, levels or structural zeros
    │   ├── InvalidWorkload        a margin that names what the domain does not have
    │   ├── InvalidTable           an array that does not fit its domain
    │   ├── InvalidPrivacy         ε, δ, ρ, an invalid neighbouring relation
    │   ├── InvalidNoise           an invalid scale or sampler
    │   ├── InvalidArgument        an argument or option with a value it cannot have, or that contradicts another
    │   ├── InvalidPlan            a plan that cannot be made or that does not keep its promise
    │   ├── InvalidSettings        a plan file or a service file that cannot be followed
    │   ├── InvalidAddress         an address of records, or an engine, that cannot be used
    │   ├── DifferentDomains       two things that must share a domain have different ones
    │   ├── WeightedRecords        records with survey weights where each must count one, or the reverse
    │   ├── UnusableCheckpoint     a checkpoint that is damaged, in use, or of another run
    │   ├── NotCertified           a solver could not prove that its answer is right
    │   ├── TooManyCells           a table above the stated cap
    │   ├── Interrupted            work that whoever asked for it stopped before its end
    │   ├── UnknownDataset         a name that `tb.datasets` does not carry
    │   ├── UnknownMargin          a table that the release does not hold
    │   ├── TableRefused           a table that a table builder's public rules do not allow
    │   ├── ServiceError           a table builder that cannot start, or a state that it cannot trust
    │   │   ├── NotInitialised     a table builder lacks its key or its state, which initialising it creates
    │   │   └── ServiceUnreachable no table builder answers, or it answers with something else
    │   ├── MissingExtra           an optional package that is not installed
    │   ├── ExtensionError         a mechanism, law, format or study that is unknown, named twice or cannot be loaded
    │   ├── UnusableKey            a signing key or a public key that cannot be made, read or used
    │   ├── ReleaseError           a release folder that cannot be written or read
    │   │   ├── ReleaseExists      the output folder already exists
    │   │   └── ReleaseDamaged     verification found a changed byte, a missing file or a false claim
    │   ├── StudyError             a study's folder that is not its own, or work of it that was lost
    │   └── LedgerError            no debit, no measurement
    │       ├── LedgerMissing      there is no such ledger, or no such account in it
    │       ├── LedgerCorrupt      the file is not a sound ledger; refuse rather than guess
    │       │   └── LedgerBehind   it lacks entries that are known elsewhere: an older copy, put back
    │       ├── LedgerBusy         another process kept the ledger locked for too long
    │       └── BudgetExceeded     the account cannot pay for the plan
    └── ConfidentialError          depends on the records: for the custodian's eyes, and still without a count
        ├── UnreadableSource       the source is absent, empty or not in a known format
        ├── InvalidColumn          a column is missing, doubled or of the wrong type
        ├── UnknownLevel           a record holds a value outside its domain
        ├── ImpossibleRecord       a record is in a cell that the domain declares impossible
        └── CannotProtect          no pattern of suppressed cells hides what must be hidden

    UserWarning
    └── WeightsClipped             depends on the records: for the custodian's eyes, as a ConfidentialError is

A message says what was asked, what stood in the way, what state we are in and what to do next. It never
holds a count or a value from confidential data.
"""

from collections.abc import Iterable


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence, the first dozen of them.

    >>> listed(["sex", "age"])
    "'sex', 'age'"
    """
    given = list(names)
    # A member of an enumeration is named by its text alone.
    text = ", ".join(repr(str(name)) for name in given[:12]) or "nothing"
    return text if len(given) <= 12 else f"{text} and {len(given) - 12:,} more"


class TabularyError(Exception):
    """An error whose message was written for the reader."""


class PublicError(TabularyError):
    """Made of public things only; a service may show it to anyone."""


class InvalidDomain(PublicError):
    """The attributes, levels or structural zeros are invalid."""


class InvalidWorkload(PublicError):
    """A margin names what the domain does not have, or names it twice."""


class InvalidTable(PublicError):
    """An array does not fit its domain."""


class InvalidPrivacy(PublicError):
    """A privacy parameter or a neighbouring relation is invalid."""


class InvalidNoise(PublicError):
    """A noise scale or a sampler is invalid."""


class InvalidArgument(PublicError):
    """An argument or option has a value it cannot have, or contradicts another."""


class InvalidPlan(PublicError):
    """A plan cannot be made, or does not keep its promise."""


class InvalidSettings(PublicError):
    """A plan file or a service file cannot be followed."""


class InvalidAddress(PublicError):
    """An address of records, or the engine that should count them, cannot be used."""


class DifferentDomains(PublicError):
    """Two things that must share a domain have different ones."""


class WeightedRecords(PublicError):
    """Records have survey weights where each must count one, or have none where weights are needed."""


class UnusableCheckpoint(PublicError):
    """A checkpoint is damaged, is in use, or belongs to another run."""


class NotCertified(PublicError):
    """A solver could not prove that its answer is right, so it gives none.

    `measurement` is what was measured, where that was already paid for: it is public, and may be reconstructed
    in another way.
    """

    measurement: object = None


class TooManyCells(PublicError):
    """A table has more cells than the stated cap."""


class Interrupted(PublicError):
    """Whoever asked for some work stopped it before its end."""


class UnknownDataset(PublicError):
    """`tb.datasets` carries no table of that name."""


class UnknownMargin(PublicError):
    """The release holds no such table."""


class TableRefused(PublicError):
    """The public rules of a table builder do not allow the table."""


class ServiceError(PublicError):
    """A table builder cannot start, or its state cannot be trusted."""


class NotInitialised(ServiceError):
    """A table builder lacks its key or its state, which initialising it creates or brings up to date."""


class ServiceUnreachable(ServiceError):
    """No table builder answers at the address, or it answers with something else."""


class MissingExtra(PublicError):
    """An optional package is not installed."""


class ExtensionError(PublicError):
    """A mechanism, law of noise, format or study is unknown, named twice or cannot be loaded."""


class UnusableKey(PublicError):
    """A signing key or a public key cannot be made, read or used."""


class ReleaseError(PublicError):
    """A release folder cannot be written or read."""


class ReleaseExists(ReleaseError):
    """The output folder already exists; a release is never overwritten."""


class ReleaseDamaged(ReleaseError):
    """Verification found a changed byte, a missing file or a claim that does not hold."""


class StudyError(PublicError):
    """The folder of a study is not its own or cannot be written, or a part of its work was lost."""


class LedgerError(PublicError):
    """The ledger could not record a debit, so nothing was measured."""


class LedgerMissing(LedgerError):
    """There is no such ledger, or no such account in it."""


class LedgerCorrupt(LedgerError):
    """The file is not a sound ledger."""


class LedgerBehind(LedgerCorrupt):
    """The ledger lacks entries that a state, a witness or a release knows: an older copy was put back."""


class LedgerBusy(LedgerError):
    """Another process kept the ledger locked for too long."""


class BudgetExceeded(LedgerError):
    """The account cannot pay for the plan."""


class ConfidentialError(TabularyError):
    """Depends on the records: for the custodian's eyes, and still without a count."""


class UnreadableSource(ConfidentialError):
    """The source is absent, empty or not in a known format."""


class InvalidColumn(ConfidentialError):
    """A column is missing, doubled or of the wrong type."""


class UnknownLevel(ConfidentialError):
    """A record holds a value outside its domain."""


class ImpossibleRecord(ConfidentialError):
    """A record is in a cell that the domain declares impossible."""


class CannotProtect(ConfidentialError):
    """No pattern of suppressed cells hides what a rule of classical suppression says must be hidden."""


class WeightsClipped(UserWarning):
    """Weights above the public maximum were clipped.

    That it is given at all depends on the records, so it goes where their errors go: to the custodian who reads
    them, on the standard error output or in a log that is kept as they are. No release holds it. It says
    neither how many weights were clipped nor by how much.
    """
