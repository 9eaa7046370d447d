"""A whole layer: its pictures, what a head of it does, and what more heads would cost."""
