"""Studies: experiments that anyone can repeat. They compare published tables with the truth; none is a release.

A study is a `Study`: pieces of work that `run` does over several processes and writes into a folder, and a page of
what their numbers say, with figures. `STUDIES` holds a command for each: a function whose parameters are the
options of `tabulary study NAME` and which returns the study to run. The core registers one, `risk-utility`, for the
plan of a custodian. Another package offers more as entry points of the group `tabulary.studies`.

What is public here is what such a package needs: the parts of a study and of its page, the charts of the house, and
small readers of rows. `risk_utility` is the experiment that compares perturbations.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use
from tabulary.registry import Registry

if TYPE_CHECKING:
    from tabulary.core.proportion import Proportion
    from tabulary.release.drawing import COLOURS, INK, SHAPES, SOFT, inline, styled
    from tabulary.studies.box_plots import Boxes, box_panels
    from tabulary.studies.curve_panels import Curve, Level, PanelAxis, curves
    from tabulary.studies.own_data import PlanStudy
    from tabulary.studies.perturbed_charts import perturbed_chart, perturbed_panels
    from tabulary.studies.perturbed_tables import (
        BOUND,
        EPSILONS,
        MEASURES,
        RiskUtility,
        compared_laws,
        measured,
        risk_utility,
    )
    from tabulary.studies.proportion import SIGNIFICANT, rejected, shown
    from tabulary.studies.running import run
    from tabulary.studies.selecting import chosen, distinct, number, numbers
    from tabulary.studies.study import Figure, Lab, ReportSection, Row, Sheets, Study, Summary, Task, Value

__all__ = [
    "BOUND",
    "COLOURS",
    "EPSILONS",
    "INK",
    "MEASURES",
    "SHAPES",
    "SIGNIFICANT",
    "SOFT",
    "STUDIES",
    "Boxes",
    "Curve",
    "Figure",
    "Lab",
    "Level",
    "PanelAxis",
    "PlanStudy",
    "Proportion",
    "ReportSection",
    "RiskUtility",
    "Row",
    "Sheets",
    "Study",
    "Summary",
    "Task",
    "Value",
    "box_panels",
    "chosen",
    "compared_laws",
    "curves",
    "distinct",
    "inline",
    "measured",
    "number",
    "numbers",
    "perturbed_chart",
    "perturbed_panels",
    "rejected",
    "risk_utility",
    "run",
    "shown",
    "styled",
]

STUDIES: "Registry[Callable[..., Study]]" = Registry("study", "tabulary.studies")
"""By name, what `tabulary study NAME` runs. See `docs/how-to/extend.md`."""

load_on_use(__name__)
