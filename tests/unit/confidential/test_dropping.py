"""What a record that may be dropped makes of a neighbouring relation, and who asks about it."""

import pyarrow
import pytest

import tabulary as tb
from tabulary.confidential.dropping import counted_neighbours, dropping
from tabulary.confidential.tally_cache import TallyCache
from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidArgument, InvalidPlan, InvalidPrivacy
from tabulary.ledger import Ledger
from tabulary.mechanisms import measure
from tabulary.mechanisms.on_demand import check_measurable
from tabulary.noise import ExactSampler
from tabulary.planning import plan_from_description
from tabulary.release.promise import promise_of
from tabulary.synth.adaptive import AdaptivePlan
from tabulary.synth.counting import counted, neighbours_of
from tabulary.synth.mwem import MwemPlan
from tabulary.synth.rap_plan import RapPlan
from tabulary.workflows.perturbing import perturb

DOMAIN = tb.Domain({"sex": ["F", "M"], "hiv": ["no", "yes"]})
DROP = {"hiv": tb.Coding(unknown="drop")}
PUBLIC = "assumes that the number of counted records is public"
MAY_DROP = Neighbours("replace", may_drop=True)


def people(codings=DROP):
    rows = {"sex": ["F", "M", "F"], "hiv": ["no", "yes", None if codings else "no"]}
    return tb.Records.from_arrow(pyarrow.table(rows), DOMAIN, codings)


def planned(neighbours, mechanism="residual", **options):
    return tb.plan(
        DOMAIN,
        "[sex hiv]",
        privacy=tb.PureDP(1),
        neighbours=neighbours,
        mechanism=mechanism,
        reconstruct="none",
        **options,
    )


def test_records_say_for_which_attributes_they_are_dropped():
    assert people().drops == ("hiv",)
    assert people(None).drops == ()
    assert dropping(None) == ()


def test_a_replaced_record_that_may_be_dropped_makes_the_total_confidential():
    assert Neighbours("replace").total_is_public
    assert not MAY_DROP.total_is_public
    assert not Neighbours("add-remove").total_is_public
    assert counted_neighbours(Neighbours("replace", 3), ["hiv"]) == Neighbours("replace", 3, may_drop=True)


def test_for_added_and_removed_records_dropping_changes_nothing():
    assert counted_neighbours(Neighbours("add-remove"), ["hiv"]) == Neighbours("add-remove")
    assert Neighbours("add-remove", may_drop=True) == Neighbours("add-remove")


def test_a_sensitive_attribute_must_not_drop_and_any_other_may():
    sensitive = Neighbours("replace", sensitive=("hiv",))
    assert counted_neighbours(sensitive, ["sex"]) == sensitive
    with pytest.raises(
        InvalidPlan, match="unknown value of 'hiv' are dropped, and the attribute is sensitive"
    ):
        counted_neighbours(sensitive, ["sex", "hiv"])
    with pytest.raises(InvalidPrivacy, match="no table could be released exactly"):
        Neighbours("replace", sensitive=("hiv",), may_drop=True)
    with pytest.raises(InvalidPrivacy, match="may_drop must be True or False"):
        Neighbours("replace", may_drop="yes")


@pytest.mark.parametrize("mechanism", ["cells", "margins", "fourier", "efron-stein", "residual"])
def test_a_release_refuses_a_plan_that_takes_a_confidential_total_for_public(mechanism, tmp_path):
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        account = ledger.create_account("people", tb.PureDP(1), Neighbours("replace"))
        with pytest.raises(InvalidPlan, match=PUBLIC):
            tb.release(people(), planned("replace", mechanism), account)
        assert account.spent() is None
        tb.release(people(), planned(MAY_DROP, mechanism), account)
        assert account.spent() == tb.PureDP(1)


def test_the_bridge_to_a_measurement_refuses_it_too():
    plan = planned("replace")
    with pytest.raises(InvalidPlan, match=PUBLIC):
        measure(people().tally(plan.counted), plan, ExactSampler())
    with pytest.raises(InvalidPlan, match=PUBLIC):
        check_measurable(TallyCache(people()), plan)


def test_perturbed_tables_refuse_it_and_may_hold_the_total_where_it_has_noise():
    with pytest.raises(InvalidPlan, match=PUBLIC):
        perturb(people(), tb.perturb.Tables(DOMAIN, "[sex]", epsilon=1, neighbours="replace"))
    tables = tb.perturb.Tables(DOMAIN, "[][sex]", epsilon=1, neighbours=MAY_DROP)
    # A dropped record moves one cell of both tables, a replaced one two cells of the second.
    assert tables.d == 2
    assert tables.epsilon == 1
    perturb(people(), tables)
    with pytest.raises(InvalidArgument, match="nobody can change the table on"):
        tb.perturb.Tables(DOMAIN, "[][sex]", epsilon=1, neighbours="replace")


def test_a_total_alone_costs_what_one_dropped_record_moves():
    tables = tb.perturb.Tables(DOMAIN, "[]", epsilon=1, neighbours=MAY_DROP)
    assert tables.epsilon == 1
    assert tables.law(()).epsilon == 1


def test_a_synthesizer_buys_the_number_of_people_where_records_may_be_dropped():
    near = neighbours_of(people(), "replace")
    assert near == MAY_DROP
    assert neighbours_of(people(None), "replace").total_is_public
    asked = (DOMAIN, "[sex hiv]", tb.ZCDP(1))
    assert RapPlan.of(*asked, neighbours=near).total_noise is not None
    assert MwemPlan.of(*asked, neighbours=near).total_noise is not None
    assert not AdaptivePlan.of(*asked, neighbours=near, memory=1 << 20).total_is_public
    with pytest.raises(InvalidPlan, match=PUBLIC):
        counted(people(), [("sex",)], Neighbours("replace"))
    made = tb.synth.mwem(people(), "[sex hiv]", tb.ZCDP(1), neighbours="replace", rows=3, rounds=1)
    assert "records may be dropped" in made.guarantee


def test_the_toolbox_refuses_a_relation_in_which_the_number_of_values_is_confidential():
    with pytest.raises(InvalidPrivacy, match="assume that the number of values is public"):
        tb.toolbox.count([True], privacy=tb.PureDP(1), neighbours=MAY_DROP)


@pytest.mark.slow
def test_dropping_hardly_costs_accuracy_since_the_total_takes_what_is_left():
    for shape in ((2, 2, 2, 2, 2, 2), (2, 5, 10, 4), (3, 3)):
        domain = tb.Domain({f"x{i}": range(k) for i, k in enumerate(shape)})
        work = tb.Workload.k_way(domain, 2)
        for privacy in (tb.PureDP(1), tb.ZCDP("1/8")):

            def error(neighbours, domain=domain, work=work, privacy=privacy):
                made = tb.plan(domain, work, privacy=privacy, neighbours=neighbours, reconstruct="none")
                return made.expected_rmse

            assert error("replace") <= error(MAY_DROP) <= 1.01 * error("replace")


def test_the_description_of_a_plan_holds_it_and_nobody_can_take_it_out():
    plan = planned(MAY_DROP)
    described = plan.describe()
    assert described["neighbours"]["may_drop"] is True
    assert plan_from_description(described) == plan
    assert "How many of them were counted is protected" in str(promise_of(plan).not_promised)


def test_the_remedy_keeps_the_contribution_bound_of_the_plan():
    plan = planned(Neighbours("replace", 3))
    with pytest.raises(InvalidPlan, match=r'Neighbours\("replace", 3, may_drop=True\)'):
        tb.release(people(), plan)
    tb.release(people(), planned(Neighbours("replace", 3, may_drop=True)))
