"""Open the service of a service file: the key, the ledger, the records, and checks that nothing fixed has changed."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from tabulary.builder.answerers import Means, open_answers
from tabulary.builder.configuration import ServiceFile
from tabulary.builder.declarations import Declaration
from tabulary.builder.key_file import WHAT_A_NEW_KEY_MEANS, create_key, read_key
from tabulary.builder.release_folders import ReleasedDataset
from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.state import Action, Actor, Role, State
from tabulary.builder.state.log import COMMAND_LINE, SERVICE
from tabulary.core.cache import Cache
from tabulary.core.progress import Progress
from tabulary.errors import LedgerMissing, PublicError, ServiceError, TabularyError
from tabulary.ledger import Ledger
from tabulary.mechanisms.on_demand import noise_check
from tabulary.release import SigningKey
from tabulary.workflows.answering.artifacts import Warn
from tabulary.workflows.answering.edition import Edition, key_fingerprint
from tabulary.workflows.sections import located

_LEDGER = "ledger"

_log = logging.getLogger(__name__)


def open_service(file: ServiceFile, *, progress: Progress | None = None) -> Service:
    """Return the service, open: its records read, its tables paid for, ready to answer. Creates nothing.

    It checks the key, the state, the ledger and the accounts before it reads a record. It refuses a ledger, a key or a
    sampler that differs from the one at set-up, because each would give a second answer to an old question. It also
    refuses an older copy of the ledger, which lacks debits that the state knows. Noise that an earlier start or another
    worker has paid for is not paid for again. The log gets an entry for each first opening and each refusal.
    """
    with ExitStack() as opened:
        secret = read_key(file.key) if file.key is not None else None
        signing_key = SigningKey.read(file.signer) if file.signer is not None else None
        state = opened.enter_context(open_state(file))
        opened.enter_context(_refusals_logged(state, SERVICE))
        state.log.check()
        ledger = None
        if file.ledger is not None:
            ledger = opened.enter_context(Ledger.open(file.ledger.where(), witness=file.witness))
        _refuse_changes(file, state, ledger, secret)
        means = Means(secret, ledger, file.artifacts, _warning(state), Cache(file.limits.cache_bytes))
        for declared in file.datasets.values():
            if declared.payment is not None:
                means.account(declared.payment)
        datasets = {}
        for name, declared in file.datasets.items():
            if isinstance(declared, ReleasedDataset):
                datasets[name] = located(f"dataset {name!r}", partial(declared.served, means.cache))
                continue
            answers = open_answers(declared, means, progress)
            opened.callback(answers.close)
            account = None if declared.payment is None else declared.payment.account
            datasets[name] = ServedDataset(name, answers, declared.labels, account)
        _log_what_is_new(datasets, state, ledger)
        service = Service(
            datasets,
            state,
            ledger,
            key_fingerprint(secret) if secret is not None else None,
            file.limits,
            file.title,
            file.listening.hosts,
            signing_key,
            means.cache,
        )
        opened.pop_all()
    return service


def open_state(file: ServiceFile) -> State:
    """Return the state of a service. The copy of its log is in the place that the file names."""
    return State.open(file.state.where(), log_file=file.log)


def initialise(file: ServiceFile) -> str | None:
    """Create what the service file names and does not exist yet: state, key, ledger, accounts. Reads no records.

    It overwrites nothing, and a second call changes nothing. It does not replace a lost ledger or key: an empty ledger
    would be a second budget for the same people, and a new key would draw second noise. Returns the text of the
    custodian's first token, which is not stored; None if there is a token already.
    """
    with ExitStack() as opened:
        state = opened.enter_context(State.create(file.state.where(), log_file=file.log))
        opened.enter_context(_refusals_logged(state, COMMAND_LINE))
        state.log.check()
        ledger = None
        if file.ledger is not None:
            ledger = opened.enter_context(_ledger(file.ledger.where(), file, state))
        if file.key is not None and not file.key.exists():
            _refuse_lost_key(file, state, ledger)
            create_key(file.key)
            state.log.add(COMMAND_LINE, Action.key_made, key_fingerprint(read_key(file.key)))
        secret = read_key(file.key) if file.key is not None else None
        _refuse_changes(file, state, ledger, secret)
        means = Means(secret, ledger, file.artifacts, _warning(state))
        for declared in _with_records(file):
            _open_account(means, state, declared)
        # The first token of a service is its custodian's.
        if state.tokens.list(size=1):
            return None
        _, text = state.tokens.add("custodian", Role.custodian)
        return text


def _ledger(where: Path | str, file: ServiceFile, state: State) -> Ledger:
    try:
        return Ledger.open(where, witness=file.witness)
    except LedgerMissing:
        # If there is a key, there was a ledger, even if the state is lost too.
        if state.recall(_LEDGER) is None and (file.key is None or not file.key.exists()):
            with state.log.writing() as act:
                ledger = Ledger.create(where, witness=file.witness)
                act.note(COMMAND_LINE, Action.ledger_made, ledger.identity)
            return ledger
    raise ServiceError(
        "the ledger of this table builder is gone, and an empty one would be a second budget for the same people. "
        "Nothing was created, nothing was spent. Restore it from a copy, to the place that [ledger] names. If nothing "
        "was ever published from these records, remove the state and the key, and begin anew."
    )


def _refuse_lost_key(file: ServiceFile, state: State, ledger: Ledger | None) -> None:
    """Refuse a new key for versions that already have answers under another key; new versions are allowed."""
    for declared in _with_records(file):
        if state.recall(_key_of(declared)) is not None or _was_answered(declared, ledger):
            raise ServiceError(
                f"there is no key file {str(file.key)!r}, and version {declared.version!r} of {declared.name!r} was "
                f"opened with one. Nothing was created, nothing was spent. Put it back from where it is kept. "
                f"{WHAT_A_NEW_KEY_MEANS} If that is what you want, give every dataset a new version first."
            )


def _was_answered(declared: Declaration, ledger: Ledger | None) -> bool:
    # The state may be lost too: then the text of the ledger entries shows that noise was paid for.
    payment = declared.payment
    if ledger is None or payment is None:
        return False
    words = Edition(declared.name, declared.version, records="", key="").purpose.split(",")[0]
    entries = (e for a in ledger.accounts() if a.name == payment.account for e in a.entries())
    return any(entry.purpose.startswith(f"{words},") for entry in entries)


def _refuse_changes(file: ServiceFile, state: State, ledger: Ledger | None, secret: bytes | None) -> None:
    """Refuse a ledger, a key or a sampler that differs from the one in the state.

    From then on the state records the head after every debit.
    """
    if ledger is not None:
        state.remember(_LEDGER, ledger.identity)
        ledger.attach(state.heads)
    if secret is None:
        return
    fingerprint = key_fingerprint(secret)
    # By version: a new key needs a new version of the dataset, which must be paid for in any case.
    for declared in _with_records(file):
        state.remember(_key_of(declared), fingerprint)
    state.remember(f"the noise of key {fingerprint}", noise_check(secret))


def _with_records(file: ServiceFile) -> list[Declaration]:
    """Return the datasets that are made from records here; a release was made elsewhere."""
    return [each for each in file.datasets.values() if isinstance(each, Declaration)]


def _key_of(declared: Declaration) -> str:
    return f"the key of {declared.name} {declared.version}"


def _open_account(means: Means, state: State, declared: Declaration) -> None:
    """Open the account that pays, unless it exists; an existing account must agree with the file."""
    payment = declared.payment
    if payment is None:
        return
    try:
        means.account(payment)
    except LedgerMissing:
        if payment.budget is None:
            raise ServiceError(
                f"the ledger has no account {payment.account!r}, and the file does not say what its budget is. Add a "
                f"table [dataset.{declared.name}.budget]; it never changes."
            ) from None
        with state.log.writing() as act:
            act.note(COMMAND_LINE, Action.account_opened, payment.account)
            means.required_ledger.create_account(payment.account, payment.budget, payment.neighbours)


def _log_what_is_new(datasets: Mapping[str, ServedDataset], state: State, ledger: Ledger | None) -> None:
    """Log the open versions, and the accounts that were opened elsewhere, each once."""
    versions = [f"{name} {dataset.answers.version}" for name, dataset in datasets.items()]
    state.log.add_once(SERVICE, Action.version_opened, versions)
    # `tabulary ledger create` does not know this service.
    accounts = [account.name for account in ledger.accounts()] if ledger is not None else []
    state.log.add_once(SERVICE, Action.account_found, accounts, Action.account_opened)


@contextmanager
def _refusals_logged(state: State, by: Actor) -> Iterator[None]:
    """Log a refusal; if it depends on the records, log only its kind."""
    try:
        yield
    except TabularyError as refusal:
        words = str(refusal) if isinstance(refusal, PublicError) else type(refusal).__name__
        # The state itself may be the reason.
        with suppress(ServiceError):
            state.log.add_unless_last(by, Action.start_refused, words)
        raise


def _warning(state: State) -> Warn:
    def warn(sentence: str) -> None:
        _log.warning("%s", sentence)
        state.log.add(SERVICE, Action.artifact_remade, sentence)

    return warn
