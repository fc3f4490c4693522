"""Per-example gradients of layers in closed form: their norms, and weighted sums of them."""
