"""The whole layer: from X through the tiles to Y, and the shares of its heads."""
