"""Compiled kernels (sources in ``src/``).  Nothing here checks values: callers go through zil."""
