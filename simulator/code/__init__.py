"""What the code panel reads: the lines of the paper and of NumPy, and which lines an op runs."""
