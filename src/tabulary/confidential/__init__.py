"""The only rooms that see a record: reading, encoding, counting."""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.confidential.tally import Tally

__all__ = ["Tally"]

load_on_use(__name__)
