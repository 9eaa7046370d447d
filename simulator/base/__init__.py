"""What every other package builds on: files and their limits, element types, errors."""
