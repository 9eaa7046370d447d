"""What all else stands on: files and their limits, element types, errors. It needs nothing else of ours."""
