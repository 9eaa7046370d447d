"""What all else stands on: files and their limits, element types, errors; nothing else of ours."""
