"""Generation step by step: what a step brings, reads and costs, with a cache and without."""
