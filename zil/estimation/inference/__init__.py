"""Standard errors of the estimates."""
