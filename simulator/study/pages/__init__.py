"""A server that answers many sequences at once: what its cache holds, and who can hold it."""
