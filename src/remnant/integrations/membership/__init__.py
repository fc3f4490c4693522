"""Audits of a finished model from two sets of records: those it was trained on, and others."""
