"""The checks of `python -m kernels.check`, each of which needs a GPU."""
