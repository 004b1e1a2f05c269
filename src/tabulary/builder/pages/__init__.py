"""The pages of a table builder: made on the server, complete without a script, better with one."""
