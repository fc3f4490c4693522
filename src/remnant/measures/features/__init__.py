"""Reactions of a classifier to a patch, and the scores made from them."""
