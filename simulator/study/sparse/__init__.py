"""Sparse patterns as masks, their price, and masks that the user writes as a function."""
