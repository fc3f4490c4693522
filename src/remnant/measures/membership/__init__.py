"""Was this text trained on? Scores of texts by a model's token probabilities, and their limits."""
