"""What kernels run on: a GPU through CuPy, or the CPU; and which one a name means here."""
