"""Partial results of disjoint keys, merged in any order by the ops of the combine; sums of dQ."""
