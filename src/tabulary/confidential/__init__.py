"""The only rooms that see a record: reading, encoding, counting."""
