"""The colours, dashes and shapes that every picture of the project shares; nothing slow is imported for them."""

INK, SOFT = "#1c2128", "#57606a"
COLOURS = ("#0b3c6f", "#b3470f", "#1f7a4d", "#7a3fa0", "#c28a00", "#4d4d4d", "#2a9bb5")

DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [12, 3], [4, 4], [1, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
