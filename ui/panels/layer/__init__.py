"""The whole layer: from X through the tiles to Y, and what its heads give."""
