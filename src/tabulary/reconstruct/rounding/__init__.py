"""Whole numbers from real tables: one table by its margins, or many tables that agree."""
