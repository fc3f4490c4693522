"""What is planted."""

from remnant.canaries.images import BY_LOSS, KINDS, by_loss, mislabelled, odd

__all__ = ["BY_LOSS", "KINDS", "by_loss", "mislabelled", "odd"]
