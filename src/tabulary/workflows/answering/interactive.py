r"""Answers that are paid for one by one: each new question debits the asker's account and the dataset's own.

Measurement. A question is the table on one margin, in the domain's order; filters are slices of it. Each possible cell
gets one draw of integer noise (mechanism `margins`, planned for this one table), at the custodian's price.

Privacy. Questions are adaptive: people ask after they have seen earlier answers. Each question costs the same, and the
dataset's account adds up the costs of all askers. ε, (ε, δ) and ρ also add up for mechanisms that are chosen one after
the other. The account refuses a debit that would exceed the total, so it is a privacy filter (Rogers, Roth, Ullman &
Vadhan 2016), and all answers together keep the account's budget. A repeated question gets the first answer again.

The noise is drawn from a key. The key is derived from the custodian's secret, the edition of the dataset and the plan
of the question (`edition`). So a repeated question has the same answer although no answer is stored: even after a crash
between debit and answer, and on a second server. There is no promise against somebody who breaks HMAC-SHA-256 or
SHAKE-256.
"""

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.dropping import counted_neighbours
from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.confidential.tally_cache import TallyCache
from tabulary.confidential.weights import refuse_weights
from tabulary.core.cache import ArrayCache, Cache
from tabulary.core.domain import Domain, Margin, check_same_domain
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import Privacy
from tabulary.core.table import Table
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import LedgerMissing, TableRefused
from tabulary.ledger import Account, Ledger
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning import ExpectedError, Plan, plan
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.release import ReleasedTable
from tabulary.release.promise import Promise
from tabulary.workflows.answering.answers import ProtectionMethod, TableAnswer
from tabulary.workflows.answering.edition import Edition, key_fingerprint, keyed_promise, records_key


class InteractiveAnswers:
    """A dataset whose tables are measured and paid for one by one.

    A new question costs `cost`. The dataset's account and the asker's account both pay, in one transaction. Anyone may
    repeat the question: it is then free and has the same answer. Answers to different questions have independent noise,
    so they do not add up to each other; use `fixed` if they should.

    A refusal costs nothing and reads no record: it depends on the allowed tables, on the earlier questions, and on what
    the two accounts have left. If the number of records is public (`Neighbours.total_is_public`), noise would not
    protect it, so the total is refused.

    >>> import tempfile, pyarrow
    >>> from tabulary.core.privacy import PureDP
    >>> domain = Domain({"sex": ["F", "M"]})
    >>> records = Records.from_arrow(pyarrow.table({"sex": ["F", "M", "F"]}), domain)
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.create(f"{folder}/ledger.sqlite") as ledger:
    ...     people = ledger.create_account("people", PureDP(10), Neighbours())
    ...     ada = ledger.create_account("ada", PureDP(1), Neighbours())
    ...     answers = InteractiveAnswers.open(
    ...         records, AllowedTables(domain, order=1), cost=PureDP("1/4"), ledger=ledger, account=people,
    ...         neighbours="add-remove", secret=bytes(32), dataset="people", version="1")
    ...     print(answers.price(("sex",)))
    ...     first, again = (answers.answer(("sex",), asker="ada").table for _ in range(2))
    ...     print(answers.price(("sex",)), ada.remaining(), people.remaining())
    ε = 0.25
    None ε = 0.75 ε = 9.75
    >>> bool((first.counts == again.counts).all())
    True
    """

    method = ProtectionMethod.interactive

    def __init__(
        self,
        records: Records,
        allowed: AllowedTables,
        *,
        cost: Privacy,
        neighbours: Neighbours,
        ledger: Ledger,
        account: Account,
        secret: bytes,
        edition: Edition,
        cache: Cache,
    ) -> None:
        self._records = records
        self._tallies = TallyCache(records, cache)
        self._allowed_tables = allowed
        self._cost = cost
        self._neighbours = neighbours
        self._ledger = ledger
        self._account = account
        self._secret = secret
        self._edition = edition
        self._promise = keyed_promise(account.budget, neighbours)
        # A paid question stays paid: the ledger never removes an entry.
        self._paid: set[Margin] = set()
        self._noisy: ArrayCache[Margin, np.int64] = ArrayCache(cache)

    @classmethod
    def open(
        cls,
        records: Records,
        allowed: AllowedTables,
        *,
        cost: Privacy,
        ledger: Ledger,
        account: Account,
        neighbours: Relation | Neighbours,
        secret: bytes,
        dataset: str,
        version: str,
        cache: Cache | None = None,
    ) -> "InteractiveAnswers":
        """Return the dataset, ready to answer. Spends nothing; reads the records once, for their fingerprint.

        `cost` is the price of one new question. `account` is the dataset's account in `ledger`, which also holds the
        askers' accounts. `cache` keeps exact counts and noisy counts, each in its own section.
        """
        check_same_domain(
            records.domain,
            allowed.domain,
            things="the records and the allowed tables",
            state="Nothing was counted.",
        )
        refuse_weights(records.weights, use="an answer", state="Nothing was counted.")
        # Check now, before the first asker, that the price can be planned for and counted in the account's unit.
        promised = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)
        relation = counted_neighbours(promised, records.drops)
        account.can_afford(cost, relation)
        edition = Edition(dataset, version, records.fingerprint(records_key(secret)), key_fingerprint(secret))
        entries = account.entries()
        edition.refuse_changed_records(entries)
        edition.refuse_another_price(entries, cost, relation)
        made = cls(
            records,
            allowed,
            cost=cost,
            neighbours=relation,
            ledger=ledger,
            account=account,
            secret=secret,
            edition=edition,
            cache=Cache() if cache is None else cache,
        )
        made.plan_of(allowed.margins[-1])
        return made

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""
        return self._allowed_tables.domain

    @property
    def allowed_tables(self) -> AllowedTables:
        """Which tables may be asked for."""
        return self._allowed_tables

    @property
    def version(self) -> str:
        """Which version of the dataset this is."""
        return self._edition.version

    @property
    def promise(self) -> Promise:
        """What all answers to all askers together promise: the whole budget of the dataset's account."""
        return self._promise

    def plan_of(self, margin: Margin) -> Plan:
        """Return the plan of one question: only the table on `margin`. Measures nothing, costs nothing."""
        named = self.domain.margin(margin)
        self._allowed_tables.refuse(named)
        if not named and self._neighbours.total_is_public:
            raise TableRefused(
                f"the number of all records is not given: with '{self._neighbours.relation}' neighbours it counts as "
                "public, so no noise would protect it, and every answer here has noise. Nothing was counted, nothing "
                "was spent. Ask for a table by at least one attribute."
            )
        return plan(
            self.domain,
            Workload(self.domain, [named]),
            privacy=self._cost,
            neighbours=self._neighbours,
            # No mechanism has less noise for a single table, and this one keeps structural zeros.
            mechanism="margins",
            reconstruct="none",
            max_cells=self._allowed_tables.max_cells,
        )

    def expected(self, margin: Margin, confidence: float = 0.95) -> ExpectedError:
        """Return the accuracy of the table on `margin`, from its plan. Free."""
        (row,) = self.plan_of(margin).expected_error(confidence).rows
        return row

    def price(self, margin: Margin) -> Privacy | None:
        """Return what the table on `margin` would cost now; None if somebody has already paid for it."""
        wanted = self.plan_of(margin)
        return None if self._is_paid(wanted) else self._cost

    def answer(self, margin: Margin, *, asker: str | None = None, linear: bool = False) -> TableAnswer:
        """Return the table on `margin`, the same for ever. The account of `asker` pays if the question is new.

        The noisy counts are the linear estimate, so `linear` changes nothing.
        """
        wanted = self.plan_of(margin)
        named = _margin_of(wanted)
        if not self._is_paid(wanted):
            self._pay(wanted, self._payer(wanted, asker))
        noisy = self._noisy.get(named, lambda: self._measured(wanted))
        table = ReleasedTable(Table(self.domain.project(named), noisy), wanted.error_of(named))
        return TableAnswer(table, self._promise, wanted)

    def close(self) -> None:
        """Forget the records and their counts."""
        self._noisy.clear()
        self._tallies.close()
        self._records.close()

    def __repr__(self) -> str:
        return f"<InteractiveAnswers of {self._edition.dataset!r} {self._edition.version!r} at {self._cost} a question>"

    def _is_paid(self, wanted: Plan) -> bool:
        named = _margin_of(wanted)
        if named not in self._paid and self._account.paid(self._edition.purpose, wanted.digest()) is not None:
            self._paid.add(named)
        return named in self._paid

    def _payer(self, wanted: Plan, asker: str | None) -> Account:
        """Return the asker's account, which pays too; refuse one that cannot pay. Reads no records."""
        named = _margin_of(wanted)
        if asker is None:
            raise TableRefused(
                f"nobody has asked for the table {show_margin(named)} before, and a new question is paid for by "
                f"whoever asks: it costs {self._cost}. Nothing was counted, nothing was spent. Ask with a token that "
                "has an account."
            )
        if asker == self._account.name:
            raise TableRefused(
                f"account {asker!r} is the dataset's own, which pays for every question already. Nothing was counted, "
                "nothing was spent. Ask with an account of your own."
            )
        try:
            payer = self._ledger.account(asker)
        except LedgerMissing:
            # The ledger's own message lists the accounts, which only the custodian may see.
            raise LedgerMissing(
                f"there is no account {asker!r} to pay from. Nothing was counted, nothing was spent. The custodian "
                "opens one."
            ) from None
        for account in (self._account, payer):
            account.check(self._cost, self._neighbours)
        return payer

    def _pay(self, wanted: Plan, payer: Account) -> None:
        """Debit both accounts, after the counts have been read: a broken source costs nothing."""
        named = _margin_of(wanted)
        self._tallies.exact(named)
        self._ledger.debit_together(
            [self._account, payer],
            self._cost,
            self._neighbours,
            purpose=self._edition.purpose,
            plan_digest=wanted.digest(),
            once=True,
        )
        self._paid.add(named)

    def _measured(self, wanted: Plan) -> NDArray[np.int64]:
        """Return the noisy counts of a paid question."""
        named = _margin_of(wanted)
        tally = Tally(self.domain, {named: self._tallies.exact(named)}, drops=self._tallies.drops)
        key = self._edition.noise_key(self._secret, wanted.digest())
        (values,) = measure(tally, wanted, ExactSampler(KeyedEntropy(key))).values
        return values


def answerable(allowed: AllowedTables, neighbours: Neighbours) -> tuple[Margin, ...]:
    """Return the tables that an interactive dataset answers: all allowed tables except a public total."""
    return tuple(margin for margin in allowed.margins if margin or not neighbours.total_is_public)


def _margin_of(wanted: Plan) -> Margin:
    (margin,) = wanted.workload.margins
    return margin
