"""A run in which one can go to any cursor, and everything that is read from it there."""
