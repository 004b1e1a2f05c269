"""The pages of a table builder. The server makes them; they work without a script, and better with one."""
