"""Minimisation of corrected objectives."""
