"""What a table builder remembers besides the ledger: tokens, sessions, usage, and facts that must not change."""

from tabulary.builder.state.state import State
from tabulary.builder.state.tokens import Role, Token
from tabulary.builder.state.usage import Requests

__all__ = ["Requests", "Role", "State", "Token"]
