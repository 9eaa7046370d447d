"""The algorithms side by side on the same scenario."""
