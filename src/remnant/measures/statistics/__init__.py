"""Intervals, tests and rates that several measures share."""
