"""From CUDA sources to machine code: at run time by NVRTC, or brought along."""
