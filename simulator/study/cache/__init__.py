"""A cache that is made smaller: tokens that are evicted, and elements of fewer bits."""
