"""The engine that counts on a Spark cluster."""
