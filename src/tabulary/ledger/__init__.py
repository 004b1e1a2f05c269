"""Accounts of privacy budget: no debit, no measurement.

No record comes near it: a ledger contains names, budgets and costs, and all of them are public.
"""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.core.head import Head
    from tabulary.ledger.account import Account
    from tabulary.ledger.amounts import Amount, Balance
    from tabulary.ledger.chain import Entry
    from tabulary.ledger.ledger import Ledger
    from tabulary.ledger.witness import Witness

__all__ = ["Account", "Amount", "Balance", "Entry", "Head", "Ledger", "Witness"]

load_on_use(__name__)
