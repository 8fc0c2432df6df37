"""Analyst side: losses, corrections for the noise, minimisation, inference."""
