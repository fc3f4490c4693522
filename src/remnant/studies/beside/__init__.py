"""What stands beside the outcome of each question: its controls, and what contradicts it."""
