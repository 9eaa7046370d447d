"""Generation: a prompt in one pass, then a few tokens at a time, with a cache and without."""
