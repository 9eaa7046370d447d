"""A server that answers many sequences at once: its cache, in pages or in stretches."""
