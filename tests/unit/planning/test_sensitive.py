import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.errors import InvalidPlan, InvalidPrivacy, InvalidWorkload, LedgerError
from tabulary.mechanisms import measure
from tabulary.planning import plan_from_description
from tests.samplers import ConstantSampler


def _plan(domain, work, **options):
    asked = {"privacy": tb.PureDP(1), "neighbours": "replace", "sensitive": ["a1"], "mechanism": "fourier"}
    return tb.plan(domain, work, **(asked | options))


@pytest.mark.parametrize("k", [4, 5, 7])
def test_all_three_way_margins_and_one_sensitive_attribute_need_the_published_number_of_noisy_coefficients(k):
    domain = tb.Domain({f"a{i}": "01" for i in range(1, k + 1)})
    plan = _plan(domain, tb.Workload.k_way(domain, 3))
    assert len(plan.measured) == math.comb(k - 1, 2) + math.comb(k, 2) + k + 1
    assert len(plan.exact) == math.comb(k - 1, 3)
    assert not any("a1" in s for s in plan.exact)


@st.composite
def sensitive_plans(draw):
    sizes = draw(st.lists(st.integers(2, 3), min_size=2, max_size=3))
    domain = tb.Domain({f"a{i + 1}": range(size) for i, size in enumerate(sizes)})
    every = tb.Workload.all_up_to(domain, len(sizes)).margins
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    if not any("a1" in margin for margin in chosen):
        chosen = [*chosen, ("a1",)]
    privacy = draw(st.sampled_from([tb.PureDP(1), tb.ZCDP(1)]))
    return _plan(domain, tb.Workload(domain, chosen), privacy=privacy, mechanism="efron-stein")


@given(sensitive_plans())
@settings(max_examples=40)
def test_records_that_differ_in_sensitive_values_move_the_noisy_part_by_the_sensitivity_and_the_exact_part_not(
    plan,
):
    def values(cell):
        counts = np.zeros(plan.domain.shape, dtype=np.int64)
        counts[cell] = 1
        tally = Tally.from_table(tb.Table(plan.domain, counts), plan.counted)
        found = [v.reshape(-1) for v in measure(tally, plan, ConstantSampler()).values]
        noisy = len(plan.measured)
        return np.concatenate(found[:noisy]), np.concatenate([*found[noisy:], np.zeros(0, dtype=np.int64)])

    cells = list(np.ndindex(*plan.domain.shape))
    furthest = 0.0
    for x, y in product(cells, repeat=2):
        if x[1:] == y[1:]:
            (noisy, exact), (other, same) = values(x), values(y)
            furthest = max(furthest, np.linalg.norm(noisy - other, 1 if plan.norm == "L1" else 2))
            assert (exact == same).all()
    assert furthest == pytest.approx(float(plan.sensitivity))


def test_what_is_exact_is_listed_in_the_manifest_and_the_promise_says_so(tmp_path):
    table = tb.Table(tb.Domain({f"a{i}": "01" for i in range(1, 5)}), np.arange(16).reshape(2, 2, 2, 2))
    plan = _plan(table.domain, tb.Workload.k_way(table.domain, 3))
    tb.release(table, plan).save(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["plan"]["exact"] == [["a2", "a3", "a4"]]
    assert manifest["plan"]["neighbours"]["sensitive"] == ["a1"]
    assert "'a1'" in manifest["promise"]["protected"]
    assert any("exactly" in sentence for sentence in manifest["promise"]["not_promised"])
    assert tb.Release.load(tmp_path / "out").plan == plan


def test_a_description_that_releases_a_sensitive_set_exactly_is_refused():
    domain = tb.Domain({f"a{i}": "01" for i in range(1, 4)})
    description = _plan(domain, tb.Workload.k_way(domain, 2)).describe()
    moved = description["measured"].pop()
    assert "a1" in moved["attributes"]
    kept = {**description, "exact": [*description["exact"], moved["attributes"]]}
    with pytest.raises(InvalidPlan, match="only sets without a sensitive attribute may be released exactly"):
        plan_from_description(json.loads(json.dumps(kept)))
    without = {**description, "neighbours": tb.Neighbours("replace").describe()}
    with pytest.raises(InvalidPlan, match="only sets without a sensitive attribute may be released exactly"):
        plan_from_description(json.loads(json.dumps(without)))


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"neighbours": "add-remove"}, InvalidPrivacy, "use neighbours = 'replace'"),
        ({"mechanism": "margins"}, InvalidPlan, "'margins' protects all attributes alike"),
        ({"reconstruct": "lp"}, InvalidPlan, "only reconstruct = 'none' and 'shrink' keep them so"),
        ({"sensitive": ["planet"]}, InvalidWorkload, "no attribute 'planet'"),
        ({"sensitive": ["a4"]}, InvalidPlan, "must be among those of the tables"),
    ],
)
def test_sensitive_attributes_in_the_wrong_company_are_refused(options, error, reason):
    domain = tb.Domain({f"a{i}": "01" for i in range(1, 5)})
    with pytest.raises(error, match=reason):
        _plan(domain, "[a1 a2][a2 a3]", **options)


def test_no_account_pays_for_a_plan_that_protects_less_than_it_promises(tmp_path):
    table = tb.Table(tb.Domain({"a1": "01", "a2": "01"}), [[1, 2], [3, 4]])
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        account = ledger.create_account("people", tb.PureDP(5), tb.Neighbours("replace"))
        with pytest.raises(LedgerError, match="neighbours"):
            tb.release(table, _plan(table.domain, "[a1 a2]"), ledger=account)
        assert account.spent() is None
        with pytest.raises(LedgerError, match="every attribute"):
            ledger.create_account("some", tb.PureDP(5), tb.Neighbours("replace", sensitive=("a1",)))


@pytest.mark.parametrize(
    ("levels", "zeros"),
    [
        ((2, 3), [{"a2": 0}]),
        ((3, 2), [{"a1": 1}]),
        ((3, 2), [{"a1": 2, "a2": 1}, {"a1": 0}]),
        ((3, 3), [{"a1": 2, "a2": 1}, {"a1": 0}, {"a2": 0}]),
        ((2, 2, 2), [{"a2": 1}]),
        ((2, 2, 2), [{"a1": 0, "a3": 1}]),
        ((4, 2), [{"a1": 3}]),
    ],
)
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP(1)])
def test_with_structural_zeros_the_sensitivity_is_the_largest_change_between_possible_records(
    levels, zeros, privacy
):
    domain = tb.Domain({f"a{i + 1}": range(size) for i, size in enumerate(levels)}, structural_zeros=zeros)
    work = tb.Workload.all_up_to(domain, len(levels))
    plan = _plan(domain, work, privacy=privacy, mechanism="auto")
    cells = [cell for cell in np.ndindex(*levels) if not domain.impossible(domain.attributes)[cell]]

    def measured(cell):
        counts = np.zeros(levels, dtype=np.int64)
        counts[cell] = 1
        found = measure(
            Tally.from_table(tb.Table(domain, counts), plan.counted), plan, ConstantSampler()
        ).values
        return np.concatenate([v.reshape(-1) for v in found])

    norm = 1 if plan.norm == "L1" else 2
    changes = [
        np.linalg.norm(measured(x) - measured(y), norm) for x, y in product(cells, repeat=2) if x[1:] == y[1:]
    ]
    assert max(changes) == pytest.approx(float(plan.sensitivity))


def test_impossible_cells_of_a_plan_with_sensitive_attributes_are_published_as_zero(tmp_path):
    domain = tb.Domain({"a1": "01", "a2": "xyz"}, structural_zeros=[{"a2": "z"}, {"a1": "0", "a2": "y"}])
    plan = _plan(domain, "[a1 a2][a2]", mechanism="auto")
    released = tb.release(tb.Table(domain, [[3, 0, 0], [5, 7, 0]]), plan)
    assert not released["a1", "a2"].counts[domain.impossible(("a1", "a2"))].any()
    assert not released["a1", "a2"].standard_errors[domain.impossible(("a1", "a2"))].any()
    released.save(tmp_path / "out")
    tb.Release.load(tmp_path / "out").verify()


def test_attributes_written_as_bits_with_codes_to_spare_are_refused_with_the_mechanism_to_use_instead():
    domain = tb.Domain({"a1": "01", "a2": "xyz"})
    with pytest.raises(InvalidPlan, match="'efron-stein', which takes attributes as they are"):
        _plan(domain, "[a1 a2]", mechanism="fourier")


def test_a_sensitive_attribute_of_one_possible_level_leaves_nothing_to_protect():
    domain = tb.Domain({"a1": "01", "a2": "xyz"}, structural_zeros=[{"a1": "1"}])
    with pytest.raises(InvalidPlan, match="no person can change"):
        _plan(domain, "[a1 a2]", mechanism="auto")
