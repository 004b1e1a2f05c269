"""What a table builder remembers besides the ledger: tokens, sessions, a log, usage, and facts that must not change."""

from tabulary.builder.state.log import Action, Actor
from tabulary.builder.state.state import State
from tabulary.builder.state.tokens import Role, Token
from tabulary.builder.state.usage import Requests

__all__ = ["Action", "Actor", "Requests", "Role", "State", "Token"]
