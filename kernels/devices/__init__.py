"""The devices of kernels: a GPU through CuPy, or the CPU; and which engine a name means here."""
