"""The checks of `python -m kernels.check`; each needs a GPU."""
