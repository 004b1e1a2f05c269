"""Attacks on a table builder that anyone can make: they fail, and on a naive builder they succeed.

Averaging: ask the same in as many ways as there are, and take the mean. Differencing: subtract tables that differ by
one person, within a version of the data and across two. Each attack is made on the service and on a twin that does what
the service must not do.
"""

import hashlib
import io
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import stats

import tabulary as tb
from tabulary.attacks.differencing import demonstration_ptable
from tabulary.builder.app import create_app
from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.state import State
from tabulary.cellkey import KeyedRecords, RecordKeys, record_keys
from tabulary.core.cache import Cache
from tabulary.core.table import Table
from tabulary.ledger import Ledger
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.noise.keyed import derived_key
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.release import ReleasedTable
from tabulary.workflows.answering.answers import TableAnswer
from tabulary.workflows.answering.cell_key import CellKeyAnswers
from tabulary.workflows.answering.edition import Edition
from tabulary.workflows.answering.fixed import FixedAnswers
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tests.builders import GENEROUS, Caller, people
from tests.entropy import SeededEntropy
from tests.twins import bounds

NEAR = tb.Neighbours()
UNLIKELY = 1e-6


def secret(*words):
    return hashlib.sha256(repr(words).encode()).digest()


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "ledger.sqlite") as created:
        yield created


@pytest.fixture
def state(tmp_path):
    with State.create(tmp_path / "state.sqlite") as created:
        yield created


def account(ledger, name, rho):
    known = {each.name: each for each in ledger.accounts()}
    return known.get(name) or ledger.create_account(name, tb.ZCDP(rho), NEAR)


def fixed(ledger, records, allowed, rho, *, key, name, version="1"):
    return FixedAnswers.open(
        records,
        allowed,
        privacy=tb.ZCDP(rho),
        neighbours=NEAR,
        account=account(ledger, name, 2 * rho),
        secret=key,
        dataset=name,
        version=version,
        reconstruct="none",
    )


def squared_errors(estimate, truth, covariance):
    """Return the squared length of the error in units of the noise: chi-squared, if the noise is all there."""
    error = np.reshape(estimate - truth, -1)
    return float(error @ np.linalg.solve(covariance, error))


# --- averaging --------------------------------------------------------------------------------------------------------

DOMAIN = tb.Domain({"sex": "FM", "age": ["0-14", "15-64", "65+"], "region": ["N", "E", "S", "W"]})
ALLOWED = AllowedTables(DOMAIN, order=3)
COUNTS = np.random.default_rng(4).integers(0, 30, DOMAIN.shape)
RHO = 1
SEXES, AGES, REGIONS = DOMAIN.levels


@dataclass
class FreshNoise:
    """The naive twin: a table gets noise of the same size whenever somebody asks."""

    answers: FixedAnswers
    records: tb.Records
    entropy: SeededEntropy = field(default_factory=lambda: SeededEntropy(6))

    def __getattr__(self, name):
        return getattr(self.answers, name)

    def answer(self, margin, *, asker=None, linear=False):
        work = tb.Workload(DOMAIN, [margin])
        plan = tb.plan(DOMAIN, work, privacy=tb.ZCDP(RHO), mechanism="margins", reconstruct="none")
        tally = self.records.tally([margin])
        values = measure(tally, plan, ExactSampler(self.entropy)).values[0]
        table = ReleasedTable(Table(DOMAIN.project(margin), values), plan.error_of(margin))
        return TableAnswer(table, self.answers.promise, plan)


def by_sex_and_age(caller):
    """Return every table of sex by age that can be made of what the service says, in whatever way it is asked."""
    path = "/api/datasets/town/tables"
    requests, readings = [], []

    def way(read, *asked):
        requests.extend(asked)
        readings.append((len(asked), read))

    def get(by, suffix="", **given):
        return ("GET", path + suffix, {"params": {"by": by, **given}})

    def counts(response):
        document = response.json()
        return np.reshape(document["count"], [len(v["levels"]) for v in document["variables"]])

    def file(read):
        return lambda response: read(io.BytesIO(response.content))["count"].to_numpy().reshape(2, 3)

    post = {"content": '{"by": ["sex", "age"]}', "headers": {"Content-Type": "application/json"}}
    way(counts, get(["sex", "age"]))
    way(counts, get(["sex", "age"], estimate="linear"))
    way(counts, ("POST", path, post))
    way(file(pyarrow.csv.read_csv), get(["sex", "age"], ".csv"))
    way(file(pyarrow.parquet.read_table), get(["sex", "age"], ".parquet"))
    way(lambda turned: counts(turned).T, get(["age", "sex"]))
    way(lambda *rows: np.array([*map(counts, rows)]), *(get("age", where=f"sex:{s}") for s in SEXES))
    way(lambda *columns: np.array([*map(counts, columns)]).T, *(get("sex", where=f"age:{a}") for a in AGES))
    way(
        lambda *cells: np.reshape([*map(counts, cells)], (2, 3)),
        *(get([], where=[f"sex:{s}", f"age:{a}"]) for s in SEXES for a in AGES),
    )
    way(
        lambda *kept: np.concatenate([*map(counts, kept)]),
        *(get(["sex", "age"], keep=f"sex:{s}") for s in SEXES),
    )
    way(lambda larger: counts(larger).sum(axis=0).T, get(["region", "age", "sex"]))
    way(lambda *parts: sum(map(counts, parts)), *(get(["sex", "age"], where=f"region:{r}") for r in REGIONS))

    responses = caller.ask_all(requests)
    assert {response.status_code for response in responses} == {200}
    given = iter(responses)
    return [read(*(next(given) for _ in range(number))) for number, read in readings]


def averaged(folder, state, key, *, naive):
    """Return the squared error of the mean of all that is said, in units of the noise, and how far answers differ.

    The service is started a second time, and remembers no response: nothing but the noise makes two answers alike.
    """
    found = []
    for start in range(2):
        records = tb.Records.from_arrow(people(COUNTS, DOMAIN), DOMAIN)
        with (Ledger.open if start else Ledger.create)(folder / f"{key.hex()}.sqlite") as ledger:
            answers = fixed(ledger, records, ALLOWED, RHO, key=key, name="town")
            served = FreshNoise(answers, records, SeededEntropy(100 * key[0] + start)) if naive else answers
            service = Service(
                {"town": ServedDataset("town", served)},
                state,
                ledger,
                cache=Cache(0),
                limits=GENEROUS,
            )
            found += by_sex_and_age(Caller(create_app(service)))
            answers.close()
    truth = tb.Table(DOMAIN, COUNTS).project("sex", "age").counts
    covariance = answers.plan.error_of(("sex", "age")).covariance.dense()
    return squared_errors(np.mean(found, axis=0), truth, covariance), np.ptp(found, axis=0).max()


KEYS = 4
# Six cells under each key: smaller errors than these are none of noise that is all there.
TOO_CLOSE = stats.chi2.ppf(UNLIKELY, 6 * KEYS)


def test_asking_in_every_way_and_after_a_restart_does_not_bring_the_mean_nearer(tmp_path, state):
    found = [averaged(tmp_path, state, secret("average", i), naive=False) for i in range(KEYS)]
    assert all(apart < 1e-9 for _, apart in found)
    assert TOO_CLOSE < sum(error for error, _ in found) < stats.chi2.isf(UNLIKELY, 6 * KEYS)


def test_on_a_builder_with_fresh_noise_the_same_questions_average_the_noise_away(tmp_path, state):
    found = [averaged(tmp_path, state, secret("average", i), naive=True) for i in range(KEYS)]
    assert all(apart > 1 for _, apart in found)
    assert sum(error for error, _ in found) < TOO_CLOSE


def test_a_thousand_times_the_same_question_is_one_answer(state, ledger):
    """Those that are made anew and those that are remembered, on two servers under one key."""
    bodies = []
    for times, cached in ((100, 1), (900, 1 << 20)):
        records = tb.Records.from_arrow(people(COUNTS, DOMAIN), DOMAIN)
        answers = fixed(ledger, records, ALLOWED, RHO, key=secret("again"), name="town")
        service = Service(
            {"town": ServedDataset("town", answers)},
            state,
            ledger,
            limits=GENEROUS,
            cache=Cache(cached),
        )
        get = ("GET", "/api/datasets/town/tables", {"params": {"by": ["sex", "region"]}})
        bodies += [response.content for response in Caller(create_app(service)).ask_all([get] * times)]
    assert (len(bodies), len(set(bodies))) == (1000, 1)
    assert len(ledger.account("town").entries()) == 1


# --- differencing -----------------------------------------------------------------------------------------------------

SALARIES = tb.Domain({"salary": ["below", "above"], "employed": ["a day", "longer"]})
EVERYTHING = AllowedTables(SALARIES, order=2)
PRICE = Fraction(1, 8)
# Enough for the twin to be caught: its attacker is right seven times in eight.
TRIALS = 50
# Of Gaussian noise: the best guess between two neighbours is right with probability Φ(√(2ρ) / 2).
BEST_GUESS = stats.norm.cdf(float(2 * PRICE) ** 0.5 / 2)


def workers(bob):
    """Forty who earn above and have been there for longer, and Bob, who came yesterday: everybody knows that much."""
    return {"salary": ["above"] * 40 + [bob], "employed": ["longer"] * 40 + ["a day"]}


def differences(answers):
    """Return the count of those above who came yesterday, by every difference of tables that gives it."""
    salary, employed, both, total = (
        answers.answer(m).table for m in (("salary",), ("employed",), ("salary", "employed"), ())
    )
    everybody = (
        total.counts.item() - both["below", "a day"] - both["below", "longer"] - both["above", "longer"]
    )
    return [
        salary["above"] - both["above", "longer"],
        employed["a day"] - both["below", "a day"],
        everybody,
        total.counts.item() - salary["below"] - both["above", "longer"],
    ]


def test_differences_of_tables_say_of_one_person_no_more_than_the_budget_allows(ledger):
    right, errors, every = 0, [], range(TRIALS)
    for bob in ("below", "above"):
        with tb.Records.from_arrow(pa.table(workers(bob)), SALARIES) as records:
            for i in every:
                answers = fixed(ledger, records, EVERYTHING, PRICE, key=secret(bob, i), name=f"{bob}{i}")
                found = differences(answers)
                # No difference holds other noise than the cell itself: there is nothing to average.
                assert np.ptp([*found, answers.answer(("salary", "employed")).table["above", "a day"]]) < 1e-9
                errors.append(found[0] - (bob == "above"))
                right += (found[0] > 0.5) == (bob == "above")
    spread = answers.plan.error_of(("salary", "employed")).standard_errors[1, 0]
    assert np.square(errors).sum() / spread**2 > stats.chi2.ppf(UNLIKELY, 2 * TRIALS)
    assert bounds(right, 2 * TRIALS)[0] <= BEST_GUESS


def test_on_a_builder_with_cell_keys_the_same_differences_give_bob_away():
    ptable = demonstration_ptable()
    right = 0
    for bob in ("below", "above"):
        for i in range(TRIALS):
            keys = record_keys(41, ptable.modulus, SeededEntropy(1000 * i + len(bob)))
            frame = pa.table(workers(bob) | {"record_key": keys})
            with KeyedRecords.from_frame(frame, SALARIES, keys=RecordKeys(modulus=ptable.modulus)) as records:
                answers = CellKeyAnswers.open(
                    records, EVERYTHING, ptable, dataset="town", version="1", secret=secret("zeros")
                )
                apart = differences(answers)[0] != 0
            assert not (apart and bob == "below")
            right += apart == (bob == "above")
    assert bounds(right, 2 * TRIALS)[0] > BEST_GUESS


# --- differencing across versions -------------------------------------------------------------------------------------

PLACES = tb.Domain({"place": range(40)})
TOWN = AllowedTables(PLACES, order=1)
BOBS_PLACE = 17


def fixed_version(ledger, records, version):
    return fixed(ledger, records, TOWN, PRICE, key=secret("versions"), name="town", version=version)


def interactive_version(ledger, records, version):
    return InteractiveAnswers.open(
        records,
        TOWN,
        cost=tb.ZCDP(PRICE),
        ledger=ledger,
        account=account(ledger, "town", 2 * PRICE),
        neighbours=NEAR,
        secret=secret("versions"),
        dataset="town",
        version=version,
    )


every_paid_method = pytest.mark.parametrize("version_of", [fixed_version, interactive_version])


def change_of_versions(ledger, version_of):
    """Return what two versions differ by, one with Bob and one without, and the covariance of one of them."""
    account(ledger, "ada", 4)
    counts = np.full(40, 9)
    shown = []
    for version in ("before", "after"):
        counts[BOBS_PLACE] += version == "after"
        with tb.Records.from_arrow(people(counts, PLACES), PLACES) as records:
            answers = version_of(ledger, records, version)
            shown.append(answers.answer(("place",), asker="ada").table)
    assert len(ledger.account("town").entries()) == 2
    return shown[1].counts - shown[0].counts, shown[0].covariance.dense()


@every_paid_method
def test_two_versions_of_the_data_have_noise_that_does_not_cancel(ledger, version_of):
    change, covariance = change_of_versions(ledger, version_of)
    squared = squared_errors(change, np.arange(40) == BOBS_PLACE, 2 * covariance)
    assert stats.chi2.ppf(UNLIKELY, 40) < squared < stats.chi2.isf(UNLIKELY, 40)


@every_paid_method
def test_one_noise_for_two_versions_would_give_bob_away(ledger, monkeypatch, version_of):
    monkeypatch.setattr(Edition, "noise_key", lambda self, secret, digest: derived_key(secret, self.dataset))
    change, _ = change_of_versions(ledger, version_of)
    assert np.allclose(change, np.arange(40) == BOBS_PLACE, atol=1e-9)
