"""Suppression with a proof: what is released is decided from what is public."""
