"""What the table builder answers over HTTP: one module per kind of question."""
