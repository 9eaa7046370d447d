"""Attention as a smoother: keys as points, regression, the same again and again, other scores."""
