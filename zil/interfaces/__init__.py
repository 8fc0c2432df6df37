"""Ways in: the command line, the demo, and bridges to other libraries."""
