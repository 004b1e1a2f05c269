"""Recoding as expressions of a database: one meaning in every dialect."""
