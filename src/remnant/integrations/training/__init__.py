"""Audits of one's own training: canaries in the data, scores along the way, a record at the end."""
