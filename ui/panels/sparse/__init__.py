"""Sparse patterns beside dense attention, and a mask painted by hand."""
