"""A source without a record is released like any other: it and a source of one record may be neighbours."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tabulary as tb
from tabulary.cellkey import KeyedRecords, PTable, RecordKeys
from tabulary.confidential.coding import Coding
from tabulary.confidential.records import Records
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.errors import UnreadableSource
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering.cell_key import CellKeyAnswers
from tabulary.workflows.answering.fixed import FixedAnswers
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tabulary.workflows.perturbing import perturb
from tests.counters import ELSEWHERE, READ_HERE, SPARK, Places, places  # noqa: F401 - a fixture

DOMAIN = Domain({"sex": ["F", "M"], "job": ["none", "paid", "own"]})
WITH_ZEROS = Domain(
    {"sex": ["F", "M"], "job": ["none", "paid", "own"]}, structural_zeros=[{"sex": "F", "job": "own"}]
)
MARGINS = [("sex", "job"), ("sex",), ()]


def nobody(**columns: pa.DataType) -> pa.Table:
    kinds = {"sex": pa.string(), "job": pa.string()} | columns
    return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})


def records_of_nobody(domain: Domain = DOMAIN) -> Records:
    return Records.from_arrow(nobody(), domain)


def check_zeros(records: Records) -> None:
    with records:
        tally = records.tally(MARGINS)
    assert [tally.exact(margin).shape for margin in MARGINS] == [(2, 3), (2,), ()]
    assert not any(tally.exact(margin).any() for margin in MARGINS)


@pytest.mark.parametrize("counted_by", READ_HERE)
@pytest.mark.parametrize("domain", [DOMAIN, WITH_ZEROS], ids=["all possible", "structural zeros"])
def test_no_record_is_counted_as_zero_in_every_cell(counted_by: Any, domain: Domain) -> None:
    check_zeros(counted_by(nobody(), domain))


@pytest.mark.parametrize("engine", [*ELSEWHERE, SPARK])
def test_an_engine_elsewhere_counts_no_record_as_zero_in_every_cell(engine: str, places: Places) -> None:  # noqa: F811
    check_zeros(getattr(places, engine)(nobody(), WITH_ZEROS))
    check_zeros(getattr(places, engine)(nobody(), DOMAIN, codings={"sex": Coding(unknown="drop")}))


@pytest.mark.parametrize("engine", ["compiled", "duckdb"])
def test_a_header_alone_is_a_source_of_no_record_and_no_header_is_none(engine: str, tmp_path: Path) -> None:
    (tmp_path / "header.csv").write_text("sex,job\n")
    check_zeros(Records.from_file(tmp_path / "header.csv", DOMAIN, engine=engine))
    (tmp_path / "nothing.csv").write_text("")
    with pytest.raises(UnreadableSource, match="it has no header"):
        Records.from_file(tmp_path / "nothing.csv", DOMAIN, engine=engine)


def test_no_weights_add_up_to_nothing_and_records_that_are_all_dropped_to_no_record() -> None:
    weighted = Records.from_arrow(nobody(w=pa.float64()), DOMAIN, weights=Weights("w", 2, unit=1))
    check_zeros(weighted)
    dropped = pa.table({"sex": ["?", None], "job": ["none", "own"]})
    check_zeros(Records.from_arrow(dropped, DOMAIN, {"sex": Coding(unknown="drop")}))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("domain", [DOMAIN, WITH_ZEROS], ids=["all possible", "structural zeros"])
@pytest.mark.parametrize(
    ("mechanism", "reconstruct", "rounding"),
    [
        ("auto", "auto", "none"),
        ("cells", "least-squares", "controlled"),
        ("margins", "lp", "none"),
        ("fourier", "least-squares", "none"),
        ("efron-stein", "lp", "nearest"),
        ("residual", "shrink", "none"),
        ("residual", "shrink", "controlled"),
    ],
)
def test_a_release_of_nobody_is_saved_verified_and_made_into_rows(
    neighbours: Any, domain: Domain, mechanism: str, reconstruct: str, rounding: str, tmp_path: Path
) -> None:
    plan = tb.plan(
        domain,
        "[sex job][job]",
        privacy=tb.PureDP(1),
        neighbours=neighbours,
        mechanism=mechanism,
        reconstruct=reconstruct,
        rounding=rounding,
    )
    released = tb.release(records_of_nobody(domain), plan)
    released.save(tmp_path / "out")
    tb.Release.load(tmp_path / "out").verify()
    if plan.reconstruct != "none":
        assert len(tb.synth.from_release(released, rows=7)) == 7


def test_a_release_that_counts_nobody_gives_rows_that_are_spread_over_the_possible_cells() -> None:
    plan = tb.plan(
        WITH_ZEROS, "[sex job]", privacy=tb.PureDP(1000), mechanism="cells", reconstruct="least-squares"
    )
    released = tb.release(records_of_nobody(WITH_ZEROS), plan)
    assert released["sex", "job"].total == 0
    rows = tb.synth.from_release(released, rows=500)
    assert rows.table("sex", "job").counts.tolist() == [[100, 100, 0], [100, 100, 100]]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_synthesizers_make_rows_of_nobody(neighbours: Any) -> None:
    asked = {"rows": 5, "neighbours": neighbours}
    assert len(tb.synth.mwem(records_of_nobody(), "[sex job][sex]", tb.PureDP(1), rounds=2, **asked)) == 5
    fitted = {"relaxed_rows": 5, "steps": 2, **asked}
    assert len(tb.synth.rap(records_of_nobody(), "[sex job]", tb.ZCDP(1), **fitted)) == 5
    assert len(tb.synth.graphical(records_of_nobody(), "[sex job]", tb.ZCDP(1), rounds=3, **asked)) == 5
    assert len(tb.synth.mwem(records_of_nobody(), "[sex]", tb.PureDP(1000), neighbours=neighbours)) == 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("reconstruct", ["none", "shrink"])
def test_a_table_builder_answers_about_nobody(neighbours: Any, reconstruct: str, tmp_path: Path) -> None:
    allowed, near = AllowedTables(DOMAIN, order=2), tb.Neighbours(neighbours)
    named = {"secret": bytes(32), "dataset": "people", "version": "1"}
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        account = ledger.create_account("people", tb.PureDP(100), near)
        ledger.create_account("ada", tb.PureDP(100), near)
        paid = {"neighbours": near, "account": account, **named}
        fixed = FixedAnswers.open(
            records_of_nobody(), allowed, privacy=tb.PureDP(1), reconstruct=reconstruct, **paid
        )
        priced = {"cost": tb.PureDP(1), "ledger": ledger, **paid, "dataset": "others"}
        interactive = InteractiveAnswers.open(records_of_nobody(), allowed, **priced)
        for answers in (fixed, interactive):
            assert np.isfinite(answers.answer(("sex", "job"), asker="ada").table.counts).all()
            answers.close()


def test_perturbed_tables_and_cell_keys_of_nobody_are_published() -> None:
    tables = tb.perturb.Tables(DOMAIN, "[sex job][sex]", epsilon=1)
    assert perturb(records_of_nobody(), tables, minimum=0)["sex", "job"].counts.shape == (2, 3)
    keyed = KeyedRecords.from_frame(nobody(record_key=pa.int64()), DOMAIN, keys=RecordKeys(modulus=4))
    ptable = PTable.from_array([[0, 0, 0, 0], [1, 0, 0, -1]], above="last")
    answers = CellKeyAnswers.open(
        keyed, AllowedTables(DOMAIN, order=2), ptable, dataset="people", version="1"
    )
    assert not answers.answer(("sex", "job")).table.counts.any()
