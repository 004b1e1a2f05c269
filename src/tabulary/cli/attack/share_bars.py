"""The share of successes of an attack in the terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tabulary.core.proportion import Proportion

_WIDTH = 10


def share_bar(share: "Proportion") -> str:
    """Return a share as a bar, in percent, and with its 95 % interval."""
    full = round(_WIDTH * share.rate)
    low, high = share.interval(0.95)
    return f"{'█' * full}{'░' * (_WIDTH - full)} {share.rate:.0%} ({100 * low:.0f}-{100 * high:.0f})"
