"""How well synthetic rows match the tables they were made from, computed from public data only."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tabulary.core.domain import Margin
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidTable
from tabulary.release import Release
from tabulary.synth.rows import SyntheticRecords

_WORST = 10


@dataclass(frozen=True)
class MarginFit:
    """One table: how far the rows are from the release, and the release from the truth, both as L1 over n.

    `distance` is between the shares of the rows and those of the released table. `noise` is the expected error of the
    release itself: the sum over cells of the mean absolute error of a normal law with the stated standard error.
    Where `distance` is much smaller than `noise`, better rows would say nothing more about the records.
    """

    margin: Margin
    cells: int
    distance: float
    noise: float


@dataclass(frozen=True)
class Utility:
    """The fit of every released table, worst first.

    >>> fit = Utility((MarginFit(("sex", "job"), 4, 0.02, 0.05), MarginFit(("sex",), 2, 0.01, 0.02)), 100)
    >>> print(fit)
    100 synthetic rows beside 2 released tables, L1 over n
    tables      mean    worst    noise of the release
    1-way     0.0100   0.0100                  0.0200
    2-way     0.0200   0.0200                  0.0500
    worst tables
    [sex job]            0.0200, noise 0.0500
    [sex]                0.0100, noise 0.0200
    """

    fits: tuple[MarginFit, ...]
    rows: int

    def of_order(self, order: int) -> tuple[MarginFit, ...]:
        """Return the fits of the tables on this many attributes."""
        return tuple(fit for fit in self.fits if len(fit.margin) == order)

    def mean(self, order: int) -> float:
        """Return the mean distance of the tables on this many attributes; NaN where there is none."""
        found = self.of_order(order)
        return float(np.mean([fit.distance for fit in found])) if found else float("nan")

    def __str__(self) -> str:
        lines = [f"{self.rows:,} synthetic rows beside {len(self.fits):,} released tables, L1 over n"]
        lines.append(f"{'tables':<8}{'mean':>8} {'worst':>8} {'noise of the release':>23}")
        for order in sorted({len(fit.margin) for fit in self.fits}):
            found = self.of_order(order)
            noise = np.mean([fit.noise for fit in found])
            worst = max(fit.distance for fit in found)
            lines.append(f"{f'{order}-way':<8}{self.mean(order):>8.4f} {worst:>8.4f} {noise:>23.4f}")
        lines.append("worst tables")
        for fit in self.fits[:_WORST]:
            lines.append(f"{show_margin(fit.margin):<20} {fit.distance:.4f}, noise {fit.noise:.4f}")
        return "\n".join(lines)

    def draw(self, stem: str | Path) -> tuple[Path, Path]:
        """Return the SVG and the PNG file that the picture was written to: one dot for each table."""
        # Importing Altair takes longer than making most rows.
        import altair as alt

        from tabulary.release.drawing import COLOURS, SOFT, inline, save_both, styled

        data = [
            {
                "order": f"{len(fit.margin)}-way",
                "distance": fit.distance,
                "noise": fit.noise,
                "name": show_margin(fit.margin) if place < 3 else "",
            }
            for place, fit in enumerate(self.fits)
        ]
        top = max([1e-4, *(max(fit.distance, fit.noise) for fit in self.fits)])
        scale, axis = alt.Scale(domain=[0, top * 1.05]), alt.Axis(tickCount=5)
        axes = {
            "x": alt.X(
                "noise:Q", title="noise of the release itself, L1 over n (expected)", scale=scale, axis=axis
            ),
            "y": alt.Y("distance:Q", title="rows from release, L1 over n", scale=scale, axis=axis),
        }
        dots = (
            alt.Chart(inline(data))
            .mark_point(filled=True, size=45, opacity=0.75)
            .encode(
                **axes,
                color=alt.Color("order:N", title=None, scale=alt.Scale(range=list(COLOURS))),
                shape=alt.Shape("order:N", title=None),
            )
        )
        names = (
            alt.Chart(inline(data))
            .mark_text(align="left", dx=7, dy=-4, color=SOFT)
            .encode(**axes, text="name:N")
        )
        even = (
            alt.Chart(inline([{"noise": 0.0, "distance": 0.0}, {"noise": top, "distance": top}]))
            .mark_line(strokeDash=[4, 4], color=SOFT)
            .encode(**axes)
        )
        chart = styled(
            (even + dots + names).properties(width=430, height=430),
            title="What the rows add to the error of the release",
            subtitle=f"{self.rows:,} synthetic rows; below the dashed line they add less than the noise did",
        )
        return save_both(chart, Path(stem))


def utility(rows: SyntheticRecords, release: Release) -> Utility:
    """Return how well rows match the tables of a release, and how accurate those tables are.

    Reads no record, so it may be published with the rows.
    """
    fits = []
    for margin in release.margins:
        if not margin:
            continue
        if not set(margin) <= set(rows.domain.attributes):
            raise InvalidTable(f"the rows do not have the attributes of table {show_margin(margin)}.")
        table = release[margin]
        total = float(table.total)
        if not total > 0:
            raise InvalidTable(
                f"the table {show_margin(margin)} counts nobody, so rows cannot be compared with it."
            )
        made = rows.table(*margin).counts
        distance = float(np.abs(made / len(rows) - np.asarray(table.counts) / total).sum())
        noise = float(np.sqrt(2 / np.pi) * table.standard_errors.sum() / total)
        fits.append(MarginFit(margin, made.size, distance, noise))
    return Utility(tuple(sorted(fits, key=lambda fit: -fit.distance)), len(rows))
