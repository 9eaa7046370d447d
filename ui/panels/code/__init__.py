"""The lines that run now: of the paper, of NumPy, of the CUDA kernel."""
