"""Questions about many runs or none: comparisons, sweeps, rooflines, caches, experiments."""
