"""What computes a run with NumPy, and what it is compared with; `kernels` has the CUDA engines."""
