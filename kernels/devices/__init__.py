"""What kernels run on: a GPU through CuPy, or the CPU; and which engine a name means here."""
