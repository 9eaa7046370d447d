"""File formats: they get pixels and write files."""
