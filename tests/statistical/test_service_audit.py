"""The whole service as a mechanism: records go in, HTTP responses come out, and the promise holds in between.

Two neighbouring datasets are served under many keys. From the responses, an observer who knows everything else computes
how likely either dataset is; an event that is likely on one and unlikely on the other bounds the loss from below. With
confidence 1 - 10⁻⁶ a bound above the promise is a broken promise. Each audit accepts the service as it is and rejects
the same service with noise at seven tenths of its scale.
"""

import hashlib
import math
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tabulary as tb
from tabulary.builder.app import create_app
from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.state import State
from tabulary.core.privacy import gaussian_delta
from tabulary.ledger import Ledger
from tabulary.mechanisms.on_demand import MeasuredOnDemand
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering import interactive
from tabulary.workflows.answering.fixed import FixedAnswers, plan_of_allowed_tables
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tests.builders import GENEROUS, Caller, people
from tests.twins import SABOTAGED, SeededTwin, bounds

NEAR = tb.Neighbours()


def secret(*words):
    return hashlib.sha256(repr(words).encode()).digest()


def sabotage(monkeypatch):
    """Make every noise of the service smaller, from the same keys."""

    def smaller(entropy):
        return SeededTwin(SABOTAGED, entropy)

    monkeypatch.setitem(MeasuredOnDemand.__init__.__kwdefaults__, "sampler", smaller)
    monkeypatch.setattr(interactive, "ExactSampler", smaller)


@contextmanager
def books():
    """A ledger and a state on a disk in memory, if there is one: thousands of debits are waited for."""
    shared = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder,
        Ledger.create(f"{folder}/ledger.sqlite") as ledger,
        State.create(f"{folder}/state.sqlite") as state,
    ):
        yield ledger, state


def asked(app, requests, token=None):
    """Return the documents of all answers, asked for a few at a time."""
    caller = Caller(app, token)
    found = []
    for i in range(0, len(requests), 50):
        gets = [("GET", path, {"params": params}) for path, params in requests[i : i + 50]]
        found += caller.ask_all(gets)
    assert {response.status_code for response in found} == {200}
    return [response.json() for response in found]


# --- fixed ------------------------------------------------------------------------------------------------------------

DOMAIN = tb.Domain({"a": "xy", "b": "xyz"})
ALLOWED = AllowedTables(DOMAIN, order=2)
RHO, EPSILON = 2, 1
# Computed from the binomial laws of both counts: the twin is missed in one run in forty thousand.
KEYS = 1200


def served(counts, *arm):
    """Return the table on all attributes as `KEYS` services show it, asked for among all others in some order."""
    records = tb.Records.from_arrow(people(counts, DOMAIN), DOMAIN)
    generator = np.random.default_rng(len(arm[0]))
    orders = [("a", "b"), ("b", "a"), ("a",), ("b",), ()]
    with books() as (ledger, state):
        datasets = {}
        for i in range(KEYS):
            name = f"town{i}"
            answers = FixedAnswers.open(
                records,
                ALLOWED,
                privacy=tb.ZCDP(RHO),
                neighbours=NEAR,
                account=ledger.create_account(name, tb.ZCDP(RHO), NEAR),
                secret=secret(*arm, i),
                dataset=name,
                version="1",
                reconstruct="none",
            )
            datasets[name] = ServedDataset(name, answers)
        app = create_app(Service(datasets, state, ledger, limits=GENEROUS))
        requests, places = [], []
        for name in datasets:
            order = generator.permutation(len(orders))
            places.append(len(requests) + int(np.flatnonzero(order == 0)[0]))
            requests += [(f"/api/datasets/{name}/tables", {"by": list(orders[i])}) for i in order]
        documents = asked(app, requests)
    for first in range(0, len(documents), len(orders)):
        agree(documents[first : first + len(orders)])
    return np.array([documents[place]["count"] for place in places])


def agree(documents):
    """All tables of one service are margins of one another: the largest says all that any of them says."""
    by = {tuple(d["question"]["by"]): np.array(d["count"]) for d in documents}
    whole = by["a", "b"].reshape(2, 3)
    assert np.allclose(by["b", "a"].reshape(3, 2), whole.T, atol=1e-9)
    assert np.allclose(by["a",], whole.sum(axis=1), atol=1e-9)
    assert np.allclose(by["b",], whole.sum(axis=0), atol=1e-9)
    assert np.allclose(by[()], whole.sum(), atol=1e-9)


def delta_shown(sabotaged):
    r"""Return a lower bound of δ at `EPSILON` that the responses prove.

    The estimate x̂ of the full table is sufficient for what a Gaussian mechanism measured: log-likelihoods of the two
    datasets differ by Δᵀ Σ⁻¹ (x̂ - x) - ½ Δᵀ Σ⁻¹ Δ, with Σ from the public plan.
    """
    without = np.full(DOMAIN.shape, 7)
    within = without.copy()
    within[1, 2] += 1
    plan = plan_of_allowed_tables(ALLOWED, privacy=tb.ZCDP(RHO), neighbours=NEAR, reconstruct="none")
    # More than one part, so that the audit is one of their sum.
    assert len(plan.measured) > 1
    change = (within - without).reshape(-1)
    weights = np.linalg.solve(plan.error_of(("a", "b")).covariance.dense(), change)
    assert weights @ change == pytest.approx(2 * RHO, rel=1e-3)

    def times(counts, word):
        shown = served(counts, word, sabotaged)
        loss = (shown - without.reshape(-1)) @ weights - weights @ change / 2
        return int((loss > EPSILON).sum())

    low, high = bounds(times(within, "within"), KEYS)[0], bounds(times(without, "without"), KEYS)[1]
    return low - math.exp(EPSILON) * high


# Discrete Gaussians of these sizes are within one percent of continuous ones here.
LARGEST_DELTA = gaussian_delta(EPSILON, RHO) * 1.01


@pytest.mark.audit
def test_all_answers_of_a_fixed_service_together_keep_its_promise():
    assert delta_shown(sabotaged=False) <= LARGEST_DELTA


@pytest.mark.audit
def test_a_fixed_service_with_noise_at_seven_tenths_of_its_scale_is_found_out(monkeypatch):
    sabotage(monkeypatch)
    assert delta_shown(sabotaged=True) > LARGEST_DELTA


# --- interactive ------------------------------------------------------------------------------------------------------

QUESTIONS = 50
WIDE = tb.Domain({f"q{i}": "xy" for i in range(QUESTIONS)})
PRICE = 2
# As above: with these the twin is missed in one run in four thousand.
SERVICES = 24


def paid_for(people_in_x, *arm):
    """Return the first cell of every table of one attribute, each a new question, from `SERVICES` services."""
    lists = {a: ["x"] * people_in_x + ["y"] * 5 for a in WIDE.attributes}
    records = tb.Records.from_arrow(pa.table(lists), WIDE)
    with books() as (ledger, state):
        ledger.create_account("ada", tb.PureDP(PRICE * QUESTIONS * SERVICES), NEAR)
        _, token = state.tokens.add("ada", "analyst", account="ada")
        datasets = {}
        for i in range(SERVICES):
            name = f"town{i}"
            answers = InteractiveAnswers.open(
                records,
                AllowedTables(WIDE, order=1),
                cost=tb.PureDP(PRICE),
                ledger=ledger,
                account=ledger.create_account(name, tb.PureDP(PRICE * QUESTIONS), NEAR),
                neighbours=NEAR,
                secret=secret(*arm, i),
                dataset=name,
                version="1",
            )
            datasets[name] = ServedDataset(name, answers, account=name)
        app = create_app(Service(datasets, state, ledger, limits=GENEROUS))
        requests = [(f"/api/datasets/{n}/tables", {"by": a}) for n in datasets for a in WIDE.attributes]
        shown = [document["count"][0] for document in asked(app, requests, token)]
        assert ledger.account("ada").remaining() is None
    return np.array(shown)


def epsilon_shown(sabotaged):
    """Return a lower bound of ε of one question that the responses prove: the event of the largest loss."""
    trials = SERVICES * QUESTIONS
    within, without = (
        int((paid_for(people_in_x, word, sabotaged) >= 8).sum())
        for people_in_x, word in ((8, "within"), (7, "without"))
    )
    return math.log(bounds(within, trials)[0] / bounds(without, trials)[1])


@pytest.mark.audit
def test_every_answer_of_an_interactive_service_keeps_what_it_was_paid_for():
    assert epsilon_shown(sabotaged=False) <= PRICE


@pytest.mark.audit
def test_an_interactive_service_with_noise_at_seven_tenths_of_its_scale_is_found_out(monkeypatch):
    sabotage(monkeypatch)
    assert epsilon_shown(sabotaged=True) > PRICE
