"""The only rooms that see a record: reading, encoding, counting."""

from tabulary.confidential.tally import Tally

__all__ = ["Tally"]
