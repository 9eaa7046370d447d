"""The algorithms under the roofline of a GPU."""
