"""Publish contingency tables from confidential records, with a guarantee that can be checked."""

import importlib
from typing import TYPE_CHECKING, Any

from tabulary import datasets, errors
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

if TYPE_CHECKING:
    from tabulary import cellkey, infer, perturb, suppress, synth, toolbox

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

# Rooms that take a while to load and that many programs never enter.
_ROOMS = frozenset({"cellkey", "infer", "perturb", "suppress", "synth", "toolbox"})


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"tabulary.{name}")
    raise AttributeError(f"module 'tabulary' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS})
