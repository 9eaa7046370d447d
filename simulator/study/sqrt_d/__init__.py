"""Why scores are divided by √d: random queries and keys, and those of a trained layer."""
