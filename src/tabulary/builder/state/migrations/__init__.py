"""How the tables of the state came to be what they are, one step per file in `versions`. Alembic runs them."""
