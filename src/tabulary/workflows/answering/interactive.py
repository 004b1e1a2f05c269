r"""Answers that are paid for one by one: each new question debits the asker's account and the dataset's own.

What is measured. A question is the table on one margin, in the domain's order; filters are slices of it. Each possible
cell gets one draw of integer noise (mechanism `margins`, planned for this one table), at the price that the custodian
set.

Privacy. Questions are asked adaptively, by people who have seen earlier answers. Each costs the same, and the dataset's
account adds them all up, whoever asks: ε, (ε, δ) and ρ add up for mechanisms chosen one after the other too, and
a debit that would exceed the total is refused, which makes the account a filter in the words of Rogers, Roth, Ullman &
Vadhan (2016). So all answers together keep the account's budget. A repeated question is the first answer again.

The noise is drawn from a key derived from the custodian's secret, the edition of the dataset and the plan of the
question (`edition`), so a repeated question has the same answer without anything having been kept: after a crash
between debit and answer, and on a second server. Nothing is promised against whoever breaks HMAC-SHA-256 or SHAKE-256.
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

    A new question costs `cost`, from the dataset's account and from the asker's, in one transaction. Asked again, by
    whomever, it is free and has the same answer. Answers to different questions are noisy independently, so they do not
    add up to each other: `fixed` is for that.

    A refusal costs nothing and reads no record: it depends on which tables are allowed, on what has been asked before,
    and on what the two accounts have left. Where the number of records counts as public (`Neighbours.total_is_public`),
    no noise would protect it, so it is refused.

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
        # What the ledger was once seen to have paid for stays paid for: its entries are never taken back.
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

        `cost` is the price of one new question, `account` the dataset's own, in `ledger`, where the askers' accounts
        are too. Exact counts and noisy ones are kept in `cache`, each in a section of its own.
        """
        check_same_domain(
            records.domain,
            allowed.domain,
            things="the records and the allowed tables",
            state="Nothing was counted.",
        )
        refuse_weights(records.weights, use="an answer", state="Nothing was counted.")
        # A price that can be planned for and counted in the account's unit is found out now, not by the first asker.
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
        """What all answers together promise: the whole budget of the dataset's account, whoever asks."""
        return self._promise

    def plan_of(self, margin: Margin) -> Plan:
        """Return the plan of one question: the table on `margin` and nothing else. Asks nothing, costs nothing."""
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
            # For one table no mechanism has less noise, and this one keeps impossible cells zero.
            mechanism="margins",
            reconstruct="none",
            max_cells=self._allowed_tables.max_cells,
        )

    def expected(self, margin: Margin, confidence: float = 0.95) -> ExpectedError:
        """Return how accurate the table on `margin` will be, from its plan. Free."""
        (row,) = self.plan_of(margin).expected_error(confidence).rows
        return row

    def price(self, margin: Margin) -> Privacy | None:
        """Return what the table on `margin` would cost now: None if somebody has paid for it."""
        wanted = self.plan_of(margin)
        return None if self._is_paid(wanted) else self._cost

    def answer(self, margin: Margin, *, asker: str | None = None, linear: bool = False) -> TableAnswer:
        """Return the table on `margin`, the same for ever; paid for from the account of `asker` if it is new.

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
        """Forget the records and what was counted."""
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
        """Return the account that pays with the dataset's own; refuse one that cannot. Reads no records."""
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
            # The ledger's own words name the accounts that there are, which is for the custodian.
            raise LedgerMissing(
                f"there is no account {asker!r} to pay from. Nothing was counted, nothing was spent. The custodian "
                "opens one."
            ) from None
        for account in (self._account, payer):
            account.check(self._cost, self._neighbours)
        return payer

    def _pay(self, wanted: Plan, payer: Account) -> None:
        """Debit both accounts once the counts are there: a source that broke costs nothing."""
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
        """Return the noisy counts of a question that has been paid for."""
        named = _margin_of(wanted)
        tally = Tally(self.domain, {named: self._tallies.exact(named)}, drops=self._tallies.drops)
        key = self._edition.noise_key(self._secret, wanted.digest())
        (values,) = measure(tally, wanted, ExactSampler(KeyedEntropy(key))).values
        return values


def answerable(allowed: AllowedTables, neighbours: Neighbours) -> tuple[Margin, ...]:
    """Return the tables that an interactive dataset answers: all allowed ones, but no total that is public."""
    return tuple(margin for margin in allowed.margins if margin or not neighbours.total_is_public)


def _margin_of(wanted: Plan) -> Margin:
    (margin,) = wanted.workload.margins
    return margin
