"""The NumPy engines and the float64 references; `kernels` has the CUDA engines."""
