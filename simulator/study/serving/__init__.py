"""A server that answers many sequences at once: what its cache holds, step by step."""
