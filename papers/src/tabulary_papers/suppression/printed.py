"""What Nabar & Mishra (2010) print: the ranges of section 3, and the numbers of section 6."""

FIGURE_1 = (((0, 55), (0, 105), (0, 55)), ((0, 55), (0, 105), (0, 55)))
"""Part (b): the least and the most that the sums leave each cell, rows by eyes, columns by hair."""

FIGURE_4 = ((103, 20, 38), (33, 91, 1), (44, 42, 77))
"""The hair and eye table as their perturbation released it at ε = 0.5, rows by eyes, columns by hair."""

SIDE = 10
"""Figure 5: so many rows and columns."""

LEFT_OUT = 0
"""Figure 5: the number of its cells that are suppressed."""

FAR_OFF = 0.10
"""Figure 5: the share of its cells that perturbation put off by more than a quarter."""
