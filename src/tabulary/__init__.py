"""Publish contingency tables from confidential records, with a guarantee that can be checked."""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary import cellkey, datasets, errors, infer, perturb, suppress, synth, toolbox
    from tabulary.client import connect
    from tabulary.confidential.coding import Coding
    from tabulary.confidential.records import Records
    from tabulary.confidential.weights import Weights
    from tabulary.core.domain import Domain
    from tabulary.core.neighbours import Neighbours
    from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
    from tabulary.core.table import Table
    from tabulary.core.workload import Workload
    from tabulary.ledger import Ledger
    from tabulary.planning import Plan, plan
    from tabulary.release import Release, ReleasedTable
    from tabulary.workflows.releasing import release

__version__ = "0.1.0"
__all__ = [
    "ZCDP",
    "ApproxDP",
    "Coding",
    "Domain",
    "Ledger",
    "Neighbours",
    "Plan",
    "PureDP",
    "Records",
    "Release",
    "ReleasedTable",
    "Table",
    "Weights",
    "Workload",
    "cellkey",
    "connect",
    "datasets",
    "errors",
    "infer",
    "perturb",
    "plan",
    "release",
    "suppress",
    "synth",
    "toolbox",
]

load_on_use(__name__)
