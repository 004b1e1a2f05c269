"""Cell keys: the same participants get the same perturbation. NOT differentially private, and labelled so.

Agencies perturb counts by a lookup: each record has a random key, a cell's key is the sum of its records' keys, and
a perturbation table says what to add for each key and count. The method is here because agencies use it, and for
comparison with methods that have a guarantee: `CellKeyTable.promise` says what it does not promise, and `tabulary
attack` shows it.

>>> ptable = PTable.from_rows([{0: 1}, {-1: "1/2", 1: "1/2"}, {-2: "1/4", 0: "1/2", 2: "1/4"}], modulus=256)
>>> ptable.mean(1), ptable.variance(2)
(Fraction(0, 1), Fraction(2, 1))
"""

from tabulary.cellkey.keys import RecordKeys, record_keys
from tabulary.cellkey.ptable import PTable
from tabulary.cellkey.records import KeyedRecords
from tabulary.cellkey.table import CellKeyTable, Custody, perturb

__all__ = [
    "CellKeyTable",
    "Custody",
    "KeyedRecords",
    "PTable",
    "RecordKeys",
    "perturb",
    "record_keys",
]
