"""The engine that counts in a database: any SQL database, or DuckDB in this process."""
