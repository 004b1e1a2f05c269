"""The migrations of the state's tables, one step per file in `versions`. Alembic runs them."""
