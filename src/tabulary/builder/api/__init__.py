"""What the table builder answers over HTTP: one module a kind of question."""
