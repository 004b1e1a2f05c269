"""The report of a table with suppressed cells, for people to read: one page of HTML that needs nothing else."""

from collections.abc import Mapping

import numpy as np

from tabulary.core.exact_numbers import show_fraction
from tabulary.core.suppressed_table import MARK, SuppressedTable
from tabulary.release.manifest import installed_version
from tabulary.release.pages import page_template
from tabulary.suppress.pages.promise import classical_promise, in_short, promise_of
from tabulary.suppress.pages.table_layout import LayoutEntry
from tabulary.suppress.pages.table_views import CellView, published_cell, table_view
from tabulary.suppress.simulatable_method.decisions import Decision
from tabulary.suppress.simulatable_method.simulatable import SimulatableTable
from tabulary.suppress.simulatable_method.suppressor import TABLE

MOST_DECISIONS = 400
"""The most decisions that a report lists; `table.json` has them all."""


# Of a smaller probability only that it is smaller is of interest.
_NEGLIGIBLE = 1e-6


def report_html(table: SuppressedTable, facts: Mapping[str, str] | None = None) -> str:
    """Return the report as a self-contained page: no script, no request, light and dark, ready to print.

    `facts` say in public words how the table was made.
    """
    simulatable = table if isinstance(table, SimulatableTable) else None
    page: str = page_template("suppressed.html.j2", "tabulary.suppress.pages").render(
        title=title_of(table),
        view=table_view(table, "cells", title_of(table), _Cells(simulatable).show),
        suppressed=int(table.suppressed.sum()),
        cells=table.counts.size,
        promise=classical_promise() if simulatable is None else promise_of(simulatable),
        facts=dict(facts or {}),
        course=[] if simulatable is None else list(in_short(simulatable)),
        decisions=[] if simulatable is None else [_row(d) for d in simulatable.decisions[:MOST_DECISIONS]],
        decisions_left_out=0 if simulatable is None else max(len(simulatable.decisions) - MOST_DECISIONS, 0),
        epsilon="" if simulatable is None else show_fraction(simulatable.epsilon),
        seed="" if simulatable is None else simulatable.seed,
        released=simulatable is None or simulatable.outcome == TABLE,
        mark=MARK,
        software=installed_version(),
    )
    return page


def title_of(table: SuppressedTable) -> str:
    """Return what a table is called."""
    *most, last = table.domain.attributes
    named = f"{', '.join(most)} and {last}" if most else last
    return table.title or f"{'Counts' if table.whole else 'Amounts'} by {named}"


class _Cells:
    """Each cell with its people, and how far it moved anyone's probability."""

    def __init__(self, simulatable: SimulatableTable | None) -> None:
        self._moved = None if simulatable is None else simulatable.deviations

    def show(self, entry: LayoutEntry) -> CellView:
        """Return one cell."""
        people = f"of {entry.people:,}" if entry.people is not None else ""
        moved = ""
        if self._moved is not None and not entry.is_sum and not np.isnan(self._moved[entry.index]):
            moved = f"moved {show_share(float(self._moved[entry.index]))}"
        return published_cell(entry, people, moved)


def show_share(share: float) -> str:
    """Return a share in percent, rounded upward so that it is never less than what is meant.

    >>> show_share(0.1201), show_share(0.0)
    ('12.1 %', '0.0 %')
    """
    return f"{np.ceil(round(share * 1000, 6)) / 10:.1f} %"


def show_chance(chance: float | None) -> str:
    """Return a probability, or a number of simulated answers, with the digits that count.

    >>> show_chance(0.01251), show_chance(0.0), show_chance(2.2e-16), show_chance(None)
    ('0.0125', '0', 'below 1e-6', '–')
    """
    if chance is None:
        return "–"
    return "below 1e-6" if 0 < chance < _NEGLIGIBLE else f"{chance:.3g}"


def _row(decision: Decision) -> tuple[str, str, str, str, str, str]:
    unsafe = show_chance(decision.unsafe)
    if decision.draws:
        unsafe = f"{unsafe} of {decision.draws:,}"
    answer = f"{decision.value:,}" if decision.value is not None else "withheld"
    return decision.asked, answer, unsafe, show_chance(decision.limit), decision.sampler, decision.reason
