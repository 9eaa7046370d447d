"""What the code panel reads: the lines of the paper and of NumPy, and which op stands on which."""
