"""File formats: pixels in, files out."""
