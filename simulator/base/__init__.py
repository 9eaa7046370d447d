"""The base of all other packages: files and their limits, element types, errors."""
