"""Answering questions for ever: what a table builder does, without its server."""
