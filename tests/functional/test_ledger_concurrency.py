"""Many processes, one account: nothing is overspent and nothing is lost."""

import subprocess
import sys

from tabulary.core.privacy import Neighbours, PureDP
from tabulary.ledger import Ledger

PROCESSES, ATTEMPTS, AFFORDABLE = 8, 500, 3000

SPENDER = """
import sys
from tabulary.core.privacy import Neighbours, PureDP
from tabulary.errors import BudgetExceeded
from tabulary.ledger import Ledger

path, name, attempts, affordable = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
accepted, refused = [], 0
with Ledger.open(path, timeout=120) as ledger:
    account = ledger.account("census")
    for number in range(attempts):
        try:
            entry = account.debit(
                PureDP(f"1/{affordable}"), Neighbours(), purpose=f"{name} {number}", plan_digest="ab" * 32
            )
        except BudgetExceeded:
            refused += 1
        else:
            accepted.append(entry.digest)
print(refused, *accepted)
"""


def test_eight_processes_spend_a_budget_to_the_last_fraction_and_not_beyond(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.create_account("census", PureDP(1), Neighbours())
    spenders = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(path), f"process {n}", str(ATTEMPTS), str(AFFORDABLE)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(PROCESSES)
    ]
    answers = [spender.communicate()[0].split() for spender in spenders]
    assert [spender.returncode for spender in spenders] == [0] * PROCESSES
    assert sum(int(answer[0]) for answer in answers) == PROCESSES * ATTEMPTS - AFFORDABLE
    with Ledger.open(path) as ledger:
        account = ledger.account("census")
        entries = account.entries()
        assert len(entries) == AFFORDABLE
        assert {entry.digest for entry in entries} == {digest for answer in answers for digest in answer[1:]}
        assert len({entry.purpose for entry in entries}) == AFFORDABLE
        assert account.spent() == PureDP(1)
        assert account.remaining() is None
        ledger.check()
