"""From CUDA sources to machine code: compiled by NVRTC at run time, or part of the bundle."""
