"""The law of a table given what is known of it: who stands in its cells, and what a question may be answered."""
