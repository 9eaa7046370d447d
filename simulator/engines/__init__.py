"""What computes a run with NumPy, and what that is held against; `kernels` has the CUDA engines."""
