"""Pictures of everything that a user sees, and the bits of every engine, to compare two commits."""
