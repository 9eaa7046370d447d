"""The CUDA sources, and what launches them and reads what they record."""
