"""Corrected objectives: terms, rows and their sums."""
