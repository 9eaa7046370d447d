"""Sequences of a server in pages of one cache, beside stretches that are reserved for each."""
