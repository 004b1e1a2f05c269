"""What the studies of papers have in common: public data, repetitions, and a report in a module of its own."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

from tabulary.errors import InvalidArgument
from tabulary.studies import ReportSection, Sheets


class PaperStudy:
    """A study whose page is made by `sections(study, sheets)` of the module `report` beside it.

    `counts` names the fields that say how often something is done.
    """

    confidential: ClassVar[bool] = False
    counts: ClassVar[tuple[str, ...]] = ("repetitions",)

    def __post_init__(self) -> None:
        for name in self.counts:
            if getattr(self, name) < 2:
                raise InvalidArgument(
                    f"`{name}` is {getattr(self, name)}, and a spread needs 2 or more. Nothing was done."
                )

    def material(self) -> Any:
        """Return nothing: every piece of work makes what it needs."""
        return None

    def report(self, sheets: Sheets) -> Sequence[ReportSection]:
        """Return what the numbers say."""
        # Charts take longer to import than most pieces of work take.
        module = import_module(f"{type(self).__module__.rpartition('.')[0]}.report")
        found: Sequence[ReportSection] = module.sections(self, sheets)
        return found
