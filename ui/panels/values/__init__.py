"""Exact values of cells."""
