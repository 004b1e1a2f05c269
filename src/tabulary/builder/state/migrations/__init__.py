"""How the tables of the state came to be what they are, a step a file in `versions`. Alembic runs it."""
