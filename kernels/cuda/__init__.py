"""The CUDA sources, and the modules that launch them and read what they record."""
