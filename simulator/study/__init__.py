"""Questions about many runs, or about none: comparisons, sweeps, rooflines, caches, experiments."""
