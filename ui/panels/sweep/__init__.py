"""The costs of other sizes and tiles."""
