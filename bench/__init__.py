"""Benchmarks: each runs us and a peer side by side in one process, and prints the ratio."""
