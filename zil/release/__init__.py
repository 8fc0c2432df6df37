"""Publishing: the mechanism, what it publishes, and the files it writes."""
