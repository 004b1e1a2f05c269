"""Suppressed tables and attacks as files, grids and pages."""
