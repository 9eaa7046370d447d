"""The update of the current op with its numbers, and where each of them came from."""
