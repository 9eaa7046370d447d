"""A whole layer: its pictures, the matrices of a head, and the cost of more heads."""
