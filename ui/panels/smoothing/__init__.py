"""Attention as a kernel smoother, and other scores."""
