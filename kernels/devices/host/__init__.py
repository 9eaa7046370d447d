"""The kernels on the CPU: the same CUDA sources, compiled by g++ or clang++, and their device."""
