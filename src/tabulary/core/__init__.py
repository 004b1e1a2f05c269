"""The vocabulary: domains, workloads, tables, privacy. Frozen values; no input or output, no randomness."""
