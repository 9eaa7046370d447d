"""The effect of the order of tokens: rows of O after a shuffle, and the reach of layers."""
