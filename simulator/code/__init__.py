"""The texts of the code panel: the lines of the paper and of NumPy, and which lines an op runs."""
