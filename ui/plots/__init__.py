"""Plots: their model, layout, labels, painter and the widget that shows one."""
