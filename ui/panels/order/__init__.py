"""What the order of tokens does: rows of O after a shuffle, and the reach of layers."""
