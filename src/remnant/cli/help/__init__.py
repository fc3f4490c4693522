"""How commands read their arguments, and what their help looks like."""
