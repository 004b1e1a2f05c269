"""One line of JSON for each comparison, so that a run can be read by eye and by machine."""

import json
from typing import Any


def line(
    bench: str, peer: str, ours: float, theirs: float, target: float, *, unit: str, **details: Any
) -> dict[str, Any]:
    """Print and return one comparison; `ratio` says how many times cheaper ours is.

    >>> _ = line("draws", "peer", 0.5, 30.0, 50, unit="µs a draw", count=10)
    {"bench": "draws", "peer": "peer", "ours": 0.5, "theirs": 30.0, "ratio": 60.0, "target": 50, "unit": "µs a draw", "count": 10}
    """  # noqa: E501  (the line that is printed)
    comparison = {
        "bench": bench,
        "peer": peer,
        "ours": float(f"{ours:.4g}"),
        "theirs": float(f"{theirs:.4g}"),
        "ratio": float(f"{theirs / ours:.4g}"),
        "target": target,
        "unit": unit,
        **details,
    }
    print(json.dumps(comparison, ensure_ascii=False), flush=True)
    return comparison
