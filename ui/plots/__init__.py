"""Plots: their model, layout, labels and painter; the sweeps and the roofline are plots."""
