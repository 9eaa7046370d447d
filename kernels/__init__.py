"""CUDA kernels behind the numbers, and what this machine offers to run them."""
