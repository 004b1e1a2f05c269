"""The files in which ptables travel: what is read, what is written, what is refused."""

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings

from tabulary.cellkey import PTable
from tabulary.errors import InvalidArgument, InvalidNoise, UnreadableSource
from tests.unit.cellkey.ptables import ptables

LONG = "pcv,ckey,pvalue\n1,0,-1\n1,1,0\n2,0,1\n2,1,0\n"
# As R's export for SAS writes it: semicolons, and numbers padded to one width.
INTERVALS = (
    "i;j;p;v;p_int_lb;p_int_ub\n"
    "0; 0;1.0000000; 0;0.0000000;1.0000000\n"
    "1; 0;0.2500000;-1;0.0000000;0.2500000\n"
    "1; 1;0.5000000; 0;0.2500000;0.7500000\n"
    "1; 2;0.2500000; 1;0.7500000;1.0000000\n"
)


@pytest.fixture
def written(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "ptable.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@same_folder
@given(ptables())
def test_the_long_layout_is_read_as_it_was_written(tmp_path, ptable):
    ptable.to_csv(tmp_path / "p.csv")
    assert PTable.from_csv(tmp_path / "p.csv", above=ptable.above) == ptable


@same_folder
@given(ptables())
def test_the_interval_layout_is_read_as_it_was_written(tmp_path, ptable):
    ptable.to_csv(tmp_path / "p.csv", layout="intervals")
    again = PTable.from_csv(tmp_path / "p.csv", modulus=ptable.modulus, above=ptable.above)
    assert again == ptable
    assert again.rounding == 0


@same_folder
@given(ptables())
def test_intervals_without_a_number_of_keys_lose_nothing(tmp_path, ptable):
    ptable.to_csv(tmp_path / "p.csv", layout="intervals")
    again = PTable.from_csv(tmp_path / "p.csv")
    assert again.above == "last"
    assert again.rounding == 0
    assert set(str(again.modulus)) == {"1", "0"}
    for pcv in range(ptable.first, ptable.last + 1):
        assert again.probabilities(pcv) == ptable.probabilities(pcv)


def test_the_long_layout_of_the_ons(written):
    ptable = PTable.from_csv(written(LONG))
    assert (ptable.first, ptable.last, ptable.modulus, ptable.above) == (1, 2, 2, "refuse")
    assert [ptable.pvalue(1, 0), ptable.pvalue(1, 1), ptable.pvalue(2, 0)] == [-1, 0, 1]


def test_the_order_of_lines_and_columns_quotes_and_a_byte_order_mark_do_not_matter(written):
    shuffled = '"ckey","PVALUE","pcv"\r\n1,0,2\r\n0,-1,1\r\n0,1,2\r\n1,0,1\r\n'
    assert PTable.from_csv(written(shuffled, "utf-8-sig")) == PTable.from_csv(written(LONG))


def test_a_row_zero_of_the_long_layout_perturbs_zeros(written):
    assert PTable.from_csv(written("pcv,ckey,pvalue\n0,0,1\n0,1,0\n")).perturbs_zeros


def test_the_interval_layout_of_r(written):
    ptable = PTable.from_csv(written(INTERVALS))
    assert (ptable.first, ptable.last, ptable.modulus, ptable.above) == (0, 1, 100, "last")
    assert [ptable.pvalue(7, key) for key in (0, 24, 25, 74, 75, 99)] == [-1, -1, 0, 0, 1, 1]
    assert not ptable.perturbs_zeros


def test_a_key_stands_for_its_fraction_of_the_interval(written):
    ptable = PTable.from_csv(written(INTERVALS), modulus=10)
    # 2/10 lies below 0.25 and 3/10 does not; 7/10 below 0.75, 8/10 not.
    assert [ptable.pvalue(1, key) for key in range(10)] == [-1] * 3 + [0] * 5 + [1] * 2
    assert ptable.rounding == Fraction(1, 20)


def test_the_export_for_tau_argus_has_no_lower_ends(written):
    lines = [line.split(";") for line in INTERVALS.splitlines()]
    text = "\n".join(";".join(line[:4] + line[5:]) for line in lines) + "\n"
    assert PTable.from_csv(written(text)) == PTable.from_csv(written(INTERVALS))


def test_intervals_with_row_names_and_a_type_are_read(written):
    lines = INTERVALS.replace(";", ",").splitlines()
    named = [f'"{n}",{line},all' for n, line in enumerate(lines[1:], start=1)]
    for head in (f'"",{lines[0]},type', f"{lines[0]},type"):
        text = "\n".join([head, *named]) + "\n"
        assert PTable.from_csv(written(text)) == PTable.from_csv(written(INTERVALS))


def test_a_modified_table_may_give_one_offset_several_intervals(written):
    text = "i,v,p_int_ub\n0,0,1\n1,1,0.2\n1,-1,0.5\n1,1,0.7\n1,0,1\n"
    assert PTable.from_csv(written(text)).probabilities(1) == {
        -1: Fraction(3, 10),
        0: Fraction(3, 10),
        1: Fraction(4, 10),
    }


def test_boundaries_that_r_rounded_apart_in_the_last_digit_are_one(written):
    text = INTERVALS.replace("0.2500000;0.7500000", "0.25000001;0.7500000")
    assert PTable.from_csv(written(text)) == PTable.from_csv(written(INTERVALS))


def test_the_wide_layout_of_r(written):
    ptable = PTable.from_csv(written('"V1","V2"\n-1,0\n0,-2\n1,2\n0,0\n'))
    assert (ptable.first, ptable.last, ptable.modulus, ptable.above) == (1, 2, 4, "last")
    assert [ptable.pvalue(2, key) for key in range(4)] == [0, -2, 2, 0]
    with_names = written('"","V1","V2"\n"1",-1,0\n"2",0,-2\n"3",1,2\n"4",0,0\n')
    assert PTable.from_csv(with_names) == ptable


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", UnreadableSource, "empty"),
        ("pcv,ckey,pvalue\n", UnreadableSource, "empty"),
        ("a,b,c\n1,2,3\n", UnreadableSource, "known headers"),
        ("V1,V3\n1,2\n", UnreadableSource, "known headers"),
        ("pcv,ckey,ckey,pvalue\n1,0,0,0\n", UnreadableSource, "two columns with the same name"),
        ("pcv,ckey,pvalue\n1,0\n", UnreadableSource, "line 2"),
        (LONG.replace("1,1,0\n", ""), InvalidNoise, "gap.*missing"),
        (LONG.replace("2,0,1\n2,1,0\n", "3,0,1\n3,1,0\n"), InvalidNoise, "gap.*missing"),
        (LONG + "2,1,0\n", InvalidNoise, "gap.*twice"),
        (LONG.replace("1,1,0", "1,0,0"), InvalidNoise, "gap.*twice"),
        (LONG.replace("1,1,0", "1,900000000000,0"), InvalidNoise, "gap.*missing"),
        (LONG.replace("1,1,0", "1,1,0.5"), InvalidNoise, "pvalue in line 3 .*not a whole number"),
        (LONG.replace("1,1,0", "1,1,"), InvalidNoise, "pvalue in line 3 is missing"),
        (LONG.replace("1,1,0", "1,1,NaN"), InvalidNoise, "pvalue in line 3"),
        (LONG.replace("1,1,0", "1,NA,0"), InvalidNoise, "ckey in line 3"),
        (LONG.replace("1,0,-1", "1,0,-2"), InvalidNoise, "negative count"),
        (LONG.replace(",1,", ",-1,"), InvalidNoise, "negative ckey"),
        ("pcv,ckey,pvalue\n2,0,0\n2,1,0\n", InvalidNoise, "begins at pcv = 2"),
        (INTERVALS.replace("0.2500000;0.7500000", "0.3500000;0.7500000"), InvalidNoise, "i = 1: a hole"),
        (INTERVALS.replace("0.2500000;0.7500000", "0.1500000;0.7500000"), InvalidNoise, "i = 1: an overlap"),
        (INTERVALS.replace("0.7500000;1.0000000", "0.7500000;0.9900000"), InvalidNoise, "not the length"),
        (INTERVALS.rsplit("\n", 2)[0] + "\n", InvalidNoise, "hole between the last interval and 1"),
        (INTERVALS.replace("\n1;", "\n2;").replace("; 0;0.25", "; 1;0.25"), InvalidNoise, "j is not i"),
        (INTERVALS.replace("1; 1;0.5", "1; 2;0.5"), InvalidNoise, "j is not i"),
        ("i;v;p_int_ub\n0;0;1\n2;0;1\n", InvalidNoise, "gap: there is no row i = 1"),
        ("i;v;p_int_ub\n3;0;1\n", InvalidNoise, "begins at i = 3"),
        ("i;v;p_int_ub\n0;0;nan\n", InvalidNoise, "p_int_ub in line 2"),
        ("i;v;p_int_ub;type\n0;0;1;even\n", InvalidNoise, "magnitudes"),
        ("i;v;p_int_ub\n0;0;0.1234567890123456789\n0;1;1\n", InvalidNoise, "modulus="),
        ("V1,V2\n0,0\n1,x\n", InvalidNoise, "v2 in line 3"),
    ],
)
def test_a_file_that_is_no_whole_table_is_refused_with_the_reason(written, text, error, said):
    with pytest.raises(error, match=said):
        PTable.from_csv(written(text))


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path, written):
    with pytest.raises(UnreadableSource, match="does not exist"):
        PTable.from_csv(tmp_path / "absent.csv")
    with pytest.raises(UnreadableSource, match="not UTF-8"):
        PTable.from_csv(written("pcv,ckey,pvalue\né,0,0\n", "latin-1"))


def test_a_number_of_keys_is_for_intervals_alone(written):
    assert PTable.from_csv(written(LONG), modulus=2).modulus == 2
    with pytest.raises(InvalidNoise, match="2 keys"):
        PTable.from_csv(written(LONG), modulus=256)


def test_what_a_layout_cannot_hold_is_not_written(tmp_path):
    law = [{0: 1}, {-1: "1/2", 1: "1/2"}]
    with pytest.raises(InvalidArgument, match="not decimals"):
        PTable.from_rows(law, modulus=30).to_csv(tmp_path / "p.csv", layout="intervals")
    with pytest.raises(InvalidArgument, match='layout="intervals"'):
        PTable.from_rows(law, modulus=10**9).to_csv(tmp_path / "p.csv")
    with pytest.raises(InvalidArgument, match="layout"):
        PTable.from_rows(law, modulus=30).to_csv(tmp_path / "p.csv", layout="abs")
    assert not (tmp_path / "p.csv").exists()


def test_the_widest_key_survives_the_interval_layout(tmp_path):
    ptable = PTable.from_rows([{0: 1}, {-1: "1/3", 0: "1/3", 1: "1/3"}], modulus=2**62)
    ptable.to_csv(tmp_path / "p.csv", layout="intervals")
    assert PTable.from_csv(tmp_path / "p.csv", modulus=2**62) == ptable
