"""Differentially private training: per-example clipping and Gaussian noise."""
