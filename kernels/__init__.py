"""The CUDA kernels that compute the numbers, and what this machine offers to run them."""
