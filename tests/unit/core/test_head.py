import pytest

from tabulary.core.head import Head, Receipt
from tabulary.errors import LedgerError

DIGEST, IDENTITY = "ab" * 32, "cd" * 16
RECEIPT = {"identity": IDENTITY, "account": "census 2021", "entries": 3, "digest": DIGEST}


@pytest.mark.parametrize("name", ["census", "census 2021", "Väestö", "인구"])
def test_a_head_is_one_line_that_reads_back(name):
    head = Head(name, 3, DIGEST)
    assert Head.parse(f"{head}\n") == Head.parse(str(head)) == head


@pytest.mark.parametrize(
    "text",
    [
        "",
        "census",
        f"3 {DIGEST}",
        f"3 {DIGEST} ",
        f"3 {DIGEST}  census",
        f"03 {DIGEST} census",
        f"-3 {DIGEST} census",
        f"٣ {DIGEST} census",
        f"{'9' * 5000} {DIGEST} census",
        f"3 {DIGEST.upper()} census",
        f"3 {DIGEST[:-1]} census",
        f"3 {DIGEST} cen\tsus",
        f"3 {DIGEST} census\n\n",
        f"3 {DIGEST} {'x' * 201}",
    ],
)
def test_what_is_no_head_is_refused(text):
    with pytest.raises(LedgerError, match="not a ledger head"):
        Head.parse(text)


def test_a_receipt_reads_back():
    assert Receipt.from_description(RECEIPT).describe() == RECEIPT


@pytest.mark.parametrize(
    "change",
    [
        {"identity": "cd"},
        {"identity": IDENTITY.upper()},
        {"account": ""},
        {"account": " census"},
        {"account": "cen\nsus"},
        {"account": 7},
        {"entries": 0},
        {"entries": True},
        {"entries": 1.0},
        {"entries": 10**18},
        {"digest": "ab"},
        {"digest": "zz" * 32},
        {"spent": "1/8"},
    ],
)
def test_what_no_ledger_has_written_is_no_receipt(change):
    with pytest.raises(LedgerError, match="the receipt of a ledger"):
        Receipt.from_description({**RECEIPT, **change})
    with pytest.raises(LedgerError, match="the receipt of a ledger"):
        Receipt.from_description([RECEIPT])
