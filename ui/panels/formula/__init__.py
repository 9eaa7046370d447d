"""The update of the op on show with its numbers, and where each of them came from."""
