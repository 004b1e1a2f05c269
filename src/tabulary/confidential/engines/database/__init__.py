"""The engine that counts in a database: any that speaks SQL, or DuckDB in this process."""
