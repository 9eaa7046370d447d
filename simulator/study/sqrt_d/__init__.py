"""Why scores are divided by √d: random queries and keys, and a trained layer's."""
