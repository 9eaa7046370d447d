"""Pure painters: the parts of the picture, drawn from a snapshot alone."""
